"""Counting labels within a radius, cell by cell, with matrix products instead of neighbour lists.

An inverted-file search visits the nearest cells of one query after the other and keeps a list of
the best k. Here the loops are the other way round: for one cell, all queries that visit it are
compared with all its rows in one matrix product. A first round over a sample of the rows gives
each query a radius, a second one counts the rows inside by label. Only sums are kept.
"""

from dataclasses import dataclass

import numpy as np

from ldpaudit.arrays import Float32Array, IntArray
from ldpaudit.estimators.neighbors.cell_index import CellIndex
from ldpaudit.estimators.neighbors.nearest_centers import (
    FAR,
    Visits,
    buffer,
    most_visits,
    nearest_visits,
)
from ldpaudit.estimators.neighbors.points import Points
from ldpaudit.running.scratch import mapping_of, resting

SAMPLE_ENTRIES = 24_000_000
"""Distances to sampled rows that are held at once."""
MOST_AT_ONCE = 32_768
_TILE_QUERIES = 512
_RESTING_ROWS = 1_000_000


@dataclass(frozen=True, eq=False)
class CellSearch:
    """Cells, and how to search them.

    Attributes
    ----------
    index : CellIndex
        The rows and their labels.
    rank : int
        The radius reaches the rank-th nearest sampled row of the visited cells.
    visits : int
        The number of cells that a query visits, or a few more.
    """

    index: CellIndex
    rank: int
    visits: int

    @property
    def batch(self) -> int:
        """How many queries to ask at once."""
        sampled = max(self.index.samples.shape[1] / 2, self.index.sampled.mean())
        entries = most_visits(self.visits, len(self.index)) * sampled
        return max(64, min(MOST_AT_ONCE, int(SAMPLE_ENTRIES / entries)))


def count_in_cells(batch: slice, asked: tuple[CellSearch, Points]) -> IntArray:
    """Count the labels within a radius of each query, among the rows of its nearest cells.

    Parameters
    ----------
    batch : slice
        Which queries.
    asked : CellSearch, Points
        Where they are searched, and all of them.

    Returns
    -------
    int32 array of shape (b, K)
        Rows at the border, within the rounding of the distances, are counted.
    """
    search, queries = asked[0], asked[1].take(batch)
    index = search.index
    chosen = nearest_visits(queries - index.shift, index.centers, search.visits, index.sampled)
    visits = _Located(
        chosen,
        buffer("local", np.float32, (len(chosen.queries), queries.shape[1] + 1)),
        buffer("norms", np.float32, (len(chosen.queries),)),
    )
    radii = _radii(index, queries, visits, search.rank)
    counts = np.zeros((index.label_counts.shape[1], len(queries)), dtype=np.int32)
    unrested = 0
    for cell, mine in chosen:
        _add_counts(index, cell, visits, mine, radii, counts)
        unrested += int(index.starts[cell + 1] - index.starts[cell])
        if unrested > _RESTING_ROWS and mapping_of(index.rows) is not None:
            resting(index.rows)
            unrested = 0
    return np.ascontiguousarray(counts.T)


@dataclass(frozen=True, eq=False)
class _Located:
    """Visits seen from the origin o of their cell.

    Attributes
    ----------
    asked : Visits
    local : float32 array of shape (v, d + 1)
        q − o, and a one.
    half_norms : float32 array of shape (v,)
        ½‖q − o‖².
    """

    asked: Visits
    local: Float32Array
    half_norms: Float32Array

    def locate(self, mine: slice, queries: Float32Array, origin: Float32Array) -> None:
        """Fill in the visits of one cell."""
        local = self.local[mine]
        local[:, -1] = 1
        offsets = np.subtract(queries[self.asked.queries[mine]], origin, out=local[:, :-1])
        self.half_norms[mine] = 0.5 * np.einsum("ij,ij->i", offsets, offsets)


def _radii(index: CellIndex, queries: Float32Array, visits: _Located, rank: int) -> Float32Array:
    """Return half the squared radius of each query, float32 of shape (b,); locates the visits."""
    asked = visits.asked
    width = max(rank, int(asked.sizes.max()))
    half_squares = buffer("sample", np.float32, (len(queries), width))
    half_squares[:, int(asked.sizes.min()) :] = FAR
    flat = half_squares.reshape(-1)
    for cell, mine in asked:
        visits.locate(mine, queries, index.origin(cell))
        sample = index.samples[cell, : index.sampled[cell]]
        # ½‖q − x‖² = ½‖q − o‖² − ((q − o)·(x − o) − ½‖x − o‖²)
        nearness = visits.local[mine] @ sample.T
        # Row i of this view is flat[i : i + s].
        places = np.ndarray((len(flat) - len(sample) + 1, len(sample)), np.float32, flat, 0, (4, 4))
        where = asked.queries[mine] * width + asked.before[mine]
        places[where] = np.subtract(visits.half_norms[mine, None], nearness, out=nearness)
    half_squares.partition(rank - 1, axis=1)
    return half_squares[:, rank - 1].copy()


def _add_counts(
    index: CellIndex,
    cell: int,
    visits: _Located,
    mine: slice,
    radii: Float32Array,
    counts: IntArray,
) -> None:
    """Add a cell's rows within each visitor's radius, by label."""
    chosen, local, half_norms = (
        visits.asked.queries[mine],
        visits.local[mine],
        visits.half_norms[mine],
    )
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
