"""Feature tables as matrices of numbers, within stated limits."""

# :class:`DesignMatrix` is for models and distances that take numbers only: standardised columns,
# marks of missing values, one indicator for each frequent level. :class:`BoostingMatrix` is for
# trees. Both are fitted on features alone; no label takes part.

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ldpaudit.release import BoolArray, FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

# Levels of a categorical column that boosting tells apart; one more holds all others.
BOOSTED_LEVELS = 254
_OFTEN = 30
# What is computed in double precision is, of so many cells, small beside the table.
_CELLS_AT_ONCE = 1_000_000

CountsByLevel = list[npt.NDArray[np.int64]]
# For each column the codes with an indicator of their own, and whether the others share one.
Chosen = list[tuple[IndexArray, bool]]


@dataclass(frozen=True)
class LevelsByColumn:
    """The most frequent levels of each column get an indicator of their own."""

    most: int
    """Levels of one column."""
    in_all: float = np.inf
    """Indicators of all columns together; the first columns are served first."""
    rarest: int = 1
    """Rows that such a level has at least."""
    others: bool = False
    """Whether the other levels of a column, and "missing" among them, share one more indicator;
    else they have none."""
    fewest: ClassVar[int] = 1

    def choose(self, counts: CountsByLevel) -> Chosen:
        """Return the codes (shifted by one, so that missing is 0) with an indicator."""
        chosen: Chosen = []
        used = 0
        for count in counts:
            levels = count if self.others else np.concatenate([[0], count[1:]])
            room = int(max(min(self.most, self.in_all - used - 1), 0))
            order = np.argsort(-levels, kind="stable")[:room]
            codes = order[levels[order] >= self.rarest]
            chosen.append((codes, self.others))
            used += len(codes) + self.others
        return chosen


@dataclass(frozen=True)
class LevelsInAll:
    """The most frequent levels of all columns together get an indicator of their own.

    "Missing" is a level. The others of a column share one indicator, where there are others. A
    column with a single indicator, the same in every row, gets none.
    ``most``: levels over all columns; ``share``: where there are more, levels on a smaller share
    of the rows are among the others.
    """

    most: int
    share: float
    fewest: ClassVar[int] = 2

    def choose(self, counts: CountsByLevel) -> Chosen:
        """Return the codes (shifted by one, so that missing is 0) with an indicator."""
        present = np.sort([size for count in counts for size in count.tolist() if size > 0])
        least = 1
        if len(present) > self.most:
            least = int(max(present[-self.most - 1] + 1, np.ceil(self.share * counts[0].sum())))
        return [
            (np.flatnonzero(count >= least), bool(((count > 0) & (count < least)).any()))
            for count in counts
        ]


@dataclass(frozen=True)
class Limits:
    """What a design matrix makes of a table."""

    levels: LevelsByColumn | LevelsInAll
    """Which levels of categorical columns get an indicator."""
    clip: float = 8.0
    """Standardised values are cut at ± this, so that one odd value does not outweigh all columns.
    """
    marked_from: int = 1
    """Rows with a value, and rows without one, that a column needs for a mark of missing values."""
    constants_marked: bool = True
    """Whether a column that is constant where it is there may be marked, too."""
    single: bool = False
    """Whether centres and scales are in single precision, and the median replaces a missing value;
    else they are in double precision, and the mean does."""
    standardise: bool = True
    """False, with ``single``, leaves numbers as they are, without marks."""


# For linear models and networks that learn a label.
LINEAR = Limits(LevelsByColumn(100, in_all=600, rarest=10, others=True), marked_from=10)


