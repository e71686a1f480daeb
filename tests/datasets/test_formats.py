"""JSON lines, Feather, Excel and NumPy files: the same release as from Parquet."""

import datetime
import gzip
import json
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets import declare, read_release, write_release
from ldpaudit.datasets.formats import csv_file, locations, open_table
from ldpaudit.datasets.formats.tables import read_whole
from ldpaudit.errors import InputError, OutputError
from ldpaudit.extras.kinds.files.written import TableFile
from ldpaudit.options import FileOptions
from ldpaudit.release import Declaration
from ldpaudit.work.files import WholeFiles

FRAME = pd.DataFrame(
    {
        "age": [30, 41, 52] * 20,
        "town": ["Oslo", "Ulm", None] * 20,
        "pay": [1.5, 2.0, None] * 20,
        "label": ["no", "yes", "no", "no"] * 15,
    }
)
CLAIM = Declaration("randomized-response", {"classes": ["no", "yes"], "epsilon": 1.0})


def write(path):
    """Write the table in the format that the name says."""
    text = FRAME.to_json(orient="records", lines=True)
    if path.name.endswith(".jsonl.gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix in (".jsonl", ".ndjson"):
        path.write_text(text)
    elif path.suffix == ".xlsx":
        pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
        FRAME.to_excel(path, index=False)
    elif path.suffix == ".arrow":
        table = pa.Table.from_pandas(FRAME, preserve_index=False)
        with pa.ipc.new_stream(path, table.schema) as stream:
            stream.write_table(table, 7)
    else:
        pa.feather.write_feather(FRAME, path, chunksize=7)
    return path


@pytest.mark.parametrize(
    "name", ["t.jsonl", "t.jsonl.gz", "t.ndjson", "t.feather", "t.arrow", "t.xlsx"]
)
def test_a_release_of_any_format(name, tmp_path, monkeypatch):
    monkeypatch.setattr(locations, "_LINES", 200)
    path = write(tmp_path / name)
    ours = read_release(path, truth=path, declaration=CLAIM).release
    usual = read_release(FRAME, truth=FRAME["label"], declaration=CLAIM).release
    np.testing.assert_array_equal(ours.features.numeric, usual.features.numeric)
    np.testing.assert_array_equal(ours.features.categorical, usual.features.categorical)
    np.testing.assert_array_equal(ours.truth, usual.truth)
    source = open_table(path)
    assert (source.row_count, read_whole(source).num_rows) == (60, 60)
    assert next(iter(source.batches(["label", "age"]))).schema.names == ["label", "age"]
    assert len(ours.sha256 or "") == 64


def test_labels_and_ids_of_json_stay_the_texts_that_they_are(tmp_path):
    days, ids = ["2020-01-01", "2021-01-01"] * 20, [f"2020-01-01 00:00:{i:02}" for i in range(40)]
    frame = pd.DataFrame({"label": days, "id": ids, "seen": ids})
    frame.to_json(tmp_path / "r.jsonl", orient="records", lines=True)
    claim = Declaration("randomized-response", {"classes": days[:2], "epsilon": 1.0})
    options = {"id_column": "id", "declaration": claim, "truth": frame[["id", "label"]]}
    release = read_release(tmp_path / "r.jsonl", **options).release
    assert release.classes == tuple(days[:2])
    assert (release.truth == release.released).all()
    assert release.features.numeric.shape == (40, 1)  # In days.


def test_folders_whose_values_are_codes(tmp_path):
    for folder in ("state=01/year=2020", "state=1/year=2020", "state=10/year=2021"):
        (tmp_path / folder).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1.0]}), tmp_path / folder / "part.parquet")
    found = read_whole(open_table(tmp_path)).to_pydict()
    assert (found["state"], found["year"]) == (["01", "1", "10"], [2020, 2020, 2021])


def test_large_json_lines_in_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(locations, "_LINES", 500)
    path = write(tmp_path / "t.jsonl")
    ours = read_release(path, declaration=CLAIM).release
    usual = read_release(FRAME, declaration=CLAIM).release
    np.testing.assert_array_equal(ours.features.numeric, usual.features.numeric)
    np.testing.assert_array_equal(ours.released, usual.released)


