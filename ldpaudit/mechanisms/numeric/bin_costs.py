"""Costs of the bins of RR-on-Bins, and the cheapest partition at a price per bin.

L(bin) = min_m Σ_y p_y e^{ε·1[y in bin]} ℓ(m, y). Losses are relative to releasing each label
unchanged (which affects the Poisson log loss only, and makes costs non-negative).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.special import xlogy

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray, IndexArray

_LARGEST_TABLE = 2000
_COARSE = 500


class BinCosts(Protocol):
    """The costs of all bins of k labels."""

    def cost(self, first: int, last: int) -> float:
        """Return the cost of the bin first … last."""

    def output(self, first: int, last: int) -> float:
        """Return the best output of the bin first … last."""

    def cheapest(self, price: float) -> list[int]:
        """Return the first labels of the bins that minimise Σ (cost − price)."""

    def guess(self, price: float) -> list[int]:
        """Return the first labels of nearly optimal bins, in less time."""


def bin_costs(name: Loss, labels: FloatArray, prior: FloatArray, growth: float) -> BinCosts:
    """Return the costs for a loss.

    Parameters
    ----------
    name : {"squared", "absolute", "poisson"}
    labels, prior : float64 arrays of shape (k,)
    growth : float
        e^ε − 1.
    """
    costs: dict[Loss, Callable[[FloatArray, FloatArray, float], BinCosts]] = {
        "squared": SquaredBinCosts,
        "absolute": AbsoluteBinCosts,
        "poisson": PoissonBinCosts,
    }
    if name not in costs:
        raise InputError(f"The loss must be squared, absolute or poisson. Got {name!r} instead.")
    return costs[name](labels, prior, growth)


def _cumulative(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


class PartitionCosts(ABC):
    """Costs computed for many bins at once: dynamic programming over partitions in O(k²)."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._tables: dict[int, list[FloatArray]] = {}

    @abstractmethod
    def ending_at(self, last: int, starts: slice | IndexArray) -> FloatArray:
        """Return the costs of the bins that end with ``last``, one for each of the starts."""

    def cost(self, first: int, last: int) -> float:
        """Return the cost of the bin first … last."""
        return float(self.ending_at(last, slice(first, first + 1))[0])

    def cheapest(self, price: float) -> list[int]:
        """Return the first labels of the bins that minimise Σ (cost − price)."""
        if self._k <= _LARGEST_TABLE:
            return self._restricted(price, self._k)
        return cheapest_partition(
            lambda end: self.ending_at(end - 1, slice(0, end)), self._k, price
        )

    def guess(self, price: float) -> list[int]:
        """Return the same for bins that start at multiples of 1/500 of the labels only."""
        return self._restricted(price, min(self._k, _COARSE))

    def _restricted(self, price: float, pieces: int) -> list[int]:
        cuts = np.linspace(0, self._k, pieces + 1).astype(np.int64)
        if pieces not in self._tables:
            self._tables[pieces] = [
                self.ending_at(int(cuts[end]) - 1, cuts[:end]) for end in range(1, pieces + 1)
            ]
        table = self._tables[pieces]
        starts = cheapest_partition(lambda end: table[end - 1], pieces, price)
        return [int(cuts[start]) for start in starts]


def cheapest_partition(
    ending_at: Callable[[int], FloatArray], pieces: int, price: float
) -> list[int]:
    """Minimise Σ (cost − price) over the partitions of 0 … pieces − 1 into neighbours.

    Parameters
    ----------
    ending_at : callable
        For an end from 1 to ``pieces``, the costs of the bins start … end − 1, shape (end,).
    pieces : int
        The number of pieces.
    price : float
        The price per bin.

    Returns
    -------
    list of int
        Where each bin starts.
    """
    value = np.zeros(pieces + 1)
    start = np.zeros(pieces + 1, dtype=np.int64)
    for end in range(1, pieces + 1):
        candidates = ending_at(end) + value[:end]
        start[end] = best = int(candidates.argmin())
        value[end] = candidates[best] - price
    starts, end = [], pieces
    while end > 0:
        end = int(start[end])
        starts.append(end)
    return starts[::-1]


