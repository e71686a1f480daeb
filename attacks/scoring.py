"""How attacks are scored: counts on held-out folds, then measures with bounds."""

# A fold holds rows that its attack was not fitted on. Given the fitted attack, its rows are
# independent draws, so every bound on one fold holds with no further assumption. The features-only
# reference on the same rows is the baseline. An attack that learns from features and released
# labels of the rows it guesses is different: given all that is released its guesses are fixed, and
# rows are right independently of one another, each with its own probability.
#
# Two folds of cross-fitting depend on each other: each is bounded at half the error probability,
# and the average of the bounds (weights: rows) bounds the average score of the two fitted attacks.
# Clopper–Pearson is used in the form that also holds for the mean chance of being right of rows
# that are independent but not alike. Measures that need rows of one law say so.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from ldpaudit.error_budget import DIRECTION
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.estimators.intervals.ranking import (
    RateInterval,
    auc,
    auc_interval,
    auc_lower,
    auc_upper,
    tpr_at_fpr,
)
from ldpaudit.release import FloatArray, IntArray
from ldpaudit.result import Unit

SMALL_FPR = 0.01
# Shares of rows, the most confident guesses first, at which accuracy is counted.
SHARES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
# Equally wide bins of confidence in which the posterior's calibration is counted.
BINS = 10
_RANKED_SCORES = 4_000_000
# With more classes AUCs have the quicker, wider bounds.
_SHARP_CLASSES = 4

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FoldScore:
    """The counts of one attack on one fold; no number belongs to one row."""

    n: int
    correct: int
    """``n`` and ``correct``: rows and right guesses."""
    class_rows: Counts
    class_correct: Counts
    """``class_rows`` and ``class_correct``: int64 arrays of shape (k,): the same for each true
    label."""
    baseline_correct: int
    gained: int
    lost: int
    """``baseline_correct``, ``gained`` and ``lost``: right guesses of the features-only reference
    on the same rows; rows that only the attack, and that only the reference, guesses right. All 0
    where there is no reference."""
    aucs: FloatArray
    """Float64 array of shape (1, 3) for k = 2, else (k, 3): one-versus-rest AUC with its bounds."""
    rates: tuple[RateInterval, ...]
    """The true-positive rate at 1 % false positives of each label against the rest."""
    steps: Counts
    """Int64 array of shape (len(SHARES), 2): rows and right guesses between consecutive shares,
    most confident first."""
    confidence_rows: Counts
    confidence_correct: Counts
    """``confidence_rows`` and ``confidence_correct``: int64 arrays of shape (BINS,): rows and right
    guesses in each bin of confidence, the probability of the guess."""
    confidence_sum: FloatArray
    """Float64 array of shape (BINS,): the sum of the confidences in each bin."""
    slices: Counts
    """Int64 array of shape (slices, 4): of each slice of the rows: rows, right guesses, gained,
    lost."""
    alike: bool = True
    """Whether rows are independent draws of one law given the attack; False where only their
    independence is known."""


def score_fold(
    truth: IntArray,
    posterior: FloatArray,
    baseline: IntArray | None,
    *,
    rate_alpha: float,
    rng: np.random.Generator,
    slices: IntArray | None = None,
    alike: bool = True,
) -> FoldScore:
    """Count the right guesses of an attack on rows that it was not fitted on.

    Parameters
    ----------
    truth : int32 array of shape (n,)
        True labels.
    posterior : float64 array of shape (n, k)
        The attack's probabilities; the largest is its guess.
    baseline : int32 array of shape (n,), optional
        The guesses of the features-only reference.
    rate_alpha : float
        Error probability of the intervals of the AUC and of the true-positive rate on this fold,
        of each for all labels together.
    rng : numpy.random.Generator
        Draws the rows that are ranked where rows × labels exceed four million.
    slices : int32 array of shape (n,), optional
        The slice of each row, 0 … s − 1.
    alike : bool
        Whether rows are independent draws of one law given the attack.
    """
    k = posterior.shape[1]
    right = posterior.argmax(axis=1) == truth
    reference = right if baseline is None else baseline == truth
    aucs, rates = _rank(truth, posterior, rate_alpha, rng)
    confidence = posterior.max(axis=1)
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    ends = np.ceil(np.array(SHARES) * len(truth)).astype(np.int64)
    running = np.concatenate([[0], np.cumsum(right[np.argsort(-confidence, kind="stable")])])
    steps = np.diff(np.stack([ends, running[ends]], axis=1), prepend=0, axis=0)
    gained, lost = right & ~reference, ~right & reference
    by_slice = np.zeros((0, 4), dtype=np.int64)
    if slices is not None and len(slices):
        columns, size = (slice(None), right, gained, lost), slices.max()
        by_slice = np.stack([np.bincount(slices[c], minlength=size + 1) for c in columns], axis=1)
    return FoldScore(
        n=len(truth),
        correct=int(right.sum()),
        class_rows=np.bincount(truth, minlength=k),
        class_correct=np.bincount(truth[right], minlength=k),
        baseline_correct=0 if baseline is None else int(reference.sum()),
        gained=int(gained.sum()),
        lost=int(lost.sum()),
        aucs=aucs,
        rates=rates,
        steps=steps,
        confidence_rows=np.bincount(bins, minlength=BINS),
        confidence_correct=np.bincount(bins[right], minlength=BINS),
        confidence_sum=np.bincount(bins, confidence, BINS).astype(np.float64),
        slices=by_slice,
        alike=alike,
    )


