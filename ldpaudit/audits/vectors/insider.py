"""Lower bounds of the vector's ε from true against released vectors: what is counted, and how."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

import numpy as np
from scipy.special import ndtri

from ldpaudit.audits.observational.power import WANTED_POWER
from ldpaudit.audits.vectors.seen import SeenVector, draw
from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.power import worth_looking_for
from ldpaudit.estimators.epsilon.strongest import (
    BoundEvidence,
    epsilon_evidence,
    presumed_channel,
)
from ldpaudit.estimators.vectors.choosing import (
    Choice,
    choose_by_claim,
    choose_by_pilot,
    relations,
    split_pilot,
)
from ldpaudit.estimators.vectors.patterns import PatternCounts, TrueVectors
from ldpaudit.estimators.vectors.sums import sum_lower
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray, IndexArray, IntArray, label_table

METHODS: Final = ("columns", "patterns", "pairs")
SHARES: Final = {"columns": 0.6, "patterns": 0.3, "pairs": 0.1}
"""Of the error probability, where the draws are claimed to be independent."""
JOINT_SHARES: Final = {"patterns": 0.8, "pairs": 0.2}
_SIMULATED: Final = 3
_TOO_SHORT: Final = 0.7
"""A bound that stays below a claim by more than this share of it says nothing of an excess."""
_LARGE_TABLE: Final = 400
_LOOSE: Final = 0.25


@dataclass(frozen=True, eq=False)
class VectorEvidence:
    """What was counted of true and released vectors: a bound at any level.

    Attributes
    ----------
    shares : mapping from method to float
        The shares of the error probability.
    columns : tuple of tuple of BoundEvidence
        For each stratum of the whole those of its columns, whose ε add up there; empty where the
        draws are not independent.
    patterns, pairs : PatternCounts or None
        The pattern chosen by the claim, and that of two columns chosen by a pilot.
    """

    shares: Mapping[str, float]
    columns: tuple[tuple[BoundEvidence, ...], ...]
    patterns: PatternCounts | None
    pairs: PatternCounts | None
    _known: dict[tuple[str, float], EpsilonBound] = field(default_factory=dict)

    def bound(self, method: str, alpha: float) -> EpsilonBound | None:
        """Return one method's lower bound of ε at level 1 − alpha; None where it has none."""
        if (method, alpha) not in self._known:
            found = self._sum(alpha) if method == "columns" else self._counted(method, alpha)
            if found is None:
                return None
            self._known[method, alpha] = found
        return self._known[method, alpha]

    def strongest(self, alpha: float) -> EpsilonBound:
        """Return the largest bound, each method at its share of alpha: valid at 1 − alpha."""
        found = [self.bound(method, alpha * share) for method, share in self.shares.items()]
        bounds = [one for one in found if one is not None]
        if not bounds:
            return EpsilonBound(0.0, alpha, 0, "patterns")
        best = max(bounds, key=lambda one: one.epsilon)
        return replace(best, alpha=alpha)

    def without_columns(self) -> "VectorEvidence":
        """Return the same where the draws turned out not to be independent."""
        return replace(self, columns=(), _known={})

    def _counted(self, method: str, alpha: float) -> EpsilonBound | None:
        counts = self.patterns if method == "patterns" else self.pairs
        return None if counts is None else replace(counts.bound(alpha), method=method)

    def _sum(self, alpha: float) -> EpsilonBound | None:
        """Return the largest sum of any stratum, each with an equal share of alpha."""
        if not self.columns:
            return None
        known = cache(_one_column)
        level, best, rows = alpha / len(self.columns), -1.0, 0
        for columns in self.columns:
            found = sum_lower([_epsilon_of(one, known) for one in columns], level)
            if found > best:
                best, rows = found, min(int(one.counts.sum()) for one in columns)
        return EpsilonBound(best, alpha, rows, "columns")


def _epsilon_of(
    evidence: BoundEvidence, bound: Callable[[BoundEvidence, float], EpsilonBound]
) -> Callable[[float], float]:
    return lambda alpha: bound(evidence, alpha).epsilon


def detectable_excess(
    seen: SeenVector, limit: float, rng: np.random.Generator
) -> Callable[[float], float] | None:
    """Return about the smallest excess over a claim that is found, by the error probability.

    A release as claimed is simulated and bounded like the true one. Its bound stays below the claim
    by about z_α standard errors; what lies z_α + z_β of them above is found with probability 1 − β.
    None where nothing can be simulated.
    """
    drawn = seen.simulated(rng)
    if drawn is None or not math.isfinite(limit):
        return None
    evidence = vector_evidence(seen, drawn, rng)

    def excess(alpha: float) -> float:
        quantile, bound = -ndtri(alpha), evidence.strongest(alpha).epsilon
        if limit - bound > _TOO_SHORT * limit:
            return math.inf
        # The simulated bound may have come out near the claim by chance, or above it.
        spread = evidence.strongest(_LOOSE).epsilon - bound
        usual = spread * quantile / (quantile + ndtri(_LOOSE)) if alpha < _LOOSE else 0.0
        short = max(limit - bound, usual)
        return float(short * (1 + ndtri(WANTED_POWER) / quantile))

    return excess


