"""Readers of other packages: files whose names no reader of this package knows."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from ldpaudit.datasets.formats.locations import Location, check_width
from ldpaudit.datasets.formats.tables import (
    DECLARATION_KEY,
    MemoryTable,
    TableSource,
    bare_schema,
    usual_batch,
)
from ldpaudit.datasets.names import check_unique, quoted
from ldpaudit.errors import InputError
from ldpaudit.plugins import added, check_one, loaded, watched


@dataclass(frozen=True)
class Reader:
    """Reads the files of a format; a package registers it in the group ``ldpaudit.readers``.

    Attributes
    ----------
    endings : tuple of str
        How the names of its files end, in small letters with the point: ``(".avro",)``. A built-in
        reader's endings stay with it.
    read : callable, optional
        Takes the path of one file on this computer and returns a :class:`pyarrow.Table` with one
        row for each row of the file, in its order, and named columns. Missing values are null. The
        table's schema metadata may hold a declaration under the key ``ldpaudit``. What it raises
        is reported in one line without its text, which may hold cells; the text of an
        :class:`~ldpaudit.errors.InputError` is shown, so it must hold none.
    write : callable, optional
        Takes a :class:`pyarrow.Table` and the path of a file that is not there yet, and writes the
        table there such that it is read as it was; the declaration is written next to it. None:
        such files are only read.
    stream : callable, optional
        Takes the path of one file on this computer and the names of columns, a list, or None for
        all of them. Returns a :class:`pyarrow.RecordBatchReader` of these columns in this order,
        which gives the rows a piece at a time, so that files larger than memory can be read. It is
        called again for each pass over the file, and must give the same rows in the same order;
        the schema of all columns may hold a declaration, and errors are shown, as for ``read``. A
        reader has ``read`` or ``stream``; with both, ``stream`` is used.
    """

    endings: tuple[str, ...]
    read: Callable[[Path], pa.Table] | None = None
    write: Callable[[pa.Table, Path], object] | None = None
    stream: Callable[[Path, list[str] | None], pa.RecordBatchReader] | None = None


def reader_of(name: str) -> tuple[str, Reader] | None:
    """Return the registered reader of a file, by its name in small letters, and its own name.

    One that cannot be used is an error only where no other reads the file: perhaps it would.
    """
    readers, broken = [], []
    for own, point in _points().items():
        try:
            reader = _loaded(own, point)
        except InputError as error:
            broken.append(error)
        else:
            if name.endswith(reader.endings):
                readers.append((own, reader))
    if len(readers) > 1:
        names = " and ".join(repr(own) for own, _ in readers)
        raise InputError(f"The readers {names} are both for such a file; uninstall all but one.")
    if not readers and broken:
        raise broken[0]
    return readers[0] if readers else None


def table_of(own: str, reader: Reader, location: Location) -> TableSource:
    """Return what a registered reader reads of a file."""
    shown = quoted(location.name)
    place = Path(location.paths[0])
    if not (isinstance(location.filesystem, pafs.LocalFileSystem) and place.is_file()):
        raise InputError(f"The file {shown} must be on this computer for the reader {own!r}.")
    with watched("reader", own, f"the file {shown} was not read"):
        if reader.stream is not None:
            return _StreamedTable(own, reader.stream, location)
        assert reader.read is not None
        table = reader.read(place)
        if not isinstance(table, pa.Table):
            raise InputError(
                f"The plug-in {own!r} (reader) must return a pyarrow.Table. Got "
                f"{type(table).__name__} instead."
            )
        table.validate(full=True)  # Arrow itself trusts what it is given.
        return MemoryTable(table, location)


def read_again(own: str, reader: Reader, place: Path) -> pa.Table:
    """Return what a registered reader reads of a file of this computer, in the usual types."""
    source = table_of(own, reader, Location(place.name, pafs.LocalFileSystem(), (str(place),)))
    return pa.Table.from_batches(source.batches(), source.schema)


class _StreamedTable(TableSource):
    """A file that a registered reader reads a piece at a time, once more for each pass."""

    location: Location
    parsed = True

    def __init__(
        self,
        own: str,
        stream: Callable[[Path, list[str] | None], pa.RecordBatchReader],
        location: Location,
    ) -> None:
        self.location, self._own, self._stream = location, own, stream
        self._rows: int | None = None
        opened = self._opened(None)
        opened.close()
        self.schema, self.names = bare_schema(opened.schema), tuple(opened.schema.names)
        self.embedded = (opened.schema.metadata or {}).get(DECLARATION_KEY)
        check_width(len(self.names), self.name)
        check_unique(self.names)

    @property
    def _otherwise(self) -> str:
        return f"the file {quoted(self.name)} was not read"

    def _opened(self, columns: list[str] | None) -> pa.RecordBatchReader:
        with watched("reader", self._own, self._otherwise):
            found = self._stream(Path(self.location.paths[0]), columns)
        if not isinstance(found, pa.RecordBatchReader):
            raise InputError(
                f"The plug-in {self._own!r} (reader) must stream a pyarrow.RecordBatchReader. Got "
                f"{type(found).__name__} instead."
            )
        return found

    def batches(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""
        wanted = list(self.names if columns is None else columns)
        kinds = pa.schema([self.schema.field(name) for name in wanted])
        rows, pieces = 0, self._opened(wanted or None)
        try:
            if wanted and bare_schema(pieces.schema) != kinds:
                raise self._changed("columns")
            while (batch := self._next(pieces)) is not None:
                if not batch.schema.equals(pieces.schema):
                    raise self._changed("columns")
                rows += len(batch)
                yield usual_batch(batch) if wanted else batch.select([])
        finally:
            pieces.close()
        if self._rows is not None and rows != self._rows:
            raise self._changed("rows")
        self._rows = rows

    def _next(self, pieces: pa.RecordBatchReader) -> pa.RecordBatch | None:
        """Return the next rows, checked: Arrow itself trusts what it is given."""
        with watched("reader", self._own, self._otherwise):
            batch = next(pieces, None)
            if batch is not None:
                batch.validate(full=True)
            return batch

    def _changed(self, what: str) -> InputError:
        return InputError(
            f"The plug-in {self._own!r} (reader) streamed other {what} of the file "
            f"{quoted(self.name)} than before, or than it was asked for."
        )


def _points() -> Mapping[str, EntryPoint]:
    return added("reader", ())


@lru_cache
def _loaded(own: str, point: EntryPoint) -> Reader:
    check_one("reader", own)
    reader = loaded("reader", point, Reader)
    ends: Any = reader.endings
    if not isinstance(ends, tuple) or not ends or not all(map(_is_ending, ends)):
        raise InputError(
            f"The endings of the plug-in {own!r} (reader) must be a tuple of texts such as '.avro'."
        )
    reads = [way for way in (reader.read, reader.stream) if way is not None]
    if not reads or not all(map(callable, reads)):
        raise InputError(f"The plug-in {own!r} (reader) must have a function that reads.")
    if reader.write is not None and not callable(reader.write):
        raise InputError(f"What the plug-in {own!r} (reader) writes with must be a function.")
    return reader


def _is_ending(end: object) -> bool:
    return isinstance(end, str) and len(end) > 1 and end[0] == "." and end == end.lower()