class SquaredBinCosts(PartitionCosts):
    """½(m − y)²: the best output is the weighted mean."""

    def __init__(self, labels: FloatArray, prior: FloatArray, growth: float) -> None:
        super().__init__(len(labels))
        self._mean = float(prior @ labels)
        centred = labels - self._mean
        self._mass = growth * _cumulative(prior)
        self._first = growth * _cumulative(prior * centred)
        self._second = 0.5 * growth * _cumulative(prior * centred**2)
        self._all = 0.5 * float(prior @ centred**2)

    def ending_at(self, last: int, starts: slice | IndexArray) -> FloatArray:
        """Return ½(second moment − first²/mass) of each bin's weights."""
        end = last + 1
        costs = self._first[end] - self._first[starts]
        costs *= costs
        costs /= (1 + self._mass[end]) - self._mass[starts]
        costs *= -0.5
        costs -= self._second[starts]
        costs += self._all + self._second[end]
        return np.asarray(costs)

    def output(self, first: int, last: int) -> float:
        """Return the weighted mean."""
        moment = self._first[last + 1] - self._first[first]
        return float(self._mean + moment / (1 + self._mass[last + 1] - self._mass[first]))


class PoissonBinCosts(PartitionCosts):
    """The Poisson deviance m − y − y log(m/y): the best output is the weighted mean."""

    def __init__(self, labels: FloatArray, prior: FloatArray, growth: float) -> None:
        if labels[0] < 0:
            raise InputError("The Poisson log loss must be used with labels that are not negative.")
        super().__init__(len(labels))
        self._mass = growth * _cumulative(prior)
        self._moment = growth * _cumulative(prior * labels)
        self._entropy = growth * _cumulative(prior * xlogy(labels, labels))
        self._mean = float(prior @ labels)
        self._all = float(prior @ xlogy(labels, labels))

    def ending_at(self, last: int, starts: slice | IndexArray) -> FloatArray:
        """Return Σ weight · y log y − moment · log(moment/mass) of each bin's weights."""
        end = last + 1
        mass = 1 + self._mass[end] - self._mass[starts]
        moment = self._mean + self._moment[end] - self._moment[starts]
        entropy = self._all + self._entropy[end] - self._entropy[starts]
        return np.asarray(entropy - xlogy(moment, moment / mass))

    def output(self, first: int, last: int) -> float:
        """Return the weighted mean."""
        moment = self._mean + self._moment[last + 1] - self._moment[first]
        return float(moment / (1 + self._mass[last + 1] - self._mass[first]))


class AbsoluteBinCosts(PartitionCosts):
    """|m − y|: the best output is a weighted median, one of the labels."""

    def __init__(self, labels: FloatArray, prior: FloatArray, growth: float) -> None:
        super().__init__(len(labels))
        self._labels, self._growth = labels, growth
        self._mass = _cumulative(prior)
        self._first = _cumulative(prior * labels)

    def ending_at(self, last: int, starts: slice | IndexArray) -> FloatArray:
        """Return Σ weight · |median − y| of each bin."""
        firsts = np.arange(self._k)[starts]
        medians = self._medians(firsts, last)
        inside = np.clip(medians, firsts, last + 1)
        everywhere = self._distance(medians, 0, medians, self._k)
        within = self._distance(medians, firsts, inside, last + 1)
        return np.asarray(everywhere + self._growth * within)

    def output(self, first: int, last: int) -> float:
        """Return the weighted median."""
        return float(self._labels[self._medians(np.array([first]), last)[0]])

    def _distance(
        self, medians: IndexArray, start: int | IndexArray, turn: IndexArray, end: int
    ) -> FloatArray:
        """Return Σ p|label[median] − y| over start … end − 1; below the median before ``turn``."""
        mass, first, label = self._mass, self._first, self._labels[medians]
        below = label * (mass[turn] - mass[start]) - (first[turn] - first[start])
        return np.asarray(below + first[end] - first[turn] - label * (mass[end] - mass[turn]))

    def _medians(self, firsts: IndexArray, last: int) -> IndexArray:
        """Return the first label up to which half the weight lies: before, in or after the bin."""
        mass, upto = self._mass, self._mass[1:]
        extra = self._growth * (mass[last + 1] - mass[firsts])
        half = 0.5 * (mass[-1] + extra)
        before = np.searchsorted(upto, half)
        within = (half + self._growth * mass[firsts]) / (1 + self._growth)
        inside = np.maximum(np.searchsorted(upto, within), firsts)
        after = np.maximum(np.searchsorted(upto, half - extra), last)
        place = np.where(before < firsts, before, np.where(inside <= last, inside, after))
        return np.asarray(np.minimum(place, self._k - 1), dtype=np.int64)
