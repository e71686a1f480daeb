"""The stronger of two lower bounds of ε, with its correction.

Nine tenths of the error probability go to the method expected to be the stronger under the presumed
channel and the true labels' frequencies; the other has the rest, in case the presumption is wrong.
What is expected is decided before any outcome is seen, so the maximum is valid.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from ldpaudit.estimators.epsilon.bounds import CountTable, EpsilonBound, class_counts
from ldpaudit.estimators.epsilon.designs import (
    AccuracyPlan,
    EventPlan,
    best_event,
    best_plan,
    odds_ratio_plan,
)
from ldpaudit.release import FloatArray, IndexArray

METHODS = ("accuracy", "two-sided")
SELECTED = ("odds-ratio",)
"""The methods for rows that were selected by their released label."""
PRIMARY_SHARE = 0.9
"""The share of the error probability that the method expected to be strongest gets."""
DESIGN_ALPHA = 0.05
PILOT_SHARE = 0.1
"""Without a claim, the least and the largest share of rows spent on learning what to prefer."""
MOST_PILOT = 1 / 3
_ROWS_PER_CELL = 25
"""Of the pilot, where it is not randomized response."""
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
    pair : EventPlan
        Which event distinguishes which labels.
    odds : EventPlan
        The odds ratio of two labels and two outputs.
    primary : str
        The method expected to be strongest.
    weights : mapping from method to float
        The shares of the error probability; they sum to 1, but for an odds ratio that is the
        event's own.
    """

    plan: AccuracyPlan
    pair: EventPlan
    odds: EventPlan
    primary: str
    weights: Mapping[str, float]

    def exceeding(
        self,
        sizes: IndexArray,
        channel: FloatArray,
        limit: float,
        alpha: float,
        draws: int,
        rng: np.random.Generator,
    ) -> npt.NDArray[np.bool_]:
        """Return whether ε is bounded above a limit in simulated releases, bool of shape (draws,).

        ``channel``: the one that makes the releases of rows with true labels as frequent as
        ``sizes``.
        """
        events = [self.pair.guess == value for value in (0, 1, -1)]
        right = self.plan.right
        chances = np.stack(
            [
                (channel * (right == is_right))[:, event].sum(axis=1)
                for is_right in (True, False)
                for event in events
            ],
            axis=1,
        )
        chances = chances / chances.sum(axis=1, keepdims=True)
        shape, counted = (draws, len(sizes)), self.plan.keep
        kept, rest = (rng.multinomial(n, chances, shape) for n in (counted, sizes - counted))
        levels = {method: alpha * share for method, share in self.weights.items()}
        found = self.plan.epsilon(kept[..., :3].sum(axis=(1, 2)), levels["accuracy"]) > limit
        missed = ~found
        if missed.any():
            rows = (kept + rest)[missed].reshape(-1, len(sizes), 2, 3).sum(axis=2)[..., :2]
            tables = np.stack([rows[:, self.pair.groups == g].sum(axis=1) for g in (0, 1)], axis=1)
            bounds = self.pair.epsilon(tables, levels["two-sided"], exact=False)
            found[missed] = bounds > limit
        return found


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
    share : float
        Of the error probability.
    """

    design: BoundDesign
    counts: CountTable
    correct: int
    methods: tuple[str, ...] = METHODS
    share: float = 1.0

    def by_method(self, method: str, alpha: float) -> EpsilonBound:
        """Return one method's lower bound of ε at level 1 − alpha, in nats."""
        plan = self.design.plan
        if method == "accuracy":
            n, epsilon = int(plan.sizes.sum()), plan.epsilon(self.correct, alpha)
        else:
            pair = self.design.pair if method == "two-sided" else self.design.odds
            table = pair.table(np.asarray(self.counts))
            n, epsilon = int(table.sum()), pair.epsilon(table, alpha)
        return EpsilonBound(float(epsilon), alpha, n, method)

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the largest bound, each method at its share of alpha: valid at 1 − alpha."""
        level, weights = alpha * self.share, self.design.weights
        bounds = [self.by_method(method, level * weights[method]) for method in self.methods]
        best = max(bounds, key=lambda bound: bound.epsilon)
        return EpsilonBound(best.epsilon, alpha, best.n, best.method)


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
    pair, by_event = best_event(sizes, channel, alpha)
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
    counts: CountTable, design: BoundDesign, rng: np.random.Generator, share: float = 1.0
) -> BoundEvidence:
    """Draw everything random that the bounds of a table need.

    ``counts``: rows by true label and output, the ones that ``design`` was made for; shape (k, m).
    """
    counts, sizes = np.asarray(counts, dtype=np.int64), class_counts(counts)
    right = (counts * design.plan.right).sum(axis=1)
    correct = int(rng.hypergeometric(right, sizes - right, design.plan.keep).sum())
    return BoundEvidence(design, counts, correct, share=share)


def epsilon_evidence(
    counts: CountTable, channel: FloatArray | None, rng: np.random.Generator
) -> BoundEvidence | None:
    """Prepare the bounds of a table of counts, for any level.

    Parameters
    ----------
    counts : integer array of shape (k, m)
        Rows by true label and output.
    channel : float64 array of shape (k, m) or None
        The claimed channel; None where there is none: then random rows, a tenth to a third, show
        which method and event to prefer, and the bounds are computed from the others.
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
    """Return the rows that are counted, and a channel presumed from the others.

    A tenth of the rows shows whether it is randomized response; of any other channel more are
    needed to choose an event, the more the larger it is.
    """
    sizes = class_counts(counts)

    def drawn(rest: CountTable, share: float) -> IndexArray:
        rows = [
            rng.multivariate_hypergeometric(row, int(share * size), method="marginals")
            for row, size in zip(rest, sizes, strict=True)
        ]
        return np.stack(rows)

    pilot = drawn(counts, PILOT_SHARE)
    if _symmetric(pilot) is None:
        share = min(MOST_PILOT, _ROWS_PER_CELL * counts.size / max(int(sizes.sum()), 1))
        if share > PILOT_SHARE:
            pilot = pilot + drawn(counts - pilot, share - PILOT_SHARE)
    return counts - pilot, presumed_channel(pilot)


def presumed_channel(pilot: CountTable) -> FloatArray:
    """Return a guess at the channel behind a few rows, float64 of shape (k, m).

    Randomized response with the observed share of kept labels where the rows do not speak against
    it, else their smoothed frequencies. A wrong guess costs strength, never validity.
    """
    symmetric = _symmetric(pilot)
    if symmetric is not None:
        return symmetric
    # Half a row in every cell, spread as the outputs are: an output never seen is not impossible.
    smoothed = pilot + 0.5 * (pilot.sum(axis=0) + 0.5) / (pilot.sum() / 2 + 0.5)
    return np.asarray(smoothed / smoothed.sum(axis=1, keepdims=True))


def _symmetric(pilot: CountTable) -> FloatArray | None:
    """Return the randomized response that fits a few rows, None where they speak against it."""
    k, m = pilot.shape
    n, agreeing = pilot.sum(), np.trace(pilot) + 0.5
    if k != m or agreeing / (n + 1) <= 1 / k:
        return None
    symmetric = np.full((k, k), (1 - agreeing / (n + 1)) / (k - 1))
    np.fill_diagonal(symmetric, agreeing / (n + 1))
    expected = symmetric * class_counts(pilot)[:, None]
    far = np.sum((pilot - expected) ** 2 / np.maximum(expected, 0.5))
    return symmetric if chi2.sf(far, k * (k - 1) - 1) > _AGREES else None
