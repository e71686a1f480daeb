"""Tables written batch by batch, in the format that the file's name says, with their declaration.

Each file appears under its name when all of it is on the disk.
"""

import bz2
import codecs
import gzip
import json
import lzma
import math
import shutil
import zipfile
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

from ldpaudit.datasets.formats.added import reader_of
from ldpaudit.datasets.formats.dialect import MISSING, Dialect
from ldpaudit.datasets.formats.locations import (
    ARROW,
    CSV,
    EXCEL,
    JSON,
    NUMPY,
    ORC,
    PACKED,
    PARQUET,
    STATISTICS,
    SVMLIGHT,
)
from ldpaudit.datasets.formats.read_back import write_with
from ldpaudit.datasets.formats.registered import Writer, format_of
from ldpaudit.datasets.formats.tables import (
    BYTES,
    DECLARATION_KEY,
    LISTS,
    TEXTS,
    VALUES,
    check_fits,
    decoded,
    is_any,
    value_type,
    without_hidden,
)
from ldpaudit.datasets.names import quoted, shown_type
from ldpaudit.datasets.writing import sidecar
from ldpaudit.doors import InputError, OutputError, Reader, Scratch
from ldpaudit.work.files import PartFile, WholeFiles

# Commas, decimal points, UTF-8.
USUAL: Final = Dialect()
# What registered writers write is asked of them first.
_NOT_WRITTEN: Final = (
    *EXCEL,
    *NUMPY,
    *ORC,
    *STATISTICS,
    *SVMLIGHT,
    ".json",
    *PACKED,
    ".xls",
    ".pdf",
    ".docx",
    ".html",
    ".toml",
)
_TEXT: Final = pa.large_string()
_GROWING: Final = pyarrow.ipc.IpcWriteOptions(compression="lz4", emit_dictionary_deltas=True)


