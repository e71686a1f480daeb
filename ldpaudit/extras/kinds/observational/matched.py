"""Certified lower bounds of ε for channels that may depend on the features: rows with equal ones.

Two rows with the same features went through the same channel, whatever that channel is. In every
group of such rows one label is the target; each of its rows (a case) is matched with the same
number r of rows of other labels (controls), all of the group. Cases and controls then have the same
mix of channels, so the average channel of the cases, Ā, and that of the controls, C̄, satisfy
Ā(S) ≤ e^ε C̄(S) for every event S, also one that differs from group to group. What is certified of
the two averages is certified of the largest ε of any channel used. Neither the channels nor the
labels' probabilities given the features need be known.

The outcomes are independent given features and true labels, but not identically distributed; the
binomial bounds hold for their averages by Hoeffding's theorem.

References
----------
Hoeffding (1956), On the distribution of the number of successes in independent trials, Theorem 5.
Kalemaj et al. (2025): a true label against one re-drawn given the features; here the re-drawn one
is that of another person with the same features, which is exactly as probable.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.arrays import stable_order
from ldpaudit.doors import FloatArray, IndexArray, IntArray, shift_lower
from ldpaudit.error_budget import Split
from ldpaudit.estimators.epsilon.bounds import GroupTest, Method
from ldpaudit.estimators.intervals.binomial import shift_upper, trials_lower, trials_upper
from ldpaudit.release import BoolArray

RATIOS: Final = (1, 4, 16)  # controls per case: many where the target label is rare
_MATCHINGS: Final = Split({"designed": 0.75, "others": 0.25})
# Of the others: each matching's two rates, in equal parts, and accuracy with one control per case.
_OTHERS: Final = Split({"two-sided": 0.5, "accuracy": 0.5})


@dataclass(frozen=True)
class Matching:
    """Cases and controls, fixed by features and true labels alone."""

    ratio: int
    """Controls per case, r."""
    cases: IndexArray
    """Int64 array of shape (m,): rows with their group's target label."""
    controls: IndexArray
    """Int64 array of shape (m · r,): rows with other labels: r for each case, of the same group."""
    targets: IntArray
    """Int32 array of shape (g,): the target label of each group, −1 for a group without cases."""

    def table(self, event: BoolArray) -> IndexArray:
        """Return how many controls and cases are without and with an event (n,), int64 (2, 2).

        The event of each row depends on its released label and its group's target label.
        """
        rows = event[self.controls], event[self.cases]
        return np.array([[np.sum(~part), np.sum(part)] for part in rows])


def match(
    groups: IndexArray, labels: IntArray, k: int, ratio: int, rng: np.random.Generator
) -> Matching:
    """Match rows with equal features, the group of each row 0 … g − 1 and its true label 0 … k − 1.

    In each group the target is the label with most cases that find r controls each.
    """
    group, label, able = possible_cases(groups, labels, k, ratio)
    best = np.lexsort((label, able))[np.sort(able) > 0]  # Later entries win: the most cases.
    return _matching(groups, labels, group[best], label[best], able[best], ratio, rng)


def _matching(
    groups: IndexArray,
    labels: IntArray,
    group: IndexArray,
    label: IndexArray,
    able: IndexArray,
    ratio: int,
    rng: np.random.Generator,
) -> Matching:
    """Match so many cases of some groups' target labels with r controls each, at random."""
    n_groups = int(groups.max(initial=-1)) + 1
    targets, wanted = np.full(n_groups, -1, dtype=np.int32), np.zeros(n_groups, dtype=np.int64)
    targets[group], wanted[group] = label, able
    order = rng.permutation(len(labels))
    is_case = labels == targets[groups]

    def first_of_each(rows: IndexArray, most: IndexArray) -> IndexArray:
        ordered = rows[stable_order(groups[rows])]
        own = groups[ordered]
        place = np.arange(len(own)) - np.searchsorted(own, own, side="left")
        return np.asarray(ordered[place < most[own]], dtype=np.int64)

    cases = first_of_each(order[is_case[order]], wanted)
    others = first_of_each(order[~is_case[order]], ratio * wanted)
    return Matching(ratio, cases, others, targets)


