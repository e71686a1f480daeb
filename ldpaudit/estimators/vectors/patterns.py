"""Lower bounds of a vector's ε from patterns of columns, counted over all true vectors together.

For an output vector z a row is a *case* if z is likely under its true vector, column by column, and
a *control* if z is unlikely under it. Which true vectors count as which at each z is fixed
beforehand. For every z with N₊ cases and N₋ controls among the true vectors, whatever the channel
W of the vector is,

    (1/N₊) Σ_cases W(z | y) ≤ e^ε (1/N₋) Σ_controls W(z | y).

A row counts as a case at its own output with probability min(1, κ N₋/N₊), and as a control with
probability min(1, N₊/(κ N₋)): then the expected numbers R of cases and Q of controls obey
R ≤ κ e^ε Q. Both are sums of independent indicators, one of each row, so Clopper–Pearson bounds
hold for their means (Hoeffding 1956), and log(R_lo/(κ Q_hi)) bounds ε from below. All cells of the
product domain share their counts: no single vector needs many rows.

Valid for every channel of the vector that is the same for all rows (within their strata), with rows
released independently of each other: the columns may depend on each other in any way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from ldpaudit.estimators.epsilon.bounds import EpsilonBound
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper
from ldpaudit.release import BoolArray, FloatArray, IndexArray, IntArray

Relation = BoolArray
"""Which true labels count at each output of a column, bool of shape (k, m)."""

LARGEST_BLOCK: Final = 4_000_000
"""Pairs of distinct true and released vectors that are compared at once."""


@dataclass(frozen=True, eq=False)
class Pattern:
    """Which true vectors are cases and controls at each output vector, column by column.

    Attributes
    ----------
    columns : tuple of int
        The columns that are looked at; the others may be anything.
    cases, controls : tuple of bool arrays of shape (k, m)
        For each of these columns, the true labels that count at each output.
    """

    columns: tuple[int, ...]
    cases: tuple[Relation, ...]
    controls: tuple[Relation, ...]


@dataclass(frozen=True, eq=False)
class TrueVectors:
    """The true vectors of the rows that are counted, and how often each occurs.

    Attributes
    ----------
    labels : int32 array of shape (n, d)
        Codes, column by column.
    strata : int64 array of shape (n,)
        Codes of rows with one channel; all zeros where all rows have the same.
    """

    labels: IntArray
    strata: IndexArray

    def __len__(self) -> int:
        """Return the number of rows n."""
        return len(self.labels)

    def take(self, rows: IndexArray) -> "TrueVectors":
        """Return those of some rows."""
        return TrueVectors(self.labels[rows], self.strata[rows])

    @cached_property
    def _kept(self) -> dict[tuple[int, ...], tuple[IntArray, IndexArray, IndexArray]]:
        return {}

    def distinct(self, columns: tuple[int, ...]) -> tuple[IntArray, IndexArray, IndexArray]:
        """Return distinct parts of vectors (c, |columns|), their strata (c,) and rows (c,)."""
        if columns not in self._kept:
            parts = self.labels[:, columns]
            first, _, counts = distinct_rows(parts, self.strata)
            self._kept[columns] = parts[first], self.strata[first], counts
        return self._kept[columns]


@dataclass(frozen=True, eq=False)
class Joined:
    """Columns put together as one: the pair of their codes is the code of the new column.

    Attributes
    ----------
    columns : tuple of int
    labels, outputs : tuple of int
        How many codes each of them has.
    """

    columns: tuple[int, ...]
    labels: tuple[int, ...]
    outputs: tuple[int, ...]

    def truth(self, truth: TrueVectors) -> TrueVectors:
        """Return the true vectors of the one new column."""
        codes = _joined(truth.labels[:, self.columns], self.labels)
        return TrueVectors(codes, truth.strata)

    def released(self, released: IntArray) -> IntArray:
        """Return the outputs of the one new column, int32 of shape (n, 1)."""
        return _joined(released[:, self.columns], self.outputs)


def _joined(codes: IntArray, sizes: tuple[int, ...]) -> IntArray:
    code = np.ravel_multi_index(tuple(codes.T), sizes)
    return np.asarray(code, dtype=np.int32)[:, None]


def distinct_rows(parts: IntArray, strata: IndexArray) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return the distinct rows of codes with their strata.

    Returns
    -------
    first : int64 array of shape (c,)
        A row of each kind.
    kind : int64 array of shape (n,)
        The kind of each row, 0 … c − 1.
    counts : int64 array of shape (c,)
        Rows of each kind.
    """
    kind: IndexArray = np.unique(strata, return_inverse=True)[1].astype(np.int64)
    for column in parts.T:
        code = kind * (int(column.max(initial=0)) + 1) + column
        kind = np.unique(code, return_inverse=True)[1].astype(np.int64)
    _, first, counts = np.unique(kind, return_index=True, return_counts=True)
    return first.astype(np.int64), kind, counts.astype(np.int64)