def test_types_of_json_fit_every_line(tmp_path, monkeypatch):
    monkeypatch.setattr(locations, "_LINES", 10)
    rows = [{"a": 1}, {"a": 2.5, "b": [1]}, {"b": [2.5], "t": "2020-01-02"}, {"t": "x"}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    found = read_whole(open_table(tmp_path / "t.jsonl")).to_pydict()
    assert found == {
        "a": [1.0, 2.5, None, None],
        "b": [None, [1.0], [2.5], None],
        "t": [None, None, "2020-01-02", "x"],
    }


BAD = {
    "a.jsonl": (b'{"a": 1}\n{"a": "zzz"}\n', "mixes"),
    "b.jsonl": (b"[1, 2]\n", "one JSON object a line"),
    "c.jsonl": (b'{"a": 1, "zzz"', "one JSON object a line"),
    "d.jsonl": (b"", "holds no objects"),
    "e.jsonl.gz": (gzip.compress(b'{"a": "zzz"}\n' * 90)[:-9], "is truncated"),
    "f.feather": (b"ARROW1zzz", "damaged"),
    "g.feather": (b"", "is empty"),
    "h.feather": (b"FEA1zzz", "first version"),
    "i.xlsx": (b"\1zzz", "damaged"),
    "j.npz": (b"\1zzz", "damaged"),
    "k.xls": (b"zzz", "save it as .xlsx or CSV"),
    "l.ods": (b"zzz", "save it as .xlsx or CSV"),
    "m.json": (b"[]", "one object a line"),
    "n.sav": (b"\1zzz", "is no file of SPSS"),
    "p.jsonl": (b'{"a": 18446744073709551615}\n', "below 2⁶³"),
    "q.csv": (b"\n\nzzz,b\n1,2\n", "first line of 'q.csv' must name the columns; it is empty"),
    "o.csv.gz": (gzip.compress(b"a,b\n" + b"zzz,1\n" * 9000)[:-9], "is truncated"),
}


@pytest.mark.parametrize("name", BAD)
def test_broken_files(name, tmp_path):
    content, word = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=word) as caught:
        read_whole(open_table(tmp_path / name))
    assert "zzz" not in str(caught.value)


def test_arrays_of_numpy(tmp_path):
    rng = np.random.default_rng(0)
    images, label = rng.random((40, 2, 3)), np.array(["a", "b"] * 20)
    np.savez(tmp_path / "t.npz", images=images, label=label)
    release = read_release(tmp_path / "t.npz").release
    assert release.features.numeric.shape == (40, 6)
    for arrays in ({"x": np.zeros(3), "y": np.zeros(4)}, {"x": np.float64(1)}):
        np.savez(tmp_path / "t.npz", **arrays)
        with pytest.raises(InputError, match="arrays of"):
            open_table(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", x=np.array([{}, {}], dtype=object))
    with pytest.raises(InputError, match="Python objects"):
        open_table(tmp_path / "t.npz")
    np.savez(tmp_path / "t.npz", x=np.array([1, 2], dtype=">i8"), y=np.array([b"a\0b", b"a\0c"]))
    found = read_whole(open_table(tmp_path / "t.npz")).to_pydict()
    assert found == {"x": [1, 2], "y": [b"a\0b", b"a\0c"]}


def sheet(path, *sheets):
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        page = book.create_sheet(title)
        for row in rows:
            page.append(row)
    book.save(path)
    return path


def test_sheets(tmp_path):
    one, two = [["a", "b"], [1, "#N/A"], [2.5, "x"], [None, None]], [["c"], ["zzz"]]
    path = sheet(tmp_path / "t.xlsx", ("first", one), ("second", two))
    source = open_table(path)
    assert "the first of 2 sheets" in source.remark
    assert read_whole(source).to_pydict() == {"a": [1.0, 2.5], "b": [None, "x"]}
    for name in ("second", "2"):
        assert open_table(path, FileOptions(sheet=name)).names == ("c",)
    with pytest.raises(InputError, match="no such sheet"):
        open_table(path, FileOptions(sheet="zzz"))


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        ([["a"], [1], ["zzz"]], "Column 1 of 't.xlsx' mixes"),
        ([["a"], [1], [True]], "mixes"),
        ([["a"], [1, "zzz"]], "must name every column"),
        ([["a", "a"], [1, 2]], "a name of its own"),
        ([], "is empty"),
    ],
)
def test_bad_sheets(rows, word, tmp_path):
    path = sheet(tmp_path / "t.xlsx", ("zzz", rows))
    with pytest.raises(InputError, match=word) as caught:
        open_table(path)
    assert "zzz" not in str(caught.value)


def test_feather_holds_its_declaration(tmp_path):
    table = declare(pa.Table.from_pandas(FRAME, preserve_index=False), CLAIM, "label")
    pa.feather.write_feather(table, tmp_path / "t.feather")
    assert read_release(tmp_path / "t.feather").release.declaration is not None


def test_json_lists_without_any_value(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"a": [null, null]}\n' * 5)
    assert read_whole(open_table(tmp_path / "t.jsonl")).to_pydict() == {"a": [[None, None]] * 5}


PLAIN = {
    "name": ["Zoë", "Øre; x", "café"],
    "n": [1, 20, 300],
    "x": [1.5, -0.25, 1234.5],
    "when": ["2020-01-31"] * 3,
}


