"""What one bin of RR-on-Bins costs: L(bin) = min_m Σ_y p_y e^{ε·1[y in bin]} ℓ(m, y).

Each class answers, for a last label i, with the costs of the bins r … i for every r ≤ i in a few
vector operations, and with the best output of one bin. Losses are counted from that of releasing
each label as it is (which changes nothing but the Poisson log loss, and makes costs non-negative).
"""

from typing import Protocol

import numpy as np
from scipy.special import xlogy

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray, IndexArray

_LARGEST_TABLE = 2000


class BinCosts(Protocol):
    """The costs of all bins of k labels."""

    def ending_at(self, last: int) -> FloatArray:
        """Return the costs of the bins r … last, float64 of shape (last + 1,)."""

    def output(self, first: int, last: int) -> float:
        """Return the best output of the bin first … last."""


def bin_costs(name: Loss, labels: FloatArray, prior: FloatArray, growth: float) -> BinCosts:
    """Return the costs for a loss; for moderate k as a table.

    Parameters
    ----------
    name : {"squared", "absolute", "poisson"}
    labels, prior : float64 arrays of shape (k,)
    growth : float
        e^ε − 1.
    """
    costs = _of(name, labels, prior, growth)
    return _Tabulated(costs, len(labels)) if len(labels) <= _LARGEST_TABLE else costs


def _of(name: Loss, labels: FloatArray, prior: FloatArray, growth: float) -> BinCosts:
    if name == "squared":
        return SquaredBinCosts(labels, prior, growth)
    if name == "absolute":
        return AbsoluteBinCosts(labels, prior, growth)
    if name == "poisson":
        return PoissonBinCosts(labels, prior, growth)
    raise InputError(f"The loss must be squared, absolute or poisson. Got {name!r} instead.")


def _cumulative(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


class _Tabulated:
    """Costs computed once, for the few rounds in which they are asked for."""

    def __init__(self, costs: BinCosts, k: int) -> None:
        self._costs = costs
        self._table = [costs.ending_at(last) for last in range(k)]

    def ending_at(self, last: int) -> FloatArray:
        return self._table[last]

    def output(self, first: int, last: int) -> float:
        return self._costs.output(first, last)


class SquaredBinCosts:
    """½(m − y)²: the best output is the weighted mean."""

    def __init__(self, labels: FloatArray, prior: FloatArray, growth: float) -> None:
        self._mean = float(prior @ labels)
        centred = labels - self._mean
        self._mass = growth * _cumulative(prior)
        self._first = growth * _cumulative(prior * centred)
        self._second = 0.5 * growth * _cumulative(prior * centred**2)
        self._all = 0.5 * float(prior @ centred**2)

    def ending_at(self, last: int) -> FloatArray:
        """Return ½(second moment − first²/mass) of each bin's weights."""
        end = last + 1
        costs = self._first[end] - self._first[:end]
        costs *= costs
        costs /= (1 + self._mass[end]) - self._mass[:end]
        costs *= -0.5
        costs -= self._second[:end]
        costs += self._all + self._second[end]
        return np.asarray(costs)

    def output(self, first: int, last: int) -> float:
        """Return the weighted mean."""
        moment = self._first[last + 1] - self._first[first]
        return float(self._mean + moment / (1 + self._mass[last + 1] - self._mass[first]))


class PoissonBinCosts:
    """The Poisson deviance m − y − y log(m/y): the best output is the weighted mean."""

    def __init__(self, labels: FloatArray, prior: FloatArray, growth: float) -> None:
        if labels[0] < 0:
            raise InputError("The Poisson log loss must be used with labels that are not negative.")
        self._mass = growth * _cumulative(prior)
        self._moment = growth * _cumulative(prior * labels)
        self._entropy = growth * _cumulative(prior * xlogy(labels, labels))
        self._mean = float(prior @ labels)
        self._all = float(prior @ xlogy(labels, labels))

    def ending_at(self, last: int) -> FloatArray:
        """Return Σ weight · y log y − moment · log(moment/mass) of each bin's weights."""
        end = last + 1
        mass = 1 + self._mass[end] - self._mass[:end]
        moment = self._mean + self._moment[end] - self._moment[:end]
        entropy = self._all + self._entropy[end] - self._entropy[:end]
        return np.asarray(entropy - xlogy(moment, moment / mass))

    def output(self, first: int, last: int) -> float:
        """Return the weighted mean."""
        moment = self._mean + self._moment[last + 1] - self._moment[first]
        return float(moment / (1 + self._mass[last + 1] - self._mass[first]))


class AbsoluteBinCosts:
    """|m − y|: the best output is a weighted median, one of the labels."""

    def __init__(self, labels: FloatArray, prior: FloatArray, growth: float) -> None:
        self._labels, self._growth = labels, growth
        self._mass = _cumulative(prior)
        self._first = _cumulative(prior * labels)

    def ending_at(self, last: int) -> FloatArray:
        """Return Σ weight · |median − y| of each bin's weights."""
        starts = np.arange(last + 1)
        median = self._median(starts, last)
        inside = np.clip(median, starts, last + 1)
        total = self._distance(median, np.zeros_like(starts), median, len(self._labels))
        return total + self._growth * self._distance(median, starts, inside, last + 1)

    def _distance(
        self,
        median: IndexArray,
        start: IndexArray,
        turn: IndexArray,
        end: int,
    ) -> FloatArray:
        """Return Σ p|label[median] − y| over start … end − 1, ``turn`` the first one not below."""
        mass, first = self._mass, self._first
        below = self._labels[median] * (mass[turn] - mass[start]) - (first[turn] - first[start])
        above = first[end] - first[turn] - self._labels[median] * (mass[end] - mass[turn])
        return np.asarray(below + above)

    def _median(self, starts: IndexArray, last: int) -> IndexArray:
        """Return the first label up to which half the weight lies, left of, in or after the bin."""
        mass, growth = self._mass, self._growth
        extra = growth * (mass[last + 1] - mass[starts])
        half = 0.5 * (mass[-1] + extra)
        left = np.searchsorted(mass[1:], half)
        within = (half + growth * mass[starts]) / (1 + growth)
        middle = np.clip(np.searchsorted(mass[1:], within), starts, last)
        right = np.searchsorted(mass[1:], half - extra)
        median = np.where(left < starts, left, np.where(right > last, right, middle))
        return np.asarray(np.minimum(median, len(self._labels) - 1), dtype=np.int64)

    def output(self, first: int, last: int) -> float:
        """Return the weighted median."""
        return float(self._labels[self._median(np.array([first]), last)[0]])
