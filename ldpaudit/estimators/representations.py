"""What a table's columns show in other forms: digits, gaps, counts, places within groups.

In: features, and the rows to look at. Out: a matrix of numbers with the columns that each was made
from. No label takes part, so whatever goes with a label was there for everybody to read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from ldpaudit.arrays import GOLDEN
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IndexArray

Values = npt.NDArray[Any]

_FEW: Final = 50  # Of more groups, the smallest and the largest value are compared, not the mean.
_MOST_PAIRS: Final = 120
_MOST_MEMBERS: Final = 40_000
CODED: Final = (
    "how it is written",
    "how a missing value is written",
    "whether it is a float32",
    "whether it stands in quotes",
)
_WIDE: Final = 256  # Of wider tables digits are not looked at.
_PERIODS: Final = (2, 7, 10)
_LONG: Final = 1_000  # Numbers of four digits and more may hold a check digit.


@dataclass(frozen=True)
class Source:
    """How a number was made: its kind, and the array columns of the table that it was made from.

    ``category``: whether it is a code, of which neighbours have nothing in common.
    """

    kind: str
    arrays: tuple[int, ...] = ()
    category: bool = False


@dataclass(frozen=True)
class Representations:
    """Numbers made from a table, float32 (n, r), NaN where missing, with the source of each."""

    matrix: Float32Array
    sources: tuple[Source, ...]


def represent(
    features: FeatureTable,
    rows: IndexArray | None = None,
    *,
    places: Sequence[int] | None = None,
    keys: Sequence[FloatArray] = (),
) -> Representations:
    """Return every representation of some rows of a table; constant ones are left out.

    Parameters
    ----------
    features : FeatureTable
        All rows: counts and groups are those of the whole table.
    rows : int64 array of shape (s,), optional
        The rows to return, in this order; default: all.
    places : sequence of int, optional
        The array columns to use, the numeric ones first; default: all.
    keys : sequence of float64 arrays of shape (n,)
        Ids of rows or people; their places come after the array columns.
    """
    rows = np.arange(len(features)) if rows is None else rows
    made = [*_made(features, rows, range(features.width) if places is None else places)]
    for place, key in enumerate(keys, features.width):
        made.append((Source("value", (place,)), key[rows].astype(np.float32)))
    kept = [(source, column) for source, column in made if _varies(column)]
    matrix = np.empty((len(rows), len(kept)), dtype=np.float32)
    for i, (_, column) in enumerate(kept):
        matrix[:, i] = column
    return Representations(matrix, tuple(source for source, _ in kept))


def _varies(column: Values) -> bool:
    present = column[~np.isnan(column)]
    return len(present) > 0 and (len(present) < len(column) or bool(np.ptp(present) > 0))


def _made(
    features: FeatureTable, rows: IndexArray, places: Iterable[int]
) -> Iterator[tuple[Source, Values]]:
    """Yield each representation of the rows."""
    d = features.numeric.shape[1]
    places = list(places)
    columns = {j: _column(features, j) for j in places}
    gaps = {j: _missing(column) for j, column in columns.items()}
    yield Source("row number"), rows.astype(np.float32)
    for period in _PERIODS:
        yield Source("row number"), (rows % period).astype(np.float32)
    for j, column in columns.items():
        yield Source("value", (j,), column.dtype.kind != "f"), _numbers(column[rows])
        if len(places) <= _WIDE and column.dtype.kind == "f":
            yield from _digits(column[rows], (j,), rows)
        yield Source("how often its value occurs", (j,)), _times(column, rows)
        yield Source("missing", (j,)), gaps[j][rows].astype(np.float32)
    if features.extra is not None:
        for column in features.extra.T:
            yield Source("part of a text or a date"), column[rows]
    if features.marks is not None:
        for (j, kind), column in zip(features.mark_sources, features.marks.T, strict=True):
            if j in columns:
                yield Source(kind, (j,), kind in CODED), column[rows]
    missing = tuple(j for j, gap in gaps.items() if gap.any())
    if len(missing) > 1:
        pattern = _keys([gaps[j] for j in missing])
        yield Source("the pattern of missing values", missing, True), _rank(pattern, rows)
        total = np.sum([gaps[j][rows] for j in missing], axis=0)
        yield Source("the pattern of missing values", missing), total.astype(np.float32)
    for kind, some in (
        ("how often the row occurs", places),
        ("how often its categories occur", [j for j in places if j >= d]),
    ):
        if len(some) > 1:
            yield Source(kind, tuple(some)), _times(_keys([columns[j] for j in some]), rows)
    yield from _of_pairs({j: columns[j] for j in places}, d, rows)


def _digits(
    values: Float32Array, place: tuple[int, ...], rows: IndexArray
) -> Iterator[tuple[Source, Values]]:
    """Yield a number's fraction and last digits, and what the row number leaves of it."""
    whole = np.floor(values)
    yield Source("fraction", place), values - whole
    for period in _PERIODS:
        yield Source("last digits", place), whole % period
    yield Source("value less the row number", place), values.astype(float) - rows
    if np.nanmax(np.abs(values), initial=0.0) >= _LONG:
        sums = _digit_sum(whole)
        yield Source("sum of the digits", place), sums
        yield Source("sum of the digits", place), sums % 2


