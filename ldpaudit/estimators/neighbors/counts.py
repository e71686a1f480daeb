"""How many of each row's nearest neighbours carry each label, without listing any neighbour.

A query's neighbourhood is a ball whose radius is chosen without looking at a label. Given the
features, the counts inside are then sums of independent labels, and a binomial bound on them holds
whatever the radius: an approximate search costs smoothness, never validity. Rows at the border are
all inside. Leaving some out by position would let the order of a file, which may follow the
labels, into the choice.

Index rows and queries must be different rows of the release. There is no leave-one-out: a row's
own label must not enter its own count, so split the rows before calling.
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.estimators.neighbors.cell_index import LEAST_CELL, MOST_CELLS, build_cells
from ldpaudit.estimators.neighbors.cell_search import QUERIES_AT_ONCE, count_in_cells
from ldpaudit.estimators.neighbors.distinct import RowOrder, distinct_rows, row_order
from ldpaudit.estimators.neighbors.exact import SortedLine, WeightedRows
from ldpaudit.progress import NoProgress, Progress
from ldpaudit.release import Float32Array, IntArray

EXACT_PAIRS = 30_000_000
"""Up to so many pairs of distinct queries and distinct index rows, every pair is compared."""
SAMPLED_NEIGHBORS = 48
"""A query's radius reaches the 48th nearest row of a sample: totals then have a relative standard
deviation of 1/√48 around k."""
CELL_ROWS = 2 / 3
"""Cells are made for about 2/3 k rows: the least error for the time on the mixture, where 0.4 k
costs more in choosing cells than it saves in rows, and k or more wastes rows."""
VISITED_ROWS = 20
"""A query visits cells with about 20 k rows, which gave the error of an exact search …"""
LEAST_VISITS = 24
"""… and at least 24 cells."""


@dataclass(frozen=True)
class NeighborCounts:
    """Label counts in a neighbourhood of each query.

    Attributes
    ----------
    counts : int32 array of shape (m, n_labels)
        Index rows of each label in the neighbourhood.
    totals : int32 array of shape (m,)
        Their sums: the size of each neighbourhood, never 0.
    method : str
        How the neighbours were found, in words for the report.
    """

    counts: IntArray
    totals: IntArray
    method: str


def default_neighbors(n_index: int, dimensions: int | None = None) -> int:
    """Return how many neighbours to count by default: k as a function of the index size.

    4 √n in feature space, n^(3/4) in one coordinate (the score of a learned metric), at least 20
    and at most a tenth of the index.

    Two uses pull apart. The error of η̂ is smallest where bias and variance balance, at 0.5 to 1
    √n in feature space: k = 200 for n = 50,000 and 200 to 500 for 250,000 on a Gaussian mixture in
    18 dimensions, 50 to 100 for Adult (24,000) and skin (122,000). The lower bound on the privacy
    loss wants more: its Clopper–Pearson interval at error 5e-6 cannot show log-odds above
    log(k / 12.2), and the bias costs it little, since averaging over a ball draws η̂ to the prior
    and the loss down. The mean lower bound was largest at 4 to 8 √n (k = 2,000 of 50,000, 2,000 to
    5,000 of 250,000, 1,000 for Adult; on skin it still grew at 10,000) and flat around it, so
    4 √n, between two of the sizes tried, should keep nearly all of it but on skin; the error of η̂
    is then 0.10 where 0.087 is possible. Too large a k also costs validity: on the mixture no row's
    bound exceeded its true loss up to k = 5,000, but 0.04 % of rows did at k = n/5.

    In one coordinate the bias is small and both want more: on the mixture the error was smallest
    at k = 1,000 of 10,000, 2,000 of 50,000 and 5,000 to 10,000 of 250,000, and the mean bound
    largest at 1,000, 5,000 and 10,000.

    Parameters
    ----------
    n_index : int
        The number of index rows n.
    dimensions : int, optional
        The width of the points.

    Returns
    -------
    int
        k, at least 1 and at most n.
    """
    wanted = math.pow(n_index, 0.75) if dimensions == 1 else 4 * math.sqrt(n_index)
    return min(n_index, max(20, min(round(wanted), n_index // 10)))


def queries_needed(precision: float = 0.005, delta: float = 0.005) -> int:
    """Return how many random query rows pin a share of rows down, whatever the share is.

    Parameters
    ----------
    precision : float
        The largest distance allowed between the observed share J and its bound, in (0, 1).
    delta : float
        The error probability of the one-sided Clopper–Pearson bound on the share: δ'' of the
        bound on J, not the δ' of the single neighbourhoods. Half of a two-sided interval's error.

    Returns
    -------
    int
        The smallest multiple of 100 for which J − lower(J) ≤ precision at every count; 66,600 by
        default. Fewer rows than these in the release: ask them all.
    """
    if not (0 < precision < 1 and 0 < delta < 0.5):
        raise InputError(
            "The 'precision' must be in (0, 1) and 'delta' in (0, 0.5). "
            f"Got {precision} and {delta} instead."
        )
    most = 1
    while _widest(100 * most, delta) > precision:
        most *= 2
    enough = bisect_left(
        range(100, 100 * most, 100), True, key=lambda m: _widest(m, delta) <= precision
    )
    return 100 * (1 + enough)


def _widest(m: int, delta: float) -> float:
    """Return the largest distance of a count's share of m from its lower bound."""
    counts = np.unique(np.round(m * np.linspace(0.25, 1.0, 151)).astype(np.int64))
    return float(np.max(counts / m - clopper_pearson_lower(counts, m, delta)))


