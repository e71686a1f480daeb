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
from typing import Final, NamedTuple

import numpy as np

from ldpaudit.estimators.epsilon.bounds import GroupTest, Method
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.estimators.intervals.poisson_binomial import shift_lower, shift_upper
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

RATIOS: Final = (1, 4, 16)
"""Controls per case: many where the target label is rare given the features."""
_QUANTILE: Final = 2.2
"""Normal deviations that each of the two rates loses to its confidence bound, about."""
_FEWEST_HITS: Final = 5.0
_FEWEST_CASES: Final = 20
_ACCURACY_SHARE: Final = 0.5
_DESIGNED_SHARE: Final = 0.75
_CERTAIN: Final = 30.0


@dataclass(frozen=True)
class Matching:
    """Cases and controls, fixed by features and true labels alone.

    Attributes
    ----------
    ratio : int
        Controls per case, r.
    cases : int64 array of shape (m,)
        Rows with their group's target label.
    controls : int64 array of shape (m · r,)
        Rows with other labels: r for each case, of the same group.
    targets : int32 array of shape (g,)
        The target label of each group, −1 for a group without cases.
    """

    ratio: int
    cases: IndexArray
    controls: IndexArray
    targets: IntArray


def match(
    groups: IndexArray, labels: IntArray, k: int, ratio: int, rng: np.random.Generator
) -> Matching:
    """Match rows with equal features.

    Parameters
    ----------
    groups : int64 array of shape (n,)
        The group of each row, 0 … g − 1; rows of one group have the same features.
    labels : int32 array of shape (n,)
        True labels, 0 … k − 1.
    k : int
    ratio : int
        r ≥ 1.
    rng : numpy.random.Generator
        Chooses among rows that are alike.

    Returns
    -------
    Matching
        In each group the target is the label with most cases that find r controls each.
    """
    n_groups = int(groups.max(initial=-1)) + 1
    targets, wanted = _targets(groups, labels, k, ratio, n_groups)
    return match_targets(groups, labels, targets, wanted, ratio, rng)


def match_targets(
    groups: IndexArray,
    labels: IntArray,
    targets: IntArray,
    wanted: IndexArray,
    ratio: int,
    rng: np.random.Generator,
) -> Matching:
    """Match so many cases of each group's target label with r controls each.

    Parameters as in :func:`match`; ``targets`` int32 and ``wanted`` int64 of shape (g,), chosen by
    features and true labels alone.
    """
    order = rng.permutation(len(labels))
    is_case = labels == targets[groups]
    cases = _first_of_each_group(order[is_case[order]], groups, wanted)
    others = _first_of_each_group(order[~is_case[order]], groups, ratio * wanted)
    return Matching(ratio, cases, others, targets)


def _targets(
    groups: IndexArray, labels: IntArray, k: int, ratio: int, n_groups: int
) -> tuple[IntArray, IndexArray]:
    """Return each group's target label (−1 for none), and its number of cases."""
    group, label, able = possible_cases(groups, labels, k, ratio)
    targets, wanted = np.full(n_groups, -1, dtype=np.int32), np.zeros(n_groups, dtype=np.int64)
    best = np.lexsort((label, able))  # Later entries win: the largest number of cases.
    targets[group[best]], wanted[group[best]] = label[best], able[best]
    targets[wanted == 0] = -1
    return targets, wanted


