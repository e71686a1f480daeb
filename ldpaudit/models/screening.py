"""Which columns of wide tables models learn from, and which have many or rare values."""

# A screen keeps the columns that go most clearly with the labels of the rows that its model is
# fitted on: what is scored later is as new to it as it is to the model. No bound rests on the
# choice.

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.models.encoding import BoostingMatrix, DesignMatrix
from ldpaudit.release import BoolArray, FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

_BINS: Final = 16
# With more labels, the rarer ones count as one.
_MOST_LABELS: Final = 20
_MOST_ROWS_SCREENED: Final = 20_000
_CELLS_AT_ONCE: Final = 2_000_000
# Rows that are added to each expected count, so that single rows do not decide.
_LEAST_EXPECTED: Final = 0.5


def association(features: FeatureTable, codes: npt.NDArray[Any]) -> FloatArray:
    """Return how clearly each array column goes with the codes, float64 of shape (width,)."""
    # See :func:`associations`; of more than 20,000 rows as many at equal distances are looked at.
    n = len(features)
    if n > _MOST_ROWS_SCREENED:
        rows = np.linspace(0, n - 1, _MOST_ROWS_SCREENED).astype(np.int64)
        features, codes = features.take(rows), codes[rows]
    scores: FloatArray = associations(features, [codes])[0]
    return scores


