"""What is counted for one attack on one held-out fold.

A fold holds rows that its attack was not fitted on. Given the fitted attack, its rows are
independent draws, so every bound on one fold holds with no further assumption. The rows of the
other fold, which the attack was fitted on, give its in-sample accuracy; the features-only reference
on the same rows is the baseline.

An attack that learns from features and released labels of the rows it guesses is different. Given
all that is released its guesses are fixed, and the true labels are independent: rows are right
independently of one another, each with its own probability.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.estimators.intervals.ranking import (
    RateInterval,
    auc,
    auc_interval,
    auc_lower,
    auc_upper,
    tpr_at_fpr,
)
from ldpaudit.release import BoolArray, FloatArray, IntArray

SMALL_FPR = 0.01
SHARES: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Shares of rows, the most confident guesses first, at which accuracy is counted."""
BINS = 10
"""Equally wide bins of confidence in which the posterior's calibration is counted."""
_RANKED_SCORES = 4_000_000
_SHARP_CLASSES = 4
"""With more classes AUCs have the quicker, wider bounds."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FoldScore:
    """The counts of one attack on one fold; no number belongs to one row.

    Attributes
    ----------
    n, correct : int
        Rows and right guesses.
    class_rows, class_correct : int64 arrays of shape (k,)
        The same for each true label.
    baseline_correct, gained, lost : int
        Right guesses of the features-only reference on the same rows; rows that only the attack,
        and that only the reference, guesses right. All 0 where there is no reference.
    aucs : float64 array of shape (1, 3) for k = 2, else (k, 3)
        One-versus-rest AUC with its bounds.
    rates : tuple of RateInterval, length k
        The true-positive rate at 1 % false positives of each label against the rest.
    steps : int64 array of shape (len(SHARES), 2)
        Rows and right guesses between consecutive shares, most confident first.
    confidence_rows, confidence_correct : int64 arrays of shape (BINS,)
        Rows and right guesses in each bin of confidence, the probability of the guess.
    confidence_sum : float64 array of shape (BINS,)
        The sum of the confidences in each bin.
    slices : int64 array of shape (slices, 4)
        Of each slice of the rows: rows, right guesses, gained, lost.
    alike : bool
        Whether rows are independent draws of one law given the attack; False where only their
        independence is known.
    """

    n: int
    correct: int
    class_rows: Counts
    class_correct: Counts
    baseline_correct: int
    gained: int
    lost: int
    aucs: FloatArray
    rates: tuple[RateInterval, ...]
    steps: Counts
    confidence_rows: Counts
    confidence_correct: Counts
    confidence_sum: FloatArray
    slices: Counts
    alike: bool = True


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
    return FoldScore(
        n=len(truth),
        correct=int(right.sum()),
        class_rows=np.bincount(truth, minlength=k),
        class_correct=np.bincount(truth[right], minlength=k),
        baseline_correct=0 if baseline is None else int(reference.sum()),
        gained=int((right & ~reference).sum()),
        lost=int((~right & reference).sum()),
        aucs=aucs,
        rates=rates,
        steps=_steps(right, confidence),
        confidence_rows=np.bincount(bins, minlength=BINS),
        confidence_correct=np.bincount(bins[right], minlength=BINS),
        confidence_sum=np.bincount(bins, confidence, BINS).astype(np.float64),
        slices=_by_slice(right, reference, slices),
        alike=alike,
    )


def _by_slice(right: BoolArray, reference: BoolArray, slices: IntArray | None) -> Counts:
    if slices is None or not len(slices):
        return np.zeros((0, 4), dtype=np.int64)
    columns = (np.ones_like(right), right, right & ~reference, ~right & reference)
    size = int(slices.max()) + 1
    return np.stack([np.bincount(slices[c], minlength=size) for c in columns], axis=1)


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
            aucs.append(_auc(positives, negatives, alpha / (1 if k == 2 else k), k))
    return np.array(aucs), tuple(rates)


def _auc(
    positives: FloatArray, negatives: FloatArray, alpha: float, k: int
) -> tuple[float, float, float]:
    value, pairs = auc(positives, negatives), min(len(positives), len(negatives))
    if k > _SHARP_CLASSES:
        return value, auc_lower(value, pairs, alpha / 2), auc_upper(value, pairs, alpha / 2)
    return (value, *auc_interval(positives, negatives, alpha))


def _steps(right: BoolArray, confidence: FloatArray) -> Counts:
    order = np.argsort(-confidence, kind="stable")
    ends = np.ceil(np.array(SHARES) * len(right)).astype(np.int64)
    running = np.concatenate([[0], np.cumsum(right[order])])
    rows = np.diff(ends, prepend=0)
    return np.stack([rows, np.diff(running[ends], prepend=0)], axis=1).astype(np.int64)
