"""How often rows near each other have the same label, beyond what else is known of them.

In: labels in the order of the rows. Out: pairs of rows with the same label, against chance; no
file, no column name.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import binom

from ldpaudit.arrays import stable_order
from ldpaudit.estimators.telling import Values, cells_of
from ldpaudit.release import IndexArray, IntArray, label_table

# For each row; a smaller variance is none.
_LEAST_VARIANCE: Final = 1e-9
_FEWEST_TIES: Final = 30
_ONE_WAY: Final = 0.98


@dataclass(frozen=True)
class Agreement:
    """How often rows at a distance have the same label."""

    pairs: int
    same: int
    """``pairs`` and ``same``: how many pairs of rows there are, and how many have the same label.
    """
    chance: float
    """The share that has it on average over all orders of the rows."""
    z: float
    """By how many standard deviations, over all orders, the number of such pairs differs."""

    @property
    def excess(self) -> float:
        """The share of pairs beyond chance: 0 for a random order, 1 if all agree."""
        if self.chance >= 1 or not self.pairs:
            return 0.0
        return (self.same / self.pairs - self.chance) / (1 - self.chance)


def strongest_agreement(labels: IntArray, released: IntArray | None = None) -> Agreement | None:
    """Return the agreement at the distance, of 1 to 3 rows, where it is least like chance.

    None with fewer than 8 rows.

    Parameters
    ----------
    labels : integer array of shape (n,)
        Codes in the order of the rows.
    released : integer array of shape (n,), optional
        Codes of the rows' released labels. Chance is then over the orders that leave these where
        they are: rows that were sorted by the released label tell no more than that label does.
    """
    if len(labels) < 8:
        return None
    # More than 20 released labels are put into so many groups of neighbouring ones.
    given = np.zeros(len(labels)) if released is None else released.astype(float)
    cells = cells_of(given, 20)[0]
    return max((agreement_beyond(labels, cells, g) for g in (1, 2, 3)), key=lambda one: abs(one.z))


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


def written_in_ties(
    columns: Iterable[Values], labels: IntArray, released: IntArray
) -> tuple[float, float]:
    """Return whether labels put rows with equal values of a column in order: share, and p-value.

    Rows next to each other with equal values and released labels have any order if it was not made
    from true labels. Counted are those with different true labels: the share of rows in such pairs,
    if at least 98 % of them stand the same way round for each two labels; else 0. The p-value is
    exact (sign test), valid for all columns.

    Parameters
    ----------
    columns : iterable of arrays of shape (n,)
    labels, released : int32 arrays of shape (n,)
        Codes in the order of the rows.
    """
    k, best, tried = int(labels.max()) + 1, (0.0, 1.0), 0
    open_ = (released[1:] == released[:-1]) & (labels[1:] != labels[:-1])
    for column in columns:
        tried += 1
        tied = np.flatnonzero(open_ & (column[1:] == column[:-1]))
        counts = label_table(labels[tied], labels[tied + 1], k, k)
        alike = int(np.maximum(counts, counts.T)[np.triu_indices(k, 1)].sum())
        if len(tied) >= _FEWEST_TIES and alike >= _ONE_WAY * len(tied):
            ways = 2.0 ** int(np.sum((counts + counts.T)[np.triu_indices(k, 1)] > 0))
            p_value = min(1.0, ways * float(binom.sf(alike - 1, len(tied), 0.5)))
            best = min(best, (2 * len(tied) / len(labels), p_value), key=lambda one: one[1])
    return best[0], min(1.0, tried * best[1])


def agreement_in_cells(labels: IntArray, cells: IndexArray, rng: np.random.Generator) -> Agreement:
    """Return the agreement least like chance, against 60 random orders of the rows of each cell.

    So it is 0 where the order was made from what the cells say: a file that is sorted by a feature
    reveals no more than that feature does.

    Parameters
    ----------
    labels, cells : integer arrays of shape (n,)
        Codes in the order of the rows.
    rng : numpy.random.Generator
    """
    lags, n = np.array([1, 2, 3]), len(labels)
    by_cell = stable_order(cells)

    def same(order: IntArray) -> IndexArray:
        return np.array([np.count_nonzero(order[lag:] == order[:-lag]) for lag in lags])

    drawn, shuffled = np.empty((60, 3)), np.empty_like(labels)
    for draw in drawn:
        shuffled[by_cell] = labels[np.lexsort((rng.random(n), cells))]
        draw[:] = same(shuffled)
    found, mean = same(labels), drawn.mean(axis=0)
    z = (found - mean) / np.maximum(drawn.std(axis=0, ddof=1), 1.0)
    at = int(np.argmax(np.abs(z)))
    pairs = n - int(lags[at])
    return Agreement(pairs, int(found[at]), float(mean[at] / pairs), float(z[at]))
