"""A probability of each class for each row, in a table beside the release."""

from typing import Any

import numpy as np

from ldpaudit.arrays import BoolArray, FloatArray
from ldpaudit.datasets.formats.tabular import open_table
from ldpaudit.errors import InputError
from ldpaudit.release import Release

_TOLERANCE = 1e-3


def class_columns(source: Any, release: Release, whose: str, cells: str = "numbers") -> FloatArray:
    """Return the columns of a table that are named after the release's classes.

    Parameters
    ----------
    source : path or table
    release : Release
        k classes.
    whose : str
        Whose table it is, for a message.
    cells : str
        What the table must hold, for a message.

    Returns
    -------
    float64 array of shape (n, k)
        NaN where a cell is empty.

    Raises
    ------
    InputError
        If a column is missing or holds something else.
    """
    table = open_table(source)
    wanted = [str(label) for label in release.classes]
    missing = sum(name not in table.names for name in wanted)
    if missing:
        raise InputError(
            f"{whose} table must have a column named after each of {len(wanted)} classes; "
            f"{missing} are missing."
        )
    try:
        columns = [column.to_numpy().astype(np.float64) for _, column in table.columns(wanted)]
    except (TypeError, ValueError):
        raise InputError(f"{whose} table must hold {cells}.") from None
    return np.stack(columns, axis=1)


def are_distributions(values: FloatArray) -> BoolArray:
    """Return which rows are finite, not negative and sum to 1, up to a thousandth; bool (n,)."""
    good = np.isfinite(values).all(axis=1) & (values >= 0).all(axis=1)
    return np.asarray(good & (np.abs(values.sum(axis=1) - 1) <= _TOLERANCE))