def balance(pattern: Pattern, truth: TrueVectors, released: IntArray) -> FloatArray:
    """Return N₋/N₊ at each row's output: 0 where it has no controls, ∞ where it has no cases.

    NaN where it has neither. ``released``: int32 of shape (n, d), in the strata of ``truth``.
    """
    outputs = released[:, pattern.columns]
    first, kind, _ = distinct_rows(outputs, truth.strata)
    labels, strata, rows = truth.distinct(pattern.columns)
    cases, controls = np.empty(len(first)), np.empty(len(first))
    block = max(LARGEST_BLOCK // max(len(labels), 1), 1)
    for start in range(0, len(first), block):
        part = first[start : start + block]
        same = truth.strata[part][:, None] == strata
        for into, relations in ((cases, pattern.cases), (controls, pattern.controls)):
            count = _members(relations, labels, outputs[part]) & same
            into[start : start + block] = count @ rows.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((controls / cases)[kind])


def _members(relations: Sequence[Relation], labels: IntArray, outputs: IntArray) -> BoolArray:
    """Return which true vectors count at which outputs, bool of shape (outputs, vectors)."""
    inside = np.ones((len(outputs), len(labels)), dtype=bool)
    for place, relation in enumerate(relations):
        inside &= relation.T[outputs[:, place]][:, labels[:, place]]
    return inside


def own_members(
    relations: Sequence[Relation], columns: tuple[int, ...], labels: IntArray, released: IntArray
) -> BoolArray:
    """Return which rows count at their own output, bool of shape (n,)."""
    inside = np.ones(len(labels), dtype=bool)
    for column, relation in zip(columns, relations, strict=True):
        inside &= relation[labels[:, column], released[:, column]]
    return inside


@dataclass(frozen=True, eq=False)
class Outcome:
    """The rows that are cases and controls at their own outputs, by the balance there.

    Attributes
    ----------
    rows : int
        All rows n, those that are neither included.
    cases, controls : float64 arrays
        N₋/N₊ at the output of each case and of each control; both sorts of vector exist there.
    """

    rows: int
    cases: FloatArray
    controls: FloatArray

    @classmethod
    def of(cls, pattern: Pattern, truth: TrueVectors, released: IntArray) -> "Outcome":
        """Find them."""
        ratio = balance(pattern, truth, released)
        usable = np.isfinite(ratio) & (ratio > 0)
        found = [
            ratio[usable & own_members(relations, pattern.columns, truth.labels, released)]
            for relations in (pattern.cases, pattern.controls)
        ]
        return cls(len(truth), *found)

    def expected(self, factor: float) -> tuple[float, float]:
        """Return the expected numbers of rows that count as cases and controls at a κ."""
        cases = np.minimum(1.0, factor * self.cases).sum()
        return float(cases), float(np.minimum(1.0, 1 / (factor * self.controls)).sum())

    def draw(self, factor: float, rng: np.random.Generator) -> tuple[int, int]:
        """Draw which rows count as cases and controls at a κ; return how many."""
        cases = rng.random(len(self.cases)) < factor * self.cases
        controls = rng.random(len(self.controls)) * factor * self.controls < 1
        return int(cases.sum()), int(controls.sum())


@dataclass(frozen=True)
class PatternCounts:
    """The counts of a pattern: a lower bound of the vector's ε at any level.

    Attributes
    ----------
    rows, cases, controls : int
    factor : float
        κ.
    split : float
        The share of the error probability that the cases' bound has.
    """

    rows: int
    cases: int
    controls: int
    factor: float
    split: float

    def bound(self, alpha: float) -> EpsilonBound:
        """Return the lower bound of ε at level 1 − alpha, in nats."""
        low = trials_lower(self.cases, self.rows, alpha * self.split)
        high = trials_upper(self.controls, self.rows, alpha * (1 - self.split))
        with np.errstate(divide="ignore"):
            epsilon = max(float(np.log(low) - np.log(high)) - float(np.log(self.factor)), 0.0)
        return EpsilonBound(epsilon, alpha, self.rows, "patterns")
