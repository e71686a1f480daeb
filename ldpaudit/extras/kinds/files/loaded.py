"""Files that are read whole: sheets of an Excel workbook, and arrays of NumPy (.npz)."""

import math
import zipfile
from collections.abc import Sequence
from itertools import islice, zip_longest
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.formats.dialect import ERRORS
from ldpaudit.datasets.formats.locations import (
    NUMPY,
    Location,
    check_unpacked,
    check_width,
    unreadable,
)
from ldpaudit.datasets.formats.tables import MemoryTable, check_fits
from ldpaudit.datasets.names import Header, header_of, quoted
from ldpaudit.doors import InputError, LdpAuditError, MissingDependencyError
from ldpaudit.options import FileOptions
from ldpaudit.work.limits import LOADED_BYTES, SHEET_CELLS, SHEET_ROWS

_LOOKED_AT: Final = 200
# Bits of what is encrypted.
_SECRET: Final = 0b1000001
# Bytes of memory that a cell takes.
_CELL: Final = 64


class LoadedFile(MemoryTable):
    """A file whose table is in memory: NumPy's arrays, each a column, or a sheet of a workbook."""

    def __init__(self, location: Location, files: FileOptions) -> None:
        name, arrays = location.name, location.paths[0].lower().endswith(NUMPY)
        with unreadable(name), location.filesystem.open_input_file(location.paths[0]) as file:
            try:
                entries = zipfile.ZipFile(file).infolist()
                if any(entry.flag_bits & _SECRET for entry in entries):
                    raise zipfile.BadZipFile
            except zipfile.BadZipFile:
                raise InputError(
                    f"The file {quoted(name)} is damaged, truncated or encrypted."
                ) from None
            unpacked = sum(entry.file_size for entry in entries)
            check_unpacked(unpacked, file.size(), name, LOADED_BYTES)
            check_fits(unpacked, f"The file {quoted(name)}")
            file.seek(0)
            try:
                read = (*_arrays(file, name), None, 0) if arrays else _sheet(file, name, files)
                table, self.remark, names, self.unread = read
            except (LdpAuditError, MemoryError):
                raise
            except Exception as error:  # What damaged ones make the libraries raise.
                kind = type(error).__name__
                problem = f"The file {quoted(name)} is damaged or truncated ({kind})."
                raise InputError(problem) from None
        super().__init__(table, location)
        self.names = names or self.names


def _arrays(file: Any, name: str) -> tuple[pa.Table, str]:
    """Read a NumPy file of arrays: each a column of n values, or of n lists (InputError)."""
    with np.load(file, allow_pickle=False) as stored:
        check_width(len(stored.files), name)
        for entry in stored.zip.infolist():
            _check_claim(stored.zip, entry, name)
        arrays = {key: stored[key] for key in stored.files}
    if any(array.ndim == 0 for array in arrays.values()) or not arrays:
        raise InputError(f"The arrays of {quoted(name)} must each hold n values or n lists.")
    if len({len(array) for array in arrays.values()}) > 1:
        raise InputError(f"The arrays of {quoted(name)} must all have one entry for each row.")
    if any(array.dtype.kind == "c" for array in arrays.values()):
        raise InputError(
            f"An array of {quoted(name)} holds complex numbers; write their real and their "
            "imaginary parts as two arrays."
        )
    columns = {}
    for key, array in arrays.items():
        flat = np.ascontiguousarray(array).ravel()
        texts = flat.dtype.kind in "SU"  # Of arrays of these pyarrow reads up to the first NUL.
        native = flat.tolist() if texts else flat.astype(flat.dtype.newbyteorder("="), copy=False)
        columns[key] = pa.array(native)
        if array.ndim > 1:
            width = int(np.prod(array.shape[1:]))
            columns[key] = pa.FixedSizeListArray.from_arrays(columns[key], width)
    return pa.table(columns), ""


def _check_claim(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> None:
    """Check that an array is as large as its header says: the memory is taken first."""
    with archive.open(entry) as file:
        version = np.lib.format.read_magic(file)
        old = version == (1, 0)
        read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
        shape, _, kind = read(file)
        claimed = math.prod(shape) * kind.itemsize
        if kind.hasobject:
            raise InputError(
                f"An array of {quoted(name)} holds Python objects; write numbers, or texts as an "
                "array of str."
            )
        if claimed != entry.file_size - file.tell():
            raise InputError(f"The file {quoted(name)} is damaged: an array is not of its size.")


def _sheet(file: Any, name: str, files: FileOptions) -> tuple[pa.Table, str, tuple[str, ...], int]:
    """Read a sheet of an Excel workbook, its first row being the names of the columns."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise MissingDependencyError(
            "Reading Excel files needs openpyxl: pip install 'ldpaudit[excel]', or save as CSV."
        ) from None
    sheets = load_workbook(file, read_only=True, data_only=True).worksheets
    numbered = [(sheet, (sheet.title, str(i))) for i, sheet in enumerate(sheets, start=1)]
    fitting = [sheet for sheet, known in numbered if files.sheet is None or files.sheet in known]
    if not fitting:
        raise InputError(
            f"There is no such sheet in {quoted(name)}, which has {len(sheets)}; --sheet takes a "
            "sheet's name or its number from 1."
        )
    sheet = fitting[0]
    sheet.reset_dimensions()  # What the sheet says of its own size may be anything.
    rows = sheet.iter_rows(values_only=True)
    header = [*next(rows, ())]
    while header and header[-1] is None:
        header.pop()
    check_width(len(header), name)
    if not header:
        raise InputError(f"The sheet of {quoted(name)} is empty.")
    filled, seen, size = [], 0, 0
    for row in islice(rows, SHEET_ROWS):
        if any(cell is not None for cell in row[len(header) :]):
            raise InputError(
                f"The first row of {quoted(name)} must name every column; delete titles above it."
            )
        if any(cell is not None for cell in row):
            filled.append(row[: len(header)])
            # One text may stand in very many cells.
            size += sum(len(cell) if isinstance(cell, str) else _CELL for cell in filled[-1])
            check_fits(size, f"The sheet of {quoted(name)}")
        seen += len(row)
        if seen > SHEET_CELLS:
            raise InputError(
                f"The sheet of {quoted(name)} must have at most {SHEET_CELLS:,} cells, empty ones "
                "among them."
            )
    if next(rows, None) is not None:
        raise InputError(f"The sheet of {quoted(name)} must have at most {SHEET_ROWS:,} rows.")
    columns = [*zip_longest(*filled)] or [()] * len(header)
    columns += [(None,) * len(filled)] * (len(header) - len(columns))
    names: tuple[str, ...] = Header(_texts(header))
    if not files.header:
        names = header_of(names, [_texts(cells[:_LOOKED_AT]) for cells in columns], name)
    arrays = []
    for place, cells in enumerate(columns, start=1):
        # Errors of formulas are missing values.
        values = [None if isinstance(cell, str) and cell in ERRORS else cell for cell in cells]
        kinds = {isinstance(value, bool) for value in values if value is not None}
        try:
            if len(kinds) > 1:
                raise TypeError
            arrays.append(pa.array(values))
        except (pa.ArrowException, TypeError, ValueError):
            raise InputError(
                f"Column {place} of {quoted(name)} mixes numbers, texts, booleans or dates; give "
                "all its cells one kind."
            ) from None
    first = files.sheet is None and len(sheets) > 1
    remark = f"the first of {len(sheets)} sheets (--sheet chooses another)" if first else ""
    return pa.Table.from_arrays(arrays, [*names]), remark, names, len(sheets) - 1


def _texts(cells: Sequence[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]
