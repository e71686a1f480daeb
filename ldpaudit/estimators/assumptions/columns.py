"""Columns cut into a few bins, so that each can be tested on its own, and small models of them."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.modelling.screening import TREE_COLUMNS, most_bins, strongest_of
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

_BINS: Final = 16
_LEVELS: Final = 32
_PRIOR_ROWS: Final = 5.0
_CELLS: Final = 1_500_000
_FEWEST_ROWS: Final = 4_000
_MOST_ROWS: Final = 50_000
_ITERATIONS: Final = 40
_LEAVES: Final = 15
_FEW_LEAVES: Final = 5
_SUREST: Final = 1e-3
"""No chance is taken to be smaller."""


@dataclass(frozen=True)
class Halves:
    """Rows to learn on and rows to test on, int64 arrays of positions in the release."""

    learn: IndexArray
    test: IndexArray


def sampled(rows: IndexArray, width: int, rng: np.random.Generator) -> IndexArray:
    """Return the rows, or so many at random that a model of ``width`` columns is soon fitted."""
    most = int(np.clip(_CELLS / max(width, 1), _FEWEST_ROWS, _MOST_ROWS))
    return rows if len(rows) <= most else np.sort(rng.choice(rows, size=most, replace=False))


def column_bins(features: FeatureTable, column: int, learn: IndexArray) -> tuple[IntArray, int]:
    """Return the bin of each row in an array column, int32 (n,), and how many bins there are.

    Quantiles of the learning rows, or the values themselves where they are few; the most frequent
    levels; missing values have a bin of their own.
    """
    d = features.numeric.shape[1]
    if column >= d:
        codes = features.categorical[:, column - d]
        counts = np.bincount(codes[learn] + 1, minlength=features.cardinalities[column - d] + 1)
        kept = np.argsort(-counts[1:], kind="stable")[:_LEVELS]
        lookup = np.full(len(counts), len(kept) + 1, dtype=np.int32)
        lookup[0] = 0
        lookup[kept + 1] = np.arange(1, len(kept) + 1)
        return lookup[codes + 1], len(kept) + 2
    values = features.numeric[:, column]
    known = values[learn]
    known = known[~np.isnan(known)]
    distinct = np.unique(known)
    if len(distinct) <= _BINS:
        edges = (distinct[1:] + distinct[:-1]) / 2
    else:
        edges = np.unique(np.quantile(known, np.linspace(0, 1, _BINS + 1)[1:-1]))
    bins = np.searchsorted(edges, values, side="right").astype(np.int32) + 1
    return np.where(np.isnan(values), 0, bins).astype(np.int32), len(edges) + 2


def tilts(
    bins: IntArray, size: int, outcomes: IntArray, strata: IndexArray, halves: Halves
) -> FloatArray:
    """Return the log-odds that a bin adds to an outcome in its stratum, learnt on other rows.

    Parameters
    ----------
    bins, outcomes : int32 arrays of shape (n,)
        The bin of each row, below ``size``, and 0 or 1.
    strata : int64 array of shape (n,)
        A few codes from 0.

    Returns
    -------
    float64 array, one for each test row
    """
    k = int(strata.max()) + 1
    cells = strata * size + bins
    learn = halves.learn
    ones = np.bincount(cells[learn], weights=outcomes[learn], minlength=k * size)
    rows = np.bincount(cells[learn], minlength=k * size).astype(np.float64)
    by_stratum = (ones.reshape(k, size).sum(axis=1) + 0.5) / (
        rows.reshape(k, size).sum(axis=1) + 1.0
    )
    base = np.repeat(by_stratum, size)
    chance = (ones + _PRIOR_ROWS * base) / (rows + _PRIOR_ROWS)
    return np.asarray((logit(chance) - logit(base))[cells[halves.test]])


def rates(outcomes: IntArray, codes: IndexArray, learn: IndexArray) -> FloatArray:
    """Return for each row the share of ones among learning rows of its code, float64 (n,)."""
    size = int(codes.max()) + 1
    ones = np.bincount(codes[learn], weights=outcomes[learn], minlength=size)
    rows = np.bincount(codes[learn], minlength=size)
    mean = (ones.sum() + 0.5) / (rows.sum() + 1.0)
    return np.asarray(((ones + mean) / (rows + 1.0))[codes])


@dataclass(frozen=True, eq=False)
class Columns:
    """Columns as boosting takes them.

    Attributes
    ----------
    matrix : float32 array of shape (n, c)
    categorical : bool array of shape (c,)
    places : int64 array of shape (c,)
        The array column of the features that each is, the numeric ones first; -1 for others.
    """

    matrix: Float32Array
    categorical: BoolArray
    places: IndexArray

    @classmethod
    def of(cls, features: FeatureTable) -> "Columns":
        """Return all columns of a table."""
        from ldpaudit.modelling.encoding import BoostingMatrix

        shape, d = BoostingMatrix.fit(features), features.numeric.shape[1]
        places = np.r_[d + np.arange(features.categorical.shape[1]), np.flatnonzero(shape.columns)]
        return cls(shape.transform(features), shape.categorical(), places.astype(np.int64))

    def only(self, places: Collection[int]) -> "Columns":
        """Return some of the columns by their places, with all that have none."""
        kept = np.isin(self.places, [-1, *places])
        return Columns(self.matrix[:, kept], self.categorical[kept], self.places[kept])

    def beside(self, *numbers: FloatArray) -> "Columns":
        """Return the columns with further numbers of shape (n,) beside them."""
        more = np.stack(numbers, axis=1).astype(np.float32)
        return Columns(
            np.concatenate([self.matrix, more], axis=1),
            np.r_[self.categorical, np.zeros(len(numbers), dtype=np.bool_)],
            np.r_[self.places, np.full(len(numbers), -1)],
        )

    def log_odds(
        self, outcomes: IntArray, halves: Halves, seed: int, *, small: bool = False
    ) -> FloatArray:
        """Return the log-odds of 1 on test rows, by boosting on learning rows; float64.

        A ``small`` model says less, and errs less where little is to be said.
        """
        from sklearn.ensemble import HistGradientBoostingClassifier

        known = outcomes[halves.learn]
        if self.matrix.shape[1] > TREE_COLUMNS:
            return self._strongest(outcomes, halves).log_odds(outcomes, halves, seed, small=small)
        if len(np.unique(known)) < 2 or self.matrix.shape[1] == 0:
            share = (known.sum() + 0.5) / (len(known) + 1.0)
            return np.full(len(halves.test), np.log(share / (1 - share)))
        model: Any = HistGradientBoostingClassifier(
            max_iter=_ITERATIONS,
            max_leaf_nodes=_FEW_LEAVES if small else _LEAVES,
            early_stopping=False,
            categorical_features=self.categorical,
            max_bins=most_bins(self.matrix.shape[1], self.categorical),
            random_state=seed,
        )
        model.fit(self.matrix[halves.learn], known)
        chances = model.predict_proba(self.matrix[halves.test])[:, 1]
        return logit(np.clip(chances, _SUREST, 1 - _SUREST))

    def _strongest(self, outcomes: IntArray, halves: Halves) -> "Columns":
        """Return those that go most clearly with the outcomes of learning rows."""
        extra = self.places < 0
        most = TREE_COLUMNS - int(extra.sum())
        learn = halves.learn
        kept = extra | strongest_of(self.matrix[learn], outcomes[learn], ~extra, most)
        return Columns(self.matrix[:, kept], self.categorical[kept], self.places[kept])


def logit(chance: FloatArray) -> FloatArray:
    """Return log(p/(1 − p))."""
    return np.asarray(np.log(chance) - np.log1p(-chance))
