"""Lower bounds of ε of several answers of each person: added up, and all answers as one.

Answers with noise of their own add up. All answers as one code hold however the noise of the
answers goes together, and need few values: of many columns each pair is counted.

Columns add up by their own bounds: each at level 1 − α_j gives a p-value of "ε_j is at most e", the
smallest α_j whose bound exceeds e. For independent evidence −Σ log p_j is at most a quantile of
χ²/2 with 2d degrees of freedom (Fisher 1932), and the sum of ε is at least the smallest sum of
bounds with Σ −log α_j up to that quantile. At five columns that costs about half of what equal
shares of the error would.

Releases of one label add up by events fixed beforehand, one for each: a_t is its chance among
people of one true label y, b_t its mean chance among people of all others. With D_t(y → y') the
largest log-ratio of release t, that of all releases is Σ_t D_t(y → y') for a product channel:

- *rates*: Σ_t log a_t − Σ_t log b_t; the mean over the other labels is no larger than the largest
  of them (Jensen), and Σ_t log b_t ≤ T log b̄.
- *accuracy*: the mean of D_t in both directions is at least the logit of p_t = (1 + a_t − b_t)/2
  (with d₀ + d₁ fixed the total variation is largest at d₀ = d₁, where it is tanh(d/2)), and the
  logit above 1/2 is convex: Σ_t logit(p_t) ≥ T logit(p̄).

Counts are sums of independent indicators, so Clopper–Pearson bounds hold (Hoeffding 1956): rows
must be independent, and given the true labels so must be the releases of one row.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, islice
from math import prod
from typing import Final, Literal, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import binom, chi2

from ldpaudit.arrays import BoolArray
from ldpaudit.doors import FloatArray, IndexArray, IntArray
from ldpaudit.error_budget import Split
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.extras.several.files import Noise
from ldpaudit.extras.several.merging import merged_columns
from ldpaudit.release import label_table

# The most probabilities of a product of channels; a larger one is not written out.
LARGEST: Final = 1 << 20
# Answers as codes 0 … size − 1, int64 (n,); size; the presumed channel of the codes, (k, size).
Coded = tuple[IndexArray, int, FloatArray | None]


def coded_fresh(channels: Sequence[FloatArray], released: IntArray) -> Coded:
    """Code answers, int32 (n, t), by their likelihoods under fresh noise in channels (k, m).

    Answers with the same likelihood ratios of all labels have one code: of eight releases by binary
    randomized response it is the number of ones. Where the product is too large, the code is the
    likeliest label, and whether all answers name it; its channel is not written out.
    """
    possible = [_possible(channel) for channel in channels]
    matrix, codes = np.ones((len(channels[0]), 1)), np.zeros(len(released), dtype=np.int64)
    for channel, answers in zip(possible, released.T, strict=True):
        k, m = channel.shape
        if k * matrix.shape[1] * m > LARGEST:
            votes = log_likelihoods(possible, released).argmax(axis=1)
            named = [c.argmax(axis=0)[a] for c, a in zip(possible, released.T, strict=True)]
            unanimous = (np.stack(named, 1) == votes[:, None]).all(axis=1)
            return (2 * votes + unanimous).astype(np.int64), 2 * k, None
        matrix, group = merged_columns((matrix[:, :, None] * channel[:, None, :]).reshape(k, -1))
        codes = group[codes * m + answers]
    return codes, matrix.shape[1], matrix / matrix.sum(axis=1, keepdims=True)


def coded_remembered(channel: FloatArray, released: IntArray) -> Coded:
    """Code answers by the one that was remembered; those that differ have a code of their own."""
    k, m = channel.shape
    same = (released == released[:, :1]).all(axis=1)
    codes = np.where(same, released[:, 0], m).astype(np.int64)
    return codes, m + 1, _possible(np.hstack([channel, np.zeros((k, 1))]))


def log_likelihoods(channels: Sequence[FloatArray], released: IntArray) -> FloatArray:
    """Return log P(answers | label) under fresh noise, float64 of shape (n, k)."""
    total = np.zeros((len(released), len(channels[0])))
    for channel, answers in zip(channels, released.T, strict=True):
        total += np.log(_possible(channel)).T[answers]
    return total


def estimated_prior(logs: FloatArray) -> FloatArray:
    """Return the labels' frequencies (k,) under which answers, by log P (n, k), are likeliest.

    Expectation maximisation from equal frequencies; no true label is looked at.
    """
    kinds, people = np.unique(np.round(logs, 9), axis=0, return_counts=True)
    likely = np.exp(kinds - kinds.max(axis=1, keepdims=True))
    prior = np.full(logs.shape[1], 1 / logs.shape[1])
    for _ in range(200):
        posterior = likely * prior
        posterior /= posterior.sum(axis=1, keepdims=True)
        prior = people @ posterior / len(logs)
    return prior


def guesses(channels: Sequence[FloatArray], released: IntArray, prior: FloatArray) -> IntArray:
    """Return each person's likeliest label, int32 (n,); ``prior``: of all (k,) or each (n, k)."""
    logs = np.log(np.maximum(prior, 1e-300))
    if channels:
        logs = logs + log_likelihoods(channels, released)
    return np.asarray(
        np.broadcast_to(logs, (len(released), logs.shape[-1])).argmax(axis=1), np.int32
    )


