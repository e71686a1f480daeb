"""Lower bounds of ε of several answers of each person: added up, and all answers as one.

Answers with noise of their own add up: columns by their own bounds (:mod:`.sums`), releases of one
label by one event of each (:mod:`.added_up`). All answers as one code hold however the noise of the
answers goes together, and need few values: of many columns each pair is counted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, islice
from math import prod
from typing import Final, Literal, Protocol

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray, IntArray
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.estimators.person.added_up import AddedPlan, Tally, added_plan
from ldpaudit.estimators.person.answers import coded_fresh, coded_remembered
from ldpaudit.estimators.person.sums import sum_lower
from ldpaudit.release import label_table

Noise = Literal["fresh", "remembered"]
"""Whether each release draws again, or repeats the answer for a label that did not change."""
ADDED_SHARE: Final = 0.8
"""Of the error probability, where answers are added up and counted as one code, too."""
_SHARES: Final[Mapping[Noise | None, Mapping[Noise, float]]] = {
    "fresh": {"fresh": 1 - ADDED_SHARE},
    "remembered": {"remembered": 1.0},
    None: {"fresh": 0.1, "remembered": 0.3},
}
"""Shares of all answers as one code, by what is claimed of the noise; adding up has the rest."""
_MOST_CELLS: Final = 2_500
"""Of a table of true and released codes of several columns."""
_MOST_PAIRS: Final = 30


class Added(Protocol):
    """What adds up over answers with noise of their own."""

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the lower bound of ε of all answers at level 1 − alpha, in nats."""


@dataclass(frozen=True, eq=False)
class OfColumns:
    """The evidence of each column of a stratum."""

    columns: tuple[BoundEvidence, ...]

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the sum of the columns' bounds, which together miss as often as one."""
        known = cache(_of_column)
        bounds: list[Callable[[float], float]] = [partial(known, one) for one in self.columns]
        rows = min(int(one.counts.sum()) for one in self.columns)
        return EpsilonBound(sum_lower(bounds, alpha), alpha, rows, "added")


@dataclass(frozen=True, eq=False)
class OfReleases:
    """What was counted of each release, by a plan that was fixed without a look at it."""

    plan: AddedPlan
    tally: Tally

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the bound of the plan."""
        return self.plan.bound(self.tally, alpha)


@dataclass(frozen=True, eq=False)
class AnswersEvidence:
    """What was counted of several answers of each person: a bound at any level.

    Attributes
    ----------
    added : tuple of Added
        What adds up, in each stratum; empty where the noise of the answers is not independent.
    codes : tuple of BoundEvidence
        All answers as one code, or each pair of columns, in each stratum.
    weights : tuple of float
        The codes' shares of the error probability; ``added`` has the rest, in equal shares.
    """

    added: tuple[Added, ...]
    codes: tuple[BoundEvidence, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, added: Sequence[Added], codes: Sequence[BoundEvidence]) -> "AnswersEvidence | None":
        """Share the error probability; None where nothing was counted."""
        rest = 1 - ADDED_SHARE if added else 1.0
        weights = (rest / max(len(codes), 1),) * len(codes)
        return cls(tuple(added), tuple(codes), weights) if added or codes else None

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the strongest bound at level 1 − alpha, in nats."""
        bounds = [e.strongest(alpha * w) for e, w in zip(self.codes, self.weights, strict=True)]
        if self.added:
            bounds.append(self.added_up(alpha * (1 - sum(self.weights))))
        return replace(max(bounds, key=_epsilon), alpha=alpha)

    def added_up(self, alpha: float) -> EpsilonBound:
        """Return the largest bound of what adds up, in any stratum, at its own level."""
        return max((one.bound(alpha / len(self.added)) for one in self.added), key=_epsilon)

    def as_one(self, alpha: float) -> EpsilonBound:
        """Return the largest bound that holds however the noise goes together, at its own level."""
        whole, found = sum(self.weights), zip(self.codes, self.weights, strict=True)
        return max((e.strongest(alpha * w / whole) for e, w in found), key=_epsilon)

    def without_sums(self, *, all_of_it: bool = False) -> "AnswersEvidence | None":
        """Return the same where the noise is not independent.

        Codes keep their shares, or have ``all_of_it``: the share of what is not added up, too.
        """
        whole = sum(self.weights) if all_of_it else 1.0
        weights = tuple(weight / whole for weight in self.weights)
        return replace(self, added=(), weights=weights) if self.codes else None


def column_codes(
    labels: IntArray,
    released: IntArray,
    sizes: Sequence[tuple[int, int]],
    channel: FloatArray | None,
    rng: np.random.Generator,
) -> Iterator[BoundEvidence]:
    """Yield what bounds ε of the columns of a stratum as one label, or of each pair of them.

    Parameters
    ----------
    labels, released : int32 arrays of shape (n, d)
    sizes : sequence of d pairs
        How many labels and outputs each column has.
    channel : float64 array or None
        The claimed channel of all columns as one label; None: a pilot shows what to count.
    rng : numpy.random.Generator
    """
    subsets = [tuple(range(len(sizes)))]
    if _cells(sizes, subsets[0]) > _MOST_CELLS:
        pairs = (p for p in combinations(subsets[0], 2) if _cells(sizes, p) <= _MOST_CELLS)
        subsets, channel = list(islice(pairs, _MOST_PAIRS)), None
    for subset in subsets:
        ks, ms = zip(*(sizes[place] for place in subset), strict=True)
        codes = _joined(labels[:, subset], ks), _joined(released[:, subset], ms)
        evidence = epsilon_evidence(label_table(*codes, prod(ks), prod(ms)), channel, rng)
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

    Parameters
    ----------
    labels : int32 array of shape (n,)
        True labels.
    released : int32 array of shape (n, t)
        What was released of them, release by release.
    channels : float64 arrays of shape (k, m)
        The presumed channel of each release: chooses what is counted, and is not relied on.
    noise : {"fresh", "remembered"} or None
        What is claimed of the noise.
    rng : numpy.random.Generator

    Returns
    -------
    AnswersEvidence or None
        None where fewer than two labels occur.
    """
    k = len(channels[0])
    shares = _SHARES[noise]
    codes, weights = [], []
    for name, share in shares.items():
        if name == "remembered" and len({c.shape for c in channels}) > 1:
            continue
        coded = (
            coded_fresh(channels, released)
            if name == "fresh"
            else coded_remembered(channels[0], released)
        )
        table = label_table(labels, coded.codes, k, coded.size)
        evidence = epsilon_evidence(table, coded.channel, rng)
        if evidence is not None:
            codes.append(evidence)
            weights.append(share)
    sizes = np.bincount(labels, minlength=k).astype(np.int64)
    plan = None if noise == "remembered" or not codes else added_plan(sizes, channels)
    added = () if plan is None else (OfReleases(plan, plan.tally(labels, released, rng)),)
    return AnswersEvidence(added, tuple(codes), tuple(weights)) if codes else None


def _cells(sizes: Sequence[tuple[int, int]], places: Sequence[int]) -> int:
    return prod(sizes[place][0] * sizes[place][1] for place in places)


def _joined(codes: IntArray, sizes: tuple[int, ...]) -> IndexArray:
    return np.asarray(np.ravel_multi_index(tuple(codes.T), sizes))


def _epsilon(bound: EpsilonBound) -> float:
    return bound.epsilon


def _of_column(evidence: BoundEvidence, alpha: float) -> float:
    """Return the strongest bound of one column."""
    return evidence.strongest(alpha).epsilon
