"""Whether the order of the rows tells labels: do rows near each other have the same label?"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.arrays import IndexArray, IntArray

LAGS: Final = (1, 2, 3)
"""Distances between the rows that are compared."""
_FEWEST: Final = 8


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


def strongest_agreement(labels: IntArray, classes: int) -> Agreement | None:
    """Return the agreement at the distance, of 1 to 3 rows, where it is least like chance.

    None with fewer than 8 rows.

    Parameters
    ----------
    labels : integer array of shape (n,)
        Codes in the order of the rows.
    classes : int
        k.
    """
    if len(labels) < _FEWEST:
        return None
    counts = np.bincount(labels, minlength=classes)
    found = [agreement(counts, lag, int((labels[lag:] == labels[:-lag]).sum())) for lag in LAGS]
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
    z = (same - pairs * two) / math.sqrt(variance) if variance > 1e-9 * n else 0.0
    return Agreement(int(pairs), same, float(two), float(z))
