"""Opening a table by the name of its file: which reader reads it."""

import os
from typing import Any, Final

from ldpaudit.datasets.formats.arrow import ARROW_SUFFIXES as ARROW
from ldpaudit.datasets.formats.arrow import ArrowFile, ParquetFiles
from ldpaudit.datasets.formats.csv_file import SUFFIXES as CSV
from ldpaudit.datasets.formats.csv_file import CsvFile
from ldpaudit.datasets.formats.json_lines import SUFFIXES as JSON
from ldpaudit.datasets.formats.json_lines import JsonLines
from ldpaudit.datasets.formats.loaded import EXCEL, NUMPY, open_arrays, open_sheet
from ldpaudit.datasets.formats.locations import locate
from ldpaudit.datasets.formats.tables import MemoryTable, TableSource
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions

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
    """Open a path, a folder, a pattern, a URL, a DataFrame or an Arrow table.

    What is called as no other format is Parquet; ``files``: how text files and workbooks are
    written.
    """
    if not isinstance(source, str | os.PathLike):
        return MemoryTable(source)
    location, files = locate(source), files.files
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
