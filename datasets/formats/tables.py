"""Tables, wherever they come from: column names, the declaration's bytes, columns and batches."""

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.arrays import IndexArray
from ldpaudit.datasets.formats.columns import allowed, check_fits
from ldpaudit.datasets.formats.locations import Location, check_width, unreadable
from ldpaudit.datasets.names import check_unique, quoted
from ldpaudit.errors import InputError

DECLARATION_KEY: Final = b"ldpaudit"
"""The key of the declaration in the schema metadata of a Parquet file or an Arrow table."""
_ROWS_AT_ONCE: Final = 1 << 16
# Columns are read in groups of about this many cells, so a wide file is never whole in memory; the
# time of one call grows with the square of its columns.
_CELLS_AT_ONCE, _COLUMNS_AT_ONCE = 1 << 22, 10_000
# Bytes of memory for each cell of a group, where every pass over a file reads its text again.
_CELL: Final = 64


class TableSource:
    """A table that has been opened: its cells are read when asked for, as often as needed.

    Attributes
    ----------
    location : Location or None
        Where the file or files lie; None for a table in memory.
    names : tuple of str
        The column names, distinct, in order.
    schema : pyarrow.Schema
        The columns and their types, without any metadata.
    row_count : int or None
        None where it is known only after reading everything.
    text : bool
        Whether it comes from text, where numbers have no type of their own.
    parsed : bool
        Whether each pass over it parses text again.
    remark : str
        How a file is read, where that was found out and is not usual.
    """

    location: Location | None = None
    names: tuple[str, ...]
    schema: pa.Schema
    row_count: int | None = None
    text = parsed = False
    remark = ""
    _declared: bytes | None = None

    @property
    def name(self) -> str:
        """The base name of the file."""
        return "release" if self.location is None else self.location.name

    @cached_property
    def declaration(self) -> bytes | None:
        """The declaration's JSON: in the file, or in one of its own; None without one."""
        place = self.location
        alone = place is not None and len(place.paths) == 1
        return self._declared or (place.sidecar() if place and alone else None)

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
        kinds, cells = self.schema, allowed() // _CELL if self.parsed else _CELLS_AT_ONCE
        at_once = max(min(cells // max(self.row_count or 0, 1), _COLUMNS_AT_ONCE), 1)
        at_once = at_once if rows is None else max(len(names), 1)
        for start in range(0, len(names), at_once):
            group, found, seen, done = names[start : start + at_once], [], 0, 0
            for batch in self.batches(group, as_text):
                found.append(batch)
                if rows is not None:
                    first, last = np.searchsorted(rows, (done, done + len(batch)))
                    found[-1] = batch.take(pa.array(rows[first:last] - done))
                    done += len(batch)
                seen += found[-1].nbytes
                check_fits(seen, f"The file {quoted(self.name)}")
            for place, name in enumerate(group):
                text = self.text and name in as_text
                kind = pa.large_string() if text else kinds.field(name).type
                yield name, pa.chunked_array([batch.column(place) for batch in found], kind)


def read_whole(source: TableSource) -> pa.Table:
    """Return all rows as one table: for small tables."""
    return pa.Table.from_batches(list(source.batches()), source.schema)


def bare_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema without metadata, which may hold anything: another tool's statistics."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


class MemoryTable(TableSource):
    """A pandas DataFrame, an Arrow table, or anything that exports an Arrow stream.

    ``location``: the file that it was read from.
    """

    def __init__(self, source: Any, location: Location | None = None) -> None:
        self.location, self._frame = location, source if is_frame(source) else None
        if self._frame is not None:
            self.names = tuple(str(name) for name in self._frame.columns)
            declared = self._frame.attrs.get(DECLARATION_KEY.decode())
            self._declared = declared.encode() if isinstance(declared, str) else None
        elif not hasattr(source, "__arrow_c_stream__"):
            raise _no_table(source)
        else:
            with unreadable("release", "cannot be read as an Arrow table"):
                try:
                    self._table = source if isinstance(source, pa.Table) else pa.table(source)
                except pa.ArrowInvalid:  # A single column.
                    raise _no_table(source) from None
            self.names = tuple(self._table.schema.names)
            self._declared = (self._table.schema.metadata or {}).get(DECLARATION_KEY)
        check_width(len(self.names), self.name)
        check_unique(self.names)

    @cached_property
    def table(self) -> pa.Table:
        """The table as Arrow's, without metadata."""
        return pa.table(dict(self.columns(self.names))).unify_dictionaries()

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
                column = self._table.column(name)
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