def best_guess(channels: Sequence[FloatArray]) -> float | None:
    """Return how often the best guess of equally likely labels is right; None if too large."""
    *_, matrix = coded_fresh(channels, np.zeros((0, len(channels)), dtype=np.int32))
    return None if matrix is None else float(matrix.max(axis=0).sum() / len(matrix))


def _possible(channel: FloatArray) -> FloatArray:
    # What is claimed to be impossible counts as this unlikely.
    lifted = np.maximum(channel, 1e-9)
    return np.asarray(lifted / lifted.sum(axis=1, keepdims=True))


# Whether each release draws again, or repeats the answer for a label that did not change.
# From an error probability to a lower bound of ε at that level: no larger for a smaller one.
AtLevel = Callable[[float], float]
# Where answers are added up and counted as one code, too.
ADDED: Final = Split({"added": 0.8, "one code": 1 - 0.8})
# Of all answers as one code, by what is claimed of the noise; adding up has the rest.
_CODES: Final[Mapping[Noise | None, Split[Noise]]] = {
    "fresh": Split({"fresh": ADDED["one code"]}),
    "remembered": Split({"remembered": 1.0}),
    None: Split({"fresh": 0.1, "remembered": 0.3}),
}
_MOST_CELLS: Final = 2_500  # of a table of true and released codes of several columns
MOST_PAIRS: Final = 30  # pairs of columns that are looked at together
STEPS: Final = 48  # steps of −log α in a sum; they are rounded to the side that makes it smaller
# Bounds are asked for up to this error probability: they hold at any larger one, too.
LARGEST_LEVEL: Final = 0.25
_SAME: Final = 1e-9
Way = Literal["rates", "accuracy"]


class Tally(NamedTuple):
    """How often the event of each release was seen, int64 (t,), and how many rows were counted.

    ``inside`` among rows of the label, ``outside`` among those of all others.
    """

    inside: IndexArray
    outside: IndexArray
    rows: tuple[int, int]


