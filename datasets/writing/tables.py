"""Writing tables batch by batch, in the format that the file's name says."""

import gzip
import os
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from ldpaudit.datasets.formats.arrow_file import SUFFIXES as ARROW
from ldpaudit.datasets.formats.columns import decoded, value_type, without_hidden
from ldpaudit.datasets.formats.csv_file import SUFFIXES as CSV
from ldpaudit.datasets.formats.dialect import Dialect
from ldpaudit.datasets.formats.json_lines import SUFFIXES as JSON
from ldpaudit.datasets.formats.loaded import EXCEL, NUMPY
from ldpaudit.datasets.formats.locations import SIDECAR
from ldpaudit.datasets.formats.tabular import DECLARATION_KEY
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.writing.text import CsvText, JsonText, check_kinds
from ldpaudit.errors import OutputError
from ldpaudit.files.writing import PartFile, WholeFiles

_NOT_WRITTEN: Final = (*EXCEL, *NUMPY, ".svm", ".libsvm", ".svmlight", ".json", ".gz", ".xls")
USUAL: Final = Dialect()
"""Commas, decimal points, UTF-8."""


def write_release(
    table: pa.Table, path: str | os.PathLike[str], *, overwrite: bool = False
) -> Path:
    """Write a table as a Parquet file, with the declaration that :func:`declare` put into it.

    The file appears under its name only when all of it is on the disk.

    Parameters
    ----------
    table : pyarrow.Table
    path : str or os.PathLike
        A local path in a folder that exists.
    overwrite : bool
        Whether a file that is there already is replaced.

    Raises
    ------
    OutputError
        If the file is there already, or cannot be written.
    """
    target = Path(path)
    with WholeFiles(overwrite) as files:
        write_table(table, files.add(target))
    return target


def write_table(table: pa.Table, part: PartFile) -> None:
    """Write a table as a Parquet file that is one of several (OutputError where that fails)."""
    with part.writing():
        pq.write_table(table, part.stream, write_page_checksum=True)


class TableFile:
    """A file that is written batch by batch.

    Parameters
    ----------
    part : PartFile
        Its name says the format: :func:`check_format`.
    schema : pyarrow.Schema
        With the metadata that the file gets; text files get none.
    dialect : Dialect
        How a CSV file is written.

    Raises
    ------
    OutputError
        If it cannot be written.
    """

    def __init__(self, part: PartFile, schema: pa.Schema, dialect: Dialect = USUAL) -> None:
        self._part = part
        with part.writing():
            self._packed = _packed(part)
            self._writer = _writer(part, self._packed or part.stream, schema, dialect)
        part.finish = self._finish

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows, as a row group."""
        with self._part.writing():
            self._writer.write_batch(batch)

    def _finish(self) -> None:
        self._writer.close()
        if self._packed is not None:
            self._packed.close()


class _Feather:
    """Arrow's file format, compressed; dictionaries are decoded."""

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        plain = [pa.field(field.name, value_type(field.type)) for field in schema]
        self._schema = pa.schema(plain, metadata=schema.metadata)
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
        self._writer = pyarrow.ipc.new_file(stream, self._schema, options=options)

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [
            without_hidden(decoded(pa.chunked_array([c])).combine_chunks()) for c in batch.columns
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _packed(part: PartFile) -> Any:
    if not part.path.name.lower().endswith(".gz"):
        return None
    return gzip.GzipFile(filename="", mode="wb", fileobj=part.stream, mtime=0)


def _writer(part: PartFile, stream: Any, schema: pa.Schema, dialect: Dialect) -> Any:
    name = part.path.name.lower()
    if name.endswith(CSV):
        return CsvText(stream, schema, dialect, tabs=".tsv" in name[-7:])
    if name.endswith(JSON):
        return JsonText(stream)
    if name.endswith(ARROW):
        return _Feather(stream, schema)
    return pq.ParquetWriter(stream, schema, write_page_checksum=True)


def is_csv(target: Path) -> bool:
    """Return whether a file's name is one of a CSV file."""
    return target.name.lower().endswith(CSV)


def is_text(target: Path) -> bool:
    """Return whether a file's name is one of a text file, which holds no metadata."""
    return target.name.lower().endswith((*CSV, *JSON))


def sidecar(target: Path) -> Path:
    """Return the place of the declaration beside a file."""
    return target.with_name(target.name + SIDECAR)


def written_places(target: Path) -> tuple[Path, ...]:
    """Return the files that a release is written to: with its declaration, where that is one."""
    return (target, sidecar(target)) if is_text(target) else (target,)


def write_declaration(files: WholeFiles, target: Path, schema: pa.Schema) -> None:
    """Write a schema's declaration beside a text file; other files hold it themselves."""
    if is_text(target):
        files.add(sidecar(target)).write((schema.metadata or {})[DECLARATION_KEY] + b"\n")


def check_holds(target: Path, schema: pa.Schema) -> None:
    """Refuse columns that the file's format cannot hold (OutputError)."""
    if is_text(target):
        check_kinds(schema, lists=not is_csv(target))


def check_format(target: Path) -> None:
    """Refuse a name of a format that is not written.

    Raises
    ------
    OutputError
    """
    name = target.name.lower()
    if name.endswith(_NOT_WRITTEN) and not is_text(target):
        raise OutputError(
            f"{quoted(target.name)} cannot be written in the format of its name; give it one that "
            "ends in .parquet, .feather, .csv, .csv.gz or .jsonl."
        )