def associations(features: FeatureTable, codes: Sequence[npt.NDArray[Any]]) -> FloatArray:
    """Return how clearly each array column goes with each of v labels (n,), float64 (v, width)."""
    # About standard normal for a column that says nothing (Wilson & Hilferty 1931); the larger of
    # two statistics: χ² of 16 bins, or of the levels, and labels; and, for numbers, χ² of the
    # labels' mean ranks. Numeric columns come first; a column that does not vary has −∞.
    labels = [_few_labels(one) for one in codes]
    at_once = max(1, _CELLS_AT_ONCE // max(len(features), 1))
    starts = range(0, features.numeric.shape[1], at_once)
    blocks = [_of_numbers(features.numeric[:, i : i + at_once], labels) for i in starts]
    levels = [_of_levels(column, labels) for column in features.categorical.T]
    scores = [np.empty((len(labels), 0)), *blocks, *(level[:, None] for level in levels)]
    return np.concatenate(scores, axis=1)


def strongest(scores: FloatArray, most: int) -> IndexArray:
    """Return the positions of the largest scores, in order of position, int64."""
    order = np.argsort(-scores, kind="stable")[:most]
    return np.sort(order).astype(np.int64)


def _few_labels(codes: npt.NDArray[Any]) -> IndexArray:
    present, labels = np.unique(codes, return_inverse=True)
    if len(present) > _MOST_LABELS:
        order = np.argsort(-np.bincount(labels), kind="stable")
        places = np.full(len(present), _MOST_LABELS - 1)
        places[order[: _MOST_LABELS - 1]] = np.arange(_MOST_LABELS - 1)
        labels = places[labels]
    return labels.astype(np.int64)


def _of_numbers(block: Float32Array, labels: Sequence[IndexArray]) -> FloatArray:
    bins, width = _bins(block), block.shape[1]
    size = _BINS + 3  # Missing, the smallest, 16 above quantiles, the largest.
    places = np.arange(width) * size + bins
    scores = []
    for codes in labels:
        k = int(codes.max(initial=0)) + 1
        counts = np.bincount((places * k + codes[:, None]).ravel(), minlength=width * size * k)
        counts = counts.reshape(width, size, k)
        scores.append(np.maximum(_scattered(counts), _ranked(counts)))
    return np.stack(scores)


def _bins(block: Float32Array) -> IntArray:
    """Return the bin of each number, 0 where missing; the smallest and the largest have their own.

    Bins hold about as many rows as another, ties apart.
    """
    ordered = np.sort(block, axis=0)
    known = len(block) - np.isnan(ordered).sum(axis=0)
    bins = (~np.isnan(block)).astype(np.int32)
    for place in _edges(known):
        edge = np.take_along_axis(ordered, place[None], axis=0)
        bins += block > edge
    last = np.take_along_axis(ordered, np.maximum(known - 1, 0)[None], axis=0)
    return np.asarray(bins + ((block >= last) & (bins > 1)), dtype=np.int32)


def _edges(known: npt.NDArray[Any]) -> Iterator[IndexArray]:
    for part in range(_BINS):
        yield np.minimum(part * known // _BINS, np.maximum(known - 1, 0)).astype(np.int64)


def _of_levels(column: IntArray, labels: Sequence[IndexArray]) -> FloatArray:
    _, levels = np.unique(column, return_inverse=True)
    size, scores = int(levels.max(initial=0)) + 1, []
    for codes in labels:
        k = int(codes.max(initial=0)) + 1
        counts = np.bincount(levels * k + codes, minlength=size * k).reshape(1, size, k)
        scores.append(_scattered(counts)[0])
    return np.array(scores)


def _scattered(counts: npt.NDArray[Any]) -> FloatArray:
    """Return the normal scores of χ² of bins × labels, of tables of shape (columns, bins, k)."""
    rows, labels = counts.sum(axis=2), counts.sum(axis=1)
    total = np.maximum(labels.sum(axis=1), 1)
    expected = rows[:, :, None] * labels[:, None, :] / total[:, None, None]
    square = ((counts - expected) ** 2 / (expected + _LEAST_EXPECTED)).sum(axis=(1, 2))
    freedom = ((rows > 0).sum(axis=1) - 1) * ((labels > 0).sum(axis=1) - 1)
    return _normal(square, freedom)


def _ranked(counts: npt.NDArray[Any]) -> FloatArray:
    """Return the normal scores of the labels' mean bins: χ² as of Kruskal and Wallis (1952)."""
    known = counts[:, 1:].astype(np.float64)
    rows, labels = known.sum(axis=2), known.sum(axis=1)
    total = np.maximum(rows.sum(axis=1), 1.0)
    ranks = np.cumsum(rows, axis=1) - rows / 2
    mean = (rows * ranks).sum(axis=1) / total
    spread = (rows * (ranks - mean[:, None]) ** 2).sum(axis=1)
    sums = np.einsum("cbk,cb->ck", known, ranks - mean[:, None])
    between = (sums**2 / np.maximum(labels, 1.0)).sum(axis=1)
    square = total * between / np.maximum(spread, 1e-9)
    return _normal(square, np.where(spread > 0, (labels > 0).sum(axis=1) - 1, 0))


def _normal(square: FloatArray, freedom: npt.NDArray[Any]) -> FloatArray:
    degrees = np.maximum(freedom, 1)
    spread = 2.0 / (9.0 * degrees)
    score = (np.cbrt(square / degrees) - (1.0 - spread)) / np.sqrt(spread)
    return np.asarray(np.where(freedom > 0, score, -np.inf))


# Columns that any model learns from: beyond, those that go most clearly with its labels.
MOST_COLUMNS: Final = 2_048
# Columns that boosting learns from: its time grows with them, and so do its chance finds.
TREE_COLUMNS: Final = 256
_NARROW: Final = 64


@dataclass(frozen=True)
class Screen:
    """The columns that a model learns from."""

    columns: tuple[int, ...] | None = None
    """Array columns, the numeric ones first, in order; None: all."""

    @classmethod
    def fit(cls, features: FeatureTable, codes: npt.NDArray[Any], most: int) -> "Screen":
        if features.width <= most:
            return cls()
        return cls(tuple(strongest(association(features, codes), most).tolist()))

    def transform(self, features: FeatureTable) -> FeatureTable:
        return features if self.columns is None else projected(features, self.columns)


@dataclass(frozen=True)
class ScreenedDesign:
    """A design on the kept columns, as a design on the whole table."""

    screen: Screen
    design: Any

    @property
    def width(self) -> int:
        return int(self.design.width)

    def categorical(self) -> BoolArray:
        return np.asarray(self.design.categorical())

    def transform(self, features: FeatureTable) -> Any:
        return self.design.transform(self.screen.transform(features))


def screened(
    kind: type[DesignMatrix] | type[BoostingMatrix],
    features: FeatureTable,
    codes: npt.NDArray[Any],
    most: int,
) -> Any:
    """Return a design of the columns that go most clearly with the codes, all if they are few."""
    screen = Screen.fit(features, codes, most)
    design = kind.fit(screen.transform(features))
    return design if screen.columns is None else ScreenedDesign(screen, design)


def tried_out() -> bool:
    """Return whether models are to be small, to try things out: ``LDPAUDIT_EFFORT=small``."""
    return os.environ.get("LDPAUDIT_EFFORT") == "small"


def most_bins(width: int, categorical: Any = None) -> int:
    """Return how many bins boosting cuts each number into: fewer for wide tables of numbers.

    ``categorical``: which columns are, bool of shape (width,), or None; each level needs a bin.
    """
    narrow = width <= _NARROW and not tried_out()
    return 255 if narrow or (categorical is not None and np.any(categorical)) else 63


def strongest_of(
    matrix: Float32Array, codes: npt.NDArray[Any], allowed: BoolArray, most: int = TREE_COLUMNS
) -> BoolArray:
    """Return which of the allowed columns of a matrix to learn from, bool of shape (d,)."""
    if allowed.sum() <= most:
        return allowed
    places = np.flatnonzero(allowed)
    none = np.empty((len(matrix), 0), dtype=np.int32)
    table = FeatureTable(np.asarray(matrix[:, places], dtype=np.float32), none, (), len(places))
    kept = np.zeros_like(allowed)
    kept[places[strongest(association(table, codes), most)]] = True
    return kept


# A categorical column of more levels is encoded by what labels say, where labels may be used …
MANY_VALUES = 100
# … and a numeric one of more values, if they repeat.
_MANY_NUMBERS = 254
_LEAST_ROWS_PER_VALUE = 1.2
_LOST_SHARE = 0.02
_RARE = 10
# Numbers of which none comes twice among so many rows are taken not to repeat.
_LOOKED_AT = 5_000


def projected(features: FeatureTable, columns: tuple[int, ...]) -> FeatureTable:
    """Return the table of some columns, counted with the numeric ones first."""
    d = features.numeric.shape[1]
    numeric = [j for j in columns if j < d]
    categorical = [j - d for j in columns if j >= d]
    return replace(
        features,
        numeric=features.numeric[:, numeric],
        categorical=features.categorical[:, categorical],
        cardinalities=tuple(features.cardinalities[j] for j in categorical),
        marks=None,
        mark_sources=(),
    )


def many_valued(features: FeatureTable) -> list[int]:
    """Return the columns whose values repeat, but are too many for an indicator each."""
    return [j for j in range(features.width) if _has_many(features, j)]


def unrepeated(features: FeatureTable) -> int:
    """Return how many categorical columns have another value in nearly every row."""
    n, d = len(features), features.numeric.shape[1]
    values = (_counts(features, d + j) for j in range(features.categorical.shape[1]))
    return sum(len(counts) > max(n / _LEAST_ROWS_PER_VALUE, MANY_VALUES) for counts in values)


def merged(features: FeatureTable) -> int:
    """Return how many categorical columns have rare values that are taken as one, on few rows."""
    d = features.numeric.shape[1]
    places = range(d, features.width)
    rare = [
        j for j in places if (_counts(features, j) < _RARE).any() and not _has_many(features, j)
    ]
    return len(rare) - unrepeated(features)


def _has_many(features: FeatureTable, column: int) -> bool:
    n = len(features)
    if column < features.numeric.shape[1] and n > 4 * _LOOKED_AT:
        some = features.numeric[:: n // _LOOKED_AT, column]
        if len(np.unique(some)) == len(some):
            return False
    counts = _counts(features, column)
    if n < _LEAST_ROWS_PER_VALUE * len(counts):
        return False
    if column < features.numeric.shape[1]:
        return len(counts) > _MANY_NUMBERS
    lost = counts[counts < _RARE].sum()
    return len(counts) > MANY_VALUES or bool(lost > _LOST_SHARE * n and len(counts) > _RARE)


def _counts(features: FeatureTable, column: int) -> IndexArray:
    d = features.numeric.shape[1]
    if column < d:
        return np.unique(features.numeric[:, column], return_counts=True)[1].astype(np.int64)
    counts = np.bincount(features.categorical[:, column - d] + 1)
    return np.asarray(counts[counts > 0], dtype=np.int64)