@dataclass(frozen=True, eq=False)
class AddedPlan:
    """What is counted in each release, fixed without a look at what was released."""

    way: Way
    label: int
    events: tuple[BoolArray, ...]
    """Of each release the outputs that speak for one label against all others, bool (m,)."""
    groups: IndexArray
    """Releases with the same presumed channel have one code, int64 (t,), and share their counts."""

    def tally(self, labels: IntArray, released: IntArray, rng: np.random.Generator) -> Tally:
        """Count the events; ``labels`` (n,), ``released`` (n, t); for accuracy in equal halves."""
        sides = [np.flatnonzero(labels == self.label), np.flatnonzero(labels != self.label)]
        if self.way == "accuracy":
            half = min(map(len, sides))
            sides = [rng.permutation(side)[:half] for side in sides]
        hits = np.stack([e[a] for e, a in zip(self.events, released.T, strict=True)], axis=1)
        inside, outside = (hits[side].sum(axis=0).astype(np.int64) for side in sides)
        return Tally(inside, outside, (len(sides[0]), len(sides[1])))

    def bound(self, tally: Tally, alpha: float) -> EpsilonBound:
        """Return the lower bound of ε of all releases at level 1 − alpha, in nats."""
        (n, rest), epsilon = tally.rows, 0.0
        parts = [np.flatnonzero(self.groups == group) for group in np.unique(self.groups)]
        if min(n, rest) == 0:
            return EpsilonBound(0.0, alpha, 0, self.way)
        if self.way == "rates":
            low = trials_lower(tally.inside, n, alpha / (2 * len(self.groups)))
            level = alpha / (2 * len(parts))
            highs = [
                float(trials_upper(tally.outside[p].sum(), rest * len(p), level)) for p in parts
            ]
            if (low > 0).all():
                others = math.fsum(len(p) * math.log(q) for p, q in zip(parts, highs, strict=True))
                epsilon = float(np.log(low).sum()) - others
        else:
            right = tally.inside + n - tally.outside
            for part in parts:
                hits, trials = int(right[part].sum()), 2 * n * len(part)
                share = float(trials_lower(hits, trials, alpha / len(parts)))
                if share > 0.5:
                    epsilon += len(part) * (math.log(share) - math.log1p(-share))
        return EpsilonBound(max(epsilon, 0.0), alpha, n + rest, self.way)

    def expected(self, channels: Sequence[FloatArray], sizes: IndexArray, alpha: float) -> float:
        """Return the bound at the expected counts, in nats."""
        others = np.where(np.arange(len(sizes)) == self.label, 0, sizes)
        n, rest = int(sizes[self.label]), int(others.sum())
        if self.way == "accuracy":
            n = rest = min(n, rest)
        shares = others / max(others.sum(), 1)
        chances = [c[:, e].sum(axis=1) for c, e in zip(channels, self.events, strict=True)]
        a = np.clip([chance[self.label] for chance in chances], 0, 1)
        b = np.clip([shares @ chance for chance in chances], 0, 1)
        inside, outside = binom.ppf(0.5, n, a), binom.isf(0.5, rest, b)
        tally = Tally(inside.astype(np.int64), outside.astype(np.int64), (n, rest))
        return self.bound(tally, alpha).epsilon


def added_plan(sizes: IndexArray, channels: Sequence[FloatArray]) -> AddedPlan | None:
    """Return the plan with the largest bound to expect; None where one label has all rows.

    ``sizes``, int64 (k,): people of each true label; ``channels``, (k, m): the presumed ones.
    """
    if np.count_nonzero(sizes) < 2:
        return None
    groups, plans = np.arange(len(channels)), []
    for place, one in enumerate(channels):
        same = (
            j
            for j, other in enumerate(channels[: place + 1])
            if one.shape == other.shape and np.allclose(one, other, rtol=0, atol=_SAME)
        )
        groups[place] = groups[next(same)]
    for label in np.argsort(-sizes, kind="stable")[:16]:
        if sizes[label] == 0:
            continue
        others = np.where(np.arange(len(sizes)) == label, 0, sizes)
        average = [others @ channel / others.sum() * (1 + _SAME) for channel in channels]
        events = tuple(c[label] > mean for c, mean in zip(channels, average, strict=True))
        plans += [AddedPlan(way, int(label), events, groups) for way in ("accuracy", "rates")]
    return max(plans, key=lambda plan: plan.expected(channels, sizes, 0.025))


