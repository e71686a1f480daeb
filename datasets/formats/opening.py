"""Opening a table by the name of its file: which reader reads it."""

import os
from typing import Any, Final

from ldpaudit.datasets.formats.arrow_file import SUFFIXES as ARROW
from ldpaudit.datasets.formats.arrow_file import ArrowFile
from ldpaudit.datasets.formats.batches import ParquetBatches
from ldpaudit.datasets.formats.csv_batches import CsvBatches
from ldpaudit.datasets.formats.csv_file import SUFFIXES as CSV
from ldpaudit.datasets.formats.json_lines import SUFFIXES as JSON
from ldpaudit.datasets.formats.json_lines import JsonLines
from ldpaudit.datasets.formats.loaded import EXCEL, NUMPY, LoadedFile, open_arrays, open_sheet
from ldpaudit.datasets.formats.locations import Location, locate
from ldpaudit.datasets.formats.tabular import TableSource, open_memory
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions

FileBatches = ParquetBatches | CsvBatches | JsonLines | ArrowFile | LoadedFile
"""A file or files, to be read whole or in batches."""

_AS_CSV: Final = "export the table as CSV or Parquet"
_UNREAD: Final = {
    ".xls": "Excel's old format cannot be read; save it as .xlsx or CSV",
    ".xlsb": "Excel's binary format cannot be read; save it as .xlsx or CSV",
    ".ods": "OpenDocument sheets cannot be read; save it as .xlsx or CSV",
    ".json": "a table in JSON must have one object a line, in a file called .jsonl",
    ".npy": "one bare array has no label; write .npz with an array for each column",
    **dict.fromkeys((".sav", ".dta", ".sas7bdat", ".rds", ".rdata", ".pkl", ".orc"), _AS_CSV),
}


def open_table(source: Any, files: FileOptions = AS_FOUND) -> TableSource:
    """Open a path, a URL, a DataFrame or an Arrow table.

    Parameters
    ----------
    source : str, os.PathLike, pandas.DataFrame, pyarrow.Table or any exporter of an Arrow stream
    files : FileOptions
        How text files and workbooks are written.

    Raises
    ------
    InputError
        If it is not there or cannot be read.
    """
    if isinstance(source, str | os.PathLike):
        return open_batches(source, files)
    return open_memory(source)


def open_batches(path: str | os.PathLike[str], files: FileOptions = AS_FOUND) -> FileBatches:
    """Open a file, folder, pattern or URL to be read whole or in batches, by its name.

    What is called as no other format is Parquet.

    Raises
    ------
    InputError
        If there is no such file, it cannot be read, or several files are not all Parquet.
    """
    location = locate(path)
    names = [name.lower() for name in location.paths]
    other = any(name.endswith((*CSV, *JSON, *ARROW, *EXCEL, *NUMPY)) for name in names)
    if other and len(names) > 1:
        raise InputError("Several files at once must all be Parquet; give one CSV file.")
    return _opened(location, names[0], files.files) if other else _parquet(location, names[0])


def _opened(location: Location, name: str, files: FileOptions) -> FileBatches:
    if name.endswith(CSV):
        return CsvBatches(location, files)
    if name.endswith(JSON):
        return JsonLines(location)
    if name.endswith(ARROW):
        return ArrowFile(location)
    return open_arrays(location) if name.endswith(NUMPY) else open_sheet(location, files)


def _parquet(location: Location, name: str) -> ParquetBatches:
    for suffix, advice in _UNREAD.items():
        if name.endswith((suffix, f"{suffix}.gz")):
            raise InputError(f"The file {quoted(location.name)} cannot be read: {advice}.")
    return ParquetBatches(location)
