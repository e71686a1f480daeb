"""Certified lower bounds of ε from true against released labels: the stronger of two methods."""

# Which guess and which event bound ε best, and on which rows, is decided from the true labels'
# frequencies and a presumed channel, before any outcome is seen: so the bounds are valid whatever
# the channel really is. Nine tenths of the error probability go to the method expected to be the
# stronger; the other has the rest, in case the presumption is wrong.

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from ldpaudit.error_budget import CLAIMED, GROUPS, ODDS_RATIO, STRONGEST
from ldpaudit.estimators.epsilon.accuracy import AccuracyPlan, best_plan
from ldpaudit.estimators.epsilon.bounds import (
    CountTable,
    EpsilonBound,
    accuracy_epsilon,
    class_counts,
)
from ldpaudit.estimators.epsilon.events import EventPlan, best_event, odds_ratio_plan
from ldpaudit.estimators.intervals.binomial import score_lower
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray, label_table

METHODS = ("accuracy", "two-sided")
SELECTED = ("odds-ratio",)  # for rows that were selected by their released label
DESIGN_ALPHA = 0.05
PILOT_SHARE = 0.1  # of the rows, spent without a claim on learning what to prefer
PILOT_ALPHA = 3e-3  # designs are compared at it then: an event that is rare in few rows is unsure
CHOOSING_SHARE = 1 / 3  # of the rows, which choose what is counted in the others beside a claim


@dataclass(frozen=True, eq=False)
class BoundDesign:
    """How the outcomes of a table will be turned into bounds, fixed before they are seen."""

    plan: AccuracyPlan
    pair: EventPlan
    odds: EventPlan
    """``plan``, ``pair`` and ``odds``: what "accuracy", "two-sided" and "odds-ratio" count."""
    primary: str
    """The method expected to be strongest."""
    weights: Mapping[str, float]
    """The shares of the error probability; they sum to 1, but for an odds ratio that is the event's
    own."""

    def exceeding(
        self,
        sizes: IndexArray,
        channel: FloatArray,
        limit: float,
        alpha: float,
        draws: int,
        rng: np.random.Generator,
    ) -> BoolArray:
        """Return whether ε is bounded above a limit in simulated releases, bool of shape (draws,).

        Of each row what the methods count is drawn: whether the guess is right, and the event.
        """
        events = [self.pair.guess == value for value in (0, 1, -1)]
        kinds = [
            (channel * part)[:, e] for part in (self.plan.right, ~self.plan.right) for e in events
        ]
        chances = np.stack([part.sum(axis=1) for part in kinds], axis=1)
        chances = chances / chances.sum(axis=1, keepdims=True)
        shape, counted = (draws, len(sizes)), self.plan.keep
        kept, rest = (rng.multinomial(n, chances, shape) for n in (counted, sizes - counted))
        right, level = kept[..., :3].sum(axis=(1, 2)), alpha * self.weights["accuracy"]
        found = accuracy_epsilon(right, self.plan.sizes, level) > limit
        rows = (kept + rest)[~found].reshape(-1, len(sizes), 2, 3).sum(axis=2)[..., :2]
        tables = np.stack([rows[:, self.pair.groups == g].sum(axis=1) for g in (0, 1)], axis=1)
        if len(rows):
            level = alpha * self.weights["two-sided"]
            found[~found] = self.pair.exceeds(tables, level, limit)
        return np.asarray(found)


def design_bounds(
    sizes: IndexArray, channel: FloatArray, alpha: float = DESIGN_ALPHA
) -> BoundDesign | None:
    """Decide how to bound ε, from the true labels' frequencies and a presumed channel.

    None where fewer than two labels have rows: then nothing can be bounded.
    """
    if np.count_nonzero(sizes) < 2:
        return None
    plan, by_accuracy = best_plan(sizes, channel, alpha)
    pair, by_event = best_event(sizes, channel, alpha)
    odds = odds_ratio_plan(sizes, channel)
    primary, other = METHODS if by_accuracy >= by_event else METHODS[::-1]
    weights = {
        primary: STRONGEST["primary"],
        other: STRONGEST["other"],
        "odds-ratio": ODDS_RATIO,
    }
    if all(map(np.array_equal, vars(pair).values(), vars(odds).values())):
        weights["odds-ratio"] = weights["two-sided"]
    else:
        weights[other] -= ODDS_RATIO
    return BoundDesign(plan, pair, odds, primary, weights)


