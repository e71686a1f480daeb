"""Counting labels within a radius, cell by cell, with matrix products instead of neighbour lists.

An inverted-file search visits the nearest cells of one query after the other and keeps a list of
the best k. Here the loops are the other way round: for one cell, all queries that visit it are
compared with all its rows in one matrix product. A first round over a sample of the rows gives
each query a radius, a second one counts the rows inside by label. Only sums are kept.
"""

from dataclasses import dataclass

import numpy as np

from ldpaudit.arrays import Float32Array, IndexArray, IntArray
from ldpaudit.estimators.neighbors.cell_index import CellIndex
from ldpaudit.estimators.neighbors.nearest_centers import (
    FAR,
    Visits,
    buffer,
    most_visits,
    nearest_visits,
)
from ldpaudit.estimators.neighbors.points import Points
from ldpaudit.scratch import mapping_of, resting

SAMPLE_ENTRIES = 24_000_000
"""Distances to sampled rows that are held at once."""
MOST_AT_ONCE = 32_768
_TILE_QUERIES = 512
_RESTING_ROWS = 1_000_000


@dataclass(frozen=True, eq=False)
class CellSearch:
    """All that a batch of queries needs.

    Attributes
    ----------
    index : CellIndex
        The rows and their labels.
    queries : Points
        All m of them.
    rank : int
        The radius reaches the rank-th nearest sampled row of the visited cells.
    visits : int
        The number of cells that a query visits, or a few more.
    """

    index: CellIndex
    queries: Points
    rank: int
    visits: int

    @property
    def batch(self) -> int:
        """How many queries to ask at once."""
        slots = most_visits(self.visits, len(self.index))
        entries = slots * int(self.index.samples.shape[1])
        return max(64, min(MOST_AT_ONCE, SAMPLE_ENTRIES // entries))


def count_in_cells(batch: slice, search: CellSearch) -> IntArray:
    """Count the labels within a radius of each query, among the rows of its nearest cells.

    Parameters
    ----------
    batch : slice
        Which queries.
    search : CellSearch

    Returns
    -------
    int32 array of shape (b, K)
        Rows at the border, within the rounding of the distances, are counted.
    """
    index, queries = search.index, search.queries.take(batch)
    visits = nearest_visits(queries - index.shift, index.centers, search.visits)
    radii = _radii(index, queries, visits, search)
    counts = np.zeros((index.label_counts.shape[1], len(queries)), dtype=np.int32)
    unrested = 0
    for cell in np.flatnonzero(np.diff(visits.ends)).tolist():
        _add_counts(index, cell, queries, visits.of(cell)[0], radii, counts)
        unrested += int(index.starts[cell + 1] - index.starts[cell])
        if unrested > _RESTING_ROWS and mapping_of(index.rows) is not None:
            resting(index.rows)
            unrested = 0
    return np.ascontiguousarray(counts.T)


def _local(
    index: CellIndex, cell: int, queries: Float32Array, chosen: IndexArray
) -> tuple[Float32Array, Float32Array]:
    """Return q − o and a one, float32 of shape (v, d + 1), and ½‖q − o‖², of shape (v,)."""
    local = np.ones((len(chosen), queries.shape[1] + 1), dtype=np.float32)
    np.subtract(queries[chosen], index.origin(cell), out=local[:, :-1])
    return local, 0.5 * np.einsum("ij,ij->i", local[:, :-1], local[:, :-1])


def _radii(
    index: CellIndex, queries: Float32Array, visits: Visits, search: CellSearch
) -> Float32Array:
    """Return half the squared radius of each query, float32 of shape (b,)."""
    shape = (len(queries), visits.most, index.samples.shape[1])
    half_squares = buffer("sample", np.float32, shape)
    half_squares[:, min(search.visits, len(index)) :] = FAR
    for cell in np.flatnonzero(np.diff(visits.ends)).tolist():
        chosen, slots = visits.of(cell)
        local, half_norms = _local(index, cell, queries, chosen)
        # ½‖q − x‖² = ½‖q − o‖² − ((q − o)·(x − o) − ½‖x − o‖²)
        nearness = local @ index.samples[cell].T
        half_squares[chosen, slots] = np.subtract(half_norms[:, None], nearness, out=nearness)
    flat = half_squares.reshape(len(queries), -1)
    flat.partition(search.rank - 1, axis=1)
    return flat[:, search.rank - 1].copy()


def _add_counts(
    index: CellIndex,
    cell: int,
    queries: Float32Array,
    chosen: IndexArray,
    radii: Float32Array,
    counts: IntArray,
) -> None:
    """Add a cell's rows within each visitor's radius, by label."""
    local, half_norms = _local(index, cell, queries, chosen)
    rounding = np.float32((local.shape[1] + 3) * np.finfo(np.float32).eps)
    least = half_norms - radii[chosen]
    least -= rounding * (half_norms + index.reaches[cell])
    inner = np.zeros((len(counts), len(chosen)), dtype=np.int32)
    for rows, runs in index.blocks(cell):
        for start in range(0, len(chosen), _TILE_QUERIES):
            tile = slice(start, start + _TILE_QUERIES)
            _add_block(rows, runs, local[tile].T, least[tile], inner[:, tile])
    counts[:, chosen] += inner


def _add_block(
    rows: Float32Array,
    runs: list[tuple[int, int, int]],
    local: Float32Array,
    least: Float32Array,
    counts: IntArray,
) -> None:
    """Add the rows with (q − o)·(x − o) − ½‖x − o‖² ≥ ``least`` to ``counts``, by label."""
    shape = (len(rows), local.shape[1])
    products = np.matmul(rows, local, out=buffer("products", np.float32, shape))
    inside = np.greater_equal(products, least, out=buffer("inside", np.bool_, shape))
    for label, first, last in runs:
        counts[label] += inside[first:last].view(np.uint8).sum(axis=0, dtype=np.uint8)
