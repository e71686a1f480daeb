"""Files made to be large: refused with one line before memory or minutes are spent on them."""

import gzip
import io
import json
import sys
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from security.readers.fronts import attempt, in_child

from ldpaudit.datasets.formats import arrow, csv_file, locations, open_table
from ldpaudit.datasets.formats.tables import held_to
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.files import json_lines, loaded
from ldpaudit.extras.kinds.files.sparse import open_sparse
from ldpaudit.work import limits

MOST, FREE = 1000, 1 << 20
"""Smaller limits than those in use, for small files."""


WIDE = [f"c{i}" for i in range(MOST + 1)]


def written(text):
    """Return what writes a text, compressed where the file's name says so."""

    def make(path):
        content = text.encode()
        path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)

    return make


def _nested_type(path):
    kind = pa.int8()
    for _ in range(150):
        kind = pa.list_(kind)
    pq.write_table(pa.table({"label": ["A"], "x": pa.nulls(1, kind)}), path)


def _claimed(path):
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("label.npy", header.getvalue() + bytes(80))


def _unpacked(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", bytes(FREE + 1))


def _sheet(old, new):
    """Return what makes a workbook and changes the bytes of its sheet."""

    def make(path):
        book, out = openpyxl.Workbook(), io.BytesIO()
        for row in (("label", "x"), ("A", 1), ("B", 2)):
            book.active.append(row)
        book.save(out)
        with zipfile.ZipFile(out) as before, zipfile.ZipFile(path, "w") as after:
            for entry in before.infolist():
                content = before.read(entry)
                if entry.filename.endswith("sheet1.xml"):
                    assert old in content
                    content = content.replace(old, new)
                after.writestr(entry.filename, content)

    return make


CASES = {
    "columns of CSV": ("t.csv", written(",".join(WIDE) + "\n1"), "1,001 columns"),
    "columns of Parquet": (
        "t.parquet",
        lambda path: pq.write_table(pa.table({f"c{i}": [1.0] for i in range(3 * MOST + 1)}), path),
        "at most 1,000 can be read",
    ),
    "keys of JSON": ("t.jsonl", written(json.dumps(dict.fromkeys(WIDE, 1))), "columns can be read"),
    "a header without end": ("t.csv.gz", written("a" * (1 << 20)), "longer than 65,536 characters"),
    "a compressed bomb": (
        "t.csv.gz",
        written("label,x\n" + "A,1\n" * (1 << 19)),
        "too large when unpacked",
    ),
    "lists in lists": (
        "t.jsonl",
        written('{"label": "A", "x": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        "nested too deeply: at most 64",
    ),
    "types in types": ("t.parquet", _nested_type, "nested too deeply"),
    "an array that claims to be large": ("t.npz", _claimed, "not of its size"),
    "arrays that are zeros": ("t.npz", _unpacked, "too large when unpacked"),
    "a workbook that is zeros": ("t.xlsx", _unpacked, "too large when unpacked"),
    "a sheet's last column": ("t.xlsx", _sheet(b'r="B3"', b'r="XFD3"'), "must name every column"),
    "empty cells far out": (
        "t.xlsx",
        _sheet(b'<c r="B3" t="n"><v>2</v></c>', b'<c r="XFD3"/>' + b'</row><row><c r="XFD4"/>' * 9),
        "at most 32,768 cells, empty ones among them",
    ),
    "a cell": (
        "t.csv",
        written("label,x\nA,1\nB," + "z" * (4 * limits.ROW_BYTES) + "\n"),
        "longer than 4 MiB, or a quote is not closed",
    ),
    "an index": ("t.svm", written("1 99999999999999999999:1\n"), "indices from 0 to 2147483646"),
}


def _read(path):
    if path.suffix == ".svm":
        open_sparse(str(path)).read()
        return
    table = open_table(path)
    list(table.columns(table.names))


@pytest.mark.parametrize("case", CASES)
def test_what_is_too_large_is_refused_at_once(case, tmp_path, monkeypatch):
    name, make, message = CASES[case]
    for module in (json_lines, locations, arrow):
        monkeypatch.setattr(module, "COLUMNS", MOST)
    monkeypatch.setattr(csv_file, "HEADER_BYTES", 1 << 16)
    monkeypatch.setattr(locations, "UNPACKED_FREE", FREE)
    monkeypatch.setattr(loaded, "SHEET_CELLS", 1 << 15)
    make(tmp_path / name)
    with pytest.raises(InputError, match=message) as caught:
        _read(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_what_a_sheet_says_of_its_own_size_is_not_believed(tmp_path):
    make = _sheet(b'<dimension ref="A1:B3"', b'<dimension ref="A1:XFD1048576"')
    make(tmp_path / "t.xlsx")
    table = open_table(tmp_path / "t.xlsx")
    assert [len(column) for _, column in table.columns(table.names)] == [2, 2]


def test_honest_files_pass_the_limits(tmp_path, monkeypatch):
    # Deep in each other is not far apart: brackets in texts, and many short lists in one line.
    lines = [{"label": "A", "text": "[{" * 500, "lists": [[1, 2]] * 500}] * 3
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert open_table(tmp_path / "t.jsonl").names == ("label", "text", "lists")
    monkeypatch.setattr(json_lines, "COLUMNS", 5)
    (tmp_path / "u.jsonl").write_text('{"a": "::::::::"}\n{"a": "x:y"}\n' * 9)
    assert open_table(tmp_path / "u.jsonl").names == ("a",)
    # Content that differs from row to row unpacks to some times its file, however large.
    monkeypatch.setattr(locations, "UNPACKED_FREE", 1)
    rows = "".join(f"{i % 7},{i}\n" for i in range(20_000))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"a,b\n{rows}".encode()))
    assert dict(open_table(tmp_path / "t.csv.gz").columns(["b"]))["b"][-1].as_py() == 19_999


def test_files_of_a_folder_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(locations, "FILES", 2)
    for name in "abc":
        pq.write_table(pa.table({"label": ["A"]}), tmp_path / f"{name}.parquet")
    for place in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(InputError, match="stands for 3 files; at most 2"):
            open_table(place)


@pytest.mark.skipif(sys.platform == "win32", reason="no such memory limit there")
def test_a_table_that_needs_more_memory_than_there_is(monkeypatch):
    def full(*_):
        raise MemoryError

    monkeypatch.setattr(pa, "PythonFile", full)
    with pytest.raises(InputError, match="more than fits in memory"), locations.unreadable("t.csv"):
        pa.PythonFile(None)


LABELS = pa.array(["a", "b"] * 200)


def _repeated(kind):
    """Return what writes one text of 400 KiB 400 times, in a dictionary or as views."""

    def make(path):
        codes = pa.array(np.zeros(400, np.int32))
        texts = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * (400 << 10)]))
        table = pa.table({"label": LABELS, "x": texts})
        if kind == "parquet":
            pq.write_table(table, path, store_schema=False, compression="zstd")
        elif kind == "deltas":
            table = table.cast(pa.schema([("label", pa.string()), ("x", pa.string())]))
            encoding = {"x": "DELTA_BYTE_ARRAY"}
            options = {"use_dictionary": False, "column_encoding": encoding}
            pq.write_table(table, path, compression="zstd", **options)
        else:
            feather.write_feather(table, path, compression="zstd")

    return make


