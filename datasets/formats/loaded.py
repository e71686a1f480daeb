"""Files that are read whole: sheets of an Excel workbook, and arrays of NumPy (.npz)."""

import math
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice, zip_longest
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.formats.locations import Located, Location, unreadable
from ldpaudit.datasets.formats.tabular import MemoryTable
from ldpaudit.datasets.formats.width import check_unpacked, check_width
from ldpaudit.datasets.names import check_header, quoted
from ldpaudit.errors import InputError, LdpAuditError, MissingDependencyError
from ldpaudit.files.limits import LOADED_BYTES, SHEET_ROWS
from ldpaudit.options import FileOptions

EXCEL: Final = (".xlsx", ".xlsm")
NUMPY: Final = (".npz",)
_ROWS_AT_ONCE: Final = 1 << 16
_LOOKED_AT: Final = 200
_SECRET: Final = 0b1000001
"""Bits of what is encrypted."""

Loaded = tuple[pa.Table, str]


class LoadedFile(Located, MemoryTable):
    """A file whose table is in memory; its declaration lies beside it."""

    def __init__(self, location: Location, load: Callable[[Any, str], Loaded]) -> None:
        self.location = location
        with unreadable(location.name), location.filesystem.open_input_file(location.paths[0]) as f:
            _check_size(f, location.name)
            table, remark = _whole(f, location.name, load)
        super().__init__(table)
        self.name, self.remark = location.name, remark
        self.schema, self.row_count = self._table.schema, self._table.num_rows
        self.declaration = location.beside()

    def batches(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),  # noqa: ARG002 - values have types of their own
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""
        names = list(self.names if columns is None else columns)
        yield from self._table.select(names).to_batches(_ROWS_AT_ONCE)


def _whole(file: Any, name: str, load: Callable[[Any, str], Loaded]) -> Loaded:
    """Load a file; what damaged ones make the libraries raise is one line (InputError)."""
    try:
        return load(file, name)
    except (LdpAuditError, MemoryError):
        raise
    except Exception as error:
        kind = type(error).__name__
        raise InputError(f"The file {quoted(name)} is damaged or truncated ({kind}).") from None


def open_arrays(location: Location) -> LoadedFile:
    """Open a NumPy file of several arrays: each a column of n values, or of n lists.

    Raises
    ------
    InputError
        If it holds objects, or its arrays differ in length.
    """
    return LoadedFile(location, _arrays)


def open_sheet(location: Location, files: FileOptions) -> LoadedFile:
    """Open a sheet of an Excel workbook, its first row being the names of the columns.

    Raises
    ------
    InputError
        If there is no such sheet, or a column mixes kinds of values.
    MissingDependencyError
        Without openpyxl.
    """
    return LoadedFile(location, lambda file, name: _sheet(file, name, files))


def _check_size(file: Any, name: str) -> None:
    try:
        entries = zipfile.ZipFile(file).infolist()
        if any(entry.flag_bits & _SECRET for entry in entries):
            raise zipfile.BadZipFile
        unpacked = sum(entry.file_size for entry in entries)
    except zipfile.BadZipFile:
        raise InputError(f"The file {quoted(name)} is damaged, truncated or encrypted.") from None
    check_unpacked(unpacked, file.size(), name, LOADED_BYTES)
    file.seek(0)


def _arrays(file: Any, name: str) -> Loaded:
    with np.load(file, allow_pickle=False) as stored:
        check_width(len(stored.files), name)
        for entry in stored.zip.infolist():
            _check_claim(stored.zip, entry, name)
        arrays = {key: stored[key] for key in stored.files}
    if any(array.ndim == 0 for array in arrays.values()) or not arrays:
        raise InputError(f"The arrays of {quoted(name)} must each hold n values or n lists.")
    if len({len(array) for array in arrays.values()}) > 1:
        raise InputError(f"The arrays of {quoted(name)} must all have one entry for each row.")
    return pa.table({key: _column(array) for key, array in arrays.items()}), ""


def _check_claim(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> None:
    """Check that an array is as large as its header says: the memory is taken first."""
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        old = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        shape, _, kind = read(file)
        claimed = math.prod(shape) * kind.itemsize
        if not kind.hasobject and claimed != entry.file_size - file.tell():
            raise InputError(f"The file {quoted(name)} is damaged: an array is not of its size.")


def _column(array: Any) -> pa.Array:
    if array.ndim == 1:
        return pa.array(array)
    flat = pa.array(np.ascontiguousarray(array).ravel())
    return pa.FixedSizeListArray.from_arrays(flat, int(np.prod(array.shape[1:])))


def _sheet(file: Any, name: str, files: FileOptions) -> Loaded:
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingDependencyError(
            "Reading Excel files needs openpyxl: pip install 'ldpaudit[excel]', or save as CSV."
        ) from None
    book = load_workbook(file, read_only=True, data_only=True)
    sheets = book.worksheets
    sheet = _chosen(sheets, files.sheet, name)
    sheet.reset_dimensions()  # What the sheet says of its own size may be anything.
    rows = sheet.iter_rows(values_only=True)
    header = [*next(rows, ())]
    while header and header[-1] is None:
        header.pop()
    check_width(len(header), name)
    if not header:
        raise InputError(f"The sheet of {quoted(name)} is empty.")
    filled = []
    for row in islice(rows, SHEET_ROWS):
        if any(cell is not None for cell in row[len(header) :]):
            raise InputError(f"The first row of {quoted(name)} must name every column.")
        if any(cell is not None for cell in row):
            filled.append(row[: len(header)])
    if next(rows, None) is not None:
        raise InputError(f"The sheet of {quoted(name)} must have at most {SHEET_ROWS:,} rows.")
    columns = [*zip_longest(*filled)] or [()] * len(header)
    columns += [(None,) * len(filled)] * (len(header) - len(columns))
    names = _texts(header)
    if not files.header:
        check_header(names, [_texts(cells[:_LOOKED_AT]) for cells in columns], name)
    arrays = [_typed(cells, place, name) for place, cells in enumerate(columns, start=1)]
    first = files.sheet is None and len(sheets) > 1
    return pa.Table.from_arrays(arrays, names), (
        f"the first of {len(sheets)} sheets (--sheet chooses another)" if first else ""
    )


def _texts(cells: Sequence[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]


def _chosen(sheets: Sequence[Any], wanted: str | None, name: str) -> Any:
    if wanted is None and sheets:
        return sheets[0]
    for number, sheet in enumerate(sheets, start=1):
        if wanted in (sheet.title, str(number)):
            return sheet
    raise InputError(
        f"There is no such sheet in {quoted(name)}, which has {len(sheets)}; --sheet takes a "
        "sheet's name or its number from 1."
    )


def _typed(cells: Sequence[Any], place: int, name: str) -> pa.Array:
    """Return cells as a column; errors of formulas are missing values."""
    values = [None if isinstance(cell, str) and cell in _ERRORS else cell for cell in cells]
    if any(isinstance(v, bool) for v in values) and not all(
        v is None or isinstance(v, bool) for v in values
    ):
        raise _mixes(place, name)
    try:
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError):
        raise _mixes(place, name) from None


_ERRORS: Final = frozenset(
    ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!")
)


def _mixes(place: int, name: str) -> InputError:
    return InputError(
        f"Column {place} of {quoted(name)} mixes numbers, texts, booleans or dates; give all its "
        "cells one kind."
    )
