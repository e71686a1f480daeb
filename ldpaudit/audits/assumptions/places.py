"""Where noise is looked at: orders and groups of rows by what was there before it."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from ldpaudit.arrays import GOLDEN, stable_order
from ldpaudit.audits.before import before, kept_features
from ldpaudit.audits.interface import AuditContext
from ldpaudit.audits.models import copies, partial_copies
from ldpaudit.estimators.departures import Groups, Order, ranks_within
from ldpaudit.release import FloatArray, IndexArray, IntArray

_QUANTILES: Final = 64
_FEW_VALUES: Final = 50
# Columns by which rows are put in order and grouped, and rows of which an order is looked at.
_MOST_COLUMNS: Final = 64
_MOST_CELLS: Final = 60_000_000
# A bet with the smallest stake, on a correlation of 0.015, still gains e¹⁴ in so many rows.
SEGMENT: Final = 1 << 17
# Rows of which groups of many rows, by value or range of a column, are looked at.
MOST_GROUPED: Final = 1 << 18
# Of a random part of the rows: with so few values each has many rows, …
_PEEK, _FEW_OF_PEEK = 10_000, 300
# … and with a larger share of different values than this, hardly any two rows are equal.
_HARDLY_EQUAL: Final = 0.55
KEPT: Final = "features kept or replaced"


def _columns(context: AuditContext) -> dict[int, FloatArray | IntArray]:
    """Return the array columns to look at by their places: all, or so many drawn at random."""
    features = context.release.features
    most = min(_MOST_COLUMNS, max(_MOST_CELLS // max(len(features), 1), 8))
    places = np.arange(features.width)
    if len(places) > most:
        known = np.isin(places, before(context))
        drawn = context.rng("noise", "columns").permutation(len(places))
        # Those that were there before come first: only they can refute a claim.
        places = np.sort(drawn[np.argsort(~known[drawn], kind="stable")][:most])
    every = [*features.numeric.T, *features.categorical.T]
    return {int(place): every[place] for place in places}


def orders(context: AuditContext) -> Iterator[Order]:
    """Yield the orders in which noise may have been drawn, the file's first."""
    n = len(context.release)
    rng = context.rng("noise", "segments")
    yield Order("the file", np.arange(n))
    truth = context.truth
    yield Order("true label", _segment(truth, rng)[0], ())
    yield from _by_ranks("true label", truth, (), rng)
    strata = context.release.strata
    if strata is not None and context.claim.by_stratum:
        yield from _by_ranks("stratum", strata.codes, (), rng)
    for place, column in _columns(context).items():
        rows, values = _segment(column, rng)
        if len(rows) > 1 and values[0] != values[-1]:
            yield Order("column", rows, (place,))
        yield from _by_ranks("column", column, (place,), rng)


def _segment(
    column: FloatArray | IntArray, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray | IntArray]:
    """Return rows in the stable order of a column, of many a part next to each other in it."""
    n = len(column)
    if n <= SEGMENT:
        rows = stable_order(column)
        return rows, column[rows]
    sample = np.sort(column[rng.integers(0, n, 20_000)])
    width = int(len(sample) * SEGMENT / n)
    start = int(rng.integers(0, len(sample) - width))
    inside = np.flatnonzero((column >= sample[start]) & (column <= sample[start + width]))
    rows = inside[stable_order(column[inside])][: 2 * SEGMENT]
    return rows, column[rows]


