"""Files that another package's reader writes: each must be read as it was, rows in their order."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.added import Reader, read_again
from ldpaudit.datasets.formats.tables import decoded
from ldpaudit.errors import InputError, LdpAuditError, OutputError, refuse
from ldpaudit.plugins import watched

_MISSING: Final = ""


def write_with(own: str, reader: Reader, table: pa.Table, place: Path) -> None:
    """Let the reader called ``own`` write a table to a place where no file is.

    Raises
    ------
    OutputError
        If it fails, writes no file, or another one than it reads as this table.
    """
    assert reader.write is not None
    try:
        with watched("reader", own, "nothing was written"):
            reader.write(table, place)
        refuse(
            not place.is_file(),
            f"The plug-in {own!r} (reader) wrote nothing to the path that it was given.",
        )
        check_read_back(own, reader, place, table)
    except LdpAuditError as error:
        raise OutputError(str(error)) from error


def check_read_back(own: str, reader: Reader, place: Path, table: pa.Table) -> None:
    """Refuse a file that the reader called ``own`` wrote, if it does not read this table of it."""
    # InputError or LdpAuditError, in one line that names the reader.
    try:
        found = read_again(own, reader, place)
    except LdpAuditError as error:
        raise InputError(f"What was written cannot be read. {error}") from error
    refuse(found.column_names != table.column_names, _other(own, "other columns"))
    refuse(len(found) != len(table), _other(own, f"{len(found):,} of {len(table):,} rows"))
    for number, name in enumerate(table.column_names, start=1):
        same = _same(table.column(name), found.column(name))
        refuse(not same, _other(own, f"other values in column {number}, or in another order"))


def _other(own: str, what: str) -> str:
    return f"The plug-in {own!r} (reader) does not read what it wrote: {what}."


def _same(wanted: pa.ChunkedArray, found: pa.ChunkedArray) -> bool:
    """Return whether two columns have the same values, in whatever types a format keeps them."""
    one, other = _in_one_type(decoded(wanted), decoded(found))
    if pa.types.is_floating(one.type):
        return np.array_equal(one.to_numpy(), other.to_numpy(), equal_nan=True)
    if pa.types.is_string(one.type) or pa.types.is_large_string(one.type):
        # Text files have one spelling for what is missing and what is empty.
        one, other = pc.fill_null(one, _MISSING), pc.fill_null(other, _MISSING)
    return bool(one.equals(other))


def _in_one_type(
    wanted: pa.ChunkedArray, found: pa.ChunkedArray
) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    if wanted.type == found.type:
        return wanted, found
    for kind in (wanted.type, pa.string()):
        try:
            return wanted.cast(kind), found.cast(kind, safe=False)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
    values = (pa.chunked_array([list(map(str, one.to_pylist()))]) for one in (wanted, found))
    return next(values), next(values)