def text(separator=",", decimal=".", end="\n"):
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
def test_a_dialect_is_found_and_said(case, tmp_path):
    content, encoding, said = WRITTEN[case]
    (tmp_path / "t.csv").write_bytes(content.encode(encoding))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(content.encode(encoding)))
    for name in ("t.csv", "t.csv.gz"):
        source = open_table(tmp_path / name)
        found = read_whole(source)
        assert (found["name"].to_pylist(), found["n"].to_pylist()) == (PLAIN["name"], PLAIN["n"])
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
def test_numbers_as_they_are_meant(content, options, expected, tmp_path):
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
def test_what_is_not_clear_is_refused(content, option, tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    for read in (lambda s: read_whole(s), lambda s: list(s.columns(["a", "b"]))):
        with pytest.raises(InputError, match=option) as caught:
            read(open_table(path))
        assert not any(cell in str(caught.value) for cell in ("234", "2.5", "2,5", "звезда"))


def test_a_contradiction_in_a_later_block(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_file, "ROW_BYTES", 1 << 12)
    (tmp_path / "t.csv").write_text("a;b\n" + "1,5;x\n" * 20_000 + "n/a;x\n" * 2000 + "2.5;x\n")
    with pytest.raises(InputError, match="further down"):
        _ = open_table(tmp_path / "t.csv").schema


@pytest.mark.parametrize(
    ("options", "word"),
    [({"separator": "ab"}, "--separator")]
    + [({"decimal": mark}, "--decimal") for mark in (";", "", ".,")]
    + [({"encoding": name}, "--encoding") for name in ("nonsense", "hex", "rot13")],
)
def test_options_that_say_nothing(options, word, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=word):
        open_table(tmp_path / "t.csv", FileOptions(**options))


def test_a_wrong_encoding_is_named(tmp_path):
    (tmp_path / "t.csv").write_bytes("a,b\nü,1\n".encode("cp1252"))
    with pytest.raises(InputError, match="not all in the encoding utf-8; say"):
        open_table(tmp_path / "t.csv", FileOptions(encoding="utf8"))


def test_a_wide_header_is_no_riddle(tmp_path):
    names = [f"gene|{i}" for i in range(20_000)]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n" + ",".join("1" * 20_000) + "\n")
    assert len(open_table(tmp_path / "t.csv").names) == 20_000


TABLE = pa.table({"x": [1.0, 2.0] * 10, "label": ["a", "b"] * 10})
BATCH = pa.record_batch({"x": [1, 2, 3]})


def test_what_is_written_is_read(tmp_path):
    claim = Declaration("randomized-response", {"classes": ["a", "b"], "epsilon": 1.0})
    path = write_release(declare(TABLE, claim, "label"), tmp_path / "r.parquet")
    assert read_release(path).release.declaration == claim
    assert [p.name for p in tmp_path.iterdir()] == ["r.parquet"]


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_decimals_are_written_as_the_numbers_that_they_are(name, tmp_path):
    texts = ["1E-10", "0", "100", "-100.5", "12345678.0000000001"]
    fine = pa.array(map(Decimal, texts), pa.decimal128(24, 10))
    table = pa.table({"fine": fine, "whole": fine.cast(pa.decimal128(24, 0), safe=False)})
    with WholeFiles() as files:
        written = TableFile(files.add(tmp_path / name), table.schema)
        written.write(*table.to_batches())
    found = read_whole(open_table(tmp_path / name)).to_pydict()
    assert found == {"fine": [*map(float, texts)], "whole": [0, 0, 100, -100, 12345678]}


@pytest.mark.parametrize("zone", [None, datetime.UTC])
def test_days_and_times_in_one_column_are_refused(zone):
    times = [datetime.date(2020, 1, 2)] if zone is None else [datetime.datetime(2020, 1, 2)]
    times.append(datetime.datetime(2020, 1, 1, 5, tzinfo=zone))
    with pytest.raises(InputError, match="Column 1 mixes"):
        read_whole(open_table(pd.DataFrame({"t": pd.Series(times, dtype=object)})))


def test_a_file_is_replaced_only_on_request(tmp_path):
    path = write_release(TABLE, tmp_path / "r.parquet")
    with pytest.raises(OutputError, match="exists already"):
        write_release(TABLE.slice(0, 4), path)
    assert pq.read_table(path).num_rows == 20
    write_release(TABLE.slice(0, 4), path, overwrite=True)
    assert pq.read_table(path).num_rows == 4


def test_one_changed_byte_of_data_is_found(tmp_path):
    path = write_release(
        pa.table({"x": range(1000), "label": [0, 1] * 500}), tmp_path / "r.parquet"
    )
    content = bytearray(path.read_bytes())
    content[2000] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        read_release(path)


def test_a_file_that_came_in_between_is_kept(tmp_path):
    with pytest.raises(OutputError, match="exists already"), WholeFiles(overwrite=False) as files:  # noqa: PT012
        for name in ("one.parquet", "two.parquet"):
            TableFile(files.add(tmp_path / name), BATCH.schema).write(BATCH)
        (tmp_path / "two.parquet").write_bytes(b"somebody else's")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"somebody else's"]


def test_a_batch_of_another_type_is_an_error(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"), WholeFiles() as files:
        TableFile(files.add(tmp_path / "one.parquet"), BATCH.schema).write(TABLE.to_batches()[0])
    assert not list(tmp_path.iterdir())
