"""A declaration written into a file that others made, or beside it; its data stay as they are."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.ipc

from ldpaudit.datasets.formats.arrow_file import ArrowFile
from ldpaudit.datasets.formats.batches import ParquetBatches
from ldpaudit.datasets.formats.locations import Location
from ldpaudit.datasets.formats.tabular import DECLARATION_KEY
from ldpaudit.datasets.formats.watching import check_unchanged
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.writing.parquet_footer import read_footer, with_declaration
from ldpaudit.datasets.writing.tables import sidecar
from ldpaudit.errors import InputError
from ldpaudit.files.writing import PartFile, WholeFiles


def places_of(table: Any, output: Path | None) -> tuple[Path, ...]:
    """Return the files that a declaration of an opened file is written to.

    Raises
    ------
    InputError
        If the file is not on this machine, or several are to go to one place.
    """
    files = _local(table.location, table.name)
    if output is None:
        return files if _holds_metadata(table) else tuple(map(sidecar, files))
    if len(files) > 1:
        raise InputError("A declaration of several files is written into them; leave out -o.")
    return (output,) if _holds_metadata(table) else (output, sidecar(output))


def write_into(table: Any, declaration: bytes, output: Path | None) -> None:
    """Write a declaration into an opened file or beside it, or with its data to another place.

    All files are written, or none.

    Raises
    ------
    OutputError
        If one cannot be written.
    """
    sources = _local(table.location, table.name)
    with WholeFiles(last=True) as files:
        for source in sources:
            target = output or source
            if _holds_metadata(table):
                _copied(table, source, files.add(target), declaration)
            else:
                if output is not None:
                    _copy(source, files.add(target))
                files.add(sidecar(target)).write(declaration + b"\n")
        check_unchanged()


def _holds_metadata(table: Any) -> bool:
    return isinstance(table, ParquetBatches | ArrowFile)


def _local(location: Location, name: str) -> tuple[Path, ...]:
    if not isinstance(location.filesystem, pafs.LocalFileSystem):
        raise InputError(f"{quoted(name)} is not on this machine; copy it here to declare it.")
    return tuple(map(Path, location.paths))


def _copied(table: Any, source: Path, part: PartFile, declaration: bytes) -> None:
    if isinstance(table, ArrowFile):
        _copied_batches(table, part, declaration)
        return
    with part.writing(), source.open("rb") as stream:
        start, footer = read_footer(stream)
        footer = with_declaration(footer, declaration)
        stream.seek(0)
        _pass(stream, part.stream, start)
        part.stream.write(footer + len(footer).to_bytes(4, "little") + b"PAR1")


def _copied_batches(table: ArrowFile, part: PartFile, declaration: bytes) -> None:
    with _reader(table) as reader, part.writing():
        metadata = {**(reader.schema.metadata or {}), DECLARATION_KEY: declaration}
        schema = reader.schema.with_metadata(metadata)
        options = pyarrow.ipc.IpcWriteOptions(compression="lz4")
        with pyarrow.ipc.new_file(part.stream, schema, options=options) as writer:
            for place in range(reader.num_record_batches):
                batch = reader.get_batch(place)
                writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))


@contextmanager
def _reader(table: ArrowFile) -> Iterator[Any]:
    if table.is_stream:
        raise InputError(
            f"{quoted(table.name)} is an Arrow stream, which cannot be declared; write Parquet."
        )
    with table.location.filesystem.open_input_file(table.location.paths[0]) as file:
        yield pyarrow.ipc.open_file(file)


def _copy(source: Path, part: PartFile) -> None:
    with part.writing(), source.open("rb") as stream:
        shutil.copyfileobj(stream, part.stream)


def _pass(source: Any, target: Any, count: int) -> None:
    """Copy a number of bytes."""
    while count:
        block = source.read(min(count, 1 << 22))
        target.write(block)
        count -= len(block)
        if not block:
            raise OSError("The file changed while it was being read.")
