"""Choosing what to count of vectors, before any of the counted outcomes is seen.

By the claimed channels: releases of the same true vectors are simulated, and the pattern with the
largest bound on them is taken. By a pilot: a part of the rows shows which patterns of two columns
go together, and the bound is counted on the others. A wrong presumption costs strength, never
validity.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Final

import numpy as np

from ldpaudit.estimators.epsilon.strongest import presumed_channel
from ldpaudit.estimators.vectors.patterns import (
    Joined,
    Outcome,
    Pattern,
    PatternCounts,
    Relation,
    TrueVectors,
)
from ldpaudit.release import FloatArray, IndexArray, IntArray, label_table

DESIGN_ALPHA: Final = 0.025
PILOT_SHARE: Final = 0.2
"""The share of rows that show which patterns go together."""
_SLACKS: Final = (0.0, 0.25)
_SPLITS: Final = (0.05, 0.2, 0.5, 0.8, 0.95)
_LEAST: Final = (0.0, 0.9)
_LEARNT_SLACKS: Final = (0.1, 0.3)
_LEARNT_LEAST: Final = (0.0, 0.5, 0.8)
_SMALLEST: Final = -30.0
_SAME: Final = 1e-9
_FACTORS: Final = 9
_MOST_CELLS: Final = 2_500
"""Entries of the channel of two columns that a pilot is asked for."""
_MOST_PAIRS: Final = 30
_LARGEST: Final = 4e7
"""Pairs of distinct true and released vectors; with more of them fewer columns are looked at."""


@dataclass(frozen=True, eq=False)
class Choice:
    """A pattern with how it is counted, and the bound to be expected of it in nats.

    ``joined``: the columns that are one column to the pattern, if any.
    """

    pattern: Pattern
    factor: float
    split: float
    expected: float
    joined: Joined | None = None

    def count(
        self, truth: TrueVectors, released: IntArray, rng: np.random.Generator
    ) -> PatternCounts:
        """Count it."""
        if self.joined is not None:
            truth, released = self.joined.truth(truth), self.joined.released(released)
        outcome = Outcome.of(self.pattern, truth, released)
        cases, controls = outcome.draw(self.factor, rng)
        return PatternCounts(len(truth), cases, controls, self.factor, self.split)


def relations(
    channel: FloatArray, slack: float = 0.0, least: float = 0.0
) -> tuple[Relation, Relation]:
    """Return the labels that make each output likely, and unlikely, bool of shape (k, m).

    Parameters
    ----------
    channel : float64 array of shape (k, m)
    slack : float
        How far from the extreme log-likelihoods of an output labels still count, as a share of
        their range there.
    least : float
        The least range of an output, as a share of the largest; others have neither sort of label.
    """
    with np.errstate(divide="ignore"):
        logs = np.maximum(np.log(channel), _SMALLEST)
    high, low = logs.max(axis=0), logs.min(axis=0)
    tolerance = slack * (high - low) + _SAME
    told = high - low > np.maximum(least * (high - low).max() - _SAME, _SAME)
    return (logs >= high - tolerance) & told, (logs <= low + tolerance) & told


def choose_by_claim(
    truth: TrueVectors, channels: Sequence[FloatArray], simulated: Sequence[IntArray]
) -> Choice | None:
    """Return the pattern with the largest bound to be expected under the claim.

    Parameters
    ----------
    truth : TrueVectors
    channels : sequence of d float64 arrays of shape (k, m)
        The channel of each column alone.
    simulated : sequence of int32 arrays of shape (n, d)
        Releases of ``truth`` drawn from the claim.

    Returns
    -------
    Choice or None
        None where no bound above 0 is to be expected.
    """
    best: Choice | None = None
    for pattern in _far_patterns(channels):
        if _too_large(pattern, truth, simulated[0]):
            continue
        outcomes = [Outcome.of(pattern, truth, released) for released in simulated]
        best = _better(best, _choice(pattern, outcomes, 1.0))
    return best


def choose_by_pilot(
    truth: TrueVectors, released: IntArray, near: Sequence[Relation], scale: float
) -> Choice | None:
    """Return the pattern of two columns with the largest bound on a pilot's rows.

    Parameters
    ----------
    truth : TrueVectors
        Those of the pilot.
    released : int32 array of shape (n, d)
    near : sequence of d bool arrays of shape (k, m)
        The labels that make each output likely.
    scale : float
        How many times as many rows will be counted.
    """
    best: Choice | None = None
    half = len(truth) // 2
    learn, test = np.arange(half), np.arange(half, len(truth))
    scale *= len(truth) / max(len(test), 1)
    learnt = truth.take(learn), released[learn]
    truth, released = truth.take(test), released[test]
    for columns in list(combinations(range(len(near)), 2))[:_MOST_PAIRS]:
        for pattern in _pair_patterns(columns, [near[a] for a in columns]):
            if not _too_large(pattern, truth, released):
                outcome = Outcome.of(pattern, truth, released)
                best = _better(best, _choice(pattern, [outcome], scale))
        joined = _joined_pair(columns, near)
        if joined is not None:
            truths, outputs = joined.truth(truth), joined.released(released)
            for pattern in _learnt_patterns(joined, *learnt):
                outcome = Outcome.of(pattern, truths, outputs)
                best = _better(best, _choice(pattern, [outcome], scale, joined))
    return best


def _pair_patterns(columns: tuple[int, ...], near: Sequence[Relation]) -> Iterator[Pattern]:
    """Yield which of two columns show a likely output of cases, and which of controls."""
    kinds = [(one, ~one & one.any(axis=0)) for one in near]
    cells = [(kinds[0][i], kinds[1][j]) for i in (0, 1) for j in (0, 1)]
    for cases, controls in permutations(cells, 2):
        yield Pattern(columns, cases, controls)


def _joined_pair(columns: tuple[int, ...], near: Sequence[Relation]) -> Joined | None:
    labels, outputs = zip(*(near[a].shape for a in columns), strict=True)
    small = np.prod(labels) * np.prod(outputs) <= _MOST_CELLS
    return Joined(columns, labels, outputs) if small else None


def _learnt_patterns(joined: Joined, truth: TrueVectors, released: IntArray) -> Iterator[Pattern]:
    """Yield the pairs of labels that made each pair of outputs likely, and unlikely."""
    labels, outputs = joined.truth(truth).labels[:, 0], joined.released(released)[:, 0]
    sizes = int(np.prod(joined.labels)), int(np.prod(joined.outputs))
    channel = presumed_channel(label_table(labels, outputs, *sizes))
    for slack, least in product(_LEARNT_SLACKS, _LEARNT_LEAST):
        cases, controls = relations(channel, slack, least)
        yield Pattern((0,), (cases,), (controls,))


def split_pilot(n: int, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Return the rows of a pilot and the others, int64 in order."""
    order, cut = rng.permutation(n), int(PILOT_SHARE * n)
    return np.sort(order[:cut]), np.sort(order[cut:])


