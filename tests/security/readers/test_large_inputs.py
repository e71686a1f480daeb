"""Files made to be large: refused with one line before memory or minutes are spent on them."""

import gzip
import io
import json
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.formats import json_lines, locations, width
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.sparse.table import open_svmlight
from ldpaudit.errors import InputError
from ldpaudit.files import limits

Make = Callable[[Path], Any]
MOST, FREE = 1000, 1 << 20
"""Smaller limits than those in use, for small files."""


def _wide(path: Path) -> None:
    path.write_text(",".join(f"c{i}" for i in range(MOST + 1)) + "\n1")


def _many_keys(path: Path) -> None:
    path.write_text(json.dumps(dict.fromkeys(map(str, range(MOST + 1)), 1)))


def _one_line(path: Path) -> None:
    with gzip.open(path, "wb") as out:
        out.write(b"a" * (1 << 20))


def _bomb(path: Path) -> None:
    with gzip.open(path, "wb") as out:
        out.write(b"label,x\n")
        out.write(b"A,1\n" * (1 << 19))


def _nested_json(path: Path) -> None:
    path.write_text('{"label": "A", "x": ' + "[" * 100_000 + "]" * 100_000 + "}")


def _nested_type(path: Path) -> None:
    kind = pa.int8()
    for _ in range(150):
        kind = pa.list_(kind)
    pq.write_table(pa.table({"label": ["A"], "x": pa.nulls(1, kind)}), path)


def _claimed(path: Path) -> None:
    header = io.BytesIO()
    shape = {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    np.lib.format.write_array_header_1_0(header, shape)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("label.npy", header.getvalue() + bytes(80))


def _unpacked(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", bytes(FREE + 1))


def _sheet(old: bytes, new: bytes) -> Make:
    """Return what makes a workbook and changes the bytes of its sheet."""

    def make(path: Path) -> None:
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


def _cell(path: Path) -> None:
    path.write_text("label,x\nA,1\nB," + "z" * (4 * limits.ROW_BYTES) + "\n")


def _index(path: Path) -> None:
    path.write_text("1 99999999999999999999:1\n")


CASES: dict[str, tuple[str, Make, str]] = {
    "columns of CSV": ("t.csv", _wide, "1,001 columns"),
    "keys of JSON": ("t.jsonl", _many_keys, "columns can be read"),
    "a header without end": ("t.csv.gz", _one_line, "longer than 65,536 characters"),
    "a compressed bomb": ("t.csv.gz", _bomb, "too large when unpacked"),
    "lists in lists": ("t.jsonl", _nested_json, "nested too deeply: at most 64"),
    "types in types": ("t.parquet", _nested_type, "nested too deeply"),
    "an array that claims to be large": ("t.npz", _claimed, "not of its size"),
    "arrays that are zeros": ("t.npz", _unpacked, "too large when unpacked"),
    "a workbook that is zeros": ("t.xlsx", _unpacked, "too large when unpacked"),
    "a sheet's last column": ("t.xlsx", _sheet(b'r="B3"', b'r="XFD3"'), "must name every column"),
    "a cell": ("t.csv", _cell, "longer than 4 MiB, or a quote is not closed"),
    "an index": ("t.svm", _index, "indices of at most 2147483646"),
}


def _read(path: Path) -> None:
    if path.suffix == ".svm":
        open_svmlight(str(path)).read()
        return
    table = open_table(path)
    list(table.columns(table.names))


@pytest.mark.parametrize("case", CASES)
def test_what_is_too_large_is_refused_at_once(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, make, message = CASES[case]
    for module in (json_lines, width):
        monkeypatch.setattr(module, "COLUMNS", MOST)
    monkeypatch.setattr(width, "HEADER_BYTES", 1 << 16)
    monkeypatch.setattr(width, "UNPACKED_FREE", FREE)
    make(tmp_path / name)
    started = time.process_time()
    with pytest.raises(InputError, match=message) as caught:
        _read(tmp_path / name)
    assert "\n" not in str(caught.value)
    # A bound of two seconds that a slow machine may miss threefold.
    assert time.process_time() - started < 6


def test_what_a_sheet_says_of_its_own_size_is_not_believed(tmp_path: Path) -> None:
    make = _sheet(b'<dimension ref="A1:B3"', b'<dimension ref="A1:XFD1048576"')
    make(tmp_path / "t.xlsx")
    table = open_table(tmp_path / "t.xlsx")
    assert [len(column) for _, column in table.columns(table.names)] == [2, 2]


def test_honest_files_pass_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Deep in each other is not far apart: brackets in texts, and many short lists in one line.
    lines = [{"label": "A", "text": "[{" * 500, "lists": [[1, 2]] * 500}] * 3
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, lines)))
    assert open_table(tmp_path / "t.jsonl").names == ("label", "text", "lists")
    monkeypatch.setattr(json_lines, "COLUMNS", 5)
    (tmp_path / "u.jsonl").write_text('{"a": "::::::::"}\n{"a": "x:y"}\n' * 9)
    assert open_table(tmp_path / "u.jsonl").names == ("a",)
    # Content that differs from row to row unpacks to some times its file, however large.
    monkeypatch.setattr(width, "UNPACKED_FREE", 1)
    rows = "".join(f"{i % 7},{i}\n" for i in range(20_000))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(f"a,b\n{rows}".encode()))
    assert dict(open_table(tmp_path / "t.csv.gz").columns(["b"]))["b"][-1].as_py() == 19_999


def test_files_of_a_folder_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "FILES", 2)
    for name in "abc":
        pq.write_table(pa.table({"label": ["A"]}), tmp_path / f"{name}.parquet")
    for place in (tmp_path, tmp_path / "*.parquet"):
        with pytest.raises(InputError, match="stands for 3 files; at most 2"):
            open_table(place)


@pytest.mark.skipif(sys.platform == "win32", reason="no such memory limit there")
def test_a_table_that_needs_more_memory_than_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(pa, "PythonFile", full)
    with pytest.raises(InputError, match="more than fits in memory"), locations.unreadable("t.csv"):
        pa.PythonFile(None)
