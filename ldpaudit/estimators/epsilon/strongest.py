"""The stronger of two lower bounds of ε, with its correction.

Nine tenths of the error probability go to the method expected to be the stronger under the presumed
channel and the true labels' frequencies; the other has the rest, in case the presumption is wrong.
What is expected is decided before any outcome is seen, so the maximum is valid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

from ldpaudit.estimators.epsilon.accuracy_design import AccuracyPlan, best_plan
from ldpaudit.estimators.epsilon.bounds import CountTable, EpsilonBound, class_counts
from ldpaudit.estimators.epsilon.two_sided import TwoSidedPlan, best_two_sided, odds_ratio_plan
from ldpaudit.release import FloatArray, IndexArray

METHODS = ("accuracy", "two-sided")
SELECTED = ("odds-ratio",)
"""The methods for rows that were selected by their released label."""
PRIMARY_SHARE = 0.9
"""The share of the error probability that the method expected to be strongest gets."""
DESIGN_ALPHA = 0.05
PILOT_SHARE = 0.1
"""Without a claim, the share of rows spent on learning which method to prefer."""
PILOT_ALPHA = 3e-3
"""The level at which designs are compared then: an event that is rare in few rows is unsure."""
_SELECTED_SHARE = 0.025
"""The share for the odds ratio, which replaces both where rows were selected after the noise."""
_AGREES = 0.05


@dataclass(frozen=True, eq=False)
class BoundDesign:
    """How the outcomes of a table will be turned into bounds, fixed before they are seen.

    Attributes
    ----------
    plan : AccuracyPlan
        Which guesses are scored on which rows.
    pair : TwoSidedPlan
        Which event distinguishes which labels.
    odds : TwoSidedPlan
        The odds ratio of two labels and two outputs.
    primary : str
        The method expected to be strongest.
    weights : mapping from method to float
        The shares of the error probability; they sum to 1, but for an odds ratio that is the
        event's own.
    """

    plan: AccuracyPlan
    pair: TwoSidedPlan
    odds: TwoSidedPlan
    primary: str
    weights: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class BoundEvidence:
    """The outcomes that the bounds need, all randomness already drawn: a function of alpha.

    Attributes
    ----------
    design : BoundDesign
    counts : integer array of shape (k, m)
        Rows by true label and output.
    correct : int
        Right guesses of the plan.
    methods : tuple of str
        The methods that may be believed.
    """

    design: BoundDesign
    counts: CountTable
    correct: int
    methods: tuple[str, ...] = METHODS

    def bound(self, method: str, alpha: float) -> EpsilonBound:
        """Return one method's lower bound of ε at level 1 − alpha, in nats."""
        if method == "accuracy":
            return self.design.plan.bound(self.correct, alpha)
        pair = self.design.pair if method == "two-sided" else self.design.odds
        return replace(pair.bound(self.counts, alpha), method=method)

    def strongest(self, alpha: float) -> EpsilonBound:
        """Return the largest bound, each method at its share of alpha: valid at 1 − alpha."""
        shares = self.design.weights
        bounds = [self.bound(method, alpha * shares[method]) for method in self.methods]
        best = max(bounds, key=lambda bound: bound.epsilon)
        return replace(best, alpha=alpha)


def design_bounds(
    sizes: IndexArray, channel: FloatArray, alpha: float = DESIGN_ALPHA
) -> BoundDesign | None:
    """Decide how to bound ε, from the true labels' frequencies and a presumed channel.

    Parameters
    ----------
    sizes : int64 array of shape (k,)
        Rows of each true label.
    channel : float64 array of shape (k, m)
        The claimed channel, or one estimated from other rows.
    alpha : float
        The level at which designs are compared.

    Returns
    -------
    BoundDesign or None
        None where fewer than two labels have rows: then nothing can be bounded.
    """
    if np.count_nonzero(sizes) < 2:
        return None
    plan, by_accuracy = best_plan(sizes, channel, alpha)
    pair, by_event = best_two_sided(sizes, channel, alpha)
    odds = odds_ratio_plan(sizes, channel)
    primary, other = METHODS if by_accuracy >= by_event else METHODS[::-1]
    weights = {primary: PRIMARY_SHARE, other: 1 - PRIMARY_SHARE}
    if pair.same_event(odds):
        weights["odds-ratio"] = weights["two-sided"]
    else:
        weights["odds-ratio"] = _SELECTED_SHARE
        weights[other] -= _SELECTED_SHARE
    return BoundDesign(plan, pair, odds, primary, weights)


def gather_evidence(
    counts: CountTable, design: BoundDesign, rng: np.random.Generator
) -> BoundEvidence:
    """Draw everything random that the bounds of a table need.

    Parameters
    ----------
    counts : integer array of shape (k, m)
        Rows by true label and output, the ones that ``design`` was made for.
    """
    counts = np.asarray(counts, dtype=np.int64)
    return BoundEvidence(design, counts, design.plan.draw(counts, rng))


def epsilon_evidence(
    counts: CountTable, channel: FloatArray | None, rng: np.random.Generator
) -> BoundEvidence | None:
    """Prepare the bounds of a table of counts, for any level.

    Parameters
    ----------
    counts : integer array of shape (k, m)
        Rows by true label and output.
    channel : float64 array of shape (k, m) or None
        The claimed channel; None where there is none: then a random tenth of the rows shows which
        method to prefer, and the bounds are computed from the others.
    rng : numpy.random.Generator

    Returns
    -------
    BoundEvidence or None
        None where fewer than two labels have rows.
    """
    counts, alpha = np.asarray(counts, dtype=np.int64), DESIGN_ALPHA
    if channel is None:
        (counts, channel), alpha = _split_pilot(counts, rng), PILOT_ALPHA
    design = design_bounds(class_counts(counts), channel, alpha)
    return None if design is None else gather_evidence(counts, design, rng)


def _split_pilot(counts: CountTable, rng: np.random.Generator) -> tuple[IndexArray, FloatArray]:
    sizes = class_counts(counts)
    pilot = np.stack(
        [
            rng.multivariate_hypergeometric(row, int(PILOT_SHARE * size), method="marginals")
            for row, size in zip(counts, sizes, strict=True)
        ]
    )
    return counts - pilot, presumed_channel(pilot)


def presumed_channel(pilot: CountTable) -> FloatArray:
    """Return a guess at the channel behind a few rows, float64 of shape (k, m).

    Randomized response with the observed share of kept labels where the rows do not speak against
    it, else their smoothed frequencies. A wrong guess costs strength, never validity.
    """
    k, m = pilot.shape
    n, agreeing = pilot.sum(), np.trace(pilot) + 0.5
    if k == m and agreeing / (n + 1) > 1 / k:
        symmetric = np.full((k, k), (1 - agreeing / (n + 1)) / (k - 1))
        np.fill_diagonal(symmetric, agreeing / (n + 1))
        expected = symmetric * class_counts(pilot)[:, None]
        far = np.sum((pilot - expected) ** 2 / np.maximum(expected, 0.5))
        if chi2.sf(far, k * (k - 1) - 1) > _AGREES:
            return symmetric
    # Half a row in every cell, spread as the outputs are: an output never seen is not impossible.
    smoothed = pilot + 0.5 * (pilot.sum(axis=0) + 0.5) / (n / 2 + 0.5)
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))
