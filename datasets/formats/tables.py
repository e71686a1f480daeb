"""Arrow columns, and tables wherever they come from: names, declaration, columns and batches."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.arrays import IndexArray
from ldpaudit.datasets.formats.locations import Location, check_width, unreadable
from ldpaudit.datasets.names import ColumnError, check_unique, quoted
from ldpaudit.errors import InputError
from ldpaudit.work.memory import allowance, shown

LISTS: Final = ("list", "large_list", "fixed_size_list")
NUMBERS: Final = ("integer", "floating", "decimal")
TEXTS: Final = ("string", "large_string", "string_view")
BYTES: Final = ("binary", "large_binary")
# Of these a column is one of categories only where it is a dictionary.
VALUES: Final = (*NUMBERS, "boolean", "date", "timestamp", "time", "duration")

# Types whose arrays may share bytes with rows that are not theirs.
_VIEWS: Final = ("string_view", "binary_view")
_COMPUTED: Final = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}

_memory: Final[ContextVar[int | None]] = ContextVar("memory", default=None)


@contextmanager
def held_to(memory: int | None) -> Iterator[None]:
    """Read in the block no more than so many bytes; None: what holds around it, if anything."""
    # Outside of all such blocks it is half of the machine's memory.
    token = _memory.set(_memory.get() if memory is None else memory)
    try:
        yield
    finally:
        _memory.reset(token)


def allowed() -> int:
    """Return the bytes that reading may take."""
    return allowance(_memory.get())


def check_fits(size: float, what: str = "") -> None:
    """Check that what is to be unpacked, a column or ``what``, fits into memory (InputError)."""
    if size > allowed():
        problem = (
            f"unpacks to {shown(size)}, more than the {shown(allowed())} of memory that may be "
            "used; give more --memory, or write smaller row groups."
        )
        raise InputError(f"{what} {problem}") if what else ColumnError(problem)


@lru_cache(maxsize=1 << 12)  # A wide table asks this of few types, very often.
def is_any(kind: pa.DataType, *tests: str) -> bool:
    """Return whether a type passes one of the tests of ``pa.types``, such as ``"integer"``."""
    return any(getattr(pa.types, f"is_{test}")(kind) for test in tests)


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a dictionary's values, or the type itself."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without its dictionary; texts in a form that can be computed on."""
    # Few bytes can stand for very many in both: what memory cannot hold is refused (ColumnError).
    kind = computed_type(value_type(column.type))
    if kind == column.type:
        return column
    check_fits(sum(map(_unpacked, column.chunks)))
    return column.cast(kind)


