"""How many labels one column shows by itself: learnt on some rows and counted on others."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.models.screening import associations, projected, strongest
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

Values = npt.NDArray[Any]
# A number with more different values is put into this many bins of equally many rows …
MOST_CELLS: Final = 4096
# Labels of fewer rows are left out of the mean over labels.
_LEAST_ROWS: Final = 10.0


@dataclass(frozen=True)
class Told:
    """The share of labels that a column reveals.

    Attributes
    ----------
    share : float
        In [0, 1]: balanced accuracy, or accuracy where that is larger and no merit of the most
        frequent label.
    error : float
        Its standard error.
    wrong : int
        How many of the counted rows it tells wrongly.
    derived : bool
        Whether it seems to tell more than all labels.

    Through the inverse of a channel a column that was computed from the released label seems to
    tell more than all labels; it tells none that the released label does not, and counts as 0.
    """

    share: float
    error: float
    wrong: int
    derived: bool = False


def label_weights(labels: IntArray, classes: int) -> FloatArray:
    """Return weights for known labels, codes of shape (n,): one where the row has the label.

    Shape (n, k). Rows of the inverse of the channel, by released label, are such weights too: their
    mean is the same.
    """
    weights = np.zeros((len(labels), classes))
    weights[np.arange(len(labels)), labels] = 1.0
    return weights


def cells_of(values: Values, most: int = MOST_CELLS) -> tuple[npt.NDArray[np.int64], int]:
    """Return the cell of each value, int64 of shape (n,), and the number of cells.

    Equal values share a cell; a number with more than ``most`` is put into as many bins. Missing is
    a value.
    """
    distinct, codes = np.unique(values, return_inverse=True)
    if len(distinct) <= most or not np.issubdtype(values.dtype, np.floating):
        return codes.astype(np.int64), len(distinct)
    ranks = np.sort(codes)
    starts = np.unique(ranks[np.arange(1, most) * len(ranks) // most])
    return np.searchsorted(starts, codes, side="right").astype(np.int64), len(starts) + 1


def told(values: Values, weights: FloatArray, most: int = MOST_CELLS) -> Told:
    """Return the share of labels that a column reveals.

    On one half of the rows (those at even places) the label that is commonest in each cell, as a
    share of its own frequency, is learnt; it is counted on the other half, and the reverse. Rows
    must be in random order.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers or codes.
    weights : float64 array of shape (n, k)
        See :func:`label_weights`.
    most : int
        The largest number of bins of a number.
    """
    cells, amount = cells_of(values, most)
    between = np.issubdtype(values.dtype, np.floating)
    k = weights.shape[1]
    even = np.arange(len(cells)) % 2 == 0
    balanced, plain = np.zeros((2, k)), np.zeros((2, k))
    for learning in (even, ~even):
        both = _guesses(cells[learning], amount, weights[learning], between=between)
        asked, known = cells[~learning], weights[~learning]
        balanced += _right(both[0][asked], known)
        plain += _right(both[1][asked], known)
    return _judged(balanced, plain, weights)


def _guesses(
    cells: npt.NDArray[np.int64], amount: int, weights: FloatArray, *, between: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return each cell's guess, once with every label as frequent as any other; −1: never seen.

    Cells of numbers that were never seen take the guess of the one before, if ``between``.
    """
    k = weights.shape[1]
    columns = [np.bincount(cells, weights[:, c], minlength=amount) for c in range(k)]
    counts = np.column_stack(columns)
    seen = np.bincount(cells, minlength=amount) > 0
    totals = np.maximum(counts.sum(axis=0), 1e-9)
    balanced, plain = (counts / totals).argmax(axis=1), counts.argmax(axis=1)
    if between and amount:
        last = np.maximum.accumulate(np.where(seen, np.arange(amount), seen.argmax()))
        return balanced[last], plain[last]
    return np.where(seen, balanced, -1), np.where(seen, plain, -1)


def _right(guess: npt.NDArray[np.int64], weights: FloatArray) -> FloatArray:
    """Return, by label, the weight of right guesses and the sum of its squares; shape (2, k)."""
    k = weights.shape[1]
    given = np.flatnonzero(guess >= 0)
    own = weights[given, guess[given]]
    powers = [np.bincount(guess[given], own**power, minlength=k) for power in (1, 2)]
    return np.array(powers, dtype=np.float64)


