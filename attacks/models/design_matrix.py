"""Feature tables as matrices for linear models and for boosting."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.release import BoolArray, FeatureTable, Float32Array, FloatArray, IntArray

MAX_LEVELS = 100
"""Levels of one categorical column that get their own indicator; the others share one."""
MAX_INDICATORS = 600
"""Indicators over all categorical columns."""
BOOSTED_LEVELS = 254
"""Levels of a categorical column that boosting tells apart; one more holds all others."""
_RARE = 10
_OFTEN = 30
_CLIP = 8.0


@dataclass(frozen=True)
class DesignMatrix:
    """Standardised numbers, missing indicators and one-hot levels, fitted on some rows.

    Attributes
    ----------
    columns : bool array of shape (d,)
        The numeric columns that vary.
    means, scales : float64 arrays of shape (columns.sum(),)
        Over the rows where the number is there.
    flagged : bool array of shape (d,)
        The numeric columns that get a missing indicator.
    levels : tuple of int32 arrays
        For each categorical column and code (shifted by one, so that missing is 0) the indicator's
        column; -1 for none.
    indicators : int
        Columns of the one-hot block.
    """

    columns: BoolArray
    means: FloatArray
    scales: FloatArray
    flagged: BoolArray
    levels: tuple[IntArray, ...]
    indicators: int

    @classmethod
    def fit(cls, features: FeatureTable) -> "DesignMatrix":
        """Learn means, scales and frequent levels from the rows of ``features``."""
        numeric = features.numeric.astype(np.float64)
        there = ~np.isnan(numeric)
        counts = np.maximum(there.sum(axis=0), 1)
        means = np.where(there, numeric, 0.0).sum(axis=0) / counts
        centred = np.where(there, numeric - means, 0.0)
        scales = np.sqrt((centred**2).sum(axis=0) / counts)
        columns = scales > 1e-12 * np.maximum(np.abs(means), 1e-30)
        missing = len(features) - there.sum(axis=0)
        flagged = np.minimum(missing, there.sum(axis=0)) >= _RARE
        levels, indicators = _frequent_levels(features)
        return cls(columns, means[columns], scales[columns], flagged, levels, indicators)

    @property
    def width(self) -> int:
        """The number of columns of the matrix."""
        return int(self.columns.sum() + self.flagged.sum()) + self.indicators

    def transform(self, features: FeatureTable) -> Float32Array:
        """Return the matrix of the given rows, float32 of shape (n, width)."""
        matrix = np.zeros((len(features), self.width), dtype=np.float32)
        d, f = int(self.columns.sum()), int(self.flagged.sum())
        scaled = (features.numeric[:, self.columns] - self.means) / self.scales
        matrix[:, :d] = np.clip(np.nan_to_num(scaled, nan=0.0), -_CLIP, _CLIP)
        matrix[:, d : d + f] = np.isnan(features.numeric[:, self.flagged])
        for column, lookup in enumerate(self.levels):
            codes = np.minimum(features.categorical[:, column] + 1, len(lookup) - 1)
            target = lookup[codes]
            rows = np.flatnonzero(target >= 0)
            matrix[rows, d + f + target[rows]] = 1.0
        return matrix


def _frequent_levels(features: FeatureTable) -> tuple[tuple[IntArray, ...], int]:
    tables: list[IntArray] = []
    used = 0
    for column, cardinality in enumerate(features.cardinalities):
        counts = np.bincount(features.categorical[:, column] + 1, minlength=cardinality + 1)
        room = max(min(MAX_LEVELS, MAX_INDICATORS - used - 1), 0)
        order = np.argsort(-counts, kind="stable")[:room]
        order = order[counts[order] >= _RARE]
        lookup = np.full(cardinality + 1, used + len(order), dtype=np.int32)
        lookup[order] = used + np.arange(len(order), dtype=np.int32)
        tables.append(lookup)
        used += len(order) + 1
    return tuple(tables), used


@dataclass(frozen=True)
class BoostingMatrix:
    """Columns as histogram gradient boosting takes them: NaN where missing, codes for levels.

    Attributes
    ----------
    columns : bool array of shape (d,)
        The numeric columns that are there often enough to be split on.
    levels : tuple of int32 arrays
        For each categorical column the code that boosting sees, below 255.
    """

    columns: BoolArray
    levels: tuple[IntArray, ...]

    @classmethod
    def fit(cls, features: FeatureTable) -> "BoostingMatrix":
        """Keep the 254 most frequent levels of each categorical column."""
        tables: list[IntArray] = []
        for column, cardinality in enumerate(features.cardinalities):
            counts = np.bincount(features.categorical[:, column] + 1, minlength=cardinality + 1)
            lookup = np.full(max(cardinality, 1), BOOSTED_LEVELS, dtype=np.int32)
            order = np.argsort(-counts[1:], kind="stable")[:BOOSTED_LEVELS]
            lookup[order] = np.arange(len(order), dtype=np.int32)
            tables.append(lookup)
        # Boosting holds a tenth of the rows out, and no column may be empty in the rest.
        there = (~np.isnan(features.numeric)).sum(axis=0)
        return cls(there >= min(_OFTEN, len(features)), tuple(tables))

    @property
    def width(self) -> int:
        """The number of columns of the matrix."""
        return len(self.levels) + int(self.columns.sum())

    def categorical(self) -> BoolArray:
        """Return which columns of the matrix are categorical, bool of shape (width,)."""
        return np.arange(self.width) < len(self.levels)

    def transform(self, features: FeatureTable) -> Float32Array:
        """Return the matrix, categorical columns first, float32 of shape (n, width)."""
        c = len(self.levels)
        matrix = np.empty((len(features), self.width), dtype=np.float32)
        for column, lookup in enumerate(self.levels):
            codes = features.categorical[:, column]
            inside = np.clip(codes, 0, len(lookup) - 1)
            matrix[:, column] = np.where(codes < 0, np.nan, lookup[inside])
        matrix[:, c:] = features.numeric[:, self.columns]
        return matrix
