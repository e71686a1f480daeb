"""What bounds from rows with equal features, and from canaries, could have found.

The family is model-based randomized response with the claimed model and floor f and less noise: a
row in which the model gives the released label the probability p has the ratio
1 + (1 − λ)/(λp), and the worst one that the floor allows has 1 + (1 − λ)/(λf) = e^ε. So at
another ε' of the same family the rows at hand show 1 + (e^ε' − 1)·f/p.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from ldpaudit.estimators.epsilon.matched.bound import MatchedTest
from ldpaudit.estimators.epsilon.matched.rows import MatchedCounts
from ldpaudit.estimators.epsilon.power import SumOfBinomials, accuracy_power, two_sided_power
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.estimators.intervals.poisson_binomial import ShiftedCoins, shift_lower, shift_upper
from ldpaudit.release import FloatArray

_CERTAIN = 30.0
_SLACK = 1e-4
"""More than what the numerical inversion takes off a bound of a shift."""


@dataclass(frozen=True)
class ModelBasedFamily:
    """Model-based randomized response of one model and floor, whatever its λ.

    Attributes
    ----------
    floor : float
        f in (0, 1/k], the least probability that a label is drawn with.
    """

    floor: float

    def noise(self, epsilon: float) -> float:
        """Return λ at which the worst row has ``epsilon``, in nats."""
        return 1 / (1 + self.floor * math.expm1(epsilon))

    def shift(self, epsilon: float, chance: FloatArray | float) -> FloatArray:
        """Return the log ratio of rows whose label has the probability ``chance`` in the model."""
        return np.asarray(np.log1p(math.expm1(epsilon) * self.floor / chance))

    def blind_up_to(self, epsilon: float, chance: float) -> float:
        """Return the ε' at which such rows show ``epsilon``, however many they are."""
        return math.log1p(math.expm1(epsilon) * chance / self.floor)


def target_chance(counts: MatchedCounts, alpha: float) -> float:
    """Return p̄ of matched rows: as stated, or the less informative end of its interval.

    The rates A of the target among cases and C among controls differ by 1 − λ, so that
    p̄ = C/(1 − A + C) whatever λ is: this trusts no claim.

    Parameters
    ----------
    counts : MatchedCounts
    alpha : float
        Error probability of either end of the interval.

    Returns
    -------
    float
        In [0, 1]: the stated p̄ if it lies in the interval, else of all values in it the one
        nearest to one half, at which the bounds of ε find least.
    """
    hits, sizes = (counts.case_hits, counts.control_hits), (counts.cases, counts.controls)
    low = _drawn(*trials_lower(hits, sizes, alpha / 2))
    high = _drawn(*trials_upper(hits, sizes, alpha / 2))
    if counts.chance is not None and low <= counts.chance <= high:
        return counts.chance
    return min(max(0.5, low), high)


def _drawn(hit: float, false: float) -> float:
    left = 1 - hit + false
    return min(max(float(false / left), 0.0), 1.0) if left > 0 else 1.0


@dataclass(frozen=True)
class MatchedPower:
    """The probability that one bound from matched rows exceeds a limit, as a function of ε.

    Attributes
    ----------
    test : MatchedTest
    family : ModelBasedFamily
    chance : float
        p̄ of its rows.
    limit : float
        The claimed ε, in nats.
    alpha : float
        The whole error probability; the test has its share.
    """

    test: MatchedTest
    family: ModelBasedFamily
    chance: float
    limit: float
    alpha: float

    def __call__(self, epsilon: float) -> float:
        """Return the power at ``epsilon``, in nats."""
        noise = self.family.noise(epsilon)
        false = noise * self.chance
        hit, share = 1 - noise + false, self.alpha * self.test.share
        sizes = np.array([self.test.counts.cases, self.test.counts.controls])
        if self.test.method == "accuracy":
            right = SumOfBinomials(sizes, np.array([hit, 1 - false]))
            return accuracy_power(right, sizes, self.limit, share)
        positive = SumOfBinomials(sizes[:1], np.array([hit]))
        negative = SumOfBinomials(sizes[1:], np.array([false]))
        return two_sided_power(negative, positive, self.limit, share)


def guessed_chance(
    priors: FloatArray, correct: int, noise: tuple[float, float], floor: float, alpha: float
) -> tuple[float, float]:
    """Return bounds of what the model gives the guessed labels, from right guesses.

    The shift of the guesses' log-odds is log(1 + (1 − λ)/(λp)).

    Parameters
    ----------
    priors : float64 array of shape (n,)
        The probability with which each guessed label was drawn.
    correct : int
    noise : tuple of two floats
        Bounds of λ, each in (0, 1].
    floor : float
        f, below which no p is.
    alpha : float
        Error probability of either bound of the shift.
    """
    least, most = shift_lower(priors, correct, alpha), shift_upper(priors, correct, alpha)

    def chance(shift: float, level: float) -> float:
        if shift <= 0 or level == 1:
            return 1.0
        return (1 - level) / (level * math.expm1(min(shift, _CERTAIN)))

    return max(chance(most, noise[1]) * (noise[1] < 1), floor), min(
        max(chance(least, noise[0]), floor), 1.0
    )


def canary_power(
    priors: FloatArray, shift: FloatArray | float, limit: float, alpha: float
) -> float:
    """Return the probability that right guesses of drawn labels bound ε above a limit.

    Parameters
    ----------
    priors : float64 array of shape (n,)
        The probability with which each guessed label was drawn.
    shift : float or float64 array of shape (n,)
        By how much the released label truly shifts the log-odds of each guess.
    limit : float
        The claimed ε, in nats.
    alpha : float
        One-sided error probability of the bound.
    """
    if not len(priors):
        return 0.0
    refuted = ShiftedCoins.of(priors, up=True)
    with np.errstate(divide="ignore"):
        truth = ShiftedCoins.of(expit(logit(priors) + shift), up=False)
    # The bound exceeds the limit if the limit explains so many right guesses too rarely.
    fewest = 1 + bisect_left(
        range(1, len(priors) + 1),
        True,
        key=lambda correct: refuted.at_least(correct, limit + _SLACK) < alpha,
    )
    return 0.0 if fewest > len(priors) else max(truth.at_least(fewest, 0.0) - _SLACK, 0.0)
