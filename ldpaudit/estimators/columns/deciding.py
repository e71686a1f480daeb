"""Values of a column that decide the label, and whether the order of the rows shows labels."""

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.stats import binom

from ldpaudit.arrays import BoolArray, FloatArray, IndexArray, IntArray
from ldpaudit.estimators.columns.telling import Values, cells_of

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
_FEWEST: Final = 20
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
    if len(sizes) < 2 or sizes.max() < _FEWEST:
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
    decide &= (usual[0] <= _OPEN) & (size >= _FEWEST)
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
        shares.append(np.where(count >= _FEWEST, share, 0.0))
    return np.maximum(*shares)


LAGS: Final = (1, 2, 3)  # distances between the rows that are compared
# More released labels than this are put into so many groups of neighbouring ones.
_MOST_CELLS: Final = 20
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
        found = [agreement(counts, lag, int((labels[lag:] == labels[:-lag]).sum())) for lag in LAGS]
    else:
        cells = cells_of(released.astype(float), _MOST_CELLS)[0]
        found = [agreement_beyond(labels, cells, lag) for lag in LAGS]
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
