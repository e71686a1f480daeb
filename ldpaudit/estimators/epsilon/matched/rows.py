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

from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.estimators.epsilon.bounds import EpsilonBound, accuracy_bound, two_sided_bound
from ldpaudit.release import BoolArray, IndexArray, IntArray

RATIOS: Final = (1, 4, 16)
"""Controls per case: many where the target label is rare given the features."""


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


@dataclass(frozen=True)
class MatchedCounts:
    """How often an event happened among cases and among controls.

    Attributes
    ----------
    ratio : int
        Controls per case.
    cases, case_hits, controls, control_hits : int
        Rows and rows with the event; ``controls`` is ``ratio · cases``.
    chance : float or None
        The average over the cases of P̂(target | x), with which the mechanism is claimed to draw.
    """

    ratio: int
    cases: int
    case_hits: int
    controls: int
    control_hits: int
    chance: float | None = None

    @classmethod
    def of(
        cls, matching: Matching, event: BoolArray, chance: float | None = None
    ) -> "MatchedCounts":
        """Count an event, bool of shape (n,), of each row given its group's target label."""
        return cls(
            matching.ratio,
            len(matching.cases),
            int(event[matching.cases].sum()),
            len(matching.controls),
            int(event[matching.controls].sum()),
            chance,
        )

    def two_sided(self, alpha: float) -> EpsilonBound:
        """Bound ε at level 1 − alpha by the rates of the event among cases and controls."""
        hits = self.control_hits, self.case_hits
        return two_sided_bound(hits, (self.controls, self.cases), alpha)

    def accuracy(self, alpha: float) -> EpsilonBound:
        """Bound ε at level 1 − alpha by guessing "case" where the event happened; one to one."""
        right = self.case_hits + self.controls - self.control_hits
        sizes = np.array([self.cases, self.controls])
        return accuracy_bound(right, sizes, alpha)
