"""Rows that belong together: equal ones, nearly equal ones, given groups; and one row of each."""

from collections.abc import Iterable
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ldpaudit.arrays import GOLDEN, stable_order
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

_Mixed = npt.NDArray[np.uint64]
# Equal rows that are more are no cluster: so many are equal by chance, as in a small table.
_LARGEST: Final = 30
_LEAST_SHARE: Final = 1e-3


def equal_rows(features: FeatureTable) -> IndexArray:
    """Return codes of rows, int64 (n,): the same for equal rows, where at most 30 are."""
    if features.width == 0:
        return np.zeros(len(features), dtype=np.int64)
    numbers = (np.where(np.isnan(c), np.nan, c + 0.0).view(np.int32) for c in features.numeric.T)
    mixed = _mixed(chain(numbers, features.categorical.T), len(features))
    return without_large(np.unique(mixed, return_inverse=True)[1].astype(np.int64))


def partly_equal_rows(
    features: FeatureTable, rng: np.random.Generator
) -> list[tuple[tuple[int, ...], IndexArray]]:
    """Return groupings of rows equal in a few columns, where at most 30 are.

    Each is the array columns, and codes, int64 (n,).

    Rows of one person often differ in some columns, by date or place. So groupings start from
    single columns and from random pairs, and the column joins in which rows that are equal so far
    are equal most above chance. No label is looked at.
    """
    # Views: no column is copied. Missing values and zeros of another form are as good as new ones.
    columns = [*(column.view(np.int32) for column in features.numeric.T), *features.categorical.T]
    if not columns:
        return []
    n, most = len(features), int(np.clip(400_000 // len(features), 4, 32))
    looked_at = rng.permutation(len(columns))[: int(np.clip(10_000_000 // n, 16, 64))]
    columns = [columns[j] for j in looked_at]
    chances = _equal_shares(columns, *rng.integers(0, n, (2, _pairs(n))))
    found: dict[frozenset[int], IndexArray] = {}
    for start in starts(len(columns), most, rng):
        joined, codes = _narrowed(columns, chances, start, rng)
        if codes is not None:
            found.setdefault(frozenset(joined), codes)
    return [
        (tuple(sorted(int(looked_at[j]) for j in joined)), codes) for joined, codes in found.items()
    ]


def starts(columns: int, most: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Return columns to start from: a quarter of them single ones, the others pairs."""
    singles = [(int(j),) for j in rng.permutation(columns)[: most // 4]]
    wanted = range(most - most // 4) if columns > 1 else ()
    pairs = (rng.choice(columns, 2, replace=False) for _ in wanted)
    return [*singles, *((int(a), int(b)) for a, b in pairs)]


def _narrowed(
    columns: list[IntArray], chances: FloatArray, start: tuple[int, ...], rng: np.random.Generator
) -> tuple[list[int], IndexArray | None]:
    """Return the columns joined and codes by them, None where no group has several rows."""
    joined, n = list(start), len(columns[0])
    found: tuple[list[int], IndexArray | None] = (joined, None)
    while True:
        mixed = _mixed((columns[place] for place in joined), n)
        order = np.argsort(mixed, kind="stable")
        codes = np.empty(n, dtype=np.int64)
        codes[order] = np.cumsum(np.r_[False, mixed[order[1:]] != mixed[order[:-1]]])
        sizes = np.bincount(codes)
        few = sizes <= _LARGEST
        # The share of rows that are in groups of at most 30 when enough columns have joined.
        narrow = bool(sizes[few].sum() >= 0.8 * n)
        if narrow and sizes[few & (sizes > 1)].sum() < 0.2 * n:
            return found
        if narrow:
            found = list(joined), without_large(codes)
        best, lift = next_column(columns, chances, sizes, order, joined, rng)
        # Equal so many times as often as any two rows: a column that is the person's, it seems.
        if len(joined) == 6 or best < 0 or (narrow and lift < 1.5):
            return found
        joined.append(best)


def next_column(
    columns: list[IntArray],
    chances: FloatArray,
    sizes: IndexArray,
    order: IndexArray,
    joined: list[int],
    rng: np.random.Generator,
) -> tuple[int, float]:
    """Return the column in which rows of a group are most clearly equal above chance.

    And how many times as often as any two rows; −1 where no column is left. ``chances``: how often
    two rows are equal in each column; ``sizes``: of the groups of rows in ``order``.
    """
    left = [j for j in range(len(columns)) if j not in joined]
    places = rng.integers(0, len(order), _pairs(len(order)))
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)[places]
    partners = first + rng.integers(0, np.repeat(sizes, sizes)[places])
    differ = places != partners
    if not left or not differ.any():
        return -1, 0.0
    pairs = order[places[differ]], order[partners[differ]]
    usual = chances[left] + _LEAST_SHARE
    excess = _equal_shares([columns[j] for j in left], *pairs) + _LEAST_SHARE - usual
    spread = np.maximum(usual * (1 - usual), 0.0) + _LEAST_SHARE
    best = int(np.argmax(excess / np.sqrt(spread)))
    return left[best], float(1 + excess[best] / usual[best])


def _pairs(n: int) -> int:
    """Return how many random pairs of n rows show how often two are equal."""
    return min(20 * n, 50_000)


def _equal_shares(columns: list[IntArray], first: IndexArray, second: IndexArray) -> FloatArray:
    return np.array([np.mean(column[first] == column[second]) for column in columns])


def _mixed(columns: Iterable[IntArray], n: int) -> _Mixed:
    """Return one number for each row, the same for rows that are equal in all columns."""
    mixed = np.zeros(n, dtype=np.uint64)
    for column in columns:
        mixed = (mixed ^ column.astype(np.uint64)) * GOLDEN
        mixed ^= mixed >> np.uint64(29)
    return mixed


def _components(first: IndexArray, second: IndexArray, n: int) -> IndexArray:
    graph = coo_array((np.ones(len(first), dtype=np.int8), (first, second)), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1], dtype=np.int64)


def without_large(codes: IndexArray) -> IndexArray:
    """Return the codes from 0, rows of a cluster above 30 each on its own."""
    alone = np.bincount(codes)[codes] > _LARGEST
    fresh = codes.copy()
    fresh[alone] = codes.max() + 1 + np.arange(int(alone.sum()))
    return (np.cumsum(np.bincount(fresh) > 0) - 1)[fresh]


def merged(one: IndexArray, other: IndexArray) -> IndexArray:
    """Return codes of rows that two groupings put together, directly or through others."""
    shift = int(one.max()) + 1
    return _components(one, other + shift, shift + int(other.max()) + 1)[one]


def one_of_each(codes: IndexArray, rng: np.random.Generator) -> IndexArray:
    """Return one random row of each cluster, int64, in order."""
    order = rng.permutation(len(codes))
    _, first = np.unique(codes[order], return_index=True)
    return np.sort(order[first])


def disjoint_pairs(clusters: IndexArray, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Return random disjoint pairs of rows of one cluster, int64 arrays of shape (p,) each."""
    order = rng.permutation(len(clusters))
    order = order[stable_order(clusters[order])]
    codes = clusters[order]
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    place = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    left = np.flatnonzero((place % 2 == 0)[:-1] & (codes[:-1] == codes[1:]))
    return order[left], order[left + 1]
