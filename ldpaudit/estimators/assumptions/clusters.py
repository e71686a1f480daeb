"""Rows that belong together: equal ones, nearly equal ones, given groups; and one row of each."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from ldpaudit.arrays import GOLDEN
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

_Mixed = npt.NDArray[np.uint64]
# Equal rows that are more are no cluster: so many are equal by chance, as in a small table.
_LARGEST: Final = 30
FEW_VALUES: Final = 50
_LEAST_SHARE: Final = 1e-3


def equal_rows(features: FeatureTable) -> IndexArray:
    """Return codes of rows, int64 (n,): the same for equal rows, where at most 30 are."""
    if features.width == 0:
        return np.zeros(len(features), dtype=np.int64)
    numbers = (np.where(np.isnan(c), np.nan, c + 0.0).view(np.int32) for c in features.numeric.T)
    mixed = _mixed(chain(numbers, features.categorical.T), len(features))
    return without_large(np.unique(mixed, return_inverse=True)[1].astype(np.int64))


def partly_equal_rows(features: FeatureTable, rng: np.random.Generator) -> list[IndexArray]:
    """Return groupings, int64 (n,) each: rows equal in a few columns, where at most 30 are.

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
    return list(found.values())


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


def equal_ranks(features: FeatureTable) -> Iterator[tuple[int, IndexArray]]:
    """Yield each array column of 2 to 50 values, and codes of its rows, int64 (n,).

    The j-th rows of all values have one code: a seed that is set again for each value gives them
    the same noise.
    """
    for place, column in enumerate((*features.numeric.T, *features.categorical.T)):
        if len(np.unique(column[:50_000])) > FEW_VALUES:
            continue
        values, codes = np.unique(column, return_inverse=True)
        if 1 < len(values) <= FEW_VALUES:
            order = np.argsort(codes, kind="stable")
            sizes = np.bincount(codes)
            ranks = np.empty(len(codes), dtype=np.int64)
            ranks[order] = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            yield place, ranks


def alike_rows(features: FeatureTable, rng: np.random.Generator, width: float = 1.0) -> IndexArray:
    """Return codes of rows, int64 (n,): the same for nearly equal rows, where at most 30 are.

    Rows are put into the cells of a few random grids on random directions; rows of one cell are
    linked. ``width`` scales the cells.
    """
    places = _projected(features, rng)
    links = []
    for _ in range(3):
        shift = rng.random(places.shape[1])
        # Nearly equal: by less than this share of a standard deviation in any direction.
        cells = np.floor(places / (0.1 * width) + shift).astype(np.int32)
        mixed = _mixed(cells.T, len(cells))
        order = np.argsort(mixed)
        same = np.flatnonzero(mixed[order[1:]] == mixed[order[:-1]])
        links.append((order[same], order[same + 1]))
    first, second = (np.concatenate(part) for part in zip(*links, strict=True))
    return without_large(_components(first, second, len(features)))


def _projected(features: FeatureTable, rng: np.random.Generator) -> FloatArray:
    """Return rows on random directions in standard deviations; levels are random numbers."""
    columns, n, numeric = features.width, len(features), features.numeric
    directions = rng.standard_normal((columns, min(4, columns)))
    levels = [rng.standard_normal(size + 1) for size in features.cardinalities]
    scaler, places = StandardScaler(), np.empty((n, directions.shape[1]))
    for rows in _batches(n, numeric.shape[1]) if numeric.size else ():
        with np.errstate(invalid="ignore"):
            scaler.partial_fit(numeric[rows].astype(np.float64))
    for rows in _batches(n, columns):
        numbers = numeric[rows].astype(np.float64)
        scaled = np.nan_to_num(scaler.transform(numbers)) if numbers.shape[1] else numbers
        pairs = zip(levels, features.categorical[rows].T, strict=True)
        drawn = [level[codes + 1, None] for level, codes in pairs]
        places[rows] = np.hstack([scaled, *drawn]) @ directions
    return np.asarray(places / np.maximum(places.std(axis=0), 1e-12))


def _batches(n: int, columns: int) -> Iterator[slice]:
    return iter(gen_batches(n, max((1 << 18) // max(columns, 1), 1)))


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
