"""How many labels a column shows: by itself, by the values that decide, by the order of the rows.

In: columns and labels as arrays. Out: shares of labels that are told, learnt on some rows and
counted on others; no file, no column name.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ldpaudit.models.screening import associations, projected, strongest
from ldpaudit.release import BoolArray, FeatureTable, FloatArray, IndexArray, IntArray

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
        Their labels, see :func:`ldpaudit.estimators.columns.label_weights`.
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


# A column that decides the labels of fewer people is not worth a word; a policy may set another
# limit.
LEAST_SHARE: Final = 0.01
# The share of a value's rows that must have its label.
_PURE: Final = 0.98
# A label that more of the other rows have, or of those with the same released label, is no
# surprise.
_OPEN: Final = 0.85
# Of all values of a column together.
_ERROR: Final = 0.001
_FEWEST_PEOPLE: Final = 20
_FEWEST_LEARNT: Final = 5
_CHOSEN: Final = 0.01


@dataclass(frozen=True)
class Decided:
    """What the values of a column decide.

    Attributes
    ----------
    share : float
        Of the rows: those with a value that decides their label.
    values : int
        How many such values there are.
    """

    share: float
    values: int


def decided(values: Values, labels: IntArray, released: IntArray) -> Decided:
    """Return the share of people whose value in a column decides their label.

    Values are chosen on one half of the rows (those at even places) and tested on the other, by
    exact binomial tests at 0.1 % for all of them. A category is compared with all other rows. A
    number is compared with the rows of slightly smaller and larger numbers too, so what changes
    gradually decides nothing. Only rows count whose released label leaves the label open: a column
    computed from released labels decides nothing either.

    Parameters
    ----------
    values : array of shape (n,)
        Numbers (of a floating type), or codes; rows in random order.
    labels, released : int32 arrays of shape (n,)
        Codes of the true and the released labels.
    """
    n, codes = len(values), np.unique(values, return_inverse=True)[1]
    sizes, k = np.bincount(codes), int(labels.max()) + 1
    if len(sizes) < 2 or sizes.max() < _FEWEST_PEOPLE:
        return Decided(0.0, 0)
    table = np.bincount(released * k + labels, minlength=(int(released.max()) + 1) * k)
    table = table.reshape(-1, k)
    open_ = table <= _OPEN * table.sum(axis=1, keepdims=True)
    between = bool(np.issubdtype(values.dtype, np.floating))
    even = np.arange(n) % 2 == 0
    found, surprising = np.zeros(len(sizes), dtype=np.bool_), False
    for label in range(k):
        asked, own = open_[released, label], labels == label
        counts = np.array(
            [
                [np.bincount(codes[half & kind], minlength=len(sizes)) for kind in (True, own)]
                for half in (asked & even, asked & ~even, np.ones(n, dtype=np.bool_))
            ]
        )
        decide, clear = _deciding(counts, sizes, between=between)
        found |= decide
        surprising |= clear
    if not surprising:
        return Decided(0.0, 0)
    return Decided(float(sizes[found].sum()) / n, int(found.sum()))


def _deciding(
    counts: npt.NDArray[Any], sizes: IndexArray, *, between: bool
) -> tuple[BoolArray, bool]:
    """Return which values decide for one label, and whether one does that the label's share and
    its neighbours alone do not explain.

    ``counts``: by half (to learn, to test, all rows whatever was released), all rows or those with
    the label, and value.
    """
    (learnt, right), (asked, told), _ = counts
    chance = right.sum() / max(learnt.sum(), 1)
    chosen = (learnt >= _FEWEST_LEARNT) & (right >= _PURE * learnt)
    chosen &= binom.sf(right - 1, learnt, chance) <= _CHOSEN
    if not chosen.any():
        return chosen, False
    # Numbers next to each other that decide alike are one run.
    starts, ends = chosen.copy(), chosen.copy()
    if between:
        starts[1:] &= ~chosen[:-1]
        ends[:-1] &= ~chosen[1:]
    run = np.cumsum(starts)[chosen] - 1
    n, hits, size = (
        np.bincount(run, each[chosen]).astype(np.int64) for each in (asked, told, sizes)
    )
    usual = []
    for rows, own in np.where(chosen, 0, (counts[0] + counts[1], counts[2])):
        shares = np.full(len(n), own.sum() / max(rows.sum(), 1))
        if between:
            shares = np.maximum(shares, _nearby(rows, own, starts, ends, size))
        usual.append(shares)
    decide = (binom.sf(hits - 1, n, usual[0]) <= _ERROR / len(n)) & (hits >= _PURE * n)
    decide &= (usual[0] <= _OPEN) & (size >= _FEWEST_PEOPLE)
    chosen[chosen] = decide[run]
    return chosen, bool((decide & (usual[1] <= _OPEN)).any())


def _nearby(
    rows: IndexArray, own: IndexArray, starts: BoolArray, ends: BoolArray, sizes: IndexArray
) -> FloatArray:
    """Return the larger share of the label among rows just below and just above each run."""
    so_far, own_so_far = (np.append(0, np.cumsum(each)) for each in (rows, own))
    # The fewest and the most rows with smaller or larger numbers that a number is compared with.
    width, below, above = (
        np.clip(sizes, *(50, 1000)),
        np.flatnonzero(starts),
        np.flatnonzero(ends) + 1,
    )
    low = np.searchsorted(so_far, so_far[below] - width, side="right") - 1
    high = np.searchsorted(so_far, so_far[above] + width, side="left")
    shares = []
    for a, b in ((np.maximum(low, 0), below), (above, np.minimum(high, len(rows)))):
        count = so_far[b] - so_far[a]
        share = (own_so_far[b] - own_so_far[a]) / np.maximum(count, 1)
        shares.append(np.where(count >= _FEWEST_PEOPLE, share, 0.0))
    return np.maximum(*shares)


_DISTANCES: Final = (1, 2, 3)  # distances between the rows that are compared
# More released labels than this are put into so many groups of neighbouring ones.
_MOST_GROUPS: Final = 20
# For each row; a smaller one is none.
_LEAST_VARIANCE: Final = 1e-9


@dataclass(frozen=True)
class Agreement:
    """How often rows at a distance have the same label.

    Attributes
    ----------
    pairs, same : int
        How many pairs of rows there are, and how many have the same label.
    chance : float
        The share that has it on average over all orders of the rows.
    z : float
        By how many standard deviations, over all orders, the number of such pairs differs.
    """

    pairs: int
    same: int
    chance: float
    z: float

    @property
    def excess(self) -> float:
        """The share of pairs beyond chance: 0 for a random order, 1 if all agree."""
        if self.chance >= 1 or not self.pairs:
            return 0.0
        return (self.same / self.pairs - self.chance) / (1 - self.chance)


def strongest_agreement(
    labels: IntArray, classes: int, released: IntArray | None = None
) -> Agreement | None:
    """Return the agreement at the distance, of 1 to 3 rows, where it is least like chance.

    None with fewer than 8 rows.

    Parameters
    ----------
    labels : integer array of shape (n,)
        Codes in the order of the rows.
    classes : int
        k.
    released : integer array of shape (n,), optional
        Codes of the rows' released labels. Chance is then over the orders that leave these where
        they are: rows that were sorted by the released label tell no more than that label does.
    """
    if len(labels) < 8:
        return None
    if released is None:
        counts = np.bincount(labels, minlength=classes)
        found = [
            agreement(counts, lag, int((labels[lag:] == labels[:-lag]).sum())) for lag in _DISTANCES
        ]
    else:
        cells = cells_of(released.astype(float), _MOST_GROUPS)[0]
        found = [agreement_beyond(labels, cells, lag) for lag in _DISTANCES]
    return max(found, key=lambda one: abs(one.z))


def agreement(counts: IndexArray, lag: int, same: int) -> Agreement:
    """Return the agreement of pairs at distance ``lag``, of which ``same`` have one label.

    Mean and variance are exact over all orders of n rows with these ``counts`` of labels: sums over
    pairs of pairs, which share a row or do not (Moran 1948, "The interpretation of statistical
    maps", for any arrangement of pairs).
    """
    sizes = counts.astype(float)
    n = float(sizes.sum())
    pairs, touching = n - lag, max(n - 2 * lag, 0.0)
    twos, threes = sizes * (sizes - 1), sizes * (sizes - 1) * (sizes - 2)
    fours = threes * (sizes - 3)
    both = twos.sum() ** 2 - (twos**2).sum() + fours.sum()
    two = twos.sum() / (n * (n - 1))
    three = threes.sum() / (n * (n - 1) * (n - 2))
    four = both / (n * (n - 1) * (n - 2) * (n - 3))
    apart = pairs**2 - pairs - 2 * touching
    variance = pairs * two + 2 * touching * three + apart * four - (pairs * two) ** 2
    z = (same - pairs * two) / math.sqrt(variance) if variance > _LEAST_VARIANCE * n else 0.0
    return Agreement(int(pairs), same, float(two), float(z))


def agreement_beyond(labels: IntArray, cells: IndexArray, lag: int) -> Agreement:
    """Return the agreement of pairs at distance ``lag``, against all orders within each cell.

    The mean is exact. The variance is that of labels drawn by the shares in their cells, less what
    comes from how many of each label there are (Hoeffding's projection on these counts). Where
    fewer than 40 pairs are expected to differ, z is 0: it would be far from normal.

    Parameters
    ----------
    labels, cells : integer arrays of shape (n,)
        Codes in the order of the rows, from 0.
    lag : int
    """
    m, k = int(cells.max()) + 1, int(labels.max()) + 1
    table = np.bincount(cells * k + labels, minlength=m * k).reshape(m, k).astype(float)
    sizes = np.maximum(table.sum(axis=1), 1)
    shares = table / sizes[:, None]
    equal = shares @ shares.T
    exact = equal.copy()
    np.fill_diagonal(exact, (table * (table - 1)).sum(axis=1) / np.maximum(sizes * (sizes - 1), 1))
    first, second, third = cells[: -2 * lag], cells[lag:-lag], cells[2 * lag :]
    pairs = np.bincount(cells[:-lag] * m + cells[lag:], minlength=m * m).reshape(m, m)
    threes = np.bincount((first * m + second) * m + third, minlength=m**3).reshape(m, m, m)
    all_equal = np.einsum("ay,by,cy->abc", shares, shares, shares)
    touching = (threes * (all_equal - equal[:, :, None] * equal[None])).sum()
    near = (pairs + pairs.T) @ shares / sizes[:, None]
    known = (sizes * ((shares * near**2).sum(axis=1) - (shares * near).sum(axis=1) ** 2)).sum()
    variance = float((pairs * equal * (1 - equal)).sum() + 2 * touching - known)
    same, n = int((labels[lag:] == labels[:-lag]).sum()), len(labels)
    mean = float((pairs * exact).sum())
    known_enough = variance > _LEAST_VARIANCE * n and n - lag - mean >= 40.0
    z = (same - mean) / math.sqrt(variance) if known_enough else 0.0
    return Agreement(n - lag, same, mean / (n - lag), float(z))
