"""Writing tables as Parquet or CSV files: each file whole or not at all."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ldpaudit.writing import PartFile, WholeFiles


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
        part = files.add(target)
        with part.writing():
            pq.write_table(table, part.stream, write_page_checksum=True)
    return target


class TableFile:
    """A file that is written batch by batch.

    Parameters
    ----------
    part : PartFile
    schema : pyarrow.Schema
        With the metadata that the file gets.
    text : bool
        Whether it is CSV, and not Parquet.

    Raises
    ------
    OutputError
        If it cannot be written.
    """

    def __init__(self, part: PartFile, schema: pa.Schema, *, text: bool = False) -> None:
        self._part = part
        with part.writing():
            self._writer = _writer(part.stream, schema, text=text)
        part.finish = self._writer.close

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows, as a row group."""
        with self._part.writing():
            self._writer.write_batch(batch)


def _writer(stream: Any, schema: pa.Schema, *, text: bool) -> Any:
    if text:
        return pyarrow.csv.CSVWriter(stream, schema)
    return pq.ParquetWriter(stream, schema, write_page_checksum=True)


def is_csv(target: Path) -> bool:
    """Return whether a file's name is one of a CSV file."""
    return target.name.lower().endswith(".csv")
