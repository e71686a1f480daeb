"""How many of each row's nearest neighbours carry each label, without listing any neighbour.

A query's neighbourhood is a ball whose radius is chosen without looking at a label. Given the
features, the counts inside are then sums of independent labels, and a binomial bound on them holds
whatever the radius: an approximate search costs smoothness, never validity. Rows at the border are
all inside. Leaving some out by position would let the order of a file, which may follow the
labels, into the choice.

Index rows and queries must be different rows of the release. There is no leave-one-out: a row's
own label must not enter its own count, so split the rows before calling.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from ldpaudit.arrays import IntArray
from ldpaudit.errors import InputError
from ldpaudit.estimators.neighbors.cell_building import LEAST_CELL, MOST_CELLS, build_cells
from ldpaudit.estimators.neighbors.cell_search import CellSearch, count_in_cells
from ldpaudit.estimators.neighbors.device_search import DeviceSearch, count_on_device
from ldpaudit.estimators.neighbors.distinct import count_distinct, distinct_rows
from ldpaudit.estimators.neighbors.exact import WeightedRows, count_exactly
from ldpaudit.estimators.neighbors.line import SortedLine, count_on_line
from ldpaudit.estimators.neighbors.means import Means
from ldpaudit.estimators.neighbors.points import Points, Summary, blocks, scale, summary
from ldpaudit.tasks import Threads

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
_KEPT = 8
"""Finished batches are kept by so many."""


def cell_rows(n: int, k: int) -> int:
    """Return the rows of a cell, on average, where k neighbours are looked for among n rows."""
    return max(round(CELL_ROWS * k), LEAST_CELL, n // MOST_CELLS)


def planned_cells(n: int, queries: int, k: int) -> int:
    """Return about how many cells n rows are put into for so many queries; 0 without cells."""
    return 0 if n * queries <= EXACT_PAIRS or k >= n else -(-n // cell_rows(n, k))


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


def count_labels(
    index: Any,
    labels: IntArray,
    queries: Any,
    k: int,
    n_labels: int,
    *,
    seed: int = 0,
    means: Means | None = None,
) -> NeighborCounts:
    """Count the labels among about k nearest index rows of each query.

    One coordinate, and inputs of up to 3·10⁷ pairs of distinct rows, are searched exactly: totals
    are k, or more where rows are tied. Larger ones are searched in k-means cells, with a radius
    from a sample: totals are k ± 14 % (one standard deviation; within [0.4 k, 2.5 k] but for ties).

    Parameters
    ----------
    index : float32 array of shape (n, d)
        The rows whose labels are counted; finite. The distance is L2. Like the queries they may be
        memory-mapped: they are read in blocks.
    labels : int32 array of shape (n,)
        Their labels, 0 … n_labels − 1.
    queries : float32 array of shape (m, d)
        Other rows of the same release; finite.
    k : int
        The wanted neighbourhood size, at least 1; taken as n where n is smaller.
    n_labels : int
        The number of labels.
    seed : int
        Chooses the cells of a large search; blind to the labels.
    means : Means, optional
        What does the work; the result does not depend on it, unless it asks for exact neighbours.

    Returns
    -------
    NeighborCounts
        Label counts, totals, and the search in words.

    Raises
    ------
    ldpaudit.errors.InputError
        If shapes, labels or k do not fit, or a value is not finite.
    """
    counter = NeighborCounter(index, labels, queries, k, n_labels, seed=seed, means=means)
    return counter.count(slice(0, len(queries)))


class NeighborCounter:
    """A search that is prepared once and then asked part by part; see :func:`count_labels`.

    Parameters
    ----------
    index, labels, queries, k, n_labels, seed, means
        Those of :func:`count_labels`; ``queries`` are all rows that may ask.
    """

    def __init__(
        self,
        index: Any,
        labels: IntArray,
        queries: Any,
        k: int,
        n_labels: int,
        *,
        seed: int = 0,
        means: Means | None = None,
    ) -> None:
        _check(index, labels, queries, k, n_labels)
        self._means, self._n_labels = means or Means(), n_labels
        with threadpool_limits(limits=1):  # Batches run in threads of our own.
            threads = self._means.threads
            found, asked = summary(Points(index), threads), summary(Points(queries), threads)
            factor = scale(found.largest, asked.largest)
            self._queries, self._hashes = Points(queries, factor), asked.hashes
            m = count_distinct(asked.ordered)
            question = _Question(
                Points(index, factor), labels, found, m, min(k, len(index)), n_labels, seed
            )
            self._search = _search(question, self._means)

    def count(self, which: slice) -> NeighborCounts:
        """Return the counts of some queries."""
        asking = Points(self._queries.rows[which], self._queries.factor)
        with threadpool_limits(limits=1):
            distinct = distinct_rows(asking, self._hashes[which])
            counts = _run(self._search, distinct.points, which.start, self._n_labels, self._means)
        if distinct.inverse is not None:
            counts = counts[distinct.inverse]
        return NeighborCounts(counts, counts.sum(axis=1, dtype=np.int32), self._search.method)


@dataclass(frozen=True, eq=False)
class _Question:
    """Whose neighbours are counted: the index and its summary, m distinct queries, k, a seed."""

    points: Points
    labels: IntArray
    found: Summary
    queries: int
    k: int
    n_labels: int
    seed: int


@dataclass(frozen=True, eq=False)
class _Search:
    """A prepared search: ``function(batch, (prepared, queries))`` answers up to ``batch`` queries.

    ``here`` says whether one thread of this process must do it.
    """

    function: Callable[[slice, Any], IntArray]
    prepared: Any
    batch: int
    method: str
    here: bool = False


def _search(asked: _Question, means: Means) -> _Search:
    """Return the search that suits the sizes."""
    points, labels, k, n_labels = asked.points, asked.labels, asked.k, asked.n_labels
    if points.width == 1:
        line = SortedLine(points.take(slice(None))[:, 0], labels, n_labels, k)
        words = "exact nearest neighbours in one coordinate, ties included"
        return _Search(count_on_line, line, line.batch, words)
    few = count_distinct(asked.found.ordered) * asked.queries <= EXACT_PAIRS
    if not (few or means.exact or k == len(points)):
        return _in_cells(asked, means)
    if not few:
        means.check_exact(asked.queries, len(points), points.width)
    rows = WeightedRows(distinct_rows(points, asked.found.hashes), labels, n_labels, k)
    return _Search(count_exactly, rows, rows.batch, "exact nearest neighbours, ties included")


def _in_cells(asked: _Question, means: Means) -> _Search:
    n, k, step = len(asked.points), asked.k, max(1, asked.k // SAMPLED_NEIGHBORS)
    cells = build_cells(
        asked.points,
        asked.labels,
        asked.found,
        asked.n_labels,
        cell_rows(n, k),
        step,
        seed=asked.seed,
        threads=means.threads,
        allocate=means.array,
    )
    visits = min(len(cells), max(LEAST_VISITS, -(-VISITED_ROWS * k * len(cells) // n)))
    rank = min(max(1, round(k / step)), visits * cells.samples.shape[1])
    words = (
        f"rows within a radius that holds about {k}, set for each query on a sample blind to "
        f"labels, in the nearest {visits} of {len(cells)} k-means cells"
    )
    search = CellSearch(cells, rank, visits)
    device = means.accelerator()
    if device is None:
        return _Search(count_in_cells, search, search.batch, words)
    return _Search(count_on_device, DeviceSearch.on(device, search), search.batch, words, True)


def _run(search: _Search, queries: Points, first: int, n_labels: int, means: Means) -> IntArray:
    """Return the label counts of m queries, int32 of shape (m, n_labels).

    Parts of some batches are kept when they are finished, and not made again; ``first`` names them
    together with their place.
    """
    m, size = len(queries), search.batch * _KEPT
    counts = np.zeros((m, n_labels), dtype=np.int32)
    wanted, done = [], 0
    for part in blocks(m, size):
        known = means.finished.get(f"{means.key}/{first}/{part.start}")
        if known is None or len(known) != part.stop - part.start:
            wanted += list(blocks(part.stop, search.batch, part.start))
        else:
            counts[part], done = known, done + len(known)
    workers = Threads() if search.here else means.workers
    answers = workers.map(search.function, wanted, shared=(search.prepared, queries))
    for batch, answer in zip(wanted, answers, strict=True):
        counts[batch], done = answer, done + len(answer)
        means.progress.advance(done, m)
        if batch.stop % size == 0 or batch.stop == m:
            start = (batch.stop - 1) // size * size
            means.finished.put(f"{means.key}/{first}/{start}", counts[start : batch.stop])
    return counts


def _check(index: Any, labels: IntArray, queries: Any, k: int, n_labels: int) -> None:
    if len(index.shape) != 2 or len(queries.shape) != 2 or index.shape[1] != queries.shape[1]:
        raise InputError("The index and the queries must be matrices of the same width.")
    if 0 in index.shape or len(labels) != index.shape[0]:
        raise InputError(
            f"The index must have rows, columns and a label for each row. Got {index.shape[0]} "
            f"rows, {index.shape[1]} columns and {len(labels)} labels instead."
        )
    if k < 1:
        raise InputError(f"The 'k' parameter must be at least 1. Got {k} instead.")
    if labels.min() < 0 or labels.max() >= n_labels:
        raise InputError(f"The labels must be codes from 0 to {n_labels - 1}.")
