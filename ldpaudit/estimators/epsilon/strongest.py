"""The strongest of several lower bounds of ε, with its correction.

Most of the error probability goes to the method expected to be the strongest under the presumed
channel and the true labels' frequencies; the others share the rest, in case the presumption is
wrong. What is expected is decided before any outcome is seen, so the maximum is valid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2

from ldpaudit.estimators.epsilon.accuracy_design import AccuracyPlan, best_plan
from ldpaudit.estimators.epsilon.bounds import CountTable, EpsilonBound, class_counts, counts_bound
from ldpaudit.estimators.epsilon.one_run import CandidateDesign, design_candidates
from ldpaudit.estimators.epsilon.two_sided import TwoSidedPlan, best_two_sided
from ldpaudit.estimators.intervals.odds_ratio import odds_ratio_bound
from ldpaudit.release import FloatArray, IndexArray

METHODS = ("accuracy", "odds-ratio", "two-sided", "one-run", "counts")
PRIMARY_SHARE = 0.9
"""The share of the error probability that the method expected to be strongest gets."""
DESIGN_ALPHA = 0.05
PILOT_SHARE = 0.1
"""Without a claim, the share of rows spent on learning which method to prefer."""
_AGREES = 1e-3
_WORTH_IT = 0.05


@dataclass(frozen=True, eq=False)
class BoundDesign:
    """How the outcomes of a table will be turned into bounds, fixed before they are seen.

    Attributes
    ----------
    plan : AccuracyPlan
        Which guesses are scored on which rows.
    pair : TwoSidedPlan
        Which groups of labels are told apart by which outputs.
    labels, outputs : tuple of two int
        The two true labels and the two outputs of the odds ratio.
    candidates : CandidateDesign
        The one-run candidates.
    primary : str
        The method expected to be strongest.
    weights : mapping from method to float
        The shares of the error probability; they sum to 1.
    """

    plan: AccuracyPlan
    pair: TwoSidedPlan
    labels: tuple[int, int]
    outputs: tuple[int, int]
    candidates: CandidateDesign
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
    one_run : tuple of two int
        Guesses of the one-run candidates' labels, and how many of them are right.
    methods : tuple of str
        The methods that may be believed.
    """

    design: BoundDesign
    counts: CountTable
    correct: int
    one_run: tuple[int, int]
    methods: tuple[str, ...] = METHODS

    def bound(self, method: str, alpha: float) -> EpsilonBound:
        """Return one method's lower bound of ε at level 1 − alpha, in nats."""
        if method == "accuracy":
            return self.design.plan.bound(self.correct, alpha)
        if method == "odds-ratio":
            rows, columns = np.ix_(self.design.labels, self.design.outputs)
            return odds_ratio_bound(self.counts[rows, columns], alpha)
        if method == "two-sided":
            return self.design.pair.bound(self.counts, alpha)
        if method == "one-run":
            return self.design.candidates.bound(*self.one_run, alpha)
        return counts_bound(self.counts, alpha)

    def strongest(self, alpha: float) -> EpsilonBound:
        """Return the largest bound, each method at its share of alpha: valid at 1 − alpha."""
        shares = self.design.weights
        bounds = [self.bound(method, alpha * shares[method]) for method in self.methods]
        best = max(bounds, key=lambda bound: bound.epsilon)
        return replace(best, alpha=alpha)


def design_bounds(sizes: IndexArray, channel: FloatArray) -> BoundDesign | None:
    """Decide how to bound ε, from the true labels' frequencies and a presumed channel.

    Parameters
    ----------
    sizes : int64 array of shape (k,)
        Rows of each true label.
    channel : float64 array of shape (k, m)
        The claimed channel, or one estimated from other rows.

    Returns
    -------
    BoundDesign or None
        None where fewer than two labels have rows: then nothing can be bounded.
    """
    if np.count_nonzero(sizes) < 2:
        return None
    expected = {}
    plan, expected["accuracy"] = best_plan(sizes, channel, DESIGN_ALPHA)
    pair, expected["two-sided"] = best_two_sided(sizes, channel, DESIGN_ALPHA)
    labels, outputs, by_odds = _best_pair(sizes, channel)
    if channel.shape == (2, 2):
        # With more labels it leaves rows out, and what it could have found is not easily computed.
        # Where it loses about as much as the accuracy, the simpler of the two is preferred.
        spread = np.log(channel.max(axis=0) / np.maximum(channel.min(axis=0), 1e-300)).max()
        expected["odds-ratio"] = by_odds - _WORTH_IT * max(float(spread) - by_odds, 0.0)
    candidates, expected["one-run"] = design_candidates(sizes, channel, DESIGN_ALPHA)
    primary = max(expected, key=lambda method: expected[method])
    rest = (1 - PRIMARY_SHARE) / (len(METHODS) - 1)
    weights = {method: PRIMARY_SHARE if method == primary else rest for method in METHODS}
    return BoundDesign(plan, pair, labels, outputs, candidates, primary, weights)


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
    one_run = design.candidates.draw(counts, rng)
    return BoundEvidence(design, counts, design.plan.draw(counts, rng), one_run)


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
    counts = np.asarray(counts, dtype=np.int64)
    if channel is None:
        counts, channel = _split_pilot(counts, rng)
    design = design_bounds(class_counts(counts), channel)
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


def _best_pair(
    sizes: IndexArray, channel: FloatArray
) -> tuple[tuple[int, int], tuple[int, int], float]:
    """Return two labels, two outputs and the odds ratio's bound to expect, by Woolf's formula."""
    order = np.argsort(-sizes, kind="stable")
    one, zero = int(order[0]), int(order[1])
    apart = channel[one] - channel[zero]
    high, low = int(apart.argmax()), int(apart.argmin())
    rows = np.array([zero, one])
    cells = sizes[rows][:, None] * channel[rows][:, np.array([low, high])]
    width = float(-ndtri(DESIGN_ALPHA)) * np.sqrt((1 / (cells + 0.5)).sum())
    logs = np.log(cells + 0.5)
    expected = 0.5 * (logs[1, 1] + logs[0, 0] - logs[0, 1] - logs[1, 0] - width)
    return (zero, one), (low, high), float(expected)