def _one_column(evidence: BoundEvidence, alpha: float) -> EpsilonBound:
    """Return the strongest bound of one column; of a large table not that of every entry."""
    if evidence.counts.size <= _LARGE_TABLE:
        return evidence.strongest(alpha)
    shares = {m: part for m, part in evidence.design.weights.items() if m != "counts"}
    bounds = [evidence.bound(method, alpha * share) for method, share in shares.items()]
    return max(bounds, key=lambda one: one.epsilon)


def vector_evidence(
    seen: SeenVector, released: IntArray, rng: np.random.Generator
) -> VectorEvidence:
    """Choose what to count by the claims and a pilot, and count it.

    Parameters
    ----------
    seen : SeenVector
        Whose true vectors are known.
    released : int32 array of shape (r, d)
        What was released of them, or is simulated.
    rng : numpy.random.Generator
    """
    truth = seen.truth
    pilot, others = split_pilot(len(truth), rng)
    claimed = [seen.matrices(place) for place in range(len(seen.contexts))]
    known = all(one is not None for one in claimed)
    channels = [_overall(one, seen, released, a, pilot) for a, one in enumerate(claimed)]
    near = [relations(channel, 0.0)[0] for channel in channels]
    scale = len(others) / max(len(pilot), 1)
    by_pilot = choose_by_pilot(truth.take(pilot), released[pilot], near, scale)
    rest = truth.take(others)
    pairs = None if by_pilot is None else by_pilot.count(rest, released[others], rng)
    if known:
        drawn = [seen.simulated(rng) for _ in range(_SIMULATED)]
        chosen = choose_by_claim(truth, channels, [z for z in drawn if z is not None])
        patterns = _count(chosen, truth, released, rng)
    else:
        drawn = [_presumed(channels, rest, rng) for _ in range(_SIMULATED)]
        chosen = choose_by_claim(rest, channels, [z for z in drawn if z is not None])
        patterns = _count(chosen, rest, released[others], rng)
    columns = _of_columns(seen, released, rng)
    if not seen.independent:
        return VectorEvidence(JOINT_SHARES, (), patterns, pairs)
    return VectorEvidence(SHARES, columns, patterns, pairs)


def _count(
    chosen: Choice | None, truth: TrueVectors, released: IntArray, rng: np.random.Generator
) -> PatternCounts | None:
    return None if chosen is None else chosen.count(truth, released, rng)


def _overall(
    claimed: FloatArray | None,
    seen: SeenVector,
    released: IntArray,
    place: int,
    pilot: IndexArray,
) -> FloatArray:
    """Return one channel of a column for all strata: their average, or one seen in a pilot."""
    if claimed is not None:
        return np.asarray(claimed.mean(axis=0))
    release = seen.contexts[place].release
    sizes = len(release.classes), len(release.outputs)
    labels = seen.truth.labels[pilot, place]
    return presumed_channel(label_table(labels, released[pilot, place], *sizes))


def _presumed(
    channels: Sequence[FloatArray], truth: TrueVectors, rng: np.random.Generator
) -> IntArray:
    columns = [draw(channel[truth.labels[:, a]], rng) for a, channel in enumerate(channels)]
    return np.stack(columns, axis=1)


def _of_columns(
    seen: SeenVector, released: IntArray, rng: np.random.Generator
) -> tuple[tuple[BoundEvidence, ...], ...]:
    """Return the evidence of the columns in each stratum of the whole where all have some."""
    strata = np.stack([seen.strata_of(place) for place in range(len(seen.contexts))], axis=1)
    found = {
        (place, stratum): _of_stratum(seen, released, place, stratum, rng)
        for place, codes in enumerate(strata.T)
        for stratum in np.unique(codes).tolist()
    }
    wholes = [
        [found[place, stratum] for place, stratum in enumerate(whole)]
        for whole in np.unique(strata, axis=0).tolist()
    ]
    complete = [[one for one in whole if one is not None] for whole in wholes]
    return tuple(tuple(one) for one in complete if len(one) == len(seen.contexts))


def _of_stratum(
    seen: SeenVector,
    released: IntArray,
    place: int,
    stratum: int,
    rng: np.random.Generator,
) -> BoundEvidence | None:
    """Return the evidence of a column in one of its strata; None where that has one label."""
    one, matrices = seen.contexts[place], seen.matrices(place)
    rows = seen.strata_of(place) == stratum
    labels, outputs = seen.truth.labels[rows, place], released[rows, place]
    channel = None if matrices is None else matrices[stratum]
    if channel is not None and seen.joint is not None:
        channel = worth_looking_for(_plain(channel)).matrix
    sizes = len(one.release.classes), len(one.release.outputs)
    counts = label_table(labels, outputs, *sizes)
    return epsilon_evidence(counts, channel, rng)


def _plain(matrix: FloatArray) -> Channel:
    k, m = matrix.shape
    return Channel(matrix, tuple(range(k)), tuple(range(m)))
