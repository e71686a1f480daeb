"""The classical two-sided bound of ε: true positives against false positives."""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from ldpaudit.estimators.epsilon.accuracy_design import collapses
from ldpaudit.estimators.epsilon.bounds import (
    CountTable,
    EpsilonBound,
    class_counts,
    two_sided_bound,
)
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.release import FloatArray, IndexArray, IntArray

_NODES = ndtri((np.arange(7) + 0.5) / 7)


@dataclass(frozen=True, eq=False)
class TwoSidedPlan:
    """Two groups of labels and the outputs that are to tell them apart, fixed beforehand.

    Attributes
    ----------
    groups : int32 array of shape (k,)
        1 for labels that make a guess of 1 likelier, 0 for the others, −1 for labels left out.
    guess : int32 array of shape (m,)
        The group guessed at each output, 0 or 1.
    """

    groups: IntArray
    guess: IntArray

    def bound(self, counts: CountTable, alpha: float) -> EpsilonBound:
        """Bound ε at level 1 − alpha from rows counted by label and output, (k, m)."""
        hits, sizes = counts[:, self.guess == 1].sum(axis=1), class_counts(counts)
        groups = [self.groups == g for g in (0, 1)]
        return two_sided_bound(
            [int(hits[group].sum()) for group in groups],
            [int(sizes[group].sum()) for group in groups],
            alpha,
        )


def best_two_sided(
    sizes: IndexArray, channel: FloatArray, alpha: float
) -> tuple[TwoSidedPlan, float]:
    """Return the plan with the largest expected bound under a presumed channel, and that bound.

    Parameters as in :func:`ldpaudit.estimators.epsilon.accuracy_design.best_plan`.
    """
    k, m = channel.shape
    best = (TwoSidedPlan(np.full(k, -1, np.int32), np.zeros(m, np.int32)), 0.0)
    plans = [TwoSidedPlan(groups, guess) for groups, guess in collapses(sizes, channel)]
    for plan, expected in zip(plans, _expected_bounds(plans, sizes, channel, alpha), strict=True):
        if expected > best[1] + 1e-9:
            best = (plan, float(expected))
    return best


def _expected_bounds(
    plans: list[TwoSidedPlan], sizes: IndexArray, channel: FloatArray, alpha: float
) -> FloatArray:
    """Return the expected bound of each plan, float64 of shape (plans,)."""
    if not plans:
        return np.empty(0)
    guess = np.stack([plan.guess for plan in plans]).astype(np.float64)
    member = np.stack([plan.groups for plan in plans]) == np.array([0, 1])[:, None, None]
    success = guess @ channel.T
    n = np.where(member, sizes, 0).sum(axis=2, dtype=np.float64)[:, :, None]
    mean = np.where(member, sizes * success, 0.0).sum(axis=2)[:, :, None]
    spread = np.sqrt(np.maximum(mean * (1 - mean / n), 0.0)) * _NODES
    negative, positive = np.clip(np.floor(mean + spread + 0.5), 0, n)
    low = trials_lower(positive, n[1], alpha / 2)[:, :, None]
    high = trials_upper(negative, n[0], alpha / 2)[:, None, :]
    with np.errstate(divide="ignore"):
        ratio = np.maximum(np.log(low) - np.log(high), np.log1p(-high) - np.log1p(-low))
    return np.asarray(np.maximum(ratio, 0.0).mean(axis=(1, 2)))
