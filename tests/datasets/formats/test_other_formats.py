"""JSON lines, Feather, Excel and NumPy files: the same release as from Parquet."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

from ldpaudit.datasets import declare, read_release
from ldpaudit.datasets.formats import locations, open_table
from ldpaudit.datasets.formats.tables import read_whole
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions
from ldpaudit.release import Declaration

FRAME = pd.DataFrame(
    {
        "age": [30, 41, 52] * 20,
        "town": ["Oslo", "Ulm", None] * 20,
        "pay": [1.5, 2.0, None] * 20,
        "label": ["no", "yes", "no", "no"] * 15,
    }
)
CLAIM = Declaration("randomized-response", {"classes": ["no", "yes"], "epsilon": 1.0})


def write(path: Path) -> Path:
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
def test_a_release_of_any_format(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(locations, "_LINES", 200)
    path = write(tmp_path / name)
    ours = read_release(path, truth=path, declaration=CLAIM).release
    usual = read_release(FRAME, truth=FRAME["label"], declaration=CLAIM).release
    np.testing.assert_array_equal(ours.features.numeric, usual.features.numeric)
    np.testing.assert_array_equal(ours.features.categorical, usual.features.categorical)
    np.testing.assert_array_equal(ours.truth, usual.truth)
    source = open_table(path)
    assert source.row_count == 60
    assert read_whole(source).num_rows == 60
    assert next(iter(source.batches(["label", "age"]))).schema.names == ["label", "age"]
    assert len(ours.sha256 or "") == 64


def test_large_json_lines_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "_LINES", 500)
    path = write(tmp_path / "t.jsonl")
    ours = read_release(path, declaration=CLAIM).release
    usual = read_release(FRAME, declaration=CLAIM).release
    np.testing.assert_array_equal(ours.features.numeric, usual.features.numeric)
    np.testing.assert_array_equal(ours.released, usual.released)


def test_types_of_json_fit_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    "i.xlsx": (b"zzz", "damaged"),
    "j.npz": (b"zzz", "damaged"),
    "k.xls": (b"zzz", "save it as .xlsx or CSV"),
    "l.ods": (b"zzz", "save it as .xlsx or CSV"),
    "m.json": (b"[]", "one object a line"),
    "n.sav": (b"zzz", "export the table"),
    "o.csv.gz": (gzip.compress(b"a,b\n" + b"zzz,1\n" * 9000)[:-9], "is truncated"),
}


@pytest.mark.parametrize("name", BAD)
def test_broken_files(name: str, tmp_path: Path) -> None:
    content, word = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=word) as caught:
        read_whole(open_table(tmp_path / name))
    assert "zzz" not in str(caught.value)


def test_arrays_of_numpy(tmp_path: Path) -> None:
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
    with pytest.raises(InputError):
        open_table(tmp_path / "t.npz")


def sheet(path: Path, *sheets: tuple[str, list[list[Any]]]) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="Excel files need openpyxl")
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        page = book.create_sheet(title)
        for row in rows:
            page.append(row)
    book.save(path)
    return path


def test_sheets(tmp_path: Path) -> None:
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
        ([["a", "a"], [1, 2]], "distinct"),
        ([], "is empty"),
    ],
)
def test_bad_sheets(rows: list[list[Any]], word: str, tmp_path: Path) -> None:
    path = sheet(tmp_path / "t.xlsx", ("zzz", rows))
    with pytest.raises(InputError, match=word) as caught:
        open_table(path)
    assert "zzz" not in str(caught.value)


def test_feather_holds_its_declaration(tmp_path: Path) -> None:
    table = declare(pa.Table.from_pandas(FRAME, preserve_index=False), CLAIM, "label")
    pa.feather.write_feather(table, tmp_path / "t.feather")
    assert read_release(tmp_path / "t.feather").release.declaration is not None


def test_json_lists_without_any_value(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"a": [null, null]}\n' * 5)
    assert read_whole(open_table(tmp_path / "t.jsonl")).to_pydict() == {"a": [[None, None]] * 5}
