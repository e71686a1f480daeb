"""Differences of two results alone: no row is at hand, so one interval for each is combined.

A difference of two intervals, each at half the error probability, holds however the two depend on
each other. It is wider than a paired one.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scipy.special import betaincinv

from ldpaudit.estimators.intervals.paired import Interval
from ldpaudit.result import Estimate


@dataclass(frozen=True)
class Count:
    """Right guesses on two held-out halves of n rows in all."""

    count: int
    n: int

    @classmethod
    def of(cls, estimate: Estimate | None) -> "Count | None":
        """Return the counts behind an accuracy, None where they are missing."""
        if estimate is None or estimate.count is None or not estimate.n:
            return None
        return cls(estimate.count, estimate.n)

    @property
    def share(self) -> float:
        """The accuracy."""
        return self.count / self.n

    def lower(self, alpha: float, folds: int = 2) -> float:
        """Return a lower bound of the mean accuracy of the folds at level 1 − alpha.

        How the right guesses are shared between the folds is not known. Clopper–Pearson's bound is
        convex in the count, so an equal share gives the smallest mean of the folds' bounds.
        """
        if self.count == 0:
            return 0.0
        count, n = self.count / folds, self.n / folds
        return float(betaincinv(count, n - count + 1, alpha / folds))

    def upper(self, alpha: float, folds: int = 2) -> float:
        """Return an upper bound, the mirror image of :meth:`lower`."""
        return 1.0 - Count(self.n - self.count, self.n).lower(alpha, folds)


def count_interval(a: Count, b: Count, alpha: float, folds: int = 2) -> Interval:
    """Return b's accuracy less a's, at level 1 − alpha, each end of each at alpha/4."""
    tail = alpha / 4
    low = b.lower(tail, folds) - a.upper(tail, folds)
    high = b.upper(tail, folds) - a.lower(tail, folds)
    return Interval(b.share - a.share, low, high, 1 - alpha, a.n + b.n)


def best_count_interval(a: Mapping[str, Count], b: Mapping[str, Count], alpha: float) -> Interval:
    """Return the difference of the best accuracies, b's less a's, at level 1 − alpha.

    The best accuracy is at least each attack's, so its lower end is corrected for choosing among
    the attacks; it is at most the largest upper end, which needs no correction.
    """
    tail = alpha / 4
    (low_a, high_a), (low_b, high_b) = _best(a, tail), _best(b, tail)
    value = max(c.share for c in b.values()) - max(c.share for c in a.values())
    n = max(c.n for c in a.values()) + max(c.n for c in b.values())
    return Interval(value, low_b - high_a, high_b - low_a, 1 - alpha, n)


def _best(counts: Mapping[str, Count], tail: float) -> tuple[float, float]:
    low = max(count.lower(tail / len(counts)) for count in counts.values())
    return low, max(count.upper(tail) for count in counts.values())


def stored_interval(a: Estimate, b: Estimate) -> Interval | None:
    """Return b less a from the stored intervals; their error probabilities add up.

    None where one of them has no interval with two ends.
    """
    ends = (a.low, a.high, b.low, b.high)
    if a.side != "two-sided" or b.side != "two-sided" or a.level is None or b.level is None:
        return None
    if any(end is None for end in ends):
        return None
    low_a, high_a, low_b, high_b = (float(end) for end in ends if end is not None)
    # Without the last digits, which would let 90 % be printed as 89 %.
    level = round(a.level + b.level - 1, 12)
    n = (a.n or 0) + (b.n or 0)
    return Interval(b.value - a.value, low_b - high_a, high_b - low_a, level, n)