def _digit_sum(whole: Float32Array) -> Float32Array:
    left, total = np.abs(whole).astype(np.float64), np.zeros(len(whole))
    while np.nanmax(left, initial=0.0) > 0:
        total += left % 10
        left = left // 10
    return total.astype(np.float32)


def _of_pairs(
    columns: dict[int, Values], d: int, rows: IndexArray
) -> Iterator[tuple[Source, Values]]:
    """Yield numbers compared with their group by another column, and pairs of numbers."""
    numbers, made = [j for j in columns if j < d], 0
    for c, column in columns.items():
        if not numbers or made >= _MOST_PAIRS:
            return
        groups, members, own = _groups(column, rows)
        if len(groups) == 0:
            continue
        for v in numbers[: _MOST_PAIRS - made]:
            if v != c:
                made += 1
                yield from _in_group(columns[v], groups, members, own, rows, (v, c))
    for i, v in enumerate(numbers[:12]):
        for w in numbers[i + 1 : 12]:
            first, second = (columns[j][rows].astype(float) for j in (v, w))
            yield Source("difference", (v, w)), first - second
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                ratio = first / second
            yield Source("ratio", (v, w)), np.where(np.isfinite(ratio), ratio, np.nan)


def _groups(column: Values, rows: IndexArray) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return the groups of a column: of some members, who they are, and of the rows themselves.

    The members are all rows of the rows' groups, or as many as are enough; nobody where nearly
    every row is a group of its own.
    """
    none = np.empty(0, dtype=np.int64)
    distinct, own = np.unique(column[rows], return_inverse=True)
    if not 1 < len(distinct) <= max(0.5 * len(rows), 2):
        return none, none, none
    n = len(column)
    if n == len(rows):
        return own[np.argsort(rows)], np.arange(n), own
    # By hashing, as NumPy does not; a missing value is equal to none.
    members = np.flatnonzero(pd.Series(column).isin(distinct[distinct == distinct]).to_numpy())
    members = members[:: max(1, len(members) // _MOST_MEMBERS)]
    members = np.union1d(members, rows)
    return np.searchsorted(distinct, column[members]), members, own


def _in_group(
    values: Values,
    groups: IndexArray,
    members: IndexArray,
    own: IndexArray,
    rows: IndexArray,
    pair: tuple[int, ...],
) -> Iterator[tuple[Source, Values]]:
    """Yield a number less its group's mean, or its place between the group's ends."""
    of, x = values[members].astype(float), values[rows].astype(float)
    known = ~np.isnan(of)
    size = int(own.max()) + 1
    counts = np.bincount(groups[known], minlength=size)
    sums = np.bincount(groups[known], of[known], minlength=size)
    yield (
        Source("the difference from the group's mean", pair),
        x - (sums / np.maximum(counts, 1))[own],
    )
    if size > _FEW:
        low, high = np.full(size, np.inf), np.full(size, -np.inf)
        np.minimum.at(low, groups[known], of[known])
        np.maximum.at(high, groups[known], of[known])
        wide = (high > low)[own]
        place = (x - low[own]) / np.where(wide, (high - low)[own], 1.0)
        yield Source("place within the group", pair), np.where(wide, place, -1.0)


def _column(features: FeatureTable, place: int) -> Values:
    d = features.numeric.shape[1]
    return features.numeric[:, place] if place < d else features.categorical[:, place - d]


def _missing(column: Values) -> Values:
    return np.isnan(column) if column.dtype.kind == "f" else column < 0


def _numbers(values: Values) -> Float32Array:
    """Return numbers as they are, and codes, which follow the order of the categories."""
    if values.dtype.kind == "f":
        return values.astype(np.float32, copy=False)
    return np.where(values < 0, np.nan, values).astype(np.float32)


def _times(column: Values, rows: IndexArray) -> Float32Array:
    """Return how often the value of each row occurs in the whole column."""
    distinct, own = np.unique(column[rows], return_inverse=True)
    # By hashing, as NumPy does not; a missing value is equal to others.
    place = pd.Index(distinct).get_indexer(column)
    return np.bincount(place[place >= 0], minlength=len(distinct))[own].astype(np.float32)


def _keys(columns: Sequence[Values]) -> npt.NDArray[np.uint64]:
    """Return one word for the values of several columns, by multiplying and shifting."""
    keys = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        bits = column.view(np.uint32) if column.dtype.itemsize == 4 else column
        keys = (keys ^ bits.astype(np.uint64)) * GOLDEN
        keys ^= keys >> np.uint64(29)
    return keys


def _rank(keys: Values, rows: IndexArray) -> Float32Array:
    """Return the rank of each row's key by how often it occurs, 0 the most frequent."""
    _, codes, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return np.argsort(np.argsort(-counts, kind="stable"))[codes[rows]].astype(np.float32)
