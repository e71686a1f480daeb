"""Opening a table by the name of its file: which reader reads it."""

import os
from typing import Any, Final

from ldpaudit.datasets.formats.arrow import ARROW_SUFFIXES as ARROW
from ldpaudit.datasets.formats.arrow import ArrowFile, ParquetFiles
from ldpaudit.datasets.formats.csv_file import SUFFIXES as CSV
from ldpaudit.datasets.formats.csv_file import CsvFile
from ldpaudit.datasets.formats.json_lines import SUFFIXES as JSON
from ldpaudit.datasets.formats.json_lines import JsonLines
from ldpaudit.datasets.formats.loaded import EXCEL, NUMPY, LoadedFile, open_arrays, open_sheet
from ldpaudit.datasets.formats.locations import locate
from ldpaudit.datasets.formats.tables import TableSource, open_memory
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions

FileBatches = ParquetFiles | CsvFile | JsonLines | ArrowFile | LoadedFile
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

    ``files``: how text files and workbooks are written (InputError if it cannot be read).
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
    location, files = locate(path), files.files
    name = location.paths[0].lower()
    names = [path.lower() for path in location.paths]
    if len(names) > 1 and any(n.endswith((*CSV, *JSON, *ARROW, *EXCEL, *NUMPY)) for n in names):
        raise InputError("Several files at once must all be Parquet; give one CSV file.")
    if name.endswith(CSV):
        return CsvFile(location, files)
    if name.endswith(JSON):
        return JsonLines(location)
    if name.endswith(ARROW):
        return ArrowFile(location)
    if name.endswith(NUMPY):
        return open_arrays(location)
    if name.endswith(EXCEL):
        return open_sheet(location, files)
    for suffix, advice in _UNREAD.items():
        if name.endswith((suffix, f"{suffix}.gz")):
            raise InputError(f"The file {quoted(location.name)} cannot be read: {advice}.")
    return ParquetFiles(location)