def _by_ranks(
    name: str, column: FloatArray | IntArray, columns: tuple[int, ...], rng: np.random.Generator
) -> Iterator[Order]:
    """Yield the order in which the j-th rows of all values stand together, for few values."""
    if len(np.unique(column[:10_000])) > _FEW_VALUES:
        return
    codes = pd.factorize(column, use_na_sentinel=False)[0]
    values = int(codes.max()) + 1
    if not 1 < values <= _FEW_VALUES:
        return
    ranks = ranks_within(codes)
    first = int(rng.integers(0, max(int(ranks.max()) - SEGMENT // values, 1)))
    rows = np.flatnonzero((ranks >= first) & (ranks < first + max(SEGMENT // values, 1)))
    rows = rows[np.lexsort((codes[rows], ranks[rows]))]
    yield Order(f"rank within {name}", rows, columns)


def groups(context: AuditContext, most: int | None = None) -> Iterator[Groups]:
    """Yield the groupings whose rows may share noise, or may have noise of another kind.

    ``most``: rows of which groups of many rows are looked at; default: all.
    """
    release, rng = context.release, context.rng("noise", "groups")
    n = len(release)
    shuffled = rng.permutation(n)
    some = shuffled if most is None or n <= most else shuffled[:most]
    if release.groups is not None:
        yield Groups("group", release.groups, (), shuffled)
    kept = kept_features(context)
    if kept is not None:
        yield Groups(KEPT, kept.astype(np.int64), (), shuffled)
    looked_at = _columns(context)
    for place, column in looked_at.items():
        rows = _rows_of_values(column, shuffled, some)
        codes, values = _coded(column, rows)
        if values > _QUANTILES and column.dtype.kind == "f":
            yield Groups("range", _of_sample(_bins(column[some], rng), some, n), (place,), some)
        if 1 < values <= len(rows) // 2:
            yield Groups("value", codes, (place,), rows)
    features = release.features
    if features.is_constant():
        return
    yield Groups("equal rows", copies(context), tuple(range(features.width)), shuffled)
    for columns, codes in partial_copies(context):
        yield Groups("equal columns", codes, columns, shuffled)


def every_code(context: AuditContext, where: Groups) -> IndexArray:
    """Return the codes of all rows, int64 (n,), of a grouping that may be one of a sample."""
    if not where.sampled:
        return where.every
    every = groups(context)
    same = (one for one in every if (one.name, one.columns) == (where.name, where.columns))
    return next(same, where).every


def _rows_of_values(
    column: FloatArray | IntArray, shuffled: IndexArray, some: IndexArray
) -> IndexArray:
    """Return the rows in which a column's values are grouped, in a random order."""
    # Where a few rows have each value, none of them may be left out.
    if len(some) == len(shuffled):
        return shuffled
    few = len(np.unique(column[some[:_PEEK]])) <= _FEW_OF_PEEK
    return some if few or _hardly_equal(column) else shuffled


def _hardly_equal(column: FloatArray | IntArray) -> bool:
    """Return whether the values are surely more than half as many as the rows."""
    # A sixteenth of the values, by their bits, with all of their rows.
    words = column.astype(np.float32).view(np.uint32) * np.uint32(GOLDEN & 0xFFFFFFFF)
    own = column[words >> np.uint32(28) == 0]
    return len(own) > 0 and len(np.unique(own)) > _HARDLY_EQUAL * len(own)


def _coded(column: FloatArray | IntArray, rows: IndexArray) -> tuple[IntArray | IndexArray, int]:
    """Return the code of each of some rows' values, (n,), and how many values there are."""
    n = len(column)
    looked_at = column if len(rows) == n else column[rows]
    codes = pd.factorize(looked_at, use_na_sentinel=False)[0].astype(np.int64)
    return codes if len(rows) == n else _of_sample(codes, rows, n), int(codes.max()) + 1


def _of_sample(codes: IndexArray, rows: IndexArray, n: int) -> IntArray:
    """Return codes of n rows from those of some; the others have code 0."""
    every = np.zeros(n, dtype=np.int32)
    every[rows] = codes
    return every


def _bins(column: FloatArray | IntArray, rng: np.random.Generator) -> IndexArray:
    known = column[~np.isnan(column)]
    sample = known if len(known) <= 50_000 else known[rng.integers(0, len(known), 50_000)]
    edges = np.unique(np.quantile(sample, np.linspace(0, 1, _QUANTILES + 1)[1:-1]))
    codes = np.searchsorted(edges, column, side="right") + 1
    codes[np.isnan(column)] = 0
    return (np.cumsum(np.bincount(codes) > 0) - 1)[codes]
