"""Releases written as Parquet, and declarations written into files or next to them.

Each file appears under its name when all of it is on the disk.
"""

import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.ipc
import pyarrow.parquet as pq

from ldpaudit.datasets.formats.arrow import (
    ArrowFile,
    ParquetFiles,
    as_categories,
    with_categories,
)
from ldpaudit.datasets.formats.locations import (
    ARROW,
    PACKED,
    PARQUET,
    SIDECAR,
    check_unchanged,
)
from ldpaudit.datasets.formats.tables import (
    DECLARATION_KEY,
)
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError, OutputError
from ldpaudit.work.files import PartFile, WholeFiles

_PACKED: Final = pyarrow.ipc.IpcWriteOptions(compression="lz4")
# A larger Parquet file is not written again for its declaration.
_REWRITTEN: Final = 1 << 30


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


def sidecar(target: Path) -> Path:
    """Return the place of the declaration next to a file."""
    return target.with_name(target.name + SIDECAR)


def declared_places(table: Any, output: Path | None) -> tuple[Path, ...]:
    """Return the files that a declaration of an opened file is written to."""
    location = table.location
    if not isinstance(location.filesystem, pafs.LocalFileSystem):
        raise InputError(
            f"{quoted(table.name)} is not on this machine; copy it here to declare it."
        )
    inside, sources = _holds_metadata(table), tuple(map(Path, location.paths))
    if output is None:
        return sources if inside else tuple(map(sidecar, sources))
    if len(sources) > 1:
        raise InputError("A declaration of several files is written into them; leave out -o.")
    special = os.path.lexists(output) and not output.is_file()  # Its own fault is said instead.
    if not special and _kind(output) != _kind(sources[0]):
        raise OutputError(
            f"The file is copied as it is, so the name of {quoted(output.name)} must end as that "
            f"of {quoted(table.name)} does."
        )
    return (output,) if inside else (output, sidecar(output))


def _kind(path: Path) -> str:
    """Return the end of a file's name: what reads it, and how it is packed."""
    name = path.name.lower()
    for endings in (PARQUET, ARROW):
        if name.endswith(endings):
            return endings[0]
    ends = path.suffixes[-2:] if path.suffix.lower() in PACKED else path.suffixes[-1:]
    return "".join(ends).lower()


def write_into(table: Any, declaration: bytes, output: Path | None) -> None:
    """Write a declaration into an opened file or next to it, or with its data to another place."""
    # All files are written, or none (OutputError if one cannot be written).
    with WholeFiles(last=True) as files:
        for source in map(Path, table.location.paths):
            target = output or source
            if _holds_metadata(table):
                _declared_copy(table, source, files.add(target), declaration)
                continue
            if output is not None:
                part = files.add(target)
                with part.writing(), source.open("rb") as stream:
                    shutil.copyfileobj(stream, part.stream)
            files.add(sidecar(target)).write(declaration + b"\n")
        check_unchanged()


def _holds_metadata(table: Any) -> bool:
    """Return whether a file is written again with its declaration; a large one alone is not."""
    # But for one that holds a declaration already: another beside it would not be read.
    if isinstance(table, ParquetFiles):
        several = len(table.location.paths) > 1
        return several or bool(table.embedded) or table.location.size() <= _REWRITTEN
    return isinstance(table, ArrowFile) and (bool(table.embedded) or not table.is_stream)


def _declared_copy(table: Any, source: Path, part: PartFile, declaration: bytes) -> None:
    """Write a Parquet file or one of Arrow's again: the same groups of rows, one at a time."""
    with part.writing(), ExitStack() as opened:
        if isinstance(table, ParquetFiles):
            file = opened.enter_context(pq.ParquetFile(source))
            schema, groups, codec = with_categories(file), file.metadata, "SNAPPY"
            if groups.num_row_groups and groups.num_columns:
                codec = groups.row_group(0).column(0).compression.split("_")[0]
            options = {"compression": "none" if codec == "UNCOMPRESSED" else codec}
            batches = table.part_batches(str(source))
        elif table.is_stream:
            file = opened.enter_context(pyarrow.ipc.open_stream(source))
            schema, batches = file.schema, iter(file)
        else:
            file = opened.enter_context(pyarrow.ipc.open_file(source))
            schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
        schema = schema.with_metadata({**(schema.metadata or {}), DECLARATION_KEY: declaration})
        writer: Any
        if isinstance(table, ParquetFiles):
            writer = pq.ParquetWriter(part.stream, schema, write_page_checksum=True, **options)
        else:
            new = pyarrow.ipc.new_stream if table.is_stream else pyarrow.ipc.new_file
            writer = new(part.stream, schema, options=_PACKED)
        opened.enter_context(writer)
        for batch in batches:
            columns = map(as_categories, batch.columns, schema.types)
            writer.write_batch(pa.RecordBatch.from_arrays([*columns], schema=schema))