def _rank(
    truth: IntArray, posterior: FloatArray, alpha: float, rng: np.random.Generator
) -> tuple[FloatArray, tuple[RateInterval, ...]]:
    n, k = posterior.shape
    most = _RANKED_SCORES // k
    if n > most:
        rows = rng.choice(n, size=most, replace=False)
        truth, posterior = truth[rows], posterior[rows]
    aucs, rates = [], []
    for label in range(k):
        mine = truth == label
        positives, negatives = posterior[mine, label], posterior[~mine, label]
        rates.append(tpr_at_fpr(positives, negatives, SMALL_FPR, alpha / k))
        if k > 2 or label == 1:
            value, share = auc(positives, negatives), alpha / (1 if k == 2 else k)
            pairs, ends = min(len(positives), len(negatives)), (auc_lower, auc_upper)
            sharp = k <= _SHARP_CLASSES
            aucs.append(
                (value, *auc_interval(positives, negatives, share))
                if sharp
                else (value, *(end(value, pairs, share / 2) for end in ends))
            )
    return np.array(aucs), tuple(rates)


_Bound = Callable[[Any, Any, float], Any]


class Fold(Protocol):
    """What was counted on held-out rows (or bags) by an attack fitted on others."""

    @property
    def n(self) -> int:
        """How many there are."""


F = TypeVar("F", bound=Fold)


@dataclass(frozen=True, eq=False)
class RowValues:
    """A fold of which each measure is the mean of one bounded value per row, float64 of (n,)."""

    values: Mapping[str, FloatArray]
    n: int


@dataclass(frozen=True)
class Measure(Generic[F]):
    """One score of a fold with its bounds; ``lower`` and ``upper`` take an error probability."""

    name: str
    title: str
    unit: Unit
    method: str
    value: Callable[[F], float]
    lower: Callable[[F, float], float]
    upper: Callable[[F, float], float]
    # Whether its bounds hold where rows are independent but not alike.
    unlike: bool = True
    # Whether a strong attack has a large (1) or a small (−1) score.
    better: int = 1


# A bound of the mean of values, one per row, at an error probability.
End = Callable[[FloatArray, float], float]


def row_measure(
    name: str,
    title: str,
    method: str,
    ends: tuple[End, End],
    *,
    unit: Unit = "proportion",
    better: int = 1,
) -> Measure[RowValues]:
    """Return the mean of one value per row as a measure, with its lower and upper bounds."""
    return Measure(
        name,
        title,
        unit,
        method,
        lambda fold: float(fold.values[name].mean()),
        lambda fold, alpha: ends[0](fold.values[name], alpha),
        lambda fold, alpha: ends[1](fold.values[name], alpha),
        better=better,
    )


def between(low: float, high: float) -> tuple[End, End]:
    """Return the bounds of the mean of values that lie between two numbers."""
    return partial(mean_lower, low=low, high=high), partial(mean_upper, low=low, high=high)


def average(folds: Sequence[F], score: Callable[[F], float]) -> float:
    """Return the average of a score over folds, weighted by their rows."""
    total = sum(fold.n for fold in folds)
    return sum(fold.n / total * score(fold) for fold in folds)


def lower_bound(folds: Sequence[F], measure: Measure[F], alpha: float) -> float:
    """Return the lower bound of the average score at level 1 − alpha."""
    return average(folds, lambda fold: measure.lower(fold, alpha / len(folds)))


def upper_bound(folds: Sequence[F], measure: Measure[F], alpha: float) -> float:
    """Return the upper bound of the average score at level 1 − alpha."""
    return average(folds, lambda fold: measure.upper(fold, alpha / len(folds)))


def _by_class(fold: FoldScore, alpha: float, bound: _Bound) -> float:
    share = alpha / len(fold.class_rows)
    return float(np.mean(bound(fold.class_correct, fold.class_rows, share)))