class TableFile:
    """A file that is written batch by batch, in the format of its name: :func:`check_format`."""

    # It gets the metadata of the schema, unless it is text; ``dialect``: how a CSV file is written;
    # ``labels``: columns whose texts may be numbers, which have its decimal mark; ``described``:
    # what a file of a statistics package says of the columns.

    @staticmethod
    def unnamed_format(target: Path) -> str:
        """Return in which format a file is written, where its name does not say it; else ""."""
        name = target.name.lower()
        known = is_text(target) or name.endswith((*PARQUET, *ARROW)) or _writer_of(name) is not None
        return "" if known else "as Parquet, since the ending of its name is of no other format"

    def __init__(
        self,
        part: PartFile,
        schema: pa.Schema,
        dialect: Dialect = USUAL,
        labels: Collection[str] = (),
        described: Any = None,
    ) -> None:
        self._part, name, stream = part, part.path.name.lower(), part.stream
        self._write: Callable[[pa.RecordBatch], object]
        with part.writing(), ExitStack() as opened:
            codec = PACKED.get(Path(name).suffix)
            if codec is not None:
                stream = opened.enter_context(_packing(codec, stream, part.path))
            if is_csv(part.path):
                mark = "," if dialect.separator == "\t" else dialect.separator
                mark = "\t" if any(end in name[-8:] for end in (".tsv", ".tab")) else mark
                decimal, encoder = dialect.numbers.decimal, codecs.getincrementalencoder
                encode = encoder(dialect.encoding)().encode
                header = _csv_cells(pa.array(schema.names, _TEXT), mark, decimal).to_pylist()
                stream.write(encode(mark.join(header) + "\n"))
                turned = labels if decimal == "," else ()
                self._write = lambda batch: stream.write(
                    encode(_csv_rows(_with_commas(batch, turned), mark, decimal))
                )
            elif name.endswith(JSON):
                self._write = lambda batch: stream.write(_json_rows(batch).encode())
            elif name.endswith(ARROW):
                arrow = _ArrowWriter(stream, schema)
                opened.callback(arrow.close)
                self._write = arrow.write
            elif (own := _writer_of(name)) is not None:
                # What closes its file at the end must not close this one.
                rows = own.open(part.path, schema, _Kept(stream), described)
                opened.callback(rows.close)
                self._write = rows.write
            else:
                writer = pq.ParquetWriter(stream, schema, write_page_checksum=True)
                opened.callback(writer.close)
                self._write = writer.write_batch
            part.finish = opened.pop_all().close

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows, as a row group."""
        with self._part.writing():
            self._write(batch)


def _packing(codec: str, stream: Any, path: Path) -> Any:
    """Return a file that compresses what is written to it; it holds no time, and no other name."""
    if codec == "zip":
        return _zipped(stream, path)
    if codec == "gzip":
        return gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)
    if codec == "xz":
        return lzma.LZMAFile(stream, "wb")
    if codec == "bz2":
        return bz2.BZ2File(stream, "wb")
    return pa.CompressedOutputStream(pa.PythonFile(_Kept(stream), mode="w"), codec)


@contextmanager
def _zipped(stream: Any, path: Path) -> Iterator[Any]:
    """Give the only file of an archive to write to, called as the archive."""
    inner = path.name[: -len(".zip")]
    inner = inner if inner.lower().endswith((*CSV, *JSON)) else f"{inner}.csv"
    entry = zipfile.ZipInfo(inner)
    entry.compress_type = zipfile.ZIP_DEFLATED
    with (
        zipfile.ZipFile(stream, "w") as archive,
        archive.open(entry, "w", force_zip64=True) as file,
    ):
        yield file


class _Kept:
    """A file that stays open when what is written through it is closed."""

    closed = False

    def __init__(self, stream: Any) -> None:
        self.write, self.flush, self.tell = stream.write, stream.flush, stream.tell

    def close(self) -> None:
        """Leave the file open."""


class _ArrowWriter:
    """Writes a Feather file, in which a column has one dictionary: later rows can only add to it.

    Categories of text are written as text, which needs no dictionary to stay categories.
    """

    def __init__(self, stream: Any, schema: pa.Schema) -> None:
        kinds = [self._written(field.type) for field in schema]
        fields = [field.with_type(kind) for field, kind in zip(schema, kinds, strict=True)]
        self._schema = pa.schema(fields, metadata=schema.metadata)
        self._known: dict[int, pa.Array] = {
            place: pa.array([], kind.value_type)
            for place, kind in enumerate(kinds)
            if pa.types.is_dictionary(kind)
        }
        writer = pyarrow.ipc.new_file(stream, self._schema, options=_GROWING)
        self._writer, self.close = writer, writer.close

    @staticmethod
    def _written(kind: pa.DataType) -> pa.DataType:
        values = value_type(kind)
        if not pa.types.is_dictionary(kind) or not is_any(values, *VALUES):
            return values
        return pa.dictionary(pa.int32(), values)  # In no order: which of two comes first is chance.

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        columns = []
        for place, column in enumerate(batch.columns):
            if place in self._known:
                columns.append(self._with_all(place, column))
            else:
                plain = decoded(pa.chunked_array([column])).combine_chunks()
                columns.append(without_hidden(plain))
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def _with_all(self, place: int, column: pa.Array) -> pa.Array:
        """Return a column whose dictionary begins with that of the rows before it."""
        known, kind = self._known[place], self._schema.field(place).type
        values = column.dictionary.cast(kind.value_type)
        new = values.filter(pc.invert(pc.is_in(values, value_set=known)))
        self._known[place] = known = pa.concat_arrays([known, new])
        indices = pc.index_in(values, value_set=known).take(column.indices)
        return pa.DictionaryArray.from_arrays(indices, known)


def _with_commas(batch: pa.RecordBatch, labels: Collection[str]) -> pa.RecordBatch:
    """Return a batch in which texts of some columns that are numbers have a decimal comma."""
    for name in labels:
        place = batch.schema.get_field_index(name)
        column = batch.column(place)
        if is_any(column.type, *TEXTS):
            number = pc.match_substring_regex(column, r"^[+-]?[0-9]*\.?[0-9]*([eE][+-]?[0-9]+)?$")
            commas = pc.if_else(number, pc.replace_substring(column, ".", ","), column)
            batch = batch.set_column(place, name, commas)
    return batch


def _csv_rows(batch: pa.RecordBatch, mark: str, decimal: str) -> str:
    """Return rows of a CSV file: missing values are empty fields."""
    if not len(batch):
        return ""
    columns = [_csv_cells(column, mark, decimal) for column in batch.columns]
    join = pc.JoinOptions("replace", "")
    rows = pc.binary_join_element_wise(*columns, pa.scalar(mark, _TEXT), options=join)
    whole = pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)
    return str(pc.binary_join(whole, pa.scalar("\n", _TEXT))[0].as_py()) + "\n"


def _csv_cells(column: pa.Array, mark: str, decimal: str) -> pa.Array:
    """Return a column as text, quoted where it must be."""
    # Numbers, booleans and dates have the shortest form that is read back as the same value.
    column = decoded(pa.chunked_array([column])).combine_chunks()
    texts = column.cast(_TEXT)
    if pa.types.is_decimal(column.type) and column.type.scale > 0:
        # Zeros at the end go, but not those of an exponent: 1E-10.
        zeros = r"^(-?[0-9]+)(\.[0-9]*[1-9])?\.?0*$"
        texts = pc.replace_substring_regex(texts, zeros, r"\1\2")
    if is_any(column.type, "floating", "decimal") and decimal == ",":
        texts = pc.replace_substring(texts, ".", ",")
    if not is_any(column.type, *TEXTS) and decimal != mark:
        return texts
    must = pc.match_substring_regex(texts, rf'["\r\n\x{ord(mark):02x}]|^\s|\s$|^$')
    must = pc.or_(must, pc.is_in(texts, pa.array([*MISSING], _TEXT)))
    if not pc.any(must).as_py():
        return texts
    inner = pc.replace_substring(texts, '"', '""')
    quote, none = pa.scalar('"', _TEXT), pa.scalar("", _TEXT)
    return pc.if_else(must, pc.binary_join_element_wise(quote, inner, quote, none), texts)


def _json_rows(batch: pa.RecordBatch) -> str:
    """Return an object a row; what is no number in JSON is null, and whole decimals are ints."""
    columns = []
    for column in batch.columns:
        kind = value_type(column.type)
        # The shortest numbers that are read back as the same: so labels are declared.
        short = pa.types.is_float32(kind) or (pa.types.is_decimal(kind) and kind.scale > 0)
        columns.append(column.cast(_TEXT).cast(pa.float64()) if short else column)
    table = pa.RecordBatch.from_arrays(columns, batch.schema.names)
    rows = (_plain(row) for row in table.to_pylist())
    return "".join(f"{json.dumps(row, ensure_ascii=False, default=str)}\n" for row in rows)


def _writer_of(name: str) -> Writer | None:
    """Return what writes a file of a name in small letters, ours or of others; None: the core."""
    if name.endswith((*PARQUET, *CSV, *JSON, *ARROW)):
        return None
    found = writer_of(name)
    return found or (None if name.endswith(_NOT_WRITTEN) else writer_of_others(name))


def is_csv(target: Path) -> bool:
    """Return whether a file's name is one of a CSV file."""
    return target.name.lower().endswith(CSV) and not target.name.lower().endswith(JSON)


