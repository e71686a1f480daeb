"""Readers of other packages: files whose names no reader of this package knows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from ldpaudit.datasets.formats.locations import Location
from ldpaudit.datasets.names import quoted
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
    read : callable
        Takes the path of one file on this computer and returns a :class:`pyarrow.Table` with one
        row for each row of the file, in its order, and named columns. Missing values are null. The
        table's schema metadata may hold a declaration under the key ``ldpaudit``. What it raises
        is reported in one line without its text, which may hold cells; the text of an
        :class:`~ldpaudit.errors.InputError` is shown, so it must hold none.
    """

    endings: tuple[str, ...]
    read: Callable[[Path], pa.Table]


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
    return reader


def _is_ending(end: object) -> bool:
    return isinstance(end, str) and len(end) > 1 and end[0] == "." and end == end.lower()
