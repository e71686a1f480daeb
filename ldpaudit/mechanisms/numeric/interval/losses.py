"""Expected losses of one output of an interval column, and their convex conjugates.

For an output m with the column S (e^ε on an interval, 1 elsewhere) the loss per unit of mass is
G(m) = Σ_y p_y S_y g(m, y). Its conjugate G*(b) = max_m (b m − G(m)), the maximising m and the
curvature dm/db are all that the interval program needs.

Losses are shifted so that a perfect output has loss 0 (the Poisson deviance), which changes every
mechanism's loss by the same amount.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import xlogy

from ldpaudit.mechanisms.numeric.interval.arcs import IntervalArcs
from ldpaudit.release import BoolArray, FloatArray


class IntervalLoss(Protocol):
    """The losses of all arcs; every method maps arrays over arcs to arrays over arcs."""

    def value(self, output: FloatArray) -> FloatArray:
        """Return G(m)."""

    def conjugate(self, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return G*(b) and the m that attains it, for allowed slopes b."""

    def curvature(self, slope: FloatArray) -> FloatArray:
        """Return dm/db, positive."""

    def allows(self, slope: FloatArray) -> BoolArray:
        """Return where G*(b) is finite."""


def _cumulative(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


@dataclass(frozen=True, eq=False)
class SquaredIntervalLoss:
    """g(m, y) = ½(m − y)²: G(m) = ½w(m − centre)² + ½rest."""

    weight: FloatArray
    centre: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, arcs: IntervalArcs, labels: FloatArray, prior: FloatArray) -> "SquaredIntervalLoss":
        """Build it for labels and a prior of shape (k,); labels near 0 keep it accurate."""
        weight = np.where(arcs.mask, arcs.spread(_cumulative(prior)), 1.0)
        first = arcs.spread(_cumulative(prior * labels))
        second = arcs.spread(_cumulative(prior * labels**2))
        centre = np.where(arcs.mask, first / weight, 0.0)
        return cls(weight, centre, np.where(arcs.mask, second - first * centre, 0.0))

    def value(self, output: FloatArray) -> FloatArray:
        """Return ½w(m − centre)² + ½rest."""
        return 0.5 * (self.weight * (output - self.centre) ** 2 + self.rest)

    def conjugate(self, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return b·centre + b²/(2w) − ½rest and m = centre + b/w."""
        output = self.centre + slope / self.weight
        return 0.5 * (slope * (self.centre + output) - self.rest), output

    def curvature(self, slope: FloatArray) -> FloatArray:
        """Return 1/w."""
        return np.broadcast_to(1 / self.weight, slope.shape)

    def allows(self, slope: FloatArray) -> BoolArray:
        """Return True everywhere."""
        return np.ones(slope.shape, dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class PoissonIntervalLoss:
    """g(m, y) = m − y − y log(m/y): G(m) = wm − v log m + rest, for m > 0."""

    weight: FloatArray
    moment: FloatArray
    rest: FloatArray

    @classmethod
    def of(cls, arcs: IntervalArcs, labels: FloatArray, prior: FloatArray) -> "PoissonIntervalLoss":
        """Build it for positive labels and a prior of shape (k,)."""
        weight = arcs.spread(_cumulative(prior))
        moment = arcs.spread(_cumulative(prior * labels))
        rest = arcs.spread(_cumulative(prior * (xlogy(labels, labels) - labels)))
        mask = arcs.mask
        return cls(*(np.where(mask, a, b) for a, b in ((weight, 1.0), (moment, 1.0), (rest, 0.0))))

    def value(self, output: FloatArray) -> FloatArray:
        """Return wm − v log m + rest."""
        return self.weight * output - self.moment * np.log(output) + self.rest

    def conjugate(self, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return v log m − v − rest and m = v/(w − b)."""
        output = self.moment / (self.weight - slope)
        return self.moment * (np.log(output) - 1) - self.rest, output

    def curvature(self, slope: FloatArray) -> FloatArray:
        """Return v/(w − b)²."""
        return self.moment / (self.weight - slope) ** 2

    def allows(self, slope: FloatArray) -> BoolArray:
        """Return where b < w."""
        return slope < self.weight
