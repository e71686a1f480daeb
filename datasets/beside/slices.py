"""Groups of rows that the user asks to see apart, such as regions or age groups."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from ldpaudit.arrays import IndexArray, IntArray
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions

FEWEST_ROWS: Final = 100
"""Slices of fewer rows are merged."""
MOST_SLICES: Final = 12
"""The most of one column; the smallest are merged into the last."""
_BINNED_FROM = 10
_BINS = 4
_REST = "all others"


@dataclass(frozen=True)
class Slices:
    """The rows of a release grouped by one column.

    Attributes
    ----------
    column : str
        The column's name; shown only where names may be.
    names : tuple of str, length s
        What the slices are, the largest first; shown only where names may be.
    codes : int32 array of shape (n,)
        The slice of each row.
    """

    column: str
    names: tuple[str, ...]
    codes: IntArray

    def __len__(self) -> int:
        """Return the number of slices s."""
        return len(self.names)


def read_slices(
    source: Any, columns: Collection[str], files: FileOptions = AS_FOUND
) -> tuple[Slices, ...]:
    """Read columns of a release to group its rows by.

    Numbers of more than ten values are cut at their quartiles. Slices of fewer than 100 rows, and
    all but the eleven largest, are merged.

    Parameters
    ----------
    source : path, URL, DataFrame or Arrow table
        The release.
    columns : collection of str
    files : FileOptions
        How text files are written.

    Raises
    ------
    InputError
        If a column is missing, holds no plain values, or leaves a single slice.
    """
    if not columns:
        return ()
    table = open_table(source, files)
    for name in columns:
        if name not in table.names:
            raise InputError(f"There is no column {quoted(name)} to slice by (--slice).")
    wanted = list(dict.fromkeys(columns))
    return tuple(_slices(name, column) for name, column in table.columns(wanted))


def _slices(name: str, column: Any) -> Slices:
    values = column.to_pandas()
    try:
        values = _binned(values)
        codes, names = pd.factorize(values.astype(str), use_na_sentinel=False)
    except (TypeError, ValueError):
        raise InputError(f"The column {quoted(name)} holds no values to slice by.") from None
    return merged(name, codes.astype(np.int32), [str(value) for value in names])


def _binned(values: pd.Series) -> pd.Series:
    if values.dtype == object:
        numbers = pd.to_numeric(values, errors="coerce")
        if numbers.isna().sum() > values.isna().sum():
            return values
        values = numbers
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        return values
    if values.nunique() <= _BINNED_FROM:
        return values
    return pd.Series(pd.qcut(values, _BINS, duplicates="drop"))


def merged(column: str, codes: IntArray, names: Sequence[str]) -> Slices:
    """Return slices with the small ones merged, the largest first.

    Raises
    ------
    InputError
        If fewer than two slices are left.
    """
    counts = np.bincount(codes, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    large = [int(i) for i in order[: MOST_SLICES - 1] if counts[i] >= FEWEST_ROWS]
    rest = len(codes) - int(counts[large].sum())
    # The rest needs as many rows as any slice: it can be computed by subtraction.
    while large and 0 < rest < FEWEST_ROWS:
        rest += int(counts[large.pop()])
    if len(large) + (rest > 0) < 2:
        raise InputError(
            f"The column {quoted(column)} must have at least two slices of {FEWEST_ROWS} rows."
        )
    lookup = np.full(len(names), len(large), dtype=np.int32)
    lookup[large] = np.arange(len(large), dtype=np.int32)
    labels = [names[i] for i in large] + ([_REST] if rest else [])
    return Slices(column, tuple(labels), lookup[codes])


def joint_slices(slices: Sequence[Slices], rows: IndexArray) -> IntArray | None:
    """Return one code for each row, distinct for each combination of slices; int32 (rows,)."""
    if not slices:
        return None
    joint = np.zeros(len(rows), dtype=np.int32)
    for column in slices:
        joint = joint * len(column) + column.codes[rows]
    return joint