def possible_cases(
    groups: IndexArray, labels: IntArray, k: int, ratio: int
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return group, label and number of cases that find r controls each, where the label occurs.

    Returns
    -------
    three int64 arrays of shape (c,)
        One entry for each label of each group.
    """
    present, counts = np.unique(groups * k + labels, return_counts=True)
    group, label = np.divmod(present, k)
    sizes = np.bincount(groups)
    return group, label, np.minimum(counts, (sizes[group] - counts) // ratio)


def _first_of_each_group(rows: IndexArray, groups: IndexArray, wanted: IndexArray) -> IndexArray:
    """Return the first rows of each group in the order given, as many as are wanted."""
    ordered = rows[np.argsort(groups[rows], kind="stable")]
    group = groups[ordered]
    starts = np.searchsorted(group, group, side="left")
    place = np.arange(len(group)) - starts
    return np.asarray(ordered[place < wanted[group]], dtype=np.int64)


class MatchedCounts(NamedTuple):
    """How often an event happened among controls and among cases.

    ``table``: controls and cases without and with the event, int64 of shape (2, 2); ``chance``: the
    average over the cases of P̂(target | x), with which the mechanism is claimed to draw, if known.
    """

    table: IndexArray
    chance: float | None = None

    @classmethod
    def of(
        cls, matching: Matching, event: BoolArray, chance: float | None = None
    ) -> "MatchedCounts":
        """Count an event, bool of shape (n,), of each row given its group's target label."""
        rows = event[matching.controls], event[matching.cases]
        return cls(np.array([[np.sum(~part), np.sum(part)] for part in rows]), chance)

    @property
    def cases(self) -> int:
        """How many cases there are."""
        return int(self.table[1].sum())


def matched_tests(
    counts: Sequence[MatchedCounts], designed: MatchedCounts | None = None
) -> list[GroupTest]:
    """Return the tests of several matchings, with their shares, independent of the counts.

    Half of alpha goes to the accuracy of the one-to-one matching, the rest in equal parts to the
    two-sided bound of each matching. A designed matching gets three quarters of alpha first.
    """

    def test(part: MatchedCounts, method: Method, share: float) -> GroupTest:
        return GroupTest(
            part.table, np.arange(2, dtype=np.int32), share, method, method, part.chance
        )

    left = 1.0 if designed is None else 1 - _DESIGNED_SHARE
    tests = [] if designed is None else [test(designed, "two-sided", _DESIGNED_SHARE)]
    share = (1 - _ACCURACY_SHARE) * left / max(len(counts), 1)
    tests += [test(part, "two-sided", share) for part in counts if part.cases]
    one_to_one = [c for c in counts if c.cases and c.table[0].sum() == c.table[1].sum()]
    return tests + [test(part, "accuracy", _ACCURACY_SHARE * left) for part in one_to_one]


def designed_matching(
    groups: IndexArray,
    labels: IntArray,
    scores: FloatArray,
    noise: float,
    rng: np.random.Generator,
) -> Matching | None:
    """Match rows with equal features where the target label is improbable.

    Model-based randomized response keeps a label with probability 1 − λ and else draws it from
    P̂(y | x). Among cases (rows of the target label) the target is released with probability
    1 − λ + λp̄, among controls with λp̄, p̄ being the average of P̂(target | x): the smaller p̄, the
    larger the ε that the two rates show, but the fewer cases. Groups are chosen for the largest
    bound that is to be expected; the choice uses features and true labels alone, so a bound from
    the chosen rows is valid without correction.

    Parameters
    ----------
    groups, labels, rng
        As for :func:`match`.
    scores : float64 array of shape (g, k)
        What P̂(y | x) of each group is thought to be; not computed from released labels.
    noise : float
        The claimed λ in (0, 1].

    Returns
    -------
    Matching or None
        None where no choice has at least 20 cases and 5 expected hits.
    """
    best: tuple[float, int, IndexArray, IndexArray, IndexArray] | None = None
    for ratio in RATIOS:
        group, label, able = _least_probable(groups, labels, scores, ratio)
        if not len(group):
            continue
        chance = scores[group, label]
        cases = np.cumsum(able)
        value = _expected(cases, np.cumsum(able * chance) / cases, ratio, noise)
        end = int(value.argmax())
        if value[end] > -math.inf and (best is None or value[end] > best[0]):
            chosen = slice(0, end + 1)
            best = (float(value[end]), ratio, group[chosen], label[chosen], able[chosen])
    if best is None:
        return None
    _, ratio, group, label, able = best
    targets, wanted = np.full(len(scores), -1, np.int32), np.zeros(len(scores), np.int64)
    targets[group], wanted[group] = label, able
    return match_targets(groups, labels, targets, wanted, ratio, rng)


def _least_probable(
    groups: IndexArray, labels: IntArray, scores: FloatArray, ratio: int
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return each group's least probable label that has cases, the least probable first."""
    group, label, able = possible_cases(groups, labels, scores.shape[1], ratio)
    useful = able > 0
    group, label, able = group[useful], label[useful], able[useful]
    order = np.argsort(scores[group, label], kind="stable")
    _, first = np.unique(group[order], return_index=True)
    chosen = order[np.sort(first)]
    return group[chosen], label[chosen], able[chosen]


def _expected(cases: IndexArray, chance: FloatArray, ratio: int, noise: float) -> FloatArray:
    """Return about the two-sided bound to be expected; −∞ where counts would be too small."""
    hit, false = 1 - noise + noise * chance, noise * chance
    controls = ratio * cases
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.sqrt((1 - hit) / (hit * cases)) + np.sqrt((1 - false) / (false * controls))
        value = np.log(hit / false) - _QUANTILE * spread
    enough = (cases >= _FEWEST_CASES) & (false * controls >= _FEWEST_HITS)
    return np.where(enough, value, -math.inf)


@dataclass(frozen=True)
class ModelBasedFamily:
    """Model-based randomized response of one model and floor, whatever its λ: what power is for.

    A row in which the model gives the released label the probability p has the ratio
    1 + (1 − λ)/(λp), and the worst one that the floor allows has 1 + (1 − λ)/(λf) = e^ε. So at
    another ε' of the same family the rows at hand show 1 + (e^ε' − 1)·f/p.

    Attributes
    ----------
    floor : float
        f in (0, 1/k], the least probability that a label is drawn with.
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
        return (1 - level) / (level * math.expm1(min(shift, _CERTAIN)))

    return max(chance(most, noise[1]) * (noise[1] < 1), floor), min(
        max(chance(least, noise[0]), floor), 1.0
    )
