"""Certified lower bounds of ε from true against released labels: the stronger of two methods."""

# Which guess and which event bound ε best, and on which rows, is decided from the true labels'
# frequencies and a presumed channel, before any outcome is seen: so the bounds are valid whatever
# the channel really is. Nine tenths of the error probability go to the method expected to be the
# stronger; the other has the rest, in case the presumption is wrong.

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from scipy.stats import chi2

from ldpaudit.error_budget import CLAIMED, EVENTS, GROUPS, ODDS_RATIO, STRONGEST
from ldpaudit.estimators.epsilon.bounds import (
    CountTable,
    EpsilonBound,
    accuracy_epsilon,
    class_counts,
    epsilon_of_accuracy,
    event_epsilon,
    event_exceeds,
    two_sided_epsilon,
)
from ldpaudit.estimators.intervals.binomial import score_lower, trials_lower
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray, label_table

METHODS = ("accuracy", "two-sided")
SELECTED = ("odds-ratio",)  # for rows that were selected by their released label
DESIGN_ALPHA = 0.05
PILOT_SHARE = 0.1  # of the rows, spent without a claim on learning what to prefer
PILOT_ALPHA = 3e-3  # designs are compared at it then: an event that is rare in few rows is unsure
CHOOSING_SHARE = 1 / 3  # of the rows, which choose what is counted in the others beside a claim
_KEPT_SHARES = 1 / (1 + np.exp(-np.linspace(-4, 4, 33)))
_MOST_OUTPUTS = 64
_FINALISTS = 6  # plans compared by their exact bounds, the best of all by an approximation
_SLACKS = (1e-9, 0.1, 0.25, 0.5)  # from an output's extreme log-probability, shares of the range
_IMPOSSIBLE = 1e-300

LowerBound = Callable[[FloatArray, FloatArray, float], FloatArray]


@dataclass(frozen=True, eq=False)
class AccuracyPlan:
    """A guess of a (merged) label, and the rows on which it is scored."""

    groups: IntArray
    """Int32 array of shape (k,): the group of each label, −1 for a label that is left out."""
    guess: IntArray
    """Int32 array of shape (m,): the group guessed at each output, −1 for none."""
    keep: IndexArray
    """Int64 array of shape (k,): rows of each label to count; which ones is drawn at random."""

    @property
    def sizes(self) -> IndexArray:
        """Rows counted in each group, int64 of shape (g,)."""
        used = self.groups >= 0
        return np.bincount(self.groups[used], weights=self.keep[used]).astype(np.int64)

    @property
    def right(self) -> BoolArray:
        """Which outputs are right for which label, bool of shape (k, m)."""
        return np.asarray((self.groups[:, None] == self.guess) & (self.groups[:, None] >= 0))


def expected_bound(
    correct: FloatArray, sizes: FloatArray, alpha: float, lower: LowerBound = trials_lower
) -> FloatArray:
    """Return the average bound over what the number of right guesses may come out to be.

    Nine equally likely outcomes: a bound that collapses when the accuracy is a little lower than
    expected is no good plan. ``correct`` (...), ``sizes`` (..., g).
    """
    n, nodes = np.sum(sizes, axis=-1), ndtri((np.arange(9) + 0.5) / 9)
    spread = np.sqrt(np.maximum(correct * (1 - correct / n), 0.0))
    outcome = np.floor(correct[..., None] + spread[..., None] * nodes + 0.5)
    level = lower(np.clip(outcome, 0, n[..., None]), n[..., None], alpha)
    groups = np.asarray(sizes, dtype=np.float64)[..., None, :]
    return np.asarray(epsilon_of_accuracy(level, groups).mean(axis=-1))


def best_plan(
    sizes: IndexArray, channel: FloatArray, alpha: float, lower: LowerBound = trials_lower
) -> tuple[AccuracyPlan, float]:
    """Return the plan with the largest expected bound under a presumed channel, and that bound."""
    different = dict[bytes, tuple[IntArray, IntArray]]()
    for option in _partitions(sizes, channel):
        different.setdefault(_named(*option), option)
    options = list(different.values())
    if len(options) > _FINALISTS:
        roughly = [_best_rows(*one, sizes, channel, alpha, score_lower)[1] for one in options]
        options = [options[i] for i in sorted(np.argsort(roughly)[::-1][:_FINALISTS])]
    plans = [_best_rows(*one, sizes, channel, alpha, lower) for one in options]
    best = plans[0]
    for plan in plans[1:]:
        best = plan if plan[1] > best[1] + 1e-9 else best
    return best


