"""Table files of this package that are registered as the readers of others are."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final, Protocol

import pyarrow as pa

from ldpaudit.datasets.formats.locations import (
    ARROW,
    CSV,
    JSON,
    PARQUET,
    SVMLIGHT,
    Location,
    is_svmlight,
    locate,
)
from ldpaudit.datasets.formats.tables import TableSource
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions
from ldpaudit.plugins import loaded, ours

# What the core itself reads; the name of a zipped file of JSON lines ends as one of CSV does.
_CORE: Final = (*PARQUET, *CSV, *ARROW, *SVMLIGHT)


class BatchWriter(Protocol):
    """Writes rows; the file is complete when it was closed."""

    def write(self, batch: pa.RecordBatch) -> object:
        """Append rows."""

    def close(self) -> object:
        """Write what is left."""


@dataclass(frozen=True)
class Writer:
    """How files of some names are written; the declaration is in a file next to them."""

    endings: tuple[str, ...]
    open: Callable[[Path, pa.Schema, Any, Any], BatchWriter]
    """Takes the place, the schema, a binary stream, and what the source says of its columns."""
    check: Callable[[Path], object] = lambda target: None  # noqa: ARG005
    """Refuses a name that cannot be written (OutputError, MissingDependencyError)."""
    check_columns: Callable[[Path, pa.Schema], object] = lambda target, schema: None  # noqa: ARG005
    """Refuses columns that such a file cannot hold (OutputError)."""


@dataclass(frozen=True)
class TableFormat:
    """Table files of some names: how they are opened and, perhaps, written."""

    endings: tuple[str, ...]
    open: Callable[[Location, FileOptions], TableSource]
    writer: Writer | None = None
    open_sparse: Callable[[Any, int | None], TableSource | None] | None = None
    """Opens a path, or a matrix with labels, of sparse features; None for all else."""


def format_of(name: str) -> TableFormat | None:
    """Return the registered format of a file, by its name in small letters; None for the core's."""
    if name.endswith(_CORE) and not name.endswith(JSON):
        return None
    formats = map(_loaded, ours("reader").values())
    return next((one for one in formats if name.endswith(one.endings)), None)


def open_sparse(source: Any, projection: int | None = None) -> TableSource | None:
    """Open an svmlight file or a sparse matrix with labels; None for all else.

    ``projection``: the columns that sparse features become.
    """
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else ""
    of_file = is_svmlight(path)
    if not of_file and not isinstance(source, tuple):
        return None
    for one in map(_loaded, ours("reader").values()):
        table = None if one.open_sparse is None else one.open_sparse(source, projection)
        if table is not None:
            return table
    if of_file:
        raise lacking(locate(source))
    return None


def lacking(location: Location) -> InputError:
    """Return the one line about a file whose reader was taken out of this installation."""
    return InputError(
        f"This installation lacks what reads {quoted(location.name)}; install ldpaudit again, or "
        "export the table as CSV or Parquet."
    )


@lru_cache
def _loaded(point: EntryPoint) -> TableFormat:
    return loaded("reader", point, TableFormat)
