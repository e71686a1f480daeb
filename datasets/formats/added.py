"""Readers of other packages: files whose names no reader of this package knows."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from ldpaudit.datasets.formats.locations import Location
from ldpaudit.datasets.formats.registered import Writer
from ldpaudit.datasets.formats.tables import check_fits
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError, LdpAuditError, OutputError
from ldpaudit.plugins import added, check_one, loaded, watched
from ldpaudit.work.memory import Scratch


@dataclass(frozen=True)
class Reader:
    """Reads the files of a format; a package registers it in the group ``ldpaudit.readers``.

    Attributes
    ----------
    endings : tuple of str
        How the names of its files end, in small letters with the point: ``(".avro",)``. A built-in
        reader's endings stay with it.
    read : callable
        Takes the path of one file on this computer and returns a :class:`pyarrow.Table` with one
        row for each row of the file, in its order, and named columns. Missing values are null. The
        table's schema metadata may hold a declaration under the key ``ldpaudit``. What it raises
        is reported in one line without its text, which may hold cells; the text of an
        :class:`~ldpaudit.errors.InputError` is shown, so it must hold none.
    write : callable, optional
        Takes a :class:`pyarrow.Table` and the path of a file that is not there yet, and writes the
        table there such that ``read`` gives it back; the declaration is written next to it. None:
        such files are only read.
    """

    endings: tuple[str, ...]
    read: Callable[[Path], pa.Table]
    write: Callable[[pa.Table, Path], object] | None = None


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


def table_of(own: str, reader: Reader, location: Location) -> pa.Table:
    """Return what a registered reader reads of a file."""
    shown = quoted(location.name)
    place = Path(location.paths[0])
    if not (isinstance(location.filesystem, pafs.LocalFileSystem) and place.is_file()):
        raise InputError(f"The file {shown} must be on this computer for the reader {own!r}.")
    with watched("reader", own, f"the file {shown} was not read"):
        table = reader.read(place)
    if not isinstance(table, pa.Table):
        raise InputError(
            f"The plug-in {own!r} (reader) must return a pyarrow.Table. Got "
            f"{type(table).__name__} instead."
        )
    return table


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
            check_fits(2 * self._size, f"The file {quoted(self._target.name)}")
        except InputError as error:
            raise OutputError(str(error)) from None

    def close(self) -> None:
        """Write all rows; OutputError where that fails."""
        assert self._reader.write is not None
        table = pa.Table.from_batches(self._batches, self._schema)
        with Scratch() as scratch:
            place = scratch.folder / self._target.name
            try:
                with watched("reader", self._own, "nothing was written"):
                    self._reader.write(table, place)
            except LdpAuditError as error:
                raise OutputError(str(error)) from error
            if not place.is_file():
                raise OutputError(
                    f"The plug-in {self._own!r} (reader) wrote nothing to the path that it was "
                    "given."
                )
            with place.open("rb") as written:
                shutil.copyfileobj(written, self._stream)


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
    if not callable(reader.read):
        raise InputError(f"The plug-in {own!r} (reader) must have a function that reads.")
    if reader.write is not None and not callable(reader.write):
        raise InputError(f"What the plug-in {own!r} (reader) writes with must be a function.")
    return reader


def _is_ending(end: object) -> bool:
    return isinstance(end, str) and len(end) > 1 and end[0] == "." and end == end.lower()