def advantage_lower(gained: int, lost: int, n: int, alpha: float) -> float:
    """Return a lower bound of P(only A right) − P(only B right) at level 1 − alpha.

    The difference is p(2π − 1), with p the probability that exactly one of them is right and π
    that it is A: Clopper–Pearson for π given their number, and for p, at their shares of alpha
    (:data:`ldpaudit.error_budget.DIRECTION`).
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
    pi = float(trials_lower(gained, either, DIRECTION.of(alpha, "direction")))
    lean = 2 * pi - 1
    if lean >= 0:
        often = trials_lower(either, n, DIRECTION.of(alpha, "at least"))
    else:
        often = trials_upper(either, n, DIRECTION.of(alpha, "at most"))
    return lean * float(often)


def gain_lower(fold: FoldScore, alpha: float, sign: int = 1) -> float:
    """Return a lower bound of the mean of P(only the attack right) − P(only the reference right).

    ``sign`` −1: of the reference against the attack. Where rows are draws of one law, or two
    classes make it certain, given the guesses, on which rows exactly one of them is right, the
    bound conditions on how many those are; else gains and losses are bounded apart.
    """
    gained, lost = (fold.gained, fold.lost)[::sign]
    if fold.alike or len(fold.class_rows) == 2:
        return advantage_lower(gained, lost, fold.n, alpha)
    least = float(trials_lower(gained, fold.n, alpha / 2))
    return least - float(trials_upper(lost, fold.n, alpha / 2))


def _shift_bound(fold: FoldScore, alpha: float, ours: _Bound, theirs: _Bound) -> float:
    attack = ours(fold.correct, fold.n, alpha / 2)
    return float(logit(attack) - logit(theirs(fold.baseline_correct, fold.n, alpha / 2)))


ACCURACY: Final = Measure[FoldScore](
    "accuracy",
    "Accuracy",
    "proportion",
    "held-out guesses, Clopper–Pearson on each of two folds",
    lambda fold: fold.correct / fold.n,
    lambda fold, alpha: float(trials_lower(fold.correct, fold.n, alpha)),
    lambda fold, alpha: float(trials_upper(fold.correct, fold.n, alpha)),
)
BALANCED_ACCURACY: Final = Measure[FoldScore](
    "balanced_accuracy",
    "Balanced accuracy",
    "proportion",
    "mean over labels of the share guessed right, Clopper–Pearson on each label and fold",
    lambda fold: float(
        np.mean(fold.class_correct[(there := fold.class_rows > 0)] / fold.class_rows[there])
    ),
    lambda fold, alpha: _by_class(fold, alpha, trials_lower),
    lambda fold, alpha: _by_class(fold, alpha, trials_upper),
    unlike=False,
)
AUC: Final = Measure[FoldScore](
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
TPR_AT_FPR: Final = Measure[FoldScore](
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
ADVANTAGE: Final = Measure[FoldScore](
    "advantage",
    "Additive advantage",
    "proportion",
    "right guesses beyond those of the features-only reference on the same held-out rows; "
    "Clopper–Pearson on the discordant rows of each of two folds (on gains and losses apart where "
    "rows are not alike and labels more than two)",
    lambda fold: (fold.gained - fold.lost) / fold.n,
    gain_lower,
    lambda fold, alpha: -gain_lower(fold, alpha, -1),
)
MULTIPLICATIVE_ADVANTAGE: Final = Measure[FoldScore](
    "multiplicative_advantage",
    "Multiplicative advantage",
    "log-odds",
    "log-odds of a right guess beyond those of the features-only reference; Clopper–Pearson on "
    "both accuracies in each of two folds",
    # Half a row is added on either side, so that the value stays finite.
    lambda fold: float(
        logit((fold.correct + 0.5) / (fold.n + 1))
        - logit((fold.baseline_correct + 0.5) / (fold.n + 1))
    ),
    lambda fold, alpha: _shift_bound(fold, alpha, trials_lower, trials_upper),
    lambda fold, alpha: _shift_bound(fold, alpha, trials_upper, trials_lower),
)
CALIBRATION_ERROR: Final = Measure[FoldScore](
    "calibration_error",
    "Calibration error",
    "proportion",
    "difference of confidence and share right, averaged over ten bins of the guesses' confidence; "
    "Clopper–Pearson on each bin and fold, all at once",
    lambda fold: _calibration(fold, lambda p, lo, hi: abs(p - (lo + hi) / 2)),
    lambda fold, alpha: _calibration(fold, lambda p, lo, hi: max(lo - p, p - hi, 0.0), alpha),
    lambda fold, alpha: _calibration(fold, lambda p, lo, hi: max(hi - p, p - lo), alpha),
)
# The measures of every attack and reference.
SCORES: Final = (ACCURACY, BALANCED_ACCURACY, AUC, TPR_AT_FPR, CALIBRATION_ERROR)
# The measures of an attack against the features-only reference.
GAINS: Final = (ADVANTAGE, MULTIPLICATIVE_ADVANTAGE)


def _calibration(
    fold: FoldScore,
    distance: Callable[[float, float, float], float],
    alpha: float | None = None,
) -> float:
    """Return Σ_b (n_b/n)·distance(confidence, interval of the share right) over the bins.

    Without ``alpha`` the interval is the observed share. Given the confidences and the bins'
    rows, the share right in a bin is bounded by Clopper–Pearson at alpha/(2·bins) a side.
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
