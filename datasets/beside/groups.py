"""Rows of a release that belong together: of one household, one person."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import decoded, is_any
from ldpaudit.errors import InputError
from ldpaudit.release import IndexArray


def read_groups(
    columns: Mapping[str, pa.ChunkedArray], group: str | None, identifier: str | None
) -> IndexArray | None:
    """Return codes of rows that belong together, int64 (n,); None where each is on its own.

    Parameters
    ----------
    columns : mapping from name to column
    group : str or None
        The column that says so; a row without a value belongs to no other.
    identifier : str or None
        The column of ids: where no group is asked for, rows with one id belong together.

    Raises
    ------
    InputError
        If the group that was asked for is the same in all rows, or in more than half of them.
    """
    name = identifier if group is None else group
    if name is None:
        return None
    codes = _codes(columns[name])
    largest = int(np.bincount(codes).max())
    if group is not None and largest == len(codes) > 1:
        raise InputError("The group (--group) must not be the same in all rows.")
    if group is not None and 2 * largest > len(codes):
        raise InputError(
            "A group (--group) must not hold more than half of the rows: the "
            f"largest holds {largest / len(codes):.0%}."
        )
    alone, too_large = largest == 1, 2 * largest > len(codes)
    return None if alone or too_large else codes


def _codes(column: pa.ChunkedArray) -> IndexArray:
    column = decoded(column)
    if is_any(column.type, "floating"):  # NaN is missing, too.
        column = column.cast(pa.float64())
        column = pc.if_else(pc.is_nan(column), None, column)
    encoded = column.dictionary_encode().combine_chunks()
    codes: IndexArray = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
    missing = codes < 0
    codes[missing] = len(encoded.dictionary) + np.arange(int(missing.sum()))
    return codes
