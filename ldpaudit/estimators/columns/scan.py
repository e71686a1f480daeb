"""All columns one after the other: which tell the label of their row, or of a row near by."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.estimators.columns.telling import (
    LEAST_ROWS,
    MOST_CELLS,
    MOST_NOISY_CELLS,
    Told,
    Values,
    label_weights,
    told,
)

LIMIT: Final = 0.98
"""A column that tells this share of the labels is said to decide them."""
LAGS: Final = (-3, -2, -1, 1, 2, 3)
"""Distances to the rows of which a column's value is looked at."""
_LEAST: Final = 0.95
MOST_ERROR: Final = 0.02
"""With a larger standard error, a share says too little."""
_GLANCE: Final = 2_000
_NOISY_GLANCE: Final = 10_000
_WORTH: Final = 0.9
_SURELY: Final = 5.0
"""A column that surely tells less of the first rows is not looked at further."""
_MOST_CELLS: Final = 10_000_000
_FEWEST: Final = 2_000
_MOST_ROWS: Final = 50_000


@dataclass(frozen=True)
class Scan:
    """What single columns tell.

    Attributes
    ----------
    best : Told
        The most that a column tells of the label in its own row.
    deciding : tuple of int
        The columns, by position, that decide the label of their row.
    lagged : tuple of (int, int)
        Those that decide the label of another row, with the distance to the row of the value.
    flags : tuple of int
        Those whose value follows from the label, and that so tell apart groups of labels.
    position : Told
        What the number of the row tells.
    rows : int
        How many rows were looked at.
    """

    best: Told
    deciding: tuple[int, ...]
    lagged: tuple[tuple[int, int], ...]
    flags: tuple[int, ...]
    position: Told
    rows: int


def rows_to_scan(rows: int, columns: int, classes: int, rng: np.random.Generator) -> IndexArray:
    """Return rows in random order, so many that a scan takes about a second."""
    cells = max(columns, 1) * max(classes, 4) // 4
    most = min(_MOST_ROWS, max(_FEWEST, _MOST_CELLS // cells))
    return rng.permutation(rows)[:most]


def scan(
    columns: Iterable[Values],
    rows: IndexArray,
    weights: FloatArray,
    n: int,
    labels: IntArray | None = None,
) -> Scan:
    """Look at every column.

    Parameters
    ----------
    columns : iterable of arrays of shape (n,)
        Numbers or codes in the order of the rows.
    rows : int64 array of shape (s,)
        The rows to look at, in random order.
    weights : float64 array of shape (s, k)
        Their labels, see :func:`ldpaudit.estimators.columns.telling.label_weights`.
    n : int
        How many rows there are.
    labels : int32 array of shape (s,), optional
        The labels themselves, where they are known: flags are looked for then.
    """
    look = _Look(weights)
    position = look.at(np.arange(n, dtype=float), rows)
    # Then anything less the row's number tells labels too, true ones or released ones.
    counted = decides(position) or position.derived
    best, deciding, lagged, flags = Told(0.0, 0.0, 0), [], [], []
    for place, column in enumerate(columns):
        own = look.at(column, rows)
        if own.error <= MOST_ERROR and own.share > best.share:
            best = own
        if decides(own) or (not counted and decides(look.at_without_count(column, rows))):
            deciding.append(place)
            continue
        if labels is not None and _is_flag(column[rows], labels, weights.shape[1]):
            flags.append(place)
            continue
        lag = next((lag for lag in LAGS if decides(look.at(column, rows, lag))), None)
        if lag is not None:
            lagged.append((place, lag))
    return Scan(best, tuple(deciding), tuple(lagged), tuple(flags), position, len(rows))


def _is_flag(values: Values, labels: IntArray, classes: int) -> bool:
    """Return whether a column of fewer values than there are labels follows from the label."""
    distinct, codes = np.unique(values, return_inverse=True)
    if not 1 < len(distinct) < classes:
        return False
    return decides(told(labels, label_weights(codes.astype(np.int32), len(distinct))))


def decides(one: Told) -> bool:
    """Return whether a share is at least 98 %, and surely, by three standard errors, 95 %."""
    return one.share >= max(LIMIT, _LEAST + 3 * one.error) and one.error <= MOST_ERROR


class _Look:
    """Looks at columns, at a few rows first."""

    def __init__(self, weights: FloatArray) -> None:
        self._weights = weights
        known = bool(np.isin(weights[:_GLANCE], (0.0, 1.0)).all())
        self._cells = MOST_CELLS if known else MOST_NOISY_CELLS
        self._few = _GLANCE if known else _NOISY_GLANCE
        first, every = (part.sum(axis=0) >= LEAST_ROWS for part in (weights[: self._few], weights))
        self._glances = len(weights) > 2 * self._few and bool((first == every).all())

    def at(self, column: Values, rows: IndexArray, lag: int = 0) -> Told:
        """Return what a column's values, ``lag`` rows away, tell of the rows' labels."""
        if lag == 0:
            return self._of(column[rows], self._weights)
        near = rows + lag
        inside = (near >= 0) & (near < len(column))
        return self._of(column[near[inside]], self._weights[inside])

    def at_without_count(self, column: Values, rows: IndexArray) -> Told:
        """Return what a number tells when the row's own number has been taken from it."""
        if not np.issubdtype(column.dtype, np.floating):
            return Told(0.0, 0.0, 0)
        return self._of(column[rows].astype(np.float64) - rows, self._weights)

    def _of(self, values: Values, weights: FloatArray) -> Told:
        glance = values[: self._few]
        if self._glances and len(np.unique(glance)) <= self._few // 10:
            first = told(glance, weights[: self._few], self._cells)
            if first.share + _SURELY * first.error < _WORTH:
                return first
        return told(values, weights, self._cells)