def count_labels(
    index: Float32Array,
    labels: IntArray,
    queries: Float32Array,
    k: int,
    n_labels: int,
    *,
    threads: int = 1,
    progress: Progress | None = None,
    seed: int = 0,
) -> NeighborCounts:
    """Count the labels among about k nearest index rows of each query.

    One coordinate, and inputs of up to 3·10⁷ pairs of distinct rows, are searched exactly: totals
    are k, or more where rows are tied. Larger ones are searched in k-means cells, with a radius
    from a sample: totals are k ± 14 % (one standard deviation; within [0.4 k, 2.5 k] but for ties).

    Parameters
    ----------
    index : float32 array of shape (n, d)
        The rows whose labels are counted; finite. The distance is L2.
    labels : int32 array of shape (n,)
        Their labels, 0 … n_labels − 1.
    queries : float32 array of shape (m, d)
        Other rows of the same release; finite.
    k : int
        The wanted neighbourhood size, at least 1; taken as n where n is smaller.
    n_labels : int
        The number of labels.
    threads : int
        Threads used; the result does not depend on it.
    progress : Progress, optional
        Is given the number of queries answered.
    seed : int
        Chooses the cells of a large search; blind to the labels.

    Returns
    -------
    NeighborCounts
        Label counts, totals, and the search in words.

    Raises
    ------
    ldpaudit.errors.InputError
        If shapes, labels or k do not fit, or a value is not finite.
    """
    _check(index, labels, queries, k, n_labels)
    index, queries = _in_range(np.ascontiguousarray(index), np.ascontiguousarray(queries))
    asked = distinct_rows(queries, row_order(queries, np.random.default_rng(seed)))
    with threadpool_limits(limits=1):  # BLAS and OpenMP start no threads: batches run in our own.
        search = _plan(index, labels, min(k, len(index)), n_labels, len(asked.rows), seed)
        distinct = _run(search, asked.rows, n_labels, threads, progress or NoProgress())
    counts = distinct[asked.inverse]
    return NeighborCounts(counts, counts.sum(axis=1, dtype=np.int32), search.method)


