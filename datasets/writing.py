"""Tables written batch by batch, in the format that the file's name says, with their declaration.

Each file appears under its name when all of it is on the disk.
"""

import codecs
import gzip
import json
import math
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.ipc
import pyarrow.parquet as pq

from ldpaudit.datasets.formats.arrow import ArrowFile, ParquetFiles
from ldpaudit.datasets.formats.dialect import MISSING, Dialect
from ldpaudit.datasets.formats.locations import (
    ARROW,
    CSV,
    EXCEL,
    JSON,
    NUMPY,
    SIDECAR,
    SVMLIGHT,
    check_unchanged,
)
from ldpaudit.datasets.formats.tables import (
    BYTES,
    DECLARATION_KEY,
    LISTS,
    TEXTS,
    decoded,
    is_any,
    value_type,
    without_hidden,
)
from ldpaudit.datasets.names import quoted, shown_type
from ldpaudit.errors import InputError, OutputError
from ldpaudit.work.files import PartFile, WholeFiles

USUAL: Final = Dialect()
"""Commas, decimal points, UTF-8."""
_NOT_WRITTEN: Final = (*EXCEL, *NUMPY, *SVMLIGHT, ".json", ".gz", ".xls")
_TEXT: Final = pa.large_string()
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


class TableFile:
    """A file that is written batch by batch, in the format of its name: :func:`check_format`.

    It gets the metadata of the schema, unless it is text; ``dialect``: how a CSV file is written.
    """

    def __init__(self, part: PartFile, schema: pa.Schema, dialect: Dialect = USUAL) -> None:
        self._part, name, stream = part, part.path.name.lower(), part.stream
        self._packed: Any = None
        with part.writing():
            if name.endswith(".gz"):
                self._packed = gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)
                stream = self._packed
            self._writer: Any
            if name.endswith(CSV):
                self._writer = _CsvText(stream, schema, dialect, tabs=".tsv" in name[-7:])
            elif name.endswith(JSON):
                self._writer = _JsonText(stream)
            elif name.endswith(ARROW):
                self._writer = _Feather(stream, schema)
            else:
                self._writer = pq.ParquetWriter(stream, schema, write_page_checksum=True)
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
        self._writer = pyarrow.ipc.new_file(stream, self._schema, options=_PACKED)
        self.close = self._writer.close

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = [
            without_hidden(decoded(pa.chunked_array([c])).combine_chunks()) for c in batch.columns
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))


class _CsvText:
    """A CSV file: texts are quoted where they must be, missing values are empty fields.

    Numbers, booleans and dates have the shortest form that is read back as the same value.
    """

    def __init__(
        self, stream: Any, schema: pa.Schema, dialect: Dialect, *, tabs: bool = False
    ) -> None:
        self._stream = stream
        self._mark = "\t" if tabs else "," if dialect.separator == "\t" else dialect.separator
        self._decimal = dialect.numbers.decimal
        self._quoted = rf'["\r\n\x{ord(self._mark):02x}]|^\s|\s$|^$'
        self._encoder = codecs.getincrementalencoder(dialect.encoding)()
        header = self._cells(pa.array(schema.names, _TEXT)).to_pylist()
        self._put(self._mark.join(header) + "\n")

    def write_batch(self, batch: pa.RecordBatch) -> None:
        if not len(batch):
            return
        columns = [self._cells(column) for column in batch.columns]
        join = pc.JoinOptions("replace", "")
        rows = pc.binary_join_element_wise(*columns, pa.scalar(self._mark, _TEXT), options=join)
        whole = pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)
        self._put(pc.binary_join(whole, pa.scalar("\n", _TEXT))[0].as_py() + "\n")

    def close(self) -> None:
        """Write the end, which is nothing."""

    def _put(self, text: str) -> None:
        self._stream.write(self._encoder.encode(text))

    def _cells(self, column: pa.Array) -> pa.Array:
        column = decoded(pa.chunked_array([column])).combine_chunks()
        texts = column.cast(_TEXT)
        if pa.types.is_decimal(column.type) and column.type.scale > 0:
            texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
        if is_any(column.type, "floating", "decimal") and self._decimal == ",":
            texts = pc.replace_substring(texts, ".", ",")
        if not is_any(column.type, *TEXTS) and self._decimal != self._mark:
            return texts
        must = pc.match_substring_regex(texts, self._quoted)
        must = pc.or_(must, pc.is_in(texts, pa.array([*MISSING], _TEXT)))
        if not pc.any(must).as_py():
            return texts
        inner = pc.replace_substring(texts, '"', '""')
        mark, none = pa.scalar('"', _TEXT), pa.scalar("", _TEXT)
        return pc.if_else(must, pc.binary_join_element_wise(mark, inner, mark, none), texts)