def _long_list(path):
    values = pa.array(np.zeros(1 << 24, np.int8))
    lists = pa.ListArray.from_arrays(np.array([0] + [len(values)] * 400, np.int32), values)
    pq.write_table(pa.table({"label": LABELS, "x": lists}), path, compression="zstd")


def _long_text(path):
    texts = pa.array(["x" * (100 << 20), *["y"] * 399])
    pq.write_table(pa.table({"label": LABELS, "x": texts}), path, compression="zstd")


def _many_rows(path):
    schema = pa.schema([("label", pa.int8()), ("x", pa.int8())])
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        zeros = pa.array(np.zeros(4_000_000, np.int8))
        for _ in range(2):
            writer.write_table(pa.table([zeros, zeros], schema=schema), row_group_size=4_000_000)


def _packed_batch(path):
    table = pa.table({"label": np.zeros(1 << 24, np.int64), "x": np.zeros(1 << 24, np.int8)})
    feather.write_feather(table, path, compression="zstd", chunksize=1 << 24)


def _packed_arrays(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("label", "x"):
            with archive.open(f"{name}.npy", "w") as out:
                np.lib.format.write_array(out, np.zeros(1 << 22, np.int8))
        archive.writestr("noise", np.random.default_rng(0).bytes(1 << 22))
        archive.writestr("zeros", bytes(160 << 20))


def _shared_text(path):
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet()
    sheet.append(("label", "x"))
    for _ in range(1, 20):
        sheet.append(("a", "x" * 30_000))
    book.save(path)


BOMBS = {
    "a list": ("t.parquet", _long_list),
    "a text": ("t.parquet", _long_text),
    "a text, repeated": ("t.parquet", _repeated("parquet")),
    "texts that share beginnings": ("t.parquet", _repeated("deltas")),
    "rows": ("t.parquet", _many_rows),
    "a dictionary": ("t.feather", _repeated("feather")),
    "a batch": ("t.feather", _packed_batch),
    "arrays": ("t.npz", _packed_arrays),
}
MEMORY = 128 << 20
HONEST = ("a text, repeated", "texts that share beginnings", "a dictionary")
"""Those that are read in pieces, and so released."""


@pytest.mark.parametrize("case", BOMBS)
def test_a_small_file_takes_no_more_than_the_memory(case, tmp_path, monkeypatch):
    monkeypatch.setattr("ldpaudit.work.memory.LEAST", MEMORY)
    name, make = BOMBS[case]
    # Not here: what this process has taken before does not count as taken by the command.
    assert not in_child(lambda: make(tmp_path / name), seconds=60).status
    claim = ("--mechanism", "rr", "--epsilon", "1")
    run = ("run", name, *claim, "--memory", f"{MEMORY >> 20}MiB", "--only", "mechanism")
    made = ("privatize", name, "-o", "new.parquet", *claim)
    for words in (run, made):
        found = attempt(*words, folder=tmp_path, read=MEMORY)
        assert found.faulty == ""
        assert found.status == 2 or words is made, found.text
        assert found.grown < 2 * MEMORY
    assert (found.status == 0) is (case in HONEST), found.text


def test_one_text_in_many_cells_of_a_sheet(tmp_path):
    _shared_text(tmp_path / "t.xlsx")
    with held_to(200_000), pytest.raises(InputError, match=r"unpacks to .* smaller row groups"):
        open_table(tmp_path / "t.xlsx")
    assert len(open_table(tmp_path / "t.xlsx").names) == 2