@dataclass(frozen=True, eq=False)
class BoundEvidence:
    """The outcomes that the bounds need, all randomness already drawn: a function of alpha."""

    design: BoundDesign
    counts: CountTable
    """Integer array of shape (k, m): rows by true label and output."""
    correct: int
    """Right guesses of the plan."""
    methods: tuple[str, ...] = METHODS
    """The methods that may be believed."""
    share: float = 1.0
    """Of the error probability."""
    by_other_rows: "BoundEvidence | None" = None
    """Beside a claim: what a random part of the rows chose to count, counted in the others."""

    def by_method(self, method: str, alpha: float) -> EpsilonBound:
        """Return one method's lower bound of ε at level 1 − alpha, in nats."""
        if method == "accuracy":
            sizes = self.design.plan.sizes
            epsilon = accuracy_epsilon(self.correct, sizes, alpha)
            return EpsilonBound(float(epsilon), alpha, int(sizes.sum()), method)
        pair = self.design.pair if method == "two-sided" else self.design.odds
        table = pair.table(np.asarray(self.counts))
        return EpsilonBound(float(pair.epsilon(table, alpha)), alpha, int(table.sum()), method)

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the largest bound, each method at its share of alpha: valid at 1 − alpha."""
        level, weights = alpha * self.share, self.design.weights
        bounds = [self.by_method(method, level * weights[method]) for method in self.methods]
        if self.by_other_rows is not None:
            bounds.append(self.by_other_rows.bound(alpha))
        best = max(bounds, key=lambda bound: bound.epsilon)
        return EpsilonBound(best.epsilon, alpha, best.n, best.method)

    def of_selected(self) -> "BoundEvidence":
        """Return what holds, too, where rows were selected by their released label."""
        others = self.by_other_rows
        return replace(
            self,
            methods=SELECTED,
            by_other_rows=None if others is None else others.of_selected(),
        )


def gather_evidence(
    counts: CountTable, design: BoundDesign, rng: np.random.Generator, share: float = 1.0
) -> BoundEvidence:
    """Draw everything random that the bounds of a table (k, m) with this design need."""
    counts, sizes = np.asarray(counts, dtype=np.int64), class_counts(counts)
    right = (counts * design.plan.right).sum(axis=1)
    correct = int(rng.hypergeometric(right, sizes - right, design.plan.keep).sum())
    return BoundEvidence(design, counts, correct, share=share)


def epsilon_evidence(
    counts: CountTable, channel: FloatArray | None, rng: np.random.Generator
) -> BoundEvidence | None:
    """Prepare the bounds of counts (k, m) for any level; None with fewer than two labels.

    Where no channel (k, m) is claimed, random rows show which method and event to prefer, and the
    bounds are computed from the others: a tenth shows whether it is randomized response; of any
    other channel up to a third are needed to choose an event, the more the larger it is.
    """
    counts, sizes, alpha = np.asarray(counts, dtype=np.int64), class_counts(counts), DESIGN_ALPHA
    if channel is None:
        pilot, alpha = _drawn(counts, PILOT_SHARE * sizes, rng), PILOT_ALPHA
        share = min(1 / 3, 25 * counts.size / max(int(sizes.sum()), 1))
        if share > PILOT_SHARE and _symmetric(pilot) is None:
            pilot = pilot + _drawn(counts - pilot, (share - PILOT_SHARE) * sizes, rng)
        counts, channel = counts - pilot, presumed_channel(pilot)
    design = design_bounds(class_counts(counts), channel, alpha)
    return None if design is None else gather_evidence(counts, design, rng)


def claimed_evidence(
    counts: CountTable, channel: FloatArray | None, rng: np.random.Generator
) -> BoundEvidence | None:
    """Prepare the bounds of counts (k, m) for any level, those of a wrong claim, too.

    What the channel (k, m) leads one to count has nine tenths of the error probability. The tenth
    is for labels and outputs that a random third of the rows chose, counted in the others: it finds
    a class that is released as it is, or a branch that the claim has no word for. Where no channel
    is claimed, the same as :func:`epsilon_evidence`.
    """
    by_claim = epsilon_evidence(counts, channel, rng)
    if by_claim is None or channel is None:
        return by_claim
    counts = np.asarray(counts, dtype=np.int64)
    pilot = _drawn(counts, CHOOSING_SHARE * class_counts(counts), rng)
    rest = counts - pilot
    # As much as half a row for every cell speaks for the claim: what was not seen may be possible.
    weight = channel.shape[1] / 2
    presumed = (pilot + weight * channel) / (class_counts(pilot) + weight)[:, None]
    design = design_bounds(class_counts(rest), presumed, PILOT_ALPHA)
    if design is None:
        return by_claim
    by_other_rows = gather_evidence(rest, design, rng, CLAIMED["by other rows"])
    return replace(by_claim, share=CLAIMED["by the claim"], by_other_rows=by_other_rows)


def _drawn(counts: CountTable, rows: npt.NDArray[Any], rng: np.random.Generator) -> IndexArray:
    """Return counts (k, m) of some rows of each label, (k,), drawn without replacement."""
    each = zip(counts, rows.astype(np.int64), strict=True)
    return np.stack(
        [rng.multivariate_hypergeometric(row, n, method="marginals") for row, n in each]
    )


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
    agreeing = (np.trace(pilot) + 0.5) / (pilot.sum() + 1)
    if k != m or agreeing <= 1 / k:
        return None
    symmetric = np.full((k, k), (1 - agreeing) / (k - 1))
    np.fill_diagonal(symmetric, agreeing)
    expected = symmetric * class_counts(pilot)[:, None]
    far = np.sum((pilot - expected) ** 2 / np.maximum(expected, 0.5))
    return symmetric if chi2.sf(far, k * (k - 1) - 1) > 0.05 else None


CANDIDATES = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5)  # from either end
FIXED = (0.03, 0.1, 0.3)  # shares of rows that are tested whatever the rows say


@dataclass(frozen=True, eq=False)
class RankedRows:
    """Rows with a score (n,) that knows nothing of their own released labels; codes (n,)."""

    scores: FloatArray
    truth: IntArray
    released: IntArray


def betraying(channel: FloatArray, sizes: IndexArray) -> BoolArray:
    """Return which outputs are likelier than usual for each label, bool of shape (k, m)."""
    usual = sizes @ channel / max(int(sizes.sum()), 1)
    return np.asarray(channel > usual + 1e-9)


def surprise(rows: RankedRows, betrays: BoolArray) -> FloatArray:
    """Return how much more each row is betrayed than rows of its label are on average."""
    hit = betrays[rows.truth, rows.released].astype(np.float64)
    total = np.bincount(rows.truth, minlength=len(betrays))
    share = np.bincount(rows.truth, weights=hit, minlength=len(betrays)) / np.maximum(total, 1)
    return np.asarray(hit - share[rows.truth])


def subgroup_tests(
    choosing: RankedRows,
    tested: RankedRows,
    labels: tuple[int, int],
    share: float,
    rng: np.random.Generator,
) -> list[BoundEvidence]:
    """Choose groups at the ends of the ranking on some rows, and count them on others.

    ``labels``: the numbers of true and released labels; ``share``: of the error probability. With
    more than 64 labels the chosen group alone is tested: each takes long to plan.
    """

    def edges(shares: tuple[float, ...]) -> list[tuple[int, float]]:
        ends = [
            (sign, np.quantile(sign * choosing.scores, 1 - np.array(shares))) for sign in (1, -1)
        ]
        return [(sign, float(least)) for sign, end in ends for least in end]

    def counted(rows: RankedRows, edge: tuple[int, float]) -> IndexArray:
        inside = edge[0] * rows.scores >= edge[1]
        return label_table(rows.truth[inside], rows.released[inside], *labels)

    factor = len(tested.scores) / max(len(choosing.scores), 1)
    best = max(edges(CANDIDATES), key=lambda edge: _promise(counted(choosing, edge), factor))
    fixed = edges(FIXED) if labels[0] <= 64 else []
    tests = []
    for edge in (best, *fixed):
        part = GROUPS["chosen"] if edge is best else GROUPS["fixed"] / len(fixed)
        counts = counted(tested, edge)
        presumed = presumed_channel(counted(choosing, edge))
        design = design_bounds(class_counts(counts), presumed, PILOT_ALPHA)
        if design is not None:
            tests.append(gather_evidence(counts, design, rng, share * part))
    return tests


def _promise(counts: IndexArray, factor: float) -> float:
    """Return the bound to expect of a group of ``factor`` times as many rows as were counted."""
    # Of more than a dozen labels, the commonest against all others.
    if np.count_nonzero(np.floor(class_counts(counts) * factor)) < 2:
        return -1.0
    if len(counts) > 12:
        label = int(class_counts(counts).argmax())
        counts = np.stack([counts[label], counts.sum(axis=0) - counts[label]])
        output = int(counts[0].argmax())
        counts = np.stack([counts[:, output], counts.sum(axis=1) - counts[:, output]], axis=1)
    sizes = np.floor(class_counts(counts) * factor).astype(np.int64)
    return best_plan(sizes, presumed_channel(counts), DESIGN_ALPHA, score_lower)[1]