def _judged(balanced: FloatArray, plain: FloatArray, weights: FloatArray) -> Told:
    n, totals = float(len(weights)), weights.sum(axis=0)
    counted = totals >= _LEAST_ROWS
    if counted.sum() < 2:
        return Told(0.0, 0.0, int(n))
    right, squares = balanced[:, counted]
    shares = right / totals[counted]
    others = (weights[:, counted] ** 2).sum(axis=0) - squares
    variances = (squares * (1 - shares) ** 2 + others * shares**2) / totals[counted] ** 2
    spread = max(float(variances.sum()), 0.0)
    share, error = float(shares.mean()), float(np.sqrt(spread) / counted.sum())
    correct, majority = float(plain[0].sum()), float(totals.max()) / n
    accuracy, wrong = correct / n, n - float(balanced[0].sum())
    # The share of the guesses beyond the most frequent label that must be right for accuracy to
    # count.
    if accuracy - majority >= 0.9 * (1 - majority) and accuracy > share:
        error = float(np.sqrt(max(plain[1].sum() - n * accuracy**2, 0.0))) / n
        share, wrong = accuracy, n - correct
    if share > 1 + 2.5 * error + 1e-9:  # More than all: its noise is that of the released label.
        return Told(0.0, 0.0, int(n), derived=True)
    return Told(min(max(share, 0.0), 1.0), error, max(round(wrong), 0))


LIMIT: Final = 0.98  # a column that tells this share of the labels is said to decide them
# Distances to the rows of which a column's value is looked at.
LAGS: Final = (-3, -2, -1, 1, 2, 3)
_LEAST: Final = 0.95
MOST_ERROR: Final = 0.02  # with a larger standard error, a share says too little
_GLANCE: Final = 2_000
_MOST_CELLS: Final = 10_000_000
_FEWEST: Final = 2_000
_MOST_ROWS: Final = 50_000


@dataclass(frozen=True)
class Scan:
    """What single columns tell.

    Attributes
    ----------
    best : Told
        The most that a column reveals about the label in its own row.
    deciding : tuple of int
        The columns, by position, that decide the label of their row.
    lagged : tuple of (int, int)
        Those that decide the label of another row, with the distance to the row of the value.
    flags : tuple of int
        Those whose value follows from the label, and that so tell apart groups of labels.
    position : Told
        What the row number reveals.
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
        # … or this many where labels are noisy: a bin must hold enough of them.
        self._cells = MOST_CELLS if known else 256
        self._few = _GLANCE if known else 10_000
        first, every = (part.sum(axis=0) >= _LEAST_ROWS for part in (weights[: self._few], weights))
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
            # A column that surely tells less of the first rows is not looked at further.
            if first.share + 5.0 * first.error < 0.9:
                return first
        return told(values, weights, self._cells)


MOST_SCANNED: Final = 256  # columns that are scanned one by one


def worth_scanning(
    features: FeatureTable, codes: IntArray, rows: IndexArray, places: list[int]
) -> list[int]:
    """Return the columns that a scan must see, in order.

    Parameters
    ----------
    features : FeatureTable
        n rows in their order.
    codes : int32 array of shape (n,)
        True or released labels.
    rows : int64 array of shape (s,)
        Rows of the scan, in random order; 5,000 of them are looked at.
    places : list of int
        The columns to choose from.

    Notes
    -----
    A column is scored by the label of its own row, also with the row's number taken from it, and by
    the labels of the rows of :data:`LAGS`. Half of the columns are those of the own label.
    """
    rows = np.sort(rows[:5_000])
    table = projected(features.take(rows), tuple(places))
    # A column at row t that tells the label of row t - lag, seen ``lag`` rows away from there.
    near = [codes[(rows - lag) % len(codes)] for lag in LAGS]
    own, *lagged = associations(table, [codes[rows], *near])
    counted = replace(table, numeric=(table.numeric - rows[:, None]).astype(np.float32))
    width = table.numeric.shape[1]
    others = [*lagged, np.append(associations(counted, [codes[rows]])[0][:width], own[width:])]
    kept = set(strongest(own, MOST_SCANNED // 2).tolist())
    for scores in others:
        kept.update(strongest(scores, MOST_SCANNED // 2 // len(others)).tolist())
    return [places[i] for i in sorted(kept)]
