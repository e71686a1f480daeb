"""How clearly each feature column goes with a label: one quick statistic, to choose columns by.

It chooses where to look; no bound rests on it.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

_BINS: Final = 16
_MOST_LABELS: Final = 20
"""With more labels, the rarer ones count as one."""
_MOST_ROWS: Final = 20_000
_CELLS_AT_ONCE: Final = 2_000_000
_LEAST_EXPECTED: Final = 0.5
"""Rows that are added to each expected count, so that single rows do not decide."""


def association(features: FeatureTable, codes: npt.NDArray[Any]) -> FloatArray:
    """Return how clearly each array column goes with the codes, float64 of shape (width,).

    See :func:`associations`; of more than 20,000 rows as many at equal distances are looked at.
    """
    n = len(features)
    if n > _MOST_ROWS:
        rows = np.linspace(0, n - 1, _MOST_ROWS).astype(np.int64)
        features, codes = features.take(rows), codes[rows]
    scores: FloatArray = associations(features, [codes])[0]
    return scores


def associations(features: FeatureTable, codes: Sequence[npt.NDArray[Any]]) -> FloatArray:
    """Return how clearly each array column goes with each of v labels, float64 (v, width).

    Parameters
    ----------
    features : FeatureTable
        n rows.
    codes : sequence of v integer arrays of shape (n,)
        Labels 0, 1 …

    Returns
    -------
    float64 array of shape (v, width)
        About standard normal for a column that says nothing (Wilson & Hilferty 1931); the larger of
        two statistics: χ² of 16 bins, or of the levels, and labels; and, for numbers, χ² of the
        labels' mean ranks. Numeric columns come first; a column that does not vary has −∞.
    """
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
