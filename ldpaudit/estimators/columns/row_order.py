"""Whether the order of the rows tells labels: do rows near each other have the same label?"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.arrays import IndexArray, IntArray
from ldpaudit.estimators.columns.telling import cells_of

LAGS: Final = (1, 2, 3)
"""Distances between the rows that are compared."""
_FEWEST: Final = 8
_MOST_CELLS: Final = 20
"""More released labels than this are put into so many groups of neighbouring ones."""
_FEWEST_DIFFERENT: Final = 40.0
_LEAST_VARIANCE: Final = 1e-9
"""For each row; a smaller one is none."""


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
    if len(labels) < _FEWEST:
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
    known_enough = variance > _LEAST_VARIANCE * n and n - lag - mean >= _FEWEST_DIFFERENT
    z = (same - mean) / math.sqrt(variance) if known_enough else 0.0
    return Agreement(n - lag, same, mean / (n - lag), float(z))
