"""CSV files of any dialect: the same table as the plain file, or one line that says what to do."""

import gzip
from pathlib import Path

import pyarrow as pa
import pytest

from ldpaudit.datasets.formats import csv_file, open_table
from ldpaudit.datasets.formats.tables import read_whole
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions

PLAIN = {
    "name": ["Zoë", "Øre; x", "café"],
    "n": [1, 20, 300],
    "x": [1.5, -0.25, 1234.5],
    "when": ["2020-01-31"] * 3,
}


def text(separator: str = ",", decimal: str = ".", end: str = "\n") -> str:
    rows = [[*map(str, row)] for row in zip(*PLAIN.values(), strict=True)]
    for row in rows:
        row[2] = row[2].replace(".", decimal)
    quoted = [
        [f'"{cell}"' if separator in cell or ";" in cell else cell for cell in row] for row in rows
    ]
    return end.join(separator.join(row) for row in [[*PLAIN], *quoted]) + end


WRITTEN = {
    "as usual": (text(), "utf-8", ""),
    "semicolons": (text(";", ","), "utf-8", "CSV with ';' between its fields, decimal comma"),
    "western": (text(";"), "cp1252", "CSV with ';' between its fields, the encoding cp1252"),
    "tabs": (text("\t", ","), "utf-8", "CSV with tabs between its fields, decimal comma"),
    "pipes": (text("|"), "utf-8", "CSV with '|' between its fields"),
    "utf-16": (text(), "utf-16", "CSV with the encoding utf-16"),
    "mark": (text(), "utf-8-sig", ""),
    "hint": ("sep=;\n" + text(";", ","), "utf-8", "';' between its fields, decimal comma"),
    "windows": (text(";", ",", "\r\n"), "cp1252", "decimal comma, the encoding cp1252"),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_dialect_is_found_and_said(case: str, tmp_path: Path) -> None:
    content, encoding, said = WRITTEN[case]
    (tmp_path / "t.csv").write_bytes(content.encode(encoding))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content.encode(encoding)))
    for name in ("t.csv", "t.csv.gz"):
        source = open_table(tmp_path / name)
        found = read_whole(source)
        assert found["name"].to_pylist() == PLAIN["name"]
        assert found["n"].to_pylist() == PLAIN["n"]
        assert found["x"].to_pylist() == PLAIN["x"]
        assert pa.types.is_date(found["when"].type)
        assert said in source.remark if said else source.remark == ""
        whole = dict(open_table(tmp_path / name).columns([*PLAIN], as_text=["x"]))
        assert [float(x) for x in whole["x"].to_pylist()] == PLAIN["x"]
        assert whole["n"].to_pylist() == PLAIN["n"]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        ("a;b\n1.234;x\n5.678;y\n", {"decimal": "."}, [1.234, 5.678]),
        ("a;b\n1.234;x\n5.678;y\n", {"decimal": "comma"}, [1234, 5678]),
        ("a;b\n1.234,5;x\n12.345.678;y\n", {}, [1234.5, 12345678.0]),
        ('a,b\n"1,234.5",x\n"1,000",y\n', {}, [1234.5, 1000.0]),
        ('a,b\n"1,5",x\n"2,5",y\n', {"decimal": ","}, [1.5, 2.5]),
        ('a,b\n"1,5",x\n"2,5",y\n', {"decimal": "."}, ["1,5", "2,5"]),
        ("a;b\n 1,5 ;x\n 2 ;y\n", {}, [1.5, 2.0]),
        ("a,b\n 1.5 ,x\n 2 ,y\n", {}, [1.5, 2.0]),
        ("a;b\n1 234,5;x\n12\u00a0345\u202f678;y\n", {}, [1234.5, 12345678.0]),
        ("a,b\n1 234,x\n5,y\n", {}, [1234, 5]),
        ("a,b\n12 34,x\n5,y\n", {}, ["12 34", "5"]),
        ("a:b\n1:x\n2:y\n", {"separator": ":"}, [1, 2]),
        ("a b\n1 x\n2 y\n", {"separator": "space"}, [1, 2]),
        ("a;b\n1,234;x\n0,5;y\n", {}, [1.234, 0.5]),
        ("a;b\nNA;x\n1,5;y\n", {}, [None, 1.5]),
        ('a,"b;c"\n1,x\n2,y\n', {}, [1, 2]),
        ("a\n1\n2\n", {}, [1, 2]),
    ],
)
def test_numbers_as_they_are_meant(
    content: str, options: dict[str, str], expected: list[object], tmp_path: Path
) -> None:
    (tmp_path / "t.csv").write_text(content)
    source = open_table(tmp_path / "t.csv", FileOptions(**options))
    assert read_whole(source)["a"].to_pylist() == expected
    assert next(source.columns(["a"]))[1].to_pylist() == expected