def unified(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose chunks have one dictionary, if any."""
    plain = not pa.types.is_dictionary(column.type)
    if plain or not any(chunk.dictionary.null_count for chunk in column.chunks):
        return column.unify_dictionaries()  # Also those within lists.
    return decoded(column).dictionary_encode()  # Arrow does not unify such dictionaries.


def _unpacked(chunk: pa.Array) -> int:
    """Return at most how many bytes the texts of an array with a dictionary, or of views, take."""
    if pa.types.is_dictionary(chunk.type):
        values = chunk.dictionary
        if not is_any(values.type, *TEXTS, *BYTES):
            return 8 * len(chunk)
        if is_any(values.type, *_VIEWS):
            check_fits(_unpacked(values))
            values = values.cast(_COMPUTED[values.type])
        lengths = pc.fill_null(pc.binary_length(values), 0).to_numpy(zero_copy_only=False)
        codes = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
        return int(np.bincount(codes, minlength=len(lengths)) @ lengths)
    if not is_any(chunk.type, *_VIEWS):
        return int(chunk.nbytes)
    # A view begins with the length of its text.
    views = np.frombuffer(chunk.buffers()[1], dtype=np.int32)[::4]
    present = chunk.is_valid().to_numpy(zero_copy_only=False)
    return int(views[chunk.offset : chunk.offset + len(chunk)][present].sum(dtype=np.int64))


def computed_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which values of a type can be filtered and compared."""
    return _COMPUTED.get(kind, kind)


@lru_cache(maxsize=1 << 10)
def usual_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column is read: one on which everything can be computed."""
    # No views of texts, no runs, no short decimals, no dictionary with unsigned places or views.
    if pa.types.is_run_end_encoded(kind):
        return usual_type(kind.value_type)
    if pa.types.is_dictionary(kind):
        values, index = usual_type(kind.value_type), kind.index_type
        if pa.types.is_unsigned_integer(index):
            index = pa.int32() if index.bit_width < 32 else pa.int64()
        if pa.types.is_dictionary(values) or pa.types.is_nested(values):
            return kind
        values = pa.float32() if pa.types.is_float16(values) else values  # It cannot be sorted.
        return pa.dictionary(index, values, kind.ordered)
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return _COMPUTED.get(kind, kind)


def usual(column: pa.Array) -> pa.Array:
    """Return a column in its usual type; what memory cannot hold is refused (ColumnError)."""
    kind = usual_type(column.type)
    if kind == column.type:
        return column
    if pa.types.is_run_end_encoded(column.type):
        # A run of a few bytes can stand for all rows: what they take, with their places.
        check_fits(_RUN * len(column))
        lengths = np.diff(np.asarray(column.run_ends), prepend=0)
        ends = np.clip(np.cumsum(lengths) - column.offset, 0, len(column))
        places = np.repeat(np.arange(len(lengths)), np.diff(ends, prepend=0))
        return usual(usual(column.values).take(pa.array(places)))
    if pa.types.is_dictionary(column.type):
        values = usual(column.dictionary).cast(kind.value_type)
        indices = column.indices.cast(kind.index_type)
        return pa.DictionaryArray.from_arrays(indices, values, ordered=kind.ordered)
    if is_any(column.type, *_VIEWS):
        check_fits(_unpacked(column))
    return column.cast(kind)


def usual_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with every column in its usual type, and without metadata."""
    columns = [usual(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def usual_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of several pieces in its usual type."""
    kind = usual_type(column.type)
    return column if kind == column.type else pa.chunked_array(map(usual, column.chunks), kind)


def stored(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without its extension type."""
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    return pa.chunked_array([c.storage for c in column.chunks], column.type.storage_type)


def plain_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column as plain values: whole decimals as int64, lists of one as what they hold.

    What a number, a code or an id is, is asked of these alone, whatever type a file gave them.
    """
    column = usual_column(stored(column))
    if is_any(column.type, *LISTS) and len(column):
        bounds = pc.min_max(pc.list_value_length(column))
        if bounds["min"].as_py() == bounds["max"].as_py() == 1:
            if not column.null_count:
                return plain_values(pc.list_flatten(column))
            return plain_values(pc.list_element(column, 0))
    if pa.types.is_decimal(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:  # Fractions, or beyond the integers.
            return column
    return column


def comparable_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return plain values that can be compared: no dictionary, times and durations as integers."""
    column = plain_values(column)
    if pa.types.is_nested(value_type(column.type)):
        return column
    column = decoded(column)
    if is_any(column.type, "time", "duration"):
        column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
    return plain_values(column) if pa.types.is_decimal(column.type) else column


def distinct_values(column: pa.ChunkedArray) -> tuple[pa.Array, IndexArray]:
    """Return the distinct values of a column that some row has, and each row's place, or −1.

    Of a dictionary no row gets its value: one that is long may stand in very many rows.
    """
    if not pa.types.is_dictionary(column.type):
        encoded = column.dictionary_encode().combine_chunks()
        places = encoded.indices.cast(pa.int64()).fill_null(-1)
        return encoded.dictionary, places.to_numpy(zero_copy_only=False)
    values, found = list[pa.Array](), list[IndexArray]()
    for chunk in column.chunks:
        indices = chunk.indices.cast(pa.int64())
        used = pc.unique(indices.drop_null())
        place = np.full(len(chunk.dictionary) + 1, -1, dtype=np.int64)
        place[used.to_numpy()] = sum(map(len, values)) + np.arange(len(used))
        values.append(chunk.dictionary.take(used))
        found.append(place[indices.fill_null(-1).to_numpy(zero_copy_only=False)])
    if not any(map(len, values)):
        return pa.array([], column.type.value_type), np.full(len(column), -1, dtype=np.int64)
    # What is in several of the dictionaries, or twice in one, is one value.
    distinct, same = distinct_values(pa.chunked_array(values, column.type.value_type))
    return distinct, np.append(same, -1)[np.concatenate(found)]


def without_long_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return categories with their long texts cut, and still distinct; other columns as they are.

    To look at a column each row gets its text: one that is long may stand in very many rows.
    """
    if not pa.types.is_dictionary(column.type) or not is_any(value_type(column.type), *TEXTS):
        return column
    chunks = []
    for chunk in column.chunks:
        values = chunk.dictionary.cast(pa.large_string())
        if (pc.max(pc.binary_length(values)).as_py() or 0) <= _LONG:
            chunks.append(pa.DictionaryArray.from_arrays(chunk.indices, values))
            continue
        cut = [
            text
            if text is None or len(text) <= _LONG
            else text[:_LONG] + hashlib.sha256(text.encode()).hexdigest()
            for text in values.to_pylist()
        ]
        values = pa.array(cut, pa.large_string())
        chunks.append(pa.DictionaryArray.from_arrays(chunk.indices, values))
    kind = pa.dictionary(column.type.index_type, pa.large_string())
    return pa.chunked_array(chunks, kind)


def without_hidden(column: pa.Array) -> pa.Array:
    """Return a column of the same values, with nothing left in memory under its missing ones."""
    # Arrow keeps what was in a cell before it was made missing, and its own format writes that
    # down.
    if isinstance(column, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(column.type, without_hidden(column.storage))
    if not _may_hide(column):
        return column
    if pa.types.is_nested(column.type) or is_any(column.type, *_VIEWS):
        return pa.array(column.to_pylist(), column.type)  # Slow, and rare.
    return column.take(pa.array(np.arange(len(column))))


def _may_hide(column: pa.Array) -> bool:
    kind = column.type
    if column.null_count or isinstance(kind, pa.BaseExtensionType):
        return True
    if pa.types.is_struct(kind):
        return any(map(_may_hide, column.flatten()))
    if is_any(kind, *LISTS):
        return _may_hide(column.flatten())
    return pa.types.is_nested(kind) or is_any(kind, *_VIEWS)


def check_complete(missing: int, rows: int, what: str) -> None:
    """Check that no row lacks ``what``, for instance ``"a released label"``."""
    if missing:
        ways = " Leave these rows out of release and truth, or give them a label of their own: "
        ways += "privatize --missing drop or class, with --secret."
        more = ways if what == "a true label" else ""
        raise InputError(
            f"Every row must have {what}; it is missing in {missing:,} of {rows:,}.{more}"
        )


# The key of the declaration in the schema metadata of a Parquet file or an Arrow table.
DECLARATION_KEY: Final = b"ldpaudit"
_ROWS_AT_ONCE: Final = 1 << 16
# Columns are read in groups of about this many cells, so a wide file is never whole in memory; the
# time of one call grows with the square of its columns.
_CELLS_AT_ONCE, _COLUMNS_AT_ONCE = 1 << 22, 10_000
# Bytes of memory for each cell of a group, where every pass over a file reads its text again.
_CELL: Final = 64
# Letters of a text that are looked at.
_LONG: Final = 1 << 12
# Bytes of a column of long texts, from which on it is looked whether they are the same.
_MANY: Final = 1 << 20
# Bytes of memory for each row of a column of runs, whose size no file says.
_RUN: Final = 64


class TableSource:
    """A table that has been opened: its cells are read when asked for, as often as needed.

    ``location``: where the file or files lie; None for a table in memory. ``names``: the column
    names, distinct, in order. ``schema``: the columns and their types, without any metadata.
    ``row_count``: None where it is known only after reading everything. ``text``: whether it
    comes from text, where numbers have no type of their own. ``parsed``: whether each pass over
    it parses text again. ``sparse``: whether its features are a sparse matrix. ``remark``: how a
    file is read, where that was found out and is not usual. ``part_rows``: the rows of each of
    several files, where they are known. ``unread``: how many other tables (sheets) are in the
    file. ``besides``: bytes of metadata in it that are no description and no declaration.
    ``embedded``: the declaration in the file itself, before which one beside it does not
    count.
    """

    location: Location | None = None
    names: tuple[str, ...]
    schema: pa.Schema
    row_count: int | None = None
    text = parsed = sparse = False
    remark = ""
    part_rows: Sequence[int] = ()
    unread = 0
    besides = 0
    embedded: bytes | None = None

    @property
    def name(self) -> str:
        """The base name of the file."""
        return "release" if self.location is None else self.location.name

    @cached_property
    def declaration(self) -> bytes | None:
        """The declaration's JSON: in the file, or in one of its own; None without one."""
        place = self.location
        alone = place is not None and len(place.paths) == 1
        return self.embedded or (place.sidecar() if place and alone else None)

    @cached_property
    def _digest(self) -> str | None:
        return None if self.location is None else self.location.sha256()

    def sha256(self) -> str | None:
        """Return the digest of the file or files, compressed or not; None for one in memory."""
        return self._digest

    def batches(
        self, columns: Sequence[str] | None = None, as_text: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all).

        A text file gives those in ``as_text`` as strings, letter for letter; other sources have
        types of their own and ignore it.
        """
        raise NotImplementedError

    def read_as_labels(self, names: Collection[str]) -> None:
        """Read columns of a text file from now on as labels are read: letter for letter."""
        # Whole numbers and booleans stay so; other sources have types of their own.

    def read_like(self, other: "TableSource") -> None:
        """Read features from now on as another source's are read; only sparse ones differ."""

    def width(self, names: Sequence[str]) -> float:
        """Return how many values a row has in some columns."""
        return len(names)

    def columns(
        self,
        names: Sequence[str],
        as_text: Collection[str] = (),
        rows: IndexArray | None = None,
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order, read a group at a time.

        ``rows``: those to read, in order, of all columns in one pass; None for all rows.
        """
        cells = allowed() // _CELL if self.parsed else _CELLS_AT_ONCE
        at_once = max(min(cells // max(self.row_count or 0, 1), _COLUMNS_AT_ONCE), 1)
        at_once = at_once if rows is None else max(len(names), 1)
        for start in range(0, len(names), at_once):
            group, seen, done = names[start : start + at_once], 0, 0
            found = list[pa.RecordBatch]()
            for batch in self.batches(group, as_text):
                found.append(_shortened(batch))
                if rows is not None:
                    first, last = np.searchsorted(rows, (done, done + len(batch)))
                    found[-1] = found[-1].take(pa.array(rows[first:last] - done))
                    done += len(batch)
                seen += found[-1].nbytes
                check_fits(seen, f"The file {quoted(self.name)}")
            for place, name in enumerate(group):
                kind, parts = self.kind_of(name, as_text), [b.column(place) for b in found]
                if any(pa.types.is_dictionary(part.type) for part in parts):
                    parts = [*map(_encoded, parts)]
                    kind = parts[0].type
                yield name, pa.chunked_array(parts, kind)
                del parts  # Else two columns are in memory while the next one is read.

    def written(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns as they are written, where that is text."""
        yield from self.batches(names, names)

    def quoted_cells(self) -> npt.NDArray[np.bool_] | None:
        """Return which cells of the first rows stand in quotes, bool (rows, columns), if known."""
        return None

    def quoted_cells_of(self, name: str) -> npt.NDArray[np.bool_] | None:  # noqa: ARG002
        """Return which rows' cells of a column stand in quotes; None if none does, or unknown."""
        return None

    def spelt(self, name: str) -> pa.ChunkedArray | None:  # noqa: ARG002
        """Return numbers as the file writes them, where reading loses that."""
        return None

    def kind_of(self, name: str, as_text: Collection[str]) -> pa.DataType:
        """Return the type of a column where some are asked for as text."""
        text = self.text and name in as_text
        return pa.large_string() if text else self.schema.field(name).type


def _shortened(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in which a long text that many of them have is there once."""
    for place, column in enumerate(batch.columns):
        long = is_any(column.type, *TEXTS) and column.nbytes > max(_LONG * len(column), _MANY)
        if long and (encoded := _encoded(column)).nbytes < column.nbytes / 2:
            batch = batch.set_column(place, batch.schema.names[place], encoded)
    return batch


def _encoded(column: pa.Array) -> pa.Array:
    return column if pa.types.is_dictionary(column.type) else column.dictionary_encode()


def read_whole(source: TableSource) -> pa.Table:
    """Return all rows as one table: for small tables."""
    return pa.Table.from_batches(list(source.batches()), source.schema)


def bare_schema(schema: pa.Schema) -> pa.Schema:
    """Return names and usual types: metadata may hold anything, even statistics."""
    return pa.schema([pa.field(field.name, usual_type(field.type)) for field in schema])


class MemoryTable(TableSource):
    """A pandas DataFrame, an Arrow table, or anything that exports an Arrow stream.

    ``location``: the file that it was read from. Its names are no ``Header``: they may be the
    first row of a file that has none.
    """

    def __init__(self, source: Any, location: Location | None = None) -> None:
        self.location, self._frame = location, source if is_frame(source) else None
        if self._frame is not None:
            self.names = tuple(str(name) for name in self._frame.columns)
            declared = self._frame.attrs.get(DECLARATION_KEY.decode())
            self.embedded = declared.encode() if isinstance(declared, str) else None
        elif (names := getattr(getattr(source, "dtype", None), "names", None)) and source.ndim == 1:
            self._table = pa.table({name: pa.array(source[name]) for name in names})
            self.names = tuple(names)
        elif not hasattr(source, "__arrow_c_stream__"):
            raise _no_table(source)
        else:
            with unreadable("release", "cannot be read as an Arrow table"):
                try:
                    self._table = source if isinstance(source, pa.Table) else pa.table(source)
                except pa.ArrowInvalid:  # A single column.
                    raise _no_table(source) from None
            self.names = tuple(self._table.schema.names)
            self.embedded = (self._table.schema.metadata or {}).get(DECLARATION_KEY)
        check_width(len(self.names), self.name)
        check_unique(self.names)

    @cached_property
    def table(self) -> pa.Table:
        """The table as Arrow's, without metadata."""
        return pa.table({name: unified(column) for name, column in self.columns(self.names)})

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self.table.schema

    @property
    def row_count(self) -> int:  # type: ignore[override]
        """The number of rows."""
        return len(self._table if self._frame is None else self._frame)

    def columns(
        self,
        names: Sequence[str],
        as_text: Collection[str] = (),  # noqa: ARG002
        rows: IndexArray | None = None,
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order."""
        places = {name: place for place, name in enumerate(self.names)}
        for name in names:
            if self._frame is None:
                column = usual_column(self._table.column(name))
            else:
                column = _from_pandas(self._frame.iloc[:, places[name]], places[name] + 1)
            yield name, column if rows is None else column.take(pa.array(rows))

    def batches(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order."""
        chosen = self.table if columns is None else self.table.select(list(columns))
        yield from chosen.to_batches(_ROWS_AT_ONCE)


def bare_column(source: Any) -> pa.ChunkedArray | None:
    """Return a bare column: of Arrow, pandas or Polars, an array of shape (n,), a list; or None."""
    if isinstance(source, pa.Array | pa.ChunkedArray):
        return source if isinstance(source, pa.ChunkedArray) else pa.chunked_array([source])
    if hasattr(source, "columns") or hasattr(source, "column_names"):
        return None
    if hasattr(source, "__arrow_c_stream__"):
        with unreadable("truth", "cannot be read as an Arrow column"):
            try:
                column = pa.chunked_array(source)
            except (pa.ArrowException, TypeError, ValueError):
                return None
            return None if pa.types.is_struct(column.type) else column
    if not isinstance(source, list | tuple) and not hasattr(source, "index"):
        if not hasattr(source, "__array__") or getattr(source, "ndim", 1) != 1:
            return None
        source = np.asarray(source)
        if source.ndim != 1 or source.dtype.names:
            return None
    elif getattr(source, "ndim", 1) != 1:
        return None
    import pandas as pd

    series = hasattr(source, "index") and hasattr(source, "array")
    return _from_pandas(pd.Series(source.array if series else source), 1)


def _no_table(source: Any) -> InputError:
    return InputError(
        "A table must be a path, a pandas DataFrame or an Arrow table. "
        f"Got {type(source).__name__} instead."
    )


def is_frame(value: Any) -> bool:
    """Return whether a value is a pandas DataFrame, without importing pandas."""
    module = type(value).__module__
    return module.split(".", 1)[0] == "pandas" and type(value).__name__ == "DataFrame"


def _from_pandas(series: Any, place: int) -> pa.ChunkedArray:
    if "interval" in str(getattr(getattr(series, "cat", None), "categories", series).dtype):
        series = series.astype(object).map(str, na_action="ignore")  # Of pandas.cut.
    try:
        array = pa.Array.from_pandas(series)
        if series.dtype == object and is_any(array.type, "date", "timestamp"):
            # Days among times would lose their hours, and times of no zone would be of UTC.
            values = series.dropna()
            kinds = {(isinstance(v, datetime), getattr(v, "tzinfo", None) is None) for v in values}
            if len(kinds) > 1:
                raise TypeError
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        problem = "mixes types or holds objects; give every column one type."
        values = getattr(getattr(series, "cat", None), "categories", ())
        if len({isinstance(value, str) for value in values}) > 1:
            problem = (
                "has categories of texts and of numbers, as pandas gives where some values of a "
                ".dta or .sav file have labels and others none; give the file itself, or make the "
                "categories texts."
            )
        raise InputError(f"Column {place} {problem}") from None
    return usual_column(array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array]))
