"""Tables, wherever they come from: column names, the declaration's bytes, columns and batches."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import pyarrow as pa

from ldpaudit.datasets.formats.locations import Location, check_width, unreadable
from ldpaudit.datasets.names import check_unique
from ldpaudit.errors import InputError

DECLARATION_KEY: Final = b"ldpaudit"
"""The key of the declaration in the schema metadata of a Parquet file or an Arrow table."""
_ROWS_AT_ONCE: Final = 1 << 16


class TableSource(Protocol):
    """A table that has been opened; its cells have not been read yet."""

    @property
    def name(self) -> str:
        """The base name of the file."""

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, distinct, in order."""

    @property
    def text(self) -> bool:
        """Whether it comes from text, where numbers have no type of their own."""

    @property
    def remark(self) -> str:
        """How a file is read, where that was found out and is not usual."""

    @property
    def declaration(self) -> bytes | None:
        """The declaration's JSON, or None."""

    def sha256(self) -> str | None:
        """Return the digest of the file; None for a table in memory."""

    def columns(
        self, names: Sequence[str], as_text: Collection[str] = ()
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order.

        A text file gives those in ``as_text`` as strings, letter for letter; other sources have
        types of their own and ignore it.
        """


class BatchSource(Protocol):
    """A table that can be read in batches, as often as needed, always in the same row order."""

    @property
    def name(self) -> str:
        """The base name of the file."""

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, without any metadata."""

    @property
    def location(self) -> Location | None:
        """Where the file or files lie; None for a table in memory."""

    @property
    def row_count(self) -> int | None:
        """The number of rows, None where it is known only after reading everything."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""


def read_whole(source: BatchSource) -> pa.Table:
    """Return all rows as one table: for small tables."""
    return pa.Table.from_batches(list(source.batches()), source.schema)


def bare_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema without metadata, which may hold anything: another tool's statistics."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


class MemoryTable:
    """A pandas DataFrame, an Arrow table, or anything that exports an Arrow stream."""

    name = "release"
    text = False
    remark = ""

    def __init__(self, table: Any) -> None:
        self._frame: Any = table if is_frame(table) else None
        if self._frame is not None:
            self.names = tuple(str(name) for name in self._frame.columns)
            declared = self._frame.attrs.get(DECLARATION_KEY.decode())
            metadata = {DECLARATION_KEY: declared.encode()} if isinstance(declared, str) else {}
        else:
            with unreadable("release", "cannot be read as an Arrow table"):
                try:
                    self._table = table if isinstance(table, pa.Table) else pa.table(table)
                except pa.ArrowInvalid:  # A single column.
                    raise _no_table(table) from None
            self.names = tuple(self._table.schema.names)
            metadata = self._table.schema.metadata
        check_width(len(self.names), self.name)
        check_unique(self.names)
        self.declaration: bytes | None = (metadata or {}).get(DECLARATION_KEY)

    def sha256(self) -> str | None:
        """Return None: there is no file."""
        return None

    def columns(
        self,
        names: Sequence[str],
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order."""
        places = {name: place for place, name in enumerate(self.names)}
        for name in names:
            if self._frame is None:
                yield name, self._table.column(name)
            else:
                yield name, _from_pandas(self._frame.iloc[:, places[name]], places[name] + 1)


def open_memory(source: Any) -> MemoryTable:
    """Open a DataFrame, an Arrow table or an exporter of an Arrow stream (else: InputError)."""
    if is_frame(source) or hasattr(source, "__arrow_c_stream__"):
        return MemoryTable(source)
    raise _no_table(source)


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
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InputError(
            f"Column {place} mixes types or holds objects; give every column one type."
        ) from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


@dataclass(frozen=True, eq=False)
class MemoryBatches:
    """A table in memory as a source of batches; ``location`` is the file it was read from."""

    table: pa.Table
    location: Location | None = None

    @classmethod
    def of(cls, table: Any) -> "MemoryBatches":
        """Return the batches of a DataFrame, an Arrow table or an exporter of an Arrow stream."""
        opened = open_memory(table)
        columns = pa.table(dict(opened.columns(opened.names)))
        return cls(columns.cast(bare_schema(columns.schema)).unify_dictionaries())

    @property
    def name(self) -> str:
        """The base name of the file."""
        return "release" if self.location is None else self.location.name

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self.table.schema

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order."""
        chosen = self.table if columns is None else self.table.select(list(columns))
        yield from chosen.to_batches(_ROWS_AT_ONCE)
