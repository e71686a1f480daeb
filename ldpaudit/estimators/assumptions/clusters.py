"""Rows that belong together: equal ones, nearly equal ones, given groups; and one row of each."""

from collections.abc import Callable
from typing import Final

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

LARGEST: Final = 30
"""Equal rows that are more are no cluster: so many are equal by chance, as in a small table."""
_DIRECTIONS: Final = 4
_SHIFTS: Final = 3
_STARTS: Final = 16
_FEW_STARTS: Final = 4
_MANY_ROWS: Final = 200_000
_MOST_JOINED: Final = 6
_NARROW: Final = 0.9
"""The share of rows that are in groups of at most 30 when enough columns have joined."""
_SEVERAL: Final = 0.2
_ENTRIES: Final = 1 << 18
"""Entries of a table that are looked at at once."""
_WIDTH: Final = 0.1
"""Nearly equal: by less than this share of a standard deviation in any direction."""


def equal_rows(features: FeatureTable) -> IndexArray:
    """Return codes of rows, int64 (n,): the same for equal rows, where at most 30 are."""
    numbers = (np.where(np.isnan(c), np.nan, c + 0.0).view(np.int32) for c in features.numeric.T)
    mixed = _mixed([*numbers, *features.categorical.T], len(features))
    return without_large(np.unique(mixed, return_inverse=True)[1].astype(np.int64))


def partly_equal_rows(features: FeatureTable, rng: np.random.Generator) -> list[IndexArray]:
    """Return groupings, int64 (n,) each: rows equal in a few columns, where at most 30 are.

    Rows of one person often differ in some columns, by date or place. So each column starts a
    grouping, and random others join it until few rows have so many others equal to them.
    """
    columns = [*features.numeric.T, *features.categorical.T]
    most = _FEW_STARTS if len(features) > _MANY_ROWS else _STARTS
    found: list[IndexArray] = []
    for start in rng.permutation(len(columns))[:most]:
        others = rng.permutation(np.delete(np.arange(len(columns)), start))
        codes = _narrowed(columns, [int(start), *others.tolist()])
        if codes is not None:
            found.append(codes)
    return found


def _narrowed(columns: list[IntArray], order: list[int]) -> IndexArray | None:
    """Return codes by as many columns as it takes, None where no rows of a group are left."""
    codes = np.zeros(len(columns[0]), dtype=np.int64)
    for place in order[:_MOST_JOINED]:
        values = np.unique(columns[place], return_inverse=True)[1].astype(np.int64)
        codes = np.unique(codes * (int(values.max()) + 1) + values, return_inverse=True)[1]
        sizes = np.bincount(codes)[codes]
        if np.mean(sizes <= LARGEST) >= _NARROW:
            several = np.mean((sizes > 1) & (sizes <= LARGEST))
            return without_large(codes) if several >= _SEVERAL else None
    return None


def alike_rows(features: FeatureTable, rng: np.random.Generator, width: float = 1.0) -> IndexArray:
    """Return codes of rows, int64 (n,): the same for nearly equal rows, where at most 30 are.

    Rows are put into the cells of a few random grids on random directions; rows of one cell are
    linked. ``width`` scales the cells.
    """
    places = _projected(features, rng)
    links = []
    for _ in range(_SHIFTS):
        shift = rng.random(places.shape[1])
        cells = np.floor(places / (_WIDTH * width) + shift).astype(np.int32)
        mixed = _mixed(list(cells.T), len(cells))
        order = np.argsort(mixed)
        same = np.flatnonzero(mixed[order[1:]] == mixed[order[:-1]])
        links.append((order[same], order[same + 1]))
    first, second = (np.concatenate(part) for part in zip(*links, strict=True))
    return without_large(_components(first, second, len(features)))


def _projected(features: FeatureTable, rng: np.random.Generator) -> FloatArray:
    """Return rows on random directions in standard deviations; levels are random numbers."""
    columns = features.width
    directions = rng.standard_normal((columns, min(_DIRECTIONS, columns)))
    levels = [rng.standard_normal(size + 1) for size in features.cardinalities]
    standardised = _standardised(features.numeric)
    places = np.empty((len(features), directions.shape[1]))
    for rows in gen_batches(len(features), _rows_at_once(columns)):
        pairs = zip(levels, features.categorical[rows].T, strict=True)
        drawn = [level[codes + 1, None] for level, codes in pairs]
        places[rows] = np.hstack([standardised(rows), *drawn]) @ directions
    return np.asarray(places / np.maximum(places.std(axis=0), 1e-12))


def _standardised(numeric: Float32Array) -> Callable[[slice], FloatArray]:
    """Return a function from rows to their numbers in standard deviations, 0 where missing."""
    scaler, n = StandardScaler(), len(numeric)
    for rows in gen_batches(n if numeric.shape[1] else 0, _rows_at_once(numeric.shape[1])):
        scaler.partial_fit(numeric[rows].astype(np.float64))

    def scaled(rows: slice) -> FloatArray:
        values = numeric[rows].astype(np.float64)
        return np.nan_to_num(scaler.transform(values)) if values.shape[1] else values

    return scaled


def _rows_at_once(columns: int) -> int:
    return max(_ENTRIES // max(columns, 1), 1)


def _mixed(columns: list[IntArray], n: int) -> IndexArray:
    """Return one number for each row, the same for rows that are equal in all columns."""
    mixed = np.zeros(n, dtype=np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return mixed.view(np.int64)


def _components(first: IndexArray, second: IndexArray, n: int) -> IndexArray:
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def without_large(codes: IndexArray) -> IndexArray:
    """Return the codes from 0, rows of a cluster above 30 each on its own."""
    alone = np.bincount(codes)[codes] > LARGEST
    fresh = codes.copy()
    fresh[alone] = codes.max() + 1 + np.arange(int(alone.sum()))
    return np.unique(fresh, return_inverse=True)[1].astype(np.int64)


def merged(one: IndexArray, other: IndexArray) -> IndexArray:
    """Return codes of rows that two groupings put together, directly or through others."""
    shift = int(one.max()) + 1
    return _components(one, other + shift, shift + int(other.max()) + 1)[one]


def one_of_each(codes: IndexArray, rng: np.random.Generator) -> IndexArray:
    """Return one random row of each cluster, int64, in order."""
    order = rng.permutation(len(codes))
    _, first = np.unique(codes[order], return_index=True)
    return np.sort(order[first])


def has_pairs(codes: IndexArray, fewest: int) -> bool:
    """Return whether clusters hold at least so many disjoint pairs."""
    return int((np.bincount(codes) // 2).sum()) >= fewest