def _far_patterns(channels: Sequence[FloatArray]) -> Iterator[Pattern]:
    """Yield patterns of all columns, and of fewer and fewer: those that tell most are kept."""
    told = [float(np.ptp(np.log(np.maximum(c, 1e-13)), axis=0).max()) for c in channels]
    order = np.argsort(-np.array(told), kind="stable")
    before: list[tuple[Relation, Relation]] = []
    for slack, least in product(_SLACKS, _LEAST):
        pairs = [relations(channel, slack, least) for channel in channels]
        if _same(pairs, before):
            continue
        before = pairs
        for many in range(len(channels), 0, -1):
            columns = tuple(sorted(int(a) for a in order[:many]))
            cases, controls = zip(*(pairs[a] for a in columns), strict=True)
            yield Pattern(columns, cases, controls)


def _same(one: list[tuple[Relation, Relation]], other: list[tuple[Relation, Relation]]) -> bool:
    return len(one) == len(other) and all(
        np.array_equal(a[i], b[i]) for a, b in zip(one, other, strict=True) for i in (0, 1)
    )


def _too_large(pattern: Pattern, truth: TrueVectors, released: IntArray) -> bool:
    outputs = min(len(released), np.prod([case.shape[1] for case in pattern.cases], dtype=float))
    return len(truth.distinct(pattern.columns)[2]) * float(outputs) > _LARGEST


def _better(one: Choice | None, other: Choice | None) -> Choice | None:
    if one is None or other is None:
        return one or other
    return other if other.expected > one.expected + 1e-9 else one


def _choice(
    pattern: Pattern, outcomes: Sequence[Outcome], scale: float, joined: Joined | None = None
) -> Choice | None:
    """Return the factor and split with the largest bound on outcomes, on average over them."""
    cases = np.concatenate([outcome.cases for outcome in outcomes])
    controls = np.concatenate([outcome.controls for outcome in outcomes])
    if not len(cases):
        return None
    pooled = Outcome(outcomes[0].rows, cases, controls)
    share = scale / len(outcomes)
    rows, best = int(outcomes[0].rows * scale), (0.0, 1.0, 0.5)
    for factor in np.unique(1 / np.quantile(cases, np.linspace(0, 1, _FACTORS))):
        hits, misses = (share * value for value in pooled.expected(float(factor)))
        for split in _SPLITS:
            counts = PatternCounts(
                rows, int(hits), min(int(np.ceil(misses)), rows), float(factor), split
            )
            value = counts.bound(DESIGN_ALPHA).epsilon
            best = max(best, (value, float(factor), split))
    return Choice(pattern, best[1], best[2], best[0], joined) if best[0] > 0 else None
