"""Files of tables: where they lie, and how they are read."""

# In: a path or URL. Out: columns, whole or in batches; the name of a file says which reader reads
# it.

import os
from importlib import import_module
from typing import Any, Final

from ldpaudit.datasets.formats.added import reader_of, table_of
from ldpaudit.datasets.formats.contents import by_its_name
from ldpaudit.datasets.formats.locations import (
    ARROW,
    CSV,
    EXCEL,
    JSON,
    NUMPY,
    ORC,
    PARQUET,
    STATISTICS,
    SVMLIGHT,
    locate,
)
from ldpaudit.datasets.formats.registered import format_of, lacking
from ldpaudit.datasets.formats.tables import MemoryTable, TableSource
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions

# The module and the class that read files of some names; others are Parquet.
_READERS: Final = (
    (CSV, "csv_file", "CsvFile"),
    (ARROW, "arrow", "ArrowFile"),
    (("",), "arrow", "ParquetFiles"),
)
# What is registered (``registered``); each is one file.
_RARE: Final = (*JSON, *ORC, *EXCEL, *NUMPY, *STATISTICS)
# How the names of files end that built-in readers read.
BUILT_IN: Final = (*CSV, *ARROW, *_RARE, *PARQUET, *SVMLIGHT)
_AS_CSV: Final = "export the table as CSV or Parquet"
_UNREAD: Final = {
    ".xls": "Excel's old format cannot be read; save it as .xlsx or CSV",
    ".xlsb": "Excel's binary format cannot be read; save it as .xlsx or CSV",
    ".ods": "OpenDocument sheets cannot be read; save it as .xlsx or CSV",
    ".json": "a table in JSON must have one object a line, in a file called .jsonl",
    ".npy": "one bare array has no label; write .npz with an array for each column",
    ".por": "SPSS's portable format cannot be read; save it as .sav",
    **dict.fromkeys(
        (".rds", ".rdata"), "R's own format cannot be read; write.csv writes a CSV file"
    ),
    **dict.fromkeys(
        (".db", ".sqlite", ".sqlite3", ".duckdb"),
        "a database cannot be read; copy the table into a Parquet or CSV file",
    ),
    **dict.fromkeys((".7z", ".rar", ".tar", ".tgz"), "unpack it first, or zip the one CSV file"),
    **dict.fromkeys((".pkl", ".pickle", ".h5", ".hdf5", ".avro", ".arff"), _AS_CSV),
}


def open_table(source: Any, files: FileOptions = AS_FOUND) -> TableSource:
    """Open a path, a folder, a pattern, a URL, a DataFrame or an Arrow table.

    What is called as no other format is Parquet; ``files``: how text files and workbooks are
    written.
    """
    if not isinstance(source, str | os.PathLike):
        return MemoryTable(source)
    location, files = locate(source), files.files
    names = [path.lower() for path in location.paths]
    alone = (*CSV, *ARROW, *_RARE)
    if len(names) > 1 and any(name.endswith(alone) for name in names):
        raise InputError("Several files at once must all be Parquet; give one CSV file.")
    own = format_of(names[0])
    if own is not None:
        with by_its_name(location):
            return own.open(location, files)
    if names[0].endswith(_RARE):
        raise lacking(location)
    unknown = [name for name in names if not name.endswith(BUILT_IN)]
    added = reader_of(unknown[0]) if unknown else None
    if added is not None and len(names) > 1:
        raise InputError(f"The reader {added[0]!r} reads one file; several must all be Parquet.")
    if added is not None:
        return table_of(*added, location)
    for suffix, advice in _UNREAD.items():
        if names[0].endswith((suffix, f"{suffix}.gz")):
            raise InputError(f"The file {quoted(location.name)} cannot be read: {advice}.")
    module, kind = next(place for suffixes, *place in _READERS if names[0].endswith(suffixes))
    reader: Any = getattr(import_module(f"ldpaudit.datasets.formats.{module}"), kind)
    table: TableSource
    with by_its_name(location):
        table = reader(location, files) if module == "csv_file" else reader(location)
    return table
