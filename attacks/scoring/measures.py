"""Measures of attacks with certified bounds, computed from the counts of held-out folds.

Two folds of cross-fitting depend on each other: each is bounded at half the error probability, and
the average of the bounds (weights: rows) bounds the average score of the two fitted attacks.

Clopper–Pearson is used in the form that also holds for the mean chance of being right of rows that
are independent but not alike. Measures that need rows of one law say so.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.attacks.scoring.fold import BINS, FoldScore
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.result import Unit

_DIRECTION_SHARE = 0.8
_Bound = Callable[[Any, Any, float], Any]


@dataclass(frozen=True)
class Measure:
    """One score of a fold with its bounds; ``lower`` and ``upper`` take an error probability."""

    name: str
    title: str
    unit: Unit
    method: str
    value: Callable[[FoldScore], float]
    lower: Callable[[FoldScore, float], float]
    upper: Callable[[FoldScore, float], float]
    unlike: bool = True
    """Whether its bounds hold where rows are independent but not alike."""


def average(folds: Sequence[FoldScore], score: Callable[[FoldScore], float]) -> float:
    """Return the average of a score over folds, weighted by their rows."""
    total = sum(fold.n for fold in folds)
    return sum(fold.n / total * score(fold) for fold in folds)


def lower_bound(folds: Sequence[FoldScore], measure: Measure, alpha: float) -> float:
    """Return the lower bound of the average score at level 1 − alpha."""
    return average(folds, lambda fold: measure.lower(fold, alpha / len(folds)))


def upper_bound(folds: Sequence[FoldScore], measure: Measure, alpha: float) -> float:
    """Return the upper bound of the average score at level 1 − alpha."""
    return average(folds, lambda fold: measure.upper(fold, alpha / len(folds)))


def _by_class(fold: FoldScore, alpha: float, bound: _Bound) -> float:
    share = alpha / len(fold.class_rows)
    return float(np.mean(bound(fold.class_correct, fold.class_rows, share)))


def _balanced(fold: FoldScore) -> float:
    there = fold.class_rows > 0
    return float(np.mean(fold.class_correct[there] / fold.class_rows[there]))


def advantage_lower(gained: int, lost: int, n: int, alpha: float) -> float:
    """Return a lower bound of P(only A right) − P(only B right) at level 1 − alpha.

    The difference is p(2π − 1), with p the probability that exactly one of them is right and π
    that it is A: Clopper–Pearson for π given their number at 0.8 alpha, for p at 0.1 alpha a side.
    With few gains and losses of equal number it is narrower than two separate bounds.

    Parameters
    ----------
    gained, lost : int
        Rows that only A, and that only B, gets right.
    n : int
        All rows.
    alpha : float
        One-sided error probability.
    """
    either = gained + lost
    pi = float(trials_lower(gained, either, _DIRECTION_SHARE * alpha))
    side = (1 - _DIRECTION_SHARE) / 2 * alpha
    lean = 2 * pi - 1
    bound = trials_lower if lean >= 0 else trials_upper
    return lean * float(bound(either, n, side))


def gain_lower(gained: int, lost: int, n: int, alpha: float, *, decided: bool) -> float:
    """Return a lower bound of the mean of P(only A right) − P(only B right) at level 1 − alpha.

    Parameters
    ----------
    gained, lost, n, alpha
        As for :func:`advantage_lower`.
    decided : bool
        Whether rows are draws of one law, or two classes make it certain, given the guesses, on
        which rows exactly one of A and B is right. Else gains and losses are bounded apart.
    """
    if decided:
        return advantage_lower(gained, lost, n, alpha)
    least = float(trials_lower(gained, n, alpha / 2))
    return least - float(trials_upper(lost, n, alpha / 2))


def is_decided(fold: FoldScore) -> bool:
    """Return whether the bounds may condition on how often only one of two attacks is right."""
    return fold.alike or len(fold.class_rows) == 2


def _gain_lower(fold: FoldScore, alpha: float) -> float:
    return gain_lower(fold.gained, fold.lost, fold.n, alpha, decided=is_decided(fold))


def _gain_upper(fold: FoldScore, alpha: float) -> float:
    return -gain_lower(fold.lost, fold.gained, fold.n, alpha, decided=is_decided(fold))


def _logit(p: float) -> float:
    if p <= 0 or p >= 1:
        return -math.inf if p <= 0 else math.inf
    return math.log(p) - math.log1p(-p)


def _shift(fold: FoldScore) -> float:
    # Half a row is added on either side, so that the value stays finite.
    ours, theirs = fold.correct + 0.5, fold.baseline_correct + 0.5
    return _logit(ours / (fold.n + 1)) - _logit(theirs / (fold.n + 1))


def _shift_bound(fold: FoldScore, alpha: float, ours: _Bound, theirs: _Bound) -> float:
    attack = float(ours(fold.correct, fold.n, alpha / 2))
    baseline = float(theirs(fold.baseline_correct, fold.n, alpha / 2))
    return _logit(attack) - _logit(baseline)


ACCURACY: Final = Measure(
    "accuracy",
    "Accuracy",
    "proportion",
    "held-out guesses, Clopper–Pearson on each of two folds",
    lambda fold: fold.correct / fold.n,
    lambda fold, alpha: float(trials_lower(fold.correct, fold.n, alpha)),
    lambda fold, alpha: float(trials_upper(fold.correct, fold.n, alpha)),
)
BALANCED_ACCURACY: Final = Measure(
    "balanced_accuracy",
    "Balanced accuracy",
    "proportion",
    "mean over labels of the share guessed right, Clopper–Pearson on each label and fold",
    _balanced,
    lambda fold, alpha: _by_class(fold, alpha, trials_lower),
    lambda fold, alpha: _by_class(fold, alpha, trials_upper),
    unlike=False,
)
AUC: Final = Measure(
    "auc",
    "AUC",
    "proportion",
    "held-out ranking, one label against the rest, mean over labels; on each fold betting bounds "
    "of the mean AUC of random blocks of rows (of few rows, or more than four labels, the "
    "relative-entropy form of Hoeffding's bound for U-statistics)",
    lambda fold: float(fold.aucs[:, 0].mean()),
    lambda fold, _: float(fold.aucs[:, 1].mean()),
    lambda fold, _: float(fold.aucs[:, 2].mean()),
    unlike=False,
)
TPR_AT_FPR: Final = Measure(
    "tpr_at_fpr_1pct",
    "TPR at 1 % FPR",
    "proportion",
    "one label against the rest, mean over labels; threshold with a population false-positive "
    "rate of 1 % by an order-statistic tolerance bound, then Clopper–Pearson, on each fold",
    lambda fold: float(np.mean([rate.value for rate in fold.rates])),
    lambda fold, _: float(np.mean([rate.low for rate in fold.rates])),
    lambda fold, _: float(np.mean([rate.high for rate in fold.rates])),
    unlike=False,
)
ADVANTAGE: Final = Measure(
    "advantage",
    "Additive advantage",
    "proportion",
    "right guesses beyond those of the features-only reference on the same held-out rows; "
    "Clopper–Pearson on the discordant rows of each of two folds (on gains and losses apart where "
    "rows are not alike and labels more than two)",
    lambda fold: (fold.gained - fold.lost) / fold.n,
    _gain_lower,
    _gain_upper,
)
MULTIPLICATIVE_ADVANTAGE: Final = Measure(
    "multiplicative_advantage",
    "Multiplicative advantage",
    "log-odds",
    "log-odds of a right guess beyond those of the features-only reference; Clopper–Pearson on "
    "both accuracies in each of two folds",
    _shift,
    lambda fold, alpha: _shift_bound(fold, alpha, trials_lower, trials_upper),
    lambda fold, alpha: _shift_bound(fold, alpha, trials_upper, trials_lower),
)
CALIBRATION_ERROR: Final = Measure(
    "calibration_error",
    "Calibration error",
    "proportion",
    "difference of confidence and share right, averaged over ten bins of the guesses' confidence; "
    "Clopper–Pearson on each bin and fold, all at once",
    lambda fold: _calibration(fold, _point),
    lambda fold, alpha: _calibration(fold, lambda p, lo, hi: max(lo - p, p - hi, 0.0), alpha),
    lambda fold, alpha: _calibration(fold, lambda p, lo, hi: max(hi - p, p - lo), alpha),
)
SCORES: Final = (ACCURACY, BALANCED_ACCURACY, AUC, TPR_AT_FPR, CALIBRATION_ERROR)
"""The measures of every attack and reference."""
GAINS: Final = (ADVANTAGE, MULTIPLICATIVE_ADVANTAGE)
"""The measures of an attack against the features-only reference."""


def _point(confidence: float, low: float, high: float) -> float:
    return abs(confidence - (low + high) / 2)


def _calibration(
    fold: FoldScore,
    distance: Callable[[float, float, float], float],
    alpha: float | None = None,
) -> float:
    """Return Σ_b (n_b/n)·distance(confidence, interval of the share right) over the bins.

    Without ``alpha`` the interval is the observed share. Given the confidences and the bins' rows,
    the share right in a bin is bounded by Clopper–Pearson at alpha/(2·bins) a side.
    """
    total = 0.0
    for b in np.flatnonzero(fold.confidence_rows):
        n, correct = int(fold.confidence_rows[b]), int(fold.confidence_correct[b])
        low = high = correct / n
        if alpha is not None:
            side = alpha / (2 * BINS)
            low = float(trials_lower(correct, n, side))
            high = float(trials_upper(correct, n, side))
        total += n / fold.n * distance(float(fold.confidence_sum[b]) / n, low, high)
    return total