def _partitions(sizes: IndexArray, channel: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield groups of labels and guessed groups: every label on its own, then two groups."""
    # For each of the outputs that distinguish labels best, the labels that make it likely against
    # those that do not, by that output alone and by the likelihood ratio of the two groups.
    present = np.flatnonzero(sizes > 0)
    within = channel[present]
    groups = np.full(len(sizes), -1, dtype=np.int32)
    groups[present] = np.arange(len(present))
    yield groups, within.argmax(axis=0).astype(np.int32)
    gain = np.sqrt(within.max(axis=0)) - np.sqrt(within.min(axis=0))
    for z in np.argsort(-gain, kind="stable")[:_MOST_OUTPUTS]:
        if gain[z] <= 0:
            return
        top, bottom = within[:, z] == within[:, z].max(), within[:, z] == within[:, z].min()
        alone = (np.arange(channel.shape[1]) == z).astype(np.int32)
        for one, other in ((top, bottom), (top, ~top), (~bottom, bottom)):
            groups = _pair(sizes, present, one, other)
            yield groups, alone
            of = [groups == g for g in (0, 1)]
            rows = [sizes[g] @ channel[g] / sizes[g].sum() for g in of]
            likelier = (rows[1] > rows[0]).astype(np.int32)
            if not np.array_equal(likelier, alone):
                yield groups, likelier


def _named(groups: IntArray, guess: IntArray) -> bytes:
    """Return a key that stays when two groups change their names: their expected bounds are one."""
    both = np.concatenate([groups, guess])
    swapped = groups.max() == 1 and both[both >= 0][0] == 1
    return np.where(swapped & (both >= 0), 1 - both, both).tobytes()


def _pair(sizes: IndexArray, present: IndexArray, one: BoolArray, other: BoolArray) -> IntArray:
    groups = np.full(len(sizes), -1, dtype=np.int32)
    groups[present[other]], groups[present[one]] = 0, 1
    return groups


def _best_rows(
    groups: IntArray,
    guess: IntArray,
    sizes: IndexArray,
    channel: FloatArray,
    alpha: float,
    lower: LowerBound,
) -> tuple[AccuracyPlan, float]:
    """Return the rows of each label that bound ε best by a guess, and the expected bound."""
    member = (groups[:, None] == np.arange(groups.max() + 1)).astype(np.float64)
    totals = sizes @ member
    if len(totals) == 2:
        # Every share of the first group, with as many rows as the two groups allow.
        shares = np.stack([_KEPT_SHARES, 1 - _KEPT_SHARES], axis=1)
        thinned = (totals / shares).min(axis=1, keepdims=True) * shares / totals
    else:
        thinned = np.minimum(totals, np.geomspace(totals.min(), totals.max(), 24)[:, None]) / totals
    fractions = np.concatenate([np.ones((1, len(totals))), np.minimum(thinned, 1.0)])
    keep = np.floor(fractions @ member.T * sizes + 1e-9)
    right = (groups[:, None] == guess) & (groups[:, None] >= 0)
    grouped, correct = keep @ member, keep @ (channel * right).sum(axis=1)
    usable, values = (grouped > 0).all(axis=1), np.full(len(keep), -np.inf)
    values[usable] = expected_bound(correct[usable], grouped[usable], alpha, lower)
    best = int(values.argmax())
    return AccuracyPlan(groups, guess, keep[best].astype(np.int64)), float(values[best])


@dataclass(frozen=True, eq=False)
class EventPlan:
    """Two groups of labels and the event that is to distinguish them, fixed beforehand."""

    groups: IntArray
    """Int32 array of shape (k,): 1 for labels that make the event likelier, 0 for the others, −1
    for labels left out."""
    guess: IntArray
    """Int32 array of shape (m,): 1 for the outputs of the event, 0 for all others, −1 for outputs
    left out (with share 0)."""
    share: float
    """Of the error probability, for how often the event happens in group 0. With 0 only the odds
    ratio is bounded."""

    def table(self, counts: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the rows of each group without and with the event, shape (..., 2, 2)."""
        outputs = np.stack([counts[..., self.guess == g].sum(axis=-1) for g in (0, 1)], axis=-1)
        return np.stack([outputs[..., self.groups == g, :].sum(axis=-2) for g in (0, 1)], axis=-2)

    def epsilon(self, tables: npt.NDArray[Any], alpha: float) -> FloatArray:
        """Bound ε at level 1 − alpha from tables of :meth:`table`.

        An odds ratio is that of rows that are alike: of single labels.
        """
        if self._single:
            return event_epsilon(tables, self.share, alpha)
        return two_sided_epsilon(tables[..., 1], tables.sum(axis=-1), alpha)

    def exceeds(self, tables: npt.NDArray[Any], alpha: float, limit: float) -> BoolArray:
        """Return whether :meth:`epsilon` is above a limit ≥ 0, bool (...), for simulations."""
        if self._single:
            return event_exceeds(tables, self.share, alpha, limit)
        return np.asarray(self.epsilon(tables, alpha) > limit)

    @property
    def _single(self) -> bool:
        return bool(np.count_nonzero(self.groups == 0) == 1 == np.count_nonzero(self.groups == 1))


def odds_ratio_plan(sizes: IndexArray, channel: FloatArray) -> EventPlan:
    """Return the odds ratio of the two commonest labels and the two outputs that suit it best."""
    one, zero = np.argsort(-sizes, kind="stable")[:2]
    apart = channel[one] - channel[zero]
    groups, guess = (np.full(size, -1, np.int32) for size in channel.shape)
    groups[zero], groups[one], guess[apart.argmin()], guess[apart.argmax()] = 0, 1, 0, 1
    return EventPlan(groups, guess, 0.0)


def best_event(sizes: IndexArray, channel: FloatArray, alpha: float) -> tuple[EventPlan, float]:
    """Return the plan with the largest bound to be expected under a presumed channel, and that."""
    best = odds_ratio_plan(sizes, channel), 0.0
    if (best[0].guess >= 0).all():
        table = best[0].table(sizes[:, None] * channel)
        best = best[0], float(_expected_event(table[:, 1], table.sum(axis=1), 0.0, alpha))
    found = list(_groups(sizes, channel))
    if not found:
        return best
    groups = np.unique(np.stack(found), axis=0)
    member = groups == np.array([1, 0])[:, None, None]
    # The outputs of largest likelihood ratio, as many as are best: arrays (2, pairs, outputs).
    rows = np.where(member, sizes, 0).sum(axis=2, dtype=np.float64)[:, :, None]
    hits = np.where(member, sizes, 0) @ channel
    ratios = hits[0] / rows[0] / np.maximum(hits[1] / rows[1], _IMPOSSIBLE)
    order = np.argsort(-ratios, axis=1, kind="stable")
    hits = np.cumsum(np.take_along_axis(hits, order[None], axis=2), axis=2)[::-1, :, :-1]
    single = (member.sum(axis=2) == 1).all(axis=0)[:, None]
    for share in EVENTS:
        pairs: Any = -np.inf if share < EVENTS[-1] else _expected_rates(hits, rows[::-1], alpha)
        values = np.where(single, _expected_event(hits, rows[::-1], share, alpha), pairs)
        place, last = np.unravel_index(values.argmax(), values.shape)
        if values[place, last] > best[1] + 1e-9:
            guess = np.zeros(channel.shape[1], np.int32)
            guess[order[place, : last + 1]] = 1
            best = EventPlan(groups[place], guess, share), float(values[place, last])
    return best


def _groups(sizes: IndexArray, channel: FloatArray) -> Iterator[IntArray]:
    """Yield pairs of groups of labels, int32 of shape (k,), that some output may distinguish."""
    # Of each output the labels of extreme probability, those that are surely so although few rows
    # were seen of them, and those near to the extremes.
    present = np.flatnonzero(sizes > 0)
    within = channel[present]
    logs = np.log(np.maximum(within, np.maximum(within.max(axis=0) * 1e-6, _IMPOSSIBLE)))
    unsure = 1.7 / np.sqrt(sizes[present, None] * within + 0.5)
    high, low = logs.max(axis=0), logs.min(axis=0)
    surest = (logs - unsure).argmax(axis=0), (logs + unsure).argmin(axis=0)
    worth = (logs - unsure).max(axis=0) - (logs + unsure).min(axis=0)
    for z in np.argsort(-worth, kind="stable")[:_MOST_OUTPUTS]:
        spread, column = high[z] - low[z], logs[:, z]
        if spread <= _SLACKS[0]:
            continue
        top, bottom = column >= high[z] - _SLACKS[0], column <= low[z] + _SLACKS[0]
        one, other = (np.arange(len(present)) == end[z] for end in surest)
        pairs = [(one, other), (top, ~top), (~bottom, bottom)]
        for slack in _SLACKS:
            likely = column >= high[z] - slack * spread
            pairs.append((likely, ~likely & (column <= low[z] + slack * spread)))
        for one, other in pairs:
            groups = _pair(sizes, present, one, other)
            if (groups == 0).any() and (groups == 1).any():
                yield groups


def _expected_event(hits: FloatArray, rows: FloatArray, share: float, alpha: float) -> FloatArray:
    """Return about what the event's bound will be; the first axis is label 0, label 1."""
    x, y = hits + 0.5, rows - hits + 0.5
    theta = np.log(x[1]) + np.log(y[0]) - np.log(x[0]) - np.log(y[1])
    theta = theta + ndtri((1 - share) * alpha) * np.sqrt((1 / x + 1 / y).sum(axis=0))
    if share == 0:
        return np.asarray(theta / 2)
    spread = np.sqrt(y[0] / (x[0] * (x[0] + y[0])))
    often = np.minimum(x[0] / (x[0] + y[0]) * np.exp(-ndtri(share * alpha) * spread), 1 - 1e-12)
    return np.asarray(-np.logaddexp(np.log1p(-often) - theta, np.log(often)))


def _expected_rates(hits: FloatArray, rows: FloatArray, alpha: float) -> FloatArray:
    """Return about what the bound from the two rates will be."""
    x, y = hits + 0.5, rows - hits + 0.5
    ratio = np.log(x[1] / (x[1] + y[1])) - np.log(x[0] / (x[0] + y[0]))
    return np.asarray(ratio + ndtri(alpha / 2) * np.sqrt(y / (x * (x + y))).sum(axis=0))


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


# Groups of rows whose labels come through too often, or too rarely.

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