def is_text(target: Path) -> bool:
    """Return whether a file's name is one of a text file, which holds no metadata."""
    return target.name.lower().endswith((*CSV, *JSON))


def _has_sidecar(target: Path) -> bool:
    """Return whether a file of this name has no place for a declaration of its own."""
    return is_text(target) or _writer_of(target.name.lower()) is not None


def written_places(target: Path) -> tuple[Path, ...]:
    """Return the files that a release is written to: with its declaration, where that is one."""
    return (target, sidecar(target)) if _has_sidecar(target) else (target,)


def write_declaration(
    files: WholeFiles, target: Path, schema: pa.Schema, *, private: bool = False
) -> None:
    """Write a schema's declaration next to a file that cannot hold it; others hold it."""
    # ``private``: of true labels, with the key of the noise.
    if _has_sidecar(target):
        files.add(sidecar(target), private=private).write(
            (schema.metadata or {})[DECLARATION_KEY] + b"\n"
        )


def check_holds(target: Path, schema: pa.Schema) -> None:
    """Refuse columns that the file's format cannot hold (OutputError): JSON holds lists."""
    own = _writer_of(target.name.lower())
    if own is not None:
        own.check_columns(target, schema)
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
    if name.endswith(".sas7bdat"):
        raise OutputError(
            f"{quoted(target.name)} cannot be written: only SAS itself writes .sas7bdat. Give a "
            "name that ends in .xpt, which SAS reads, or in .parquet."
        )
    own = _writer_of(name)
    if own is not None:
        own.check(target)
        return
    # What another package reads would be Parquet under a name that its reader takes for its own.
    if (name.endswith(_NOT_WRITTEN) and not is_text(target)) or _is_of_a_reader(name):
        raise OutputError(
            f"{quoted(target.name)} cannot be written in the format of its name; give it one that "
            "ends in .parquet, .feather, .orc, .csv, .csv.gz, .jsonl, .dta, .sav or .xpt."
        )


def _is_of_a_reader(name: str) -> bool:
    """Return whether a registered reader reads files of this name, in small letters."""
    if name.endswith((*PARQUET, *CSV, *JSON, *ARROW)):
        return False
    try:
        return reader_of(name) is not None
    except InputError:  # A broken reader stops nobody from writing.
        return False


def writer_of(name: str) -> Writer | None:
    """Return what writes a file of a name in small letters; None where the core does."""
    found = format_of(name)
    writer = None if found is None else found.writer
    return writer if writer is not None and name.endswith(writer.endings) else None


def writer_of_others(name: str) -> Writer | None:
    """Return what a registered reader writes files of a name with, in small letters; or None."""
    try:
        found = reader_of(name)
    except InputError:  # A broken reader stops nobody from writing.
        return None
    if found is None or found[1].write is None:
        return None
    return Writer(found[1].endings, partial(_WholeTable, *found))


class _WholeTable:
    """Collects rows, which a registered reader writes as one table."""

    def __init__(
        self, own: str, reader: Reader, target: Path, schema: pa.Schema, stream: Any, _: Any
    ) -> None:
        self._own, self._reader, self._target = own, reader, target
        self._stream, self._schema = stream, schema.remove_metadata()
        self._batches, self._size = list[pa.RecordBatch](), 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Add rows; OutputError where memory cannot hold them all."""
        self._batches.append(pa.RecordBatch.from_arrays(batch.columns, schema=self._schema))
        self._size += batch.nbytes
        try:
            check_fits(3 * self._size, f"The file {quoted(self._target.name)}")
        except InputError as error:
            raise OutputError(str(error)) from None

    def close(self) -> None:
        """Write all rows; OutputError where that fails."""
        table = pa.Table.from_batches(self._batches, self._schema)
        with Scratch() as scratch:
            place = scratch.folder / self._target.name
            write_with(self._own, self._reader, table, place)
            with place.open("rb") as written:
                shutil.copyfileobj(written, self._stream)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, Decimal):
        return int(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
