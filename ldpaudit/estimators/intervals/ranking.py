"""AUC, and the true-positive rate at a small false-positive rate, with finite-sample bounds."""

# Every bound here holds given how many positives and negatives there are, for scores that were
# fixed before the rows were seen, with no other assumption than independent rows.

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import rel_entr
from scipy.stats import binom, rankdata

from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.release import FloatArray

_SMALLEST = 1e-12

ScoreArray = npt.NDArray[np.floating[Any]]


def auc(positives: ScoreArray, negatives: ScoreArray) -> float:
    """Return the share of pairs in which the positive scores higher, ties counted half.

    Parameters
    ----------
    positives, negatives : float arrays of shape (n₁,) and (n₀,)
        ScoreArray; ½ where either is empty.
    """
    if len(positives) == 0 or len(negatives) == 0:
        return 0.5
    ranks = rankdata(np.concatenate([positives, negatives]))[: len(positives)]
    n = len(positives)
    above = float(ranks.sum()) - n * (n + 1) / 2
    return above / (n * len(negatives))


def auc_lower(value: float, pairs: int, alpha: float) -> float:
    """Return a lower confidence bound of the AUC at level 1 − alpha.

    The smallest θ with pairs · KL(value ‖ θ) ≤ log(1/alpha), KL between Bernoulli distributions.
    The empirical AUC is an average of averages over ``pairs`` disjoint pairs, so its moment
    generating function, and with it Chernoff's bound, is at most that of one such average.

    Parameters
    ----------
    value : float
        The empirical AUC.
    pairs : int
        min(n₁, n₀).
    alpha : float
        One-sided error probability in (0, 1).

    References
    ----------
    Hoeffding (1963), section 5 (U-statistics) with Theorem 1 in its relative-entropy form.
    """
    if pairs == 0 or value <= _SMALLEST:
        return 0.0
    budget = math.log(1.0 / alpha) / pairs
    if value >= 1.0 - _SMALLEST:
        # KL(1 ‖ θ) = log(1/θ); a value within rounding of 1 is taken as just below it.
        return math.exp(-budget) * (1.0 - _SMALLEST)

    def excess(theta: float) -> float:
        return float(rel_entr(value, theta) + rel_entr(1.0 - value, 1.0 - theta)) - budget

    least = value * _SMALLEST
    return 0.0 if excess(least) <= 0 else float(brentq(excess, least, value))


def auc_upper(value: float, pairs: int, alpha: float) -> float:
    """Return an upper confidence bound of the AUC at level 1 − alpha; see :func:`auc_lower`."""
    return 1.0 - auc_lower(1.0 - value, pairs, alpha)


def auc_interval(positives: ScoreArray, negatives: ScoreArray, alpha: float) -> tuple[float, float]:
    """Return a confidence interval of the AUC at level 1 − alpha, alpha/2 in each tail.

    The rows are dealt at random, blind to scores, into blocks with a few of the smaller side and
    their share of the larger. The blocks' own AUCs are independent values in [0, 1] whose mean is
    the AUC, and are bounded by betting, which adapts to their variance. With few rows the bounds
    are those of :func:`auc_lower`; numbers of rows alone decide which.

    Parameters
    ----------
    positives, negatives : float arrays of shape (n₁,) and (n₀,)
        ScoreArray.
    alpha : float
        Error probability of both ends together.

    Notes
    -----
    Widths in those of an interval by DeLong's variance at the same level, which holds only in the
    limit, at n₁, n₀ = 500, 500; 100, 900; 5,000, 5,000: 1.41, 1.44, 1.12, and of
    :func:`auc_lower` 1.78, 2.41, 1.63.

    References
    ----------
    Waudby-Smith & Ramdas (2024), for the bounds of the blocks' mean.
    """
    value = auc(positives, negatives)
    few, many = sorted((len(positives), len(negatives)))
    if few < 20 or (few < 100 and many < 3 * few):
        return auc_lower(value, few, alpha / 2), auc_upper(value, few, alpha / 2)
    blocks = _block_aucs(positives, negatives)
    low, high = mean_lower(blocks, alpha / 2, 0.0, 1.0), mean_upper(blocks, alpha / 2, 0.0, 1.0)
    return min(low, value), max(high, value)


