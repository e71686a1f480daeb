"""Lower bounds of ε of several columns of a row: each column's own added up, and vectors as labels.

Columns with draws of their own add up: their evidence is independent (:mod:`.sums`). The vector of
their values as one label holds however the columns' draws depend on each other, and needs few
values: where all columns together have too many it is asked of each pair.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations, islice
from math import prod
from typing import Final

import numpy as np

from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.epsilon.strongest import BoundEvidence, epsilon_evidence
from ldpaudit.estimators.person.sums import sum_lower
from ldpaudit.release import FloatArray, IndexArray, IntArray, label_table

_SUM_SHARE: Final = 0.9
"""Of the error probability, where columns are added up and vectors are counted, too."""
_MOST_CELLS: Final = 2_500
"""Of a table of true and released vectors."""
_MOST_PAIRS: Final = 30
_LARGE_TABLE: Final = 400


@dataclass(frozen=True, eq=False)
class ColumnsEvidence:
    """What was counted of true and released values of several columns: a bound at any level.

    Attributes
    ----------
    columns : tuple of tuple of BoundEvidence
        For each stratum those of its columns, whose ε add up there; empty where their draws are not
        independent.
    vectors : tuple of BoundEvidence
        Of all columns as one label, or of each pair, in each stratum.
    """

    columns: tuple[tuple[BoundEvidence, ...], ...]
    vectors: tuple[BoundEvidence, ...]

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the lower bound of ε of all columns at level 1 − alpha, in nats."""
        share = (_SUM_SHARE if self.vectors else 1.0) if self.columns else 0.0
        found = [self.added_up(alpha * share)] if self.columns else []
        if self.vectors:
            found.append(self.as_labels(alpha * (1 - share)))
        if not found:
            return EpsilonBound(0.0, alpha, 0, "vectors")
        return replace(max(found, key=lambda one: one.epsilon), alpha=alpha)

    def added_up(self, alpha: float) -> EpsilonBound:
        """Return the largest sum of any stratum, each with an equal share of alpha."""
        known, level = cache(_of_column), alpha / len(self.columns)
        sums = [
            (sum_lower([_epsilon_of(one, known) for one in columns], level), columns)
            for columns in self.columns
        ]
        best, columns = max(sums, key=lambda one: one[0])
        rows = min(int(one.counts.sum()) for one in columns)
        return EpsilonBound(best, alpha, rows, "columns")

    def as_labels(self, alpha: float) -> EpsilonBound:
        """Return the largest bound of vectors as labels, each with an equal share of alpha."""
        bounds = [one.strongest(alpha / len(self.vectors)) for one in self.vectors]
        return replace(max(bounds, key=lambda one: one.epsilon), method="vectors")

    def without_sums(self) -> "ColumnsEvidence":
        """Return the same where the draws turned out not to be independent."""
        return replace(self, columns=())


def vector_evidence(
    labels: IntArray,
    released: IntArray,
    sizes: Sequence[tuple[int, int]],
    channel: FloatArray | None,
    rng: np.random.Generator,
) -> Iterator[BoundEvidence]:
    """Yield what bounds ε of vectors as one label, or of each pair of columns.

    Parameters
    ----------
    labels, released : int32 arrays of shape (n, d)
        Codes of one stratum.
    sizes : sequence of d pairs
        How many labels and outputs each column has.
    channel : float64 array or None
        The claimed channel of all columns as one label; None: a pilot shows what to count.
    rng : numpy.random.Generator
    """
    every = tuple(range(len(sizes)))
    if prod(k * m for k, m in sizes) <= _MOST_CELLS:
        subsets = [every]
    else:
        pairs = (
            p
            for p in combinations(every, 2)
            if prod(k * m for k, m in _of(sizes, p)) <= _MOST_CELLS
        )
        subsets, channel = list(islice(pairs, _MOST_PAIRS)), None
    for subset in subsets:
        shapes = _of(sizes, subset)
        ks, ms = zip(*shapes, strict=True)
        codes = _joined(labels[:, subset], ks), _joined(released[:, subset], ms)
        table = label_table(codes[0], codes[1], prod(ks), prod(ms))
        evidence = epsilon_evidence(table, channel, rng)
        if evidence is not None:
            yield evidence


def _of(sizes: Sequence[tuple[int, int]], places: Sequence[int]) -> list[tuple[int, int]]:
    return [sizes[place] for place in places]


def _joined(codes: IntArray, sizes: tuple[int, ...]) -> IndexArray:
    return np.asarray(np.ravel_multi_index(tuple(codes.T), sizes))


def _epsilon_of(
    evidence: BoundEvidence, bound: Callable[[BoundEvidence, float], float]
) -> Callable[[float], float]:
    return lambda alpha: bound(evidence, alpha)


def _of_column(evidence: BoundEvidence, alpha: float) -> float:
    """Return the strongest bound of one column; of a large table not that of every entry."""
    if evidence.counts.size <= _LARGE_TABLE:
        return evidence.strongest(alpha).epsilon
    shares = {m: part for m, part in evidence.design.weights.items() if m != "counts"}
    return max(evidence.bound(method, alpha * share).epsilon for method, share in shares.items())
