"""A probability of each class for each row, in a table beside the release."""

from typing import Any

import numpy as np

from ldpaudit.arrays import FloatArray
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import Release

_TOLERANCE = 1e-3


def class_columns(
    source: Any, release: Release, whose: str, files: FileOptions = AS_FOUND
) -> FloatArray:
    """Return a table's columns in the order of the release's classes.

    Parameters
    ----------
    source : path, table or array of shape (n, k)
        A table has a column named after each class; an array is taken as it is.
    release : Release
        n rows, k classes.
    whose : str
        Whose table it is, for a message.
    files : FileOptions
        How text files are written.

    Returns
    -------
    float64 array of shape (n, k)
        NaN where a cell is empty.

    Raises
    ------
    InputError
        If rows or columns are missing, or a column holds something else.
    """
    shape = (len(release), len(release.classes))
    values = source if isinstance(source, np.ndarray) else _columns(source, release, whose, files)
    if values.shape != shape:
        raise InputError(
            f"{whose} table must have {shape[0]} rows, in the release's order, and a probability "
            f"for each of {shape[1]} classes. Got shape {values.shape} instead."
        )
    return values.astype(np.float64)


def _columns(source: Any, release: Release, whose: str, files: FileOptions) -> FloatArray:
    table = open_table(source, files)
    names = [str(label) for label in release.classes]
    missing = sum(name not in table.names for name in names)
    if missing:
        raise InputError(
            f"{whose} table must have a column named after each of {len(names)} classes; "
            f"{missing} are missing."
        )
    try:
        columns = [column.to_numpy().astype(np.float64) for _, column in table.columns(names)]
    except (TypeError, ValueError):
        raise InputError(f"{whose} table must hold numbers.") from None
    return np.stack(columns, axis=1)


def distributions(values: FloatArray, whose: str) -> FloatArray:
    """Return rows that sum to 1 up to a thousandth scaled to sum to 1.

    Raises
    ------
    InputError
        If a row does not, or an entry is missing or negative; the rows are counted.
    """
    total = values.sum(axis=1, keepdims=True)
    good = (values >= 0).all(axis=1) & (np.abs(total[:, 0] - 1) <= _TOLERANCE)
    if not good.all():
        raise InputError(
            f"{whose} probabilities must be given for every class and sum to 1; in "
            f"{int((~good).sum())} of {len(values)} rows they do not."
        )
    return np.asarray(values / total)