@dataclass(frozen=True, eq=False)
class AnswersEvidence:
    """What was counted of several answers of each person: a bound at any level."""

    added: tuple[Callable[[float], EpsilonBound], ...]
    """What adds up, in each stratum; empty where the noise is not independent."""
    codes: tuple[BoundEvidence, ...]
    """All answers as one code, or each pair of columns, in each stratum."""
    weights: tuple[float, ...]
    """The shares of ``codes`` in the error probability; ``added`` has the rest, in equal shares."""

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the strongest bound at level 1 − alpha, in nats."""
        bounds = [e.bound(alpha * w) for e, w in zip(self.codes, self.weights, strict=True)]
        if self.added:
            bounds.append(self.added_up(alpha * (1 - sum(self.weights))))
        return replace(_largest(bounds), alpha=alpha)

    def epsilon(self, alpha: float) -> float:
        """Return that bound as a number, in nats."""
        return self.bound(alpha).epsilon

    def added_up(self, alpha: float) -> EpsilonBound:
        """Return the largest bound of what adds up, in any stratum, at its own level."""
        return _largest([one(alpha / len(self.added)) for one in self.added])

    def as_one(self, alpha: float) -> EpsilonBound:
        """Return the largest bound that holds however the noise goes together, at its own level."""
        every, found = sum(self.weights), zip(self.codes, self.weights, strict=True)
        return _largest([e.bound(alpha * w / every) for e, w in found])

    def without_sums(self, *, all_of_it: bool = False) -> "AnswersEvidence | None":
        """Return the same where the noise is not independent.

        Codes keep their shares, or have ``all_of_it``: the share of what is not added up, too.
        """
        every = sum(self.weights) if all_of_it else 1.0
        weights = tuple(weight / every for weight in self.weights)
        return replace(self, added=(), weights=weights) if self.codes else None


def columns_evidence(
    strata: Sequence[Sequence[BoundEvidence | None]], codes: Sequence[BoundEvidence]
) -> AnswersEvidence | None:
    """Return the evidence of private columns; None where nothing was counted.

    ``strata``: in each stratum that of each column, where their noise is claimed to be independent;
    ``codes``: of all columns as one code.
    """

    def summed(columns: Sequence[BoundEvidence]) -> Callable[[float], EpsilonBound]:
        rows = min(int(one.counts.sum()) for one in columns)
        bounds = [cache(lambda alpha, one=one: one.bound(alpha).epsilon) for one in columns]
        return lambda alpha: EpsilonBound(sum_lower(bounds, alpha), alpha, rows, "added")

    added = tuple(summed([e for e in own if e]) for own in strata if own and all(own))
    weight = (ADDED["one code"] if added else 1.0) / max(len(codes), 1)
    found = AnswersEvidence(added, tuple(codes), (weight,) * len(codes))
    return found if added or codes else None


def column_codes(
    labels: IntArray,
    released: IntArray,
    sizes: Sequence[tuple[int, int]],
    channel: FloatArray | None,
    rng: np.random.Generator,
) -> Iterator[BoundEvidence]:
    """Yield what bounds ε of the columns of a stratum as one label, or of each pair of them.

    ``labels``, ``released``: int32 (n, d); ``sizes``: how many labels and outputs each column has;
    ``channel``: that of all columns as one label; None: a pilot shows what to count.
    """

    def cells(places: tuple[int, ...]) -> int:
        return prod(sizes[place][0] * sizes[place][1] for place in places)

    subsets = [tuple(range(len(sizes)))]
    if cells(subsets[0]) > _MOST_CELLS:
        pairs = (pair for pair in combinations(subsets[0], 2) if cells(pair) <= _MOST_CELLS)
        subsets, channel = list(islice(pairs, MOST_PAIRS)), None
    for subset in subsets:
        ks, ms = zip(*(sizes[place] for place in subset), strict=True)
        true = np.ravel_multi_index(tuple(labels[:, subset].T), ks)
        seen = np.ravel_multi_index(tuple(released[:, subset].T), ms)
        table = label_table(np.asarray(true), np.asarray(seen), prod(ks), prod(ms))
        evidence = epsilon_evidence(table, channel, rng)
        if evidence is not None:
            yield evidence


def releases_evidence(
    labels: IntArray,
    released: IntArray,
    channels: Sequence[FloatArray],
    noise: Noise | None,
    rng: np.random.Generator,
) -> AnswersEvidence | None:
    """Count what bounds ε of several releases of people whose true label did not change.

    ``labels``: int32 (n,); ``released``: int32 (n, t); ``channels``: the presumed ones, (k, m),
    which choose what is counted and are not relied on; ``noise``: what is claimed of it. None where
    fewer than two labels occur.
    """
    k, codes, weights = len(channels[0]), [], []
    for name, share in _CODES[noise].items():
        if name == "remembered" and len({c.shape for c in channels}) > 1:
            continue
        if name == "fresh":
            answers, size, channel = coded_fresh(channels, released)
        else:
            answers, size, channel = coded_remembered(channels[0], released)
        evidence = epsilon_evidence(label_table(labels, answers, k, size), channel, rng)
        if evidence is not None:
            codes.append(evidence)
            weights.append(share)
    if not codes:
        return None
    sizes = np.bincount(labels, minlength=k).astype(np.int64)
    plan = None if noise == "remembered" else added_plan(sizes, channels)
    if plan is None:
        return AnswersEvidence((), tuple(codes), tuple(weights))
    tally = plan.tally(labels, released, rng)
    return AnswersEvidence((lambda a: plan.bound(tally, a),), tuple(codes), tuple(weights))


def sum_lower(bounds: Sequence[AtLevel], alpha: float) -> float:
    """Return a lower bound of the sum of several quantities at level 1 − alpha, one-sided.

    What the bounds were computed from is independent. One bound alone stays itself; the sum is
    never below what equal shares of alpha (Bonferroni) would prove by more than rounding.

    References
    ----------
    Fisher (1932), Statistical Methods for Research Workers, section 21.1.
    """
    if len(bounds) == 1:
        return bounds[0](alpha)
    step = float(chi2.isf(alpha, 2 * len(bounds))) / 2 / STEPS
    # Each −log α_j is rounded up: together they then may exceed the total by a step each.
    levels = [min(math.exp(-at * step), LARGEST_LEVEL) for at in range(STEPS + len(bounds) + 1)]
    least = np.zeros(len(levels))
    for bound in bounds:
        known = {level: bound(level) for level in set(levels)}
        values = np.array([known[level] for level in levels])
        values = np.maximum.accumulate(values[::-1])[::-1]
        sums = [np.min(least[: t + 1] + values[: t + 1][::-1]) for t in range(len(levels))]
        least = np.minimum.accumulate(np.array(sums))
    return float(least[-1])


def detectable_excess(bound: AtLevel, limit: float, power: float) -> AtLevel:
    """Return about the smallest excess over a claim that is found, by the error probability.

    ``bound`` is that of a release simulated as claimed, and stays below the claim by about z_α
    standard errors; what lies z_α + z_β of them above is found with probability ``power`` = 1 − β.
    Infinite where the bound stays too far below for that.
    """

    def excess(alpha: float) -> float:
        quantile, found = -ndtri(alpha), bound(alpha)
        # A bound that stays below a claim by more than this share of it says nothing of an excess.
        if limit - found > 0.7 * limit:
            return math.inf
        # The simulated bound may have come out near the claim by chance, or above it.
        usual, loose = 0.0, LARGEST_LEVEL
        if alpha < loose:
            usual = (bound(loose) - found) * quantile / (quantile + ndtri(loose))
        return float(max(limit - found, usual) * (1 + ndtri(power) / quantile))

    return excess


def _largest(bounds: Sequence[EpsilonBound]) -> EpsilonBound:
    return max(bounds, key=lambda bound: bound.epsilon)