@pytest.mark.parametrize(
    ("content", "option"),
    [
        ("a;b\n1,234;x\n5,678;y\n", "--decimal"),
        ("a;b\n1.234;x\n5.678;y\n", "--decimal"),
        ("a;b\n1,5;2.5\n2,5;1\n", "--decimal"),
        ("a;b\n1,5;1.234\n2,5;4.321\n", "--decimal"),
        ('a,b\n"1,5",x\n"2,5",y\n', "--decimal"),
        ('a,b\n"1,234",x\n"2,500",y\n', "--decimal"),
        ("a,x;b\n1,5;2\n3,4;5\n", "--separator"),
        ("a,b\nзвезда,1\nсветит,2\n".encode("cp1251"), "--encoding"),
        ("a,b\nä,1\n".encode("utf-16-le"), "--encoding"),
        ("a;b\n" + "1,5;2,5\n" * 20_000 + "2.5;3\n", "--decimal"),
        ("a,b\n" + "15,25\n" * 20_000 + '"2,5",3\n', "--decimal"),
        ("a;b\n" + "1,5;2,5\n" * 20_000 + "1.234;3\n", "--decimal"),
        ("a;b\n" + "1,5;2,5\n" * 20_000 + "1 234;3\n", "--decimal"),
        (("a,b\n" + "15,x\n" * 20_000 + "15,é\n").encode("cp1252"), "--encoding"),
    ],
)
def test_what_is_not_clear_is_refused(content: str | bytes, option: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for read in (lambda s: read_whole(s), lambda s: list(s.columns(["a", "b"]))):
        with pytest.raises(InputError, match=option) as caught:
            read(open_table(path))
        assert not any(cell in str(caught.value) for cell in ("234", "2.5", "2,5", "звезда"))


def test_a_contradiction_in_a_later_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_file, "ROW_BYTES", 1 << 12)
    (tmp_path / "t.csv").write_text("a;b\n" + "1,5;x\n" * 20_000 + "n/a;x\n" * 2000 + "2.5;x\n")
    with pytest.raises(InputError, match="further down"):
        _ = open_table(tmp_path / "t.csv").schema


@pytest.mark.parametrize(
    ("options", "word"),
    [({"separator": "ab"}, "--separator"), ({"decimal": ";"}, "--decimal")]
    + [({"encoding": name}, "--encoding") for name in ("nonsense", "hex", "rot13")],
)
def test_options_that_say_nothing(options: dict[str, str], word: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=word):
        open_table(tmp_path / "t.csv", FileOptions(**options))


def test_a_wrong_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a,b\nü,1\n".encode("cp1252"))
    with pytest.raises(InputError, match="not all in the encoding utf-8; say"):
        open_table(tmp_path / "t.csv", FileOptions(encoding="utf8"))


def test_a_wide_header_is_no_riddle(tmp_path: Path) -> None:
    names = [f"gene|{i}" for i in range(20_000)]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + ",".join("1" * 20_000) + "\n")
    assert len(open_table(tmp_path / "t.csv").names) == 20_000