def possible_cases(
    groups: IndexArray, labels: IntArray, k: int, ratio: int
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return group, label and number of cases that find r controls each, where the label occurs."""
    present, counts = np.unique(groups * k + labels, return_counts=True)
    group, label = np.divmod(present, k)
    sizes = np.bincount(groups)
    return group, label, np.minimum(counts, (sizes[group] - counts) // ratio)


def matched_tests(
    counts: Sequence[tuple[IndexArray, float | None]],
    designed: tuple[IndexArray, float | None] | None = None,
) -> list[GroupTest]:
    """Return the tests of several matchings' tables, with their shares, independent of the counts.

    ``counts``: with the mean probability that the claim gives the event among the cases, where it
    is known. ``designed``: of :func:`designed_matching`; it has most of the error
    probability. Half of the rest is for the accuracy of the matching with one control per case.
    """

    def test(part: tuple[IndexArray, float | None], method: Method, share: float) -> GroupTest:
        return GroupTest(part[0], np.arange(2, dtype=np.int32), share, method, method, part[1])

    left, tests = 1.0, list[GroupTest]()
    if designed is not None:
        left = _MATCHINGS["others"]
        tests = [test(designed, "two-sided", _MATCHINGS["designed"])]
    of_rates, of_accuracy = (_OTHERS.of(left, part) for part in ("two-sided", "accuracy"))
    some = [part for part in counts if part[0][1].any()]
    tests += [test(part, "two-sided", of_rates / max(len(counts), 1)) for part in some]
    equal = [part for part in some if part[0][0].sum() == part[0][1].sum()]
    return tests + [test(part, "accuracy", of_accuracy) for part in equal]


def designed_matching(
    groups: IndexArray,
    labels: IntArray,
    scores: FloatArray,
    noise: float,
    rng: np.random.Generator,
) -> Matching | None:
    """Match rows with equal features where the target label is improbable.

    Model-based randomized response keeps a label with probability 1 − λ (``noise``) and else draws
    it from P̂(y | x). Among cases the target is released with probability 1 − λ + λp̄, among controls
    with λp̄, p̄ being the average of P̂(target | x): the smaller p̄, the larger the ε that the two
    rates show, but the fewer cases. Groups are chosen for the largest bound that is to be expected;
    the choice uses features and true labels alone, so a bound from the chosen rows is valid without
    correction. ``scores``: what P̂(y | x) of each group is thought to be, float64 of shape (g, k),
    not computed from released labels. None below 20 cases and 5 expected hits.
    """
    plans = []
    for ratio in RATIOS:
        group, label, able = possible_cases(groups, labels, scores.shape[1], ratio)
        useful = np.flatnonzero(able > 0)
        order = useful[np.argsort(scores[group, label][useful], kind="stable")]
        # Each group's least probable label that has cases, the least probable first.
        order = order[np.sort(np.unique(group[order], return_index=True)[1])]
        cases = np.cumsum(able[order])
        chance = np.cumsum(able[order] * scores[group, label][order]) / cases
        value = np.append(expected_two_sided(cases, chance, ratio, noise), -math.inf)
        best = order[: int(value.argmax()) + 1]
        plans.append((float(value.max()), group[best], label[best], able[best], ratio))
    promise, group, label, able, ratio = max(plans, key=lambda plan: plan[0])
    if promise == -math.inf:
        return None
    return _matching(groups, labels, group, label, able, ratio, rng)


def expected_two_sided(
    cases: IndexArray, chance: FloatArray, ratio: int, noise: float
) -> FloatArray:
    """Return about the two-sided bound to be expected; −∞ below 20 cases or 5 hits of controls.

    Each of the two rates loses 2.2 normal deviations to its confidence bound, about.
    """
    hit, false = 1 - noise + noise * chance, noise * chance
    controls = ratio * cases
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt((1 - hit) / (hit * cases)) + np.sqrt((1 - false) / (false * controls))
        value = np.log(hit / false) - 2.2 * spread
    return np.where((cases >= 20) & (false * controls >= 5.0), value, -math.inf)


@dataclass(frozen=True)
class ModelBasedFamily:
    """Model-based randomized response of one model and floor, whatever its λ: what power is for.

    A row in which the model gives the released label the probability p has the ratio 1 + (1 −
    λ)/(λp), and the worst one that the floor allows has 1 + (1 − λ)/(λf) = e^ε. So at another ε'
    of the same family the rows at hand show 1 + (e^ε' − 1)·f/p.
    ``floor``: f in (0, 1/k], the least probability that a label is drawn with.
    """

    floor: float

    def noise(self, epsilon: float) -> float:
        """Return λ at which the worst row has ``epsilon``, in nats."""
        return 1 / (1 + self.floor * math.expm1(epsilon))

    def shift(self, epsilon: float, chance: FloatArray | float) -> FloatArray:
        """Return the log ratio of rows whose label has the probability ``chance`` in the model."""
        return np.asarray(np.log1p(math.expm1(epsilon) * self.floor / chance))

    def blind_up_to(self, epsilon: float, chance: float) -> float:
        """Return the ε' at which such rows show ``epsilon``, however many they are."""
        return math.log1p(math.expm1(epsilon) * chance / self.floor)

    def outputs(self, epsilon: float, chance: float) -> FloatArray:
        """Return how often controls and cases are without and with the event, shape (2, 2)."""
        noise = self.noise(epsilon)
        false = noise * chance
        hit = 1 - noise + false
        return np.array([[1 - false, false], [1 - hit, hit]])


def target_chance(test: GroupTest, alpha: float) -> float:
    """Return p̄ of matched rows: as given, or the less informative end of its interval.

    The rates A of the target among cases and C among controls differ by 1 − λ, so that
    p̄ = C/(1 − A + C) whatever λ is: this trusts no claim. ``alpha`` is the error probability of
    either end of the interval. Where the p̄ given lies outside, it is of all values inside the one
    nearest to one half, at which the bounds of ε find least.
    """
    hits, sizes = test.table[:, 1], test.sizes

    def drawn(rates: FloatArray) -> float:
        left = 1 - rates[1] + rates[0]
        return min(max(float(rates[0] / left), 0.0), 1.0) if left > 0 else 1.0

    low, high = (drawn(end(hits, sizes, alpha / 2)) for end in (trials_lower, trials_upper))
    if test.chance is not None and low <= test.chance <= high:
        return test.chance
    return min(max(0.5, low), high)


def guessed_chance(
    priors: FloatArray, correct: int, noise: tuple[float, float], floor: float, alpha: float
) -> tuple[float, float]:
    """Return bounds of what the model gives the guessed labels, from right guesses.

    The shift of the guesses' log-odds is log(1 + (1 − λ)/(λp)).

    Parameters
    ----------
    priors : float64 array of shape (n,)
        The probability with which each guessed label was drawn.
    correct : int
    noise : tuple of two floats
        Bounds of λ, each in (0, 1].
    floor : float
        f, below which no p is.
    alpha : float
        Error probability of either bound of the shift.
    """
    least, most = shift_lower(priors, correct, alpha), shift_upper(priors, correct, alpha)

    def chance(shift: float, level: float) -> float:
        if shift <= 0 or level == 1:
            return 1.0
        return (1 - level) / (level * math.expm1(min(shift, 30.0)))

    return max(chance(most, noise[1]) * (noise[1] < 1), floor), min(
        max(chance(least, noise[0]), floor), 1.0
    )
