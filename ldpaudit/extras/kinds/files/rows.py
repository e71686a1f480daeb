"""The files that are read and written here, by the ends of their names; imported when met."""

from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from ldpaudit.datasets.formats.locations import (
    EXCEL,
    JSON,
    NUMPY,
    ORC,
    STATISTICS,
    SVMLIGHT,
    Location,
)
from ldpaudit.datasets.formats.registered import BatchWriter, TableFormat, Writer
from ldpaudit.datasets.formats.tables import TableSource
from ldpaudit.options import FileOptions


def _open_loaded(location: Location, files: FileOptions) -> TableSource:
    from ldpaudit.extras.kinds.files.loaded import LoadedFile

    return LoadedFile(location, files)


def _open_json_lines(location: Location, _files: FileOptions) -> TableSource:
    from ldpaudit.extras.kinds.files.json_lines import JsonLines

    return JsonLines(location)


def _open_svmlight(location: Location, _files: FileOptions) -> TableSource:
    from ldpaudit.extras.kinds.files.sparse import SparseTable

    return SparseTable(location, (), None)


def _open_sparse(source: Any, projection: int | None) -> TableSource | None:
    from ldpaudit.extras.kinds.files.sparse import open_sparse

    return open_sparse(source, projection)


def _open_orc(location: Location, _files: FileOptions) -> TableSource:
    from ldpaudit.extras.kinds.files.orc import OrcFile

    return OrcFile(location)


def _check_orc_columns(_target: Path, schema: pa.Schema) -> None:
    from ldpaudit.extras.kinds.files.orc import check_columns

    check_columns(schema)


def _write_orc(_target: Path, _schema: pa.Schema, stream: Any, _described: Any) -> BatchWriter:
    from ldpaudit.extras.kinds.files.orc import OrcWriter

    return OrcWriter(stream)


def _open_statistics(location: Location, _files: FileOptions) -> TableSource:
    from ldpaudit.extras.kinds.files.statistics import StatisticsFile

    return StatisticsFile(location)


def _check_statistics(target: Path) -> None:
    from ldpaudit.extras.kinds.files.writing_statistics import package_of

    package_of(target)


def _check_statistics_columns(target: Path, schema: pa.Schema) -> None:
    from ldpaudit.extras.kinds.files.writing_statistics import check_described

    check_described(target, schema)


def _write_statistics(target: Path, schema: pa.Schema, stream: Any, described: Any) -> BatchWriter:
    from ldpaudit.extras.kinds.files.writing_statistics import StatisticsWriter

    return StatisticsWriter(target, schema, stream, described)


# Only SAS itself writes .sas7bdat.
_WRITTEN: Final = (".dta", ".sav", ".zsav", ".xpt")
JSON_FILES: Final = TableFormat(JSON, _open_json_lines)
LOADED_FILES: Final = TableFormat((*NUMPY, *EXCEL), _open_loaded)
ORC_FILES: Final = TableFormat(
    ORC, _open_orc, Writer(ORC, _write_orc, check_columns=_check_orc_columns)
)
SPARSE_FILES: Final = TableFormat(SVMLIGHT, _open_svmlight, open_sparse=_open_sparse)
STATISTICS_FILES: Final = TableFormat(
    STATISTICS,
    _open_statistics,
    Writer(_WRITTEN, _write_statistics, _check_statistics, _check_statistics_columns),
)
