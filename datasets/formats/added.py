"""Readers of other packages: files whose names no reader of this package knows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa

from ldpaudit.errors import InputError
from ldpaudit.plugins import check_one, points_of, unloadable, watched


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
        row for each row of the file, in its order, and named columns. Missing values are null.
        Whatever it raises is told in one line without its text, which may hold cells; an
        :class:`~ldpaudit.errors.InputError` is told as it is.
    """

    endings: tuple[str, ...]
    read: Callable[[Path], pa.Table]


def reader_of(name: str) -> tuple[str, Reader] | None:
    """Return the registered reader of a file, by its name in small letters, and its own name."""
    for own, point in _points().items():
        reader = _loaded(own, point)
        if name.endswith(reader.endings):
            return own, reader
    return None


def table_of(own: str, reader: Reader, path: str, shown: str) -> pa.Table:
    """Return what a registered reader reads of a file."""
    place = Path(path)
    if not place.is_file():
        raise InputError(f"The file {shown} must lie on this computer for the reader {own!r}.")
    with watched("reader", own, f"the file {shown} was not read"):
        table = reader.read(place)
    if not isinstance(table, pa.Table):
        raise InputError(
            f"The plug-in {own!r} (reader) must return a pyarrow.Table. Got "
            f"{type(table).__name__} instead."
        )
    return table


def _points() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in points_of("reader")}


@lru_cache
def _loaded(own: str, point: EntryPoint) -> Reader:
    check_one("reader", own)
    try:
        reader: Any = point.load()
    except Exception as error:
        raise unloadable("reader", own, error) from None
    if not isinstance(reader, Reader):
        raise InputError(
            f"The plug-in {own!r} (reader) must be a ldpaudit.doors.Reader. Got "
            f"{type(reader).__name__} instead."
        )
    return reader