@dataclass(frozen=True)
class Scaling:
    """How numeric columns are scaled."""

    center: npt.NDArray[Any]
    scale: npt.NDArray[Any]
    """``center`` and ``scale``: float32 or float64 arrays of shape (d,): what is subtracted, and
    what divides."""
    fill: npt.NDArray[Any]
    """Float32 or float64 array of shape (d,): what replaces a missing value."""
    clip: float = np.inf
    """Scaled values are cut at ± this."""

    @classmethod
    def fit(cls, matrix: FloatArray, weights: FloatArray) -> "Scaling":
        """Standardise rows (n, d) with weights (n,), not negative and not all zero."""
        # A column that does not vary has scale 1.
        share = weights / weights.sum()
        means = share @ matrix
        scales = np.sqrt(share @ (matrix - means) ** 2)
        # Rounding leaves a constant column a scale of some 1e-16 of its mean.
        constant = scales <= 1e-12 * np.maximum(np.abs(means), 1e-30)
        return cls(means, np.where(constant, 1.0, scales), means)

    def transform(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the scaled values, of the shape (n, d) of the given ones."""
        filled = np.where(np.isnan(values), self.fill, values)
        return np.asarray(np.clip((filled - self.center) / self.scale, -self.clip, self.clip))


@dataclass(frozen=True)
class DesignMatrix:
    """Scaled numbers, marks of missing values and indicators of levels, fitted on some rows."""

    columns: IndexArray
    """Int64 array of shape (d,): the numeric columns that vary."""
    marked: IndexArray
    """Int64 array of shape (f,): the numeric columns that get a mark where a value is missing."""
    scaling: Scaling
    """Of the columns that vary."""
    lookups: tuple[IntArray, ...]
    """For each categorical column the indicators of the codes −1, 0, 1 … and, last, of a code that
    no fitted row could have; −1 for none."""
    indicators: int
    """How many indicators there are."""
    merged: int
    """How many levels that occur have no indicator of their own."""

    @classmethod
    def fit(cls, table: FeatureTable, limits: Limits = LINEAR) -> "DesignMatrix":
        """Learn scales and frequent levels from the rows of a table."""
        numeric = table.numeric
        lowest = np.fmin.reduce(numeric, axis=0, initial=np.inf)
        columns = np.flatnonzero(lowest < np.fmax.reduce(numeric, axis=0, initial=-np.inf))
        marked = _marked(numeric, columns, limits)
        return cls(columns, marked, _scaling(numeric, columns, limits), *_indicators(table, limits))

    @property
    def width(self) -> int:
        """The number of columns of the matrix."""
        return len(self.columns) + len(self.marked) + self.indicators

    def transform(self, table: FeatureTable) -> Float32Array:
        """Return the matrix of the rows of a table, float32 of shape (n, width)."""
        matrix = np.zeros((len(table), self.width), dtype=np.float32)
        first = len(self.columns)
        at_once = max(1, _CELLS_AT_ONCE // max(first, 1))
        for start in range(0, len(table) if first else 0, at_once):
            rows = slice(start, start + at_once)
            matrix[rows, :first] = self.scaling.transform(table.numeric[rows][:, self.columns])
        last = first + len(self.marked)
        matrix[:, first:last] = np.isnan(table.numeric[:, self.marked])
        for codes, lookup in zip(table.categorical.T, self.lookups, strict=True):
            indicator = lookup[np.minimum(codes + 1, len(lookup) - 1)]
            there = np.flatnonzero(indicator >= 0)
            matrix[there, last + indicator[there]] = 1.0
        return matrix


def _marked(numeric: Float32Array, columns: IndexArray, limits: Limits) -> IndexArray:
    if not limits.standardise:
        return np.empty(0, dtype=np.int64)
    missing = np.isnan(numeric).sum(axis=0)
    marked = np.flatnonzero(np.minimum(missing, len(numeric) - missing) >= limits.marked_from)
    return marked if limits.constants_marked else np.intersect1d(marked, columns)


def _scaling(numeric: Float32Array, columns: IndexArray, limits: Limits) -> Scaling:
    if limits.single:
        return _single(numeric[:, columns], limits)
    means, scales = np.empty((2, numeric.shape[1]))
    for part in _column_groups(*numeric.shape):
        values = numeric[:, part].astype(np.float64)
        there = ~np.isnan(values)
        counts = np.maximum(there.sum(axis=0), 1)
        values[~there] = 0.0
        means[part] = values.sum(axis=0) / counts
        values -= means[part]
        values[~there] = 0.0
        scales[part] = np.sqrt(np.square(values, out=values).sum(axis=0) / counts)
    return Scaling(means[columns], scales[columns], means[columns], limits.clip)


def _column_groups(rows: int, width: int) -> Iterator[slice]:
    """Yield all columns, in groups that hold few cells.

    A column by itself would be added up in another order, so there is one only where width is 1.
    """
    first, most = 0, max(3, _CELLS_AT_ONCE // max(rows, 1))
    while first < width:
        last = width if width - first <= most else first + most - 1
        yield slice(first, last)
        first = last


def _single(used: Float32Array, limits: Limits) -> Scaling:
    fill: Float32Array = np.zeros(used.shape[1], dtype=np.float32)
    if np.isnan(used).any():
        fill = np.nanmedian(used, axis=0).astype(np.float32)
    if not limits.standardise:
        zeros: Float32Array = np.zeros_like(fill)
        return Scaling(zeros, zeros + 1, fill)
    center = np.asarray(np.nanmean(used, axis=0, dtype=np.float64), dtype=np.float32)
    scale = np.asarray(np.nanstd(used, axis=0, dtype=np.float64), dtype=np.float32)
    scale[scale == 0] = np.finfo(np.float32).tiny
    return Scaling(center, scale, fill, limits.clip)


def _indicators(table: FeatureTable, limits: Limits) -> tuple[tuple[IntArray, ...], int, int]:
    """Return lookups, the number of indicators, and that of levels without one of their own."""
    pairs = zip(table.categorical.T, table.cardinalities, strict=True)
    # One code more than there are, for codes that are new.
    counts = [np.bincount(codes + 1, minlength=size + 2) for codes, size in pairs]
    lookups, used, merged = [], 0, 0
    for count, (codes, others) in zip(counts, limits.levels.choose(counts), strict=True):
        merged += int((count > 0).sum()) - len(codes)
        has_some = len(codes) + others >= limits.levels.fewest
        lookup = np.full(
            len(count), used + len(codes) if has_some and others else -1, dtype=np.int32
        )
        if has_some:
            lookup[codes] = np.arange(used, used + len(codes))
            used += len(codes) + others
        lookups.append(lookup)
    return tuple(lookups), used, merged


@dataclass(frozen=True)
class BoostingMatrix:
    """Columns as histogram gradient boosting takes them: NaN where missing, codes for levels."""

    columns: BoolArray
    """Bool array of shape (d,): the numeric columns that are there often enough to be split on."""
    levels: tuple[IntArray, ...]
    """For each categorical column the code that boosting sees, below 255."""

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


def pixels(features: FeatureTable) -> Float32Array:
    """Return the pixels of square images as they are, float32 of shape (n, width)."""
    return np.nan_to_num(features.numeric)