class _JsonText:
    """JSON lines: an object a row; what is no number in JSON is null."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write_batch(self, batch: pa.RecordBatch) -> None:
        columns = []
        for column in batch.columns:
            kind = value_type(column.type)
            # The shortest numbers that are read back as the same: so labels are declared.
            short = pa.types.is_float32(kind) or (pa.types.is_decimal(kind) and kind.scale > 0)
            columns.append(column.cast(_TEXT).cast(pa.float64()) if short else column)
        table = pa.RecordBatch.from_arrays(columns, batch.schema.names)
        rows = (_plain(row) for row in table.to_pylist())
        lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
        self._stream.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Write the end, which is nothing."""


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def is_csv(target: Path) -> bool:
    """Return whether a file's name is one of a CSV file."""
    return target.name.lower().endswith(CSV)


def is_text(target: Path) -> bool:
    """Return whether a file's name is one of a text file, which holds no metadata."""
    return target.name.lower().endswith((*CSV, *JSON))


def _sidecar(target: Path) -> Path:
    return target.with_name(target.name + SIDECAR)


def written_places(target: Path) -> tuple[Path, ...]:
    """Return the files that a release is written to: with its declaration, where that is one."""
    return (target, _sidecar(target)) if is_text(target) else (target,)


def write_declaration(files: WholeFiles, target: Path, schema: pa.Schema) -> None:
    """Write a schema's declaration next to a text file; other files hold it themselves."""
    if is_text(target):
        files.add(_sidecar(target)).write((schema.metadata or {})[DECLARATION_KEY] + b"\n")


def check_holds(target: Path, schema: pa.Schema) -> None:
    """Refuse columns that the file's format cannot hold (OutputError): JSON holds lists."""
    lists = not is_csv(target)
    for place, field in enumerate(schema if is_text(target) else (), start=1):
        kind = value_type(field.type)
        held = lists and is_any(kind, *LISTS)
        if is_any(kind, *BYTES, "fixed_size_binary") or (pa.types.is_nested(kind) and not held):
            raise OutputError(
                f"Column {place} is of type {shown_type(field.type)}, which "
                f"{'JSON' if lists else 'CSV'} cannot hold; give the file a name that ends in "
                ".parquet."
            )


def check_format(target: Path) -> None:
    """Refuse a name of a format that is not written (OutputError)."""
    name = target.name.lower()
    if name.endswith(_NOT_WRITTEN) and not is_text(target):
        raise OutputError(
            f"{quoted(target.name)} cannot be written in the format of its name; give it one that "
            "ends in .parquet, .feather, .csv, .csv.gz or .jsonl."
        )


def declared_places(table: Any, output: Path | None) -> tuple[Path, ...]:
    """Return the files that a declaration of an opened file is written to."""
    location = table.location
    if not isinstance(location.filesystem, pafs.LocalFileSystem):
        raise InputError(
            f"{quoted(table.name)} is not on this machine; copy it here to declare it."
        )
    inside, sources = _holds_metadata(table), tuple(map(Path, location.paths))
    if output is None:
        return sources if inside else tuple(map(_sidecar, sources))
    if len(sources) > 1:
        raise InputError("A declaration of several files is written into them; leave out -o.")
    return (output,) if inside else (output, _sidecar(output))


def write_into(table: Any, declaration: bytes, output: Path | None) -> None:
    """Write a declaration into an opened file or next to it, or with its data to another place.

    All files are written, or none (OutputError if one cannot be written).
    """
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
            files.add(_sidecar(target)).write(declaration + b"\n")
        check_unchanged()


def _holds_metadata(table: Any) -> bool:
    """Return whether a file is written again with its declaration; a large one alone is not."""
    if isinstance(table, ParquetFiles):
        return len(table.location.paths) > 1 or table.location.size() <= _REWRITTEN
    return isinstance(table, ArrowFile) and not table.is_stream


def _declared_copy(table: Any, source: Path, part: PartFile, declaration: bytes) -> None:
    """Write a Parquet file or one of Arrow's again: the same groups of rows, one at a time."""
    with part.writing(), ExitStack() as opened:
        if isinstance(table, ParquetFiles):
            file = opened.enter_context(pq.ParquetFile(source))
            schema, groups, codec = file.schema_arrow, file.metadata, "SNAPPY"
            if groups.num_row_groups and groups.num_columns:
                codec = groups.row_group(0).column(0).compression.split("_")[0]
            options = {"compression": "none" if codec == "UNCOMPRESSED" else codec}
            batches = table.part_batches(str(source))
        else:
            file = opened.enter_context(pyarrow.ipc.open_file(source))
            schema, batches = file.schema, map(file.get_batch, range(file.num_record_batches))
        schema = schema.with_metadata({**(schema.metadata or {}), DECLARATION_KEY: declaration})
        writer: Any = (
            pq.ParquetWriter(part.stream, schema, write_page_checksum=True, **options)
            if isinstance(table, ParquetFiles)
            else pyarrow.ipc.new_file(part.stream, schema, options=_PACKED)
        )
        opened.enter_context(writer)
        for batch in batches:
            writer.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=schema))
