"""Differences of scores on the same rows, with confidence intervals that use the pairing.

Each row gives a bounded number, for right and wrong guesses −1, 0 or 1. Given the two fitted
attacks the rows of one fold are independent draws, so a bound on the mean of bounded variables
holds for any attacks. The two folds of cross-fitting depend on each other: each is bounded
at half the error probability, and the bounds are averaged with the folds' rows as weights.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.release import FloatArray

MIN_ROWS = 40  # with fewer rows in a fold no difference is given


@dataclass(frozen=True)
class Interval:
    """A difference with its two-sided interval and the interval's own level.

    ``n`` rows are behind it.
    """

    value: float
    low: float
    high: float
    level: float
    n: int


@dataclass(frozen=True)
class Folds:
    """Row-wise differences, b less a, of each held-out fold.

    Attributes
    ----------
    parts : tuple of float64 arrays
    reach : float
        No difference can lie outside of [−reach, reach].
    """

    parts: tuple[FloatArray, ...]
    reach: float = 1.0

    @property
    def n(self) -> int:
        """All rows."""
        return sum(len(part) for part in self.parts)

    def mean(self) -> float:
        """Return the mean over all rows."""
        return float(np.concatenate(self.parts).mean())

    def lower(self, alpha: float) -> float:
        """Return a lower bound of the mean at level 1 − alpha."""
        return self._bound(mean_lower, alpha)

    def upper(self, alpha: float) -> float:
        """Return an upper bound of the mean at level 1 − alpha."""
        return self._bound(mean_upper, alpha)

    def _bound(self, bound: Callable[..., float], alpha: float) -> float:
        share = alpha / len(self.parts)
        ends = [len(p) * bound(p, share, -self.reach, self.reach) for p in self.parts]
        return float(sum(ends) / self.n)


def paired_interval(folds: Folds, alpha: float) -> Interval:
    """Return the mean difference with its interval at level 1 − alpha.

    Parameters
    ----------
    folds : Folds
    alpha : float
        Error probability of the two ends together.

    Raises
    ------
    InsufficientDataError
        If a fold has fewer than 40 rows.

    References
    ----------
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting.
    """
    _check(folds)
    low, high = folds.lower(alpha / 2), folds.upper(alpha / 2)
    return Interval(folds.mean(), low, high, 1 - alpha, folds.n)


def best_interval(
    pair: Callable[[str, str], Folds],
    a: Mapping[str, float],
    b: Mapping[str, float],
    alpha: float,
) -> Interval:
    """Return the difference of the best of several scores, b's best less a's best.

    With d(i, j) the mean of b's score j less a's score i, b's best less a's best is
    min_i max_j d(i, j) = max_j min_i d(i, j). So for any j, chosen after a look at the data, it is
    at least min_i d(i, j): the lower bounds of d(i, j) for the i that is truly best and all j have
    to hold at once, which costs a factor |b|, and not |a||b|. Mirrored for the upper end.

    Parameters
    ----------
    pair : function from a name in ``a`` and one in ``b`` to the row-wise differences
    a, b : mappings from a name to the score that was observed
    alpha
        As for :func:`paired_interval`, with its errors.
    """
    best_a, best_b = max(a, key=lambda name: a[name]), max(b, key=lambda name: b[name])
    center = pair(best_a, best_b)
    _check(center)
    low = min(pair(name, best_b).lower(alpha / 2 / len(b)) for name in a)
    high = max(pair(best_a, name).upper(alpha / 2 / len(a)) for name in b)
    value = min(max(center.mean(), low), high)
    return Interval(value, low, high, 1 - alpha, center.n)


def _check(folds: Folds) -> None:
    sizes: Sequence[int] = [len(part) for part in folds.parts]
    if not sizes or min(sizes) < MIN_ROWS:
        raise InsufficientDataError(
            f"A paired difference needs at least {MIN_ROWS} rows in each fold. "
            f"Got {min(sizes, default=0)}."
        )