def _block_aucs(positives: ScoreArray, negatives: ScoreArray) -> FloatArray:
    """Return the AUC of each block of rows, float64 of shape (blocks,)."""
    few = min(len(positives), len(negatives))
    size = int(np.clip(few // 200, 1, 5))
    blocks, rng = few // size, np.random.default_rng(0)
    mine, theirs = (
        rng.permutation(scores)[: len(scores) // blocks * blocks].reshape(blocks, -1)
        for scores in (positives, negatives)
    )
    above = mine[:, :, None] > theirs[:, None, :]
    ties = mine[:, :, None] == theirs[:, None, :]
    return np.asarray(above.mean(axis=(1, 2)) + 0.5 * ties.mean(axis=(1, 2)))


@dataclass(frozen=True)
class RateInterval:
    """A rate with its interval."""

    value: float
    low: float
    high: float


def tpr_at_fpr(
    positives: ScoreArray, negatives: ScoreArray, fpr: float, alpha: float
) -> RateInterval:
    """Return the best true-positive rate of a threshold with at most this false-positive rate.

    The lower end: take the threshold t, a negative's score, whose population false-positive rate
    P(score > t) is at most ``fpr`` except with probability alpha/4 (an order-statistic tolerance
    bound), and count the positives above it (Clopper–Pearson at alpha/4). The upper end: likewise
    a threshold whose P(score ≥ t) is at least ``fpr``. Positives are independent of negatives.

    Parameters
    ----------
    positives, negatives : float arrays of shape (n₁,) and (n₀,)
        ScoreArray.
    fpr : float
        The false-positive rate in (0, 1).
    alpha : float
        Error probability of both ends together.

    Returns
    -------
    RateInterval
        Its value uses the empirical threshold; [0, 1] around 0 where there are no positives.

    References
    ----------
    Wilks (1941), one-sided tolerance limits from order statistics.
    """
    n1, n0 = len(positives), len(negatives)
    if n1 == 0 or n0 == 0:
        return RateInterval(0.0, 0.0, 1.0)
    ranked = -np.sort(-np.asarray(negatives))
    strict = _strict_rank(n0, fpr, alpha / 4)
    loose = _loose_rank(n0, fpr, alpha / 4)
    sure = 0 if strict == 0 else int((positives > ranked[strict - 1]).sum())
    most = n1 if loose > n0 else int((positives >= ranked[loose - 1]).sum())
    typical = int((positives > ranked[math.floor(fpr * n0)]).sum())
    return RateInterval(
        typical / n1,
        float(clopper_pearson_lower(sure, n1, alpha / 4)),
        float(clopper_pearson_upper(most, n1, alpha / 4)),
    )


def _strict_rank(n0: int, fpr: float, alpha: float) -> int:
    """Return the largest r such that P(score > r-th largest) ≤ fpr except with prob. alpha."""
    # The tail mass above the r-th largest is at most a Beta(r, n₀ − r + 1) variable; it exceeds
    # fpr with probability at most P(Bin(n₀, fpr) ≤ r − 1).
    rank = int(binom.ppf(alpha, n0, fpr))
    while rank > 0 and binom.cdf(rank - 1, n0, fpr) > alpha:
        rank -= 1
    return rank


def _loose_rank(n0: int, fpr: float, alpha: float) -> int:
    """Return the smallest r such that P(score ≥ r-th largest) ≥ fpr except with prob. alpha."""
    rank = int(binom.isf(alpha, n0, fpr)) + 1
    while rank <= n0 and binom.sf(rank - 1, n0, fpr) > alpha:
        rank += 1
    return max(rank, math.floor(fpr * n0) + 1)
