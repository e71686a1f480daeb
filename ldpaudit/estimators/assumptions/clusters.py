"""Rows that belong together: equal ones, nearly equal ones, given groups; and one row of each."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

from ldpaudit.arrays import GOLDEN
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray, IntArray

_Mixed = npt.NDArray[np.uint64]
# Equal rows that are more are no cluster: so many are equal by chance, as in a small table.
_LARGEST: Final = 30
FEW_VALUES: Final = 50
_DIRECTIONS: Final = 4
_SHIFTS: Final = 3
_STARTS: Final = 32
_CELLS: Final = 10_000_000
_MOST_COLUMNS: Final = 64
_MOST_PAIRS: Final = 50_000
_LEAST_SHARE: Final = 1e-3
# The share of rows that are in groups of at most 30 when enough columns have joined.
_NARROW: Final = 0.8
# Entries of a table that are looked at at once.
_ENTRIES: Final = 1 << 18


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
    most = int(np.clip(400_000 // len(features), 4, _STARTS))
    search = _Search.of(columns, rng)
    found: dict[frozenset[int], IndexArray] = {}
    for start in search.starts(most):
        joined, codes = search.narrowed(start)
        if codes is not None:
            found.setdefault(frozenset(joined), codes)
    return list(found.values())


@dataclass(frozen=True, eq=False)
class _Search:
    """A search for columns in which rows of one person are equal, and others are not.

    Attributes
    ----------
    columns : list of int32 arrays of shape (n,)
        A few of them at random where they are many.
    chances : float64 array of shape (c,)
        How often two rows are equal in each.
    rng : numpy.random.Generator
    """

    columns: list[IntArray]
    chances: FloatArray
    rng: np.random.Generator

    @classmethod
    def of(cls, columns: list[IntArray], rng: np.random.Generator) -> "_Search":
        """Choose columns: each start looks at all of them."""
        n = len(columns[0])
        most = int(np.clip(_CELLS // n, 16, _MOST_COLUMNS))
        chosen = [columns[j] for j in rng.permutation(len(columns))[:most]]
        pairs = rng.integers(0, n, (2, _MOST_PAIRS))
        return cls(chosen, _equal_shares(chosen, pairs[0], pairs[1]), rng)

    def starts(self, most: int) -> list[tuple[int, ...]]:
        """Return columns to start from: a quarter of them single ones, the others pairs."""
        places = self.rng.permutation(len(self.columns))
        singles: list[tuple[int, ...]] = [(int(j),) for j in places[: most // 4]]
        if len(places) < 2:
            return singles
        pairs = (self.rng.choice(len(places), 2, replace=False) for _ in range(most - most // 4))
        return [*singles, *((int(a), int(b)) for a, b in pairs)]

    def narrowed(self, start: tuple[int, ...]) -> tuple[list[int], IndexArray | None]:
        """Return the columns joined and codes by them, None where no group has several rows."""
        joined = list(start)
        found: tuple[list[int], IndexArray | None] = (joined, None)
        while True:
            mixed = _mixed((self.columns[place] for place in joined), len(self.columns[0]))
            order = np.argsort(mixed, kind="stable")
            codes = _codes(mixed, order)
            sizes = np.bincount(codes)
            few = sizes <= _LARGEST
            narrow = bool(sizes[few].sum() >= _NARROW * len(codes))
            if narrow and sizes[few & (sizes > 1)].sum() < 0.2 * len(codes):
                return found
            if narrow:
                found = list(joined), without_large(codes)
            best, lift = self._next(sizes, order, joined)
            # Equal so many times as often as any two rows: a column that is the person's, it seems.
            if len(joined) == 6 or best < 0 or (narrow and lift < 1.5):
                return found
            joined.append(best)

    def _next(self, sizes: IndexArray, order: IndexArray, joined: list[int]) -> tuple[int, float]:
        """Return the column in which rows of a group are most clearly equal above chance.

        And how many times as often as any two rows; −1 where no column is left. ``sizes``: of the
        groups of rows in ``order``.
        """
        left = [j for j in range(len(self.columns)) if j not in joined]
        places = self.rng.integers(0, len(order), _MOST_PAIRS)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)[places]
        partners = starts + self.rng.integers(0, np.repeat(sizes, sizes)[places])
        differ = places != partners
        if not left or not differ.any():
            return -1, 0.0
        pairs = order[places[differ]], order[partners[differ]]
        shares = _equal_shares([self.columns[j] for j in left], *pairs)
        usual = self.chances[left] + _LEAST_SHARE
        excess = shares + _LEAST_SHARE - usual
        spread = np.maximum(usual * (1 - usual), 0.0) + _LEAST_SHARE
        best = int(np.argmax(excess / np.sqrt(spread)))
        return left[best], float(1 + excess[best] / usual[best])


def _equal_shares(columns: list[IntArray], first: IndexArray, second: IndexArray) -> FloatArray:
    return np.array([np.mean(column[first] == column[second]) for column in columns])


def _codes(mixed: _Mixed, order: IndexArray) -> IndexArray:
    steps = np.concatenate([[False], mixed[order[1:]] != mixed[order[:-1]]])
    codes = np.empty(len(order), dtype=np.int64)
    codes[order] = np.cumsum(steps)
    return codes


def equal_ranks(features: FeatureTable) -> Iterator[tuple[int, IndexArray]]:
    """Yield each array column of 2 to 50 values, and codes of its rows, int64 (n,).

    The j-th rows of all values have one code: a seed that is set again for each value gives them
    the same noise.
    """
    for place, column in enumerate((*features.numeric.T, *features.categorical.T)):
        if len(np.unique(column[:_MOST_PAIRS])) > FEW_VALUES:
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
    for _ in range(_SHIFTS):
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
    # Of no rows there are no batches: scikit-learn refuses to make any.
    for rows in gen_batches(n, _rows_at_once(numeric.shape[1])) if numeric.size else ():
        with np.errstate(invalid="ignore"):  # A column may have no value at all.
            scaler.partial_fit(numeric[rows].astype(np.float64))

    def scaled(rows: slice) -> FloatArray:
        values = numeric[rows].astype(np.float64)
        return np.nan_to_num(scaler.transform(values)) if values.shape[1] else values

    return scaled


def _rows_at_once(columns: int) -> int:
    return max(_ENTRIES // max(columns, 1), 1)


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
