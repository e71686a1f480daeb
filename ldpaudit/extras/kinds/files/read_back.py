"""Whether what another package's reader wrote is read as it was: its rows, in their order."""

from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from ldpaudit.datasets.formats.added import table_of
from ldpaudit.datasets.formats.locations import Location
from ldpaudit.datasets.formats.tables import MemoryTable, decoded
from ldpaudit.doors import InputError, LdpAuditError, Reader, refuse

_MISSING: Final = ""


def check_read_back(own: str, reader: Reader, place: Path, table: pa.Table) -> None:
    """Refuse a file that the reader called ``own`` wrote, if it does not read this table of it."""
    # InputError or LdpAuditError, in one line that names the reader.
    location = Location(place.name, pafs.LocalFileSystem(), (str(place),), None)
    try:
        source = table_of(own, reader, location)
        found = pa.Table.from_batches(source.batches(), source.schema)
    except LdpAuditError as error:
        raise InputError(f"What was written cannot be read. {error}") from error
    wanted = MemoryTable(table).table
    refuse(found.column_names != wanted.column_names, _other(own, "other columns"))
    refuse(len(found) != len(wanted), _other(own, f"{len(found):,} of {len(wanted):,} rows"))
    for place_of, name in enumerate(wanted.column_names, start=1):
        same = _same(wanted.column(name), found.column(name))
        refuse(not same, _other(own, f"other values in column {place_of}, or in another order"))


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