@dataclass(frozen=True)
class _Search:
    """A prepared search: ``count`` answers up to ``batch`` queries, from any thread."""

    count: Callable[[Float32Array], IntArray]
    batch: int
    method: str


def _plan(
    index: Float32Array, labels: IntArray, k: int, n_labels: int, queries: int, seed: int
) -> _Search:
    """Return the search that suits the sizes."""
    if index.shape[1] == 1:
        line = SortedLine(index[:, 0], labels, n_labels)
        words = "exact nearest neighbours in one coordinate, ties included"
        return _Search(lambda rows: line.count(rows[:, 0], k), 65_536, words)
    order = row_order(index, np.random.default_rng(seed))
    if k == len(index) or order.distinct * queries <= EXACT_PAIRS:
        rows = WeightedRows(distinct_rows(index, order), labels, n_labels)
        words = "exact nearest neighbours, ties included"
        return _Search(lambda asked: rows.count(asked, k), rows.batch, words)
    return _plan_cells(index, labels, order, k, n_labels, seed)


def _plan_cells(
    index: Float32Array, labels: IntArray, order: RowOrder, k: int, n_labels: int, seed: int
) -> _Search:
    n, step = len(index), max(1, k // SAMPLED_NEIGHBORS)
    wanted = max(round(CELL_ROWS * k), LEAST_CELL, n // MOST_CELLS)
    cells = build_cells(index, labels, order.order, wanted, step, np.random.default_rng(seed))
    number = len(cells.cells)
    visits = min(number, max(LEAST_VISITS, -(-VISITED_ROWS * k * number // n)))
    rank = min(max(1, round(k / step)), visits * cells.sample_rows)
    words = (
        f"rows within a radius that holds about {k}, set for each query on a sample blind to "
        f"labels, in the nearest {visits} of {number} k-means cells"
    )
    return _Search(
        lambda asked: count_in_cells(cells, asked, n_labels, rank, visits), QUERIES_AT_ONCE, words
    )


def _run(
    search: _Search, queries: Float32Array, n_labels: int, threads: int, progress: Progress
) -> IntArray:
    """Return the label counts of all queries, int32 of shape (m, n_labels)."""
    counts = np.zeros((len(queries), n_labels), dtype=np.int32)
    starts = range(0, len(queries), search.batch)
    batches = (queries[start : start + search.batch] for start in starts)
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for start, part in zip(starts, pool.map(search.count, batches), strict=True):
            counts[start : start + search.batch] = part
            progress.advance(start + len(part), len(queries))
    return counts


def _in_range(index: Float32Array, queries: Float32Array) -> tuple[Float32Array, Float32Array]:
    """Return both scaled by one power of two so that squares neither overflow nor vanish."""
    largest = max(float(np.abs(index).max()), float(np.abs(queries).max(initial=0.0)))
    if largest == 0.0 or 1e-6 < largest < 1e12:
        return index, queries
    factor = np.exp2(-np.round(np.log2(largest)))
    return (index * factor).astype(np.float32), (queries * factor).astype(np.float32)


def _check(
    index: Float32Array, labels: IntArray, queries: Float32Array, k: int, n_labels: int
) -> None:
    if index.ndim != 2 or queries.ndim != 2 or index.shape[1] != queries.shape[1]:
        raise InputError("The index and the queries must be matrices of the same width.")
    if index.size == 0 or len(labels) != len(index):
        raise InputError(
            f"The index must have rows, columns and a label for each row. Got {index.shape[0]} "
            f"rows, {index.shape[1]} columns and {len(labels)} labels instead."
        )
    if k < 1:
        raise InputError(f"The 'k' parameter must be at least 1. Got {k} instead.")
    if labels.min() < 0 or labels.max() >= n_labels:
        raise InputError(f"The labels must be codes from 0 to {n_labels - 1}.")
    if not (np.isfinite(index).all() and np.isfinite(queries).all()):
        raise InputError("The index and the queries must be finite.")
