"""Counting labels within a radius, cell by cell, with matrix products instead of neighbour lists.

An inverted-file search visits the nearest cells of one query after the other and keeps a list of
the best k. Here the loops are the other way round: for one cell, all queries that visit it are
compared with all its rows in one matrix product. A first round over a sample of the rows gives
each query a radius, a second one counts the rows inside by label. Only sums are kept.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from threading import local
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ldpaudit.estimators.neighbors.cell_index import Block, Cell, CellIndex, nearest
from ldpaudit.release import Float32Array, IndexArray, IntArray

T = TypeVar("T", bound=np.generic)

QUERIES_AT_ONCE = 8192
_TILE_QUERIES = 512

_buffers = local()


@dataclass(frozen=True)
class Visit:
    """The queries that visit one cell, seen from its center c.

    Attributes
    ----------
    cell : int
        The cell's number.
    queries, slots : int64 arrays of shape (v,)
        Which queries, and as which of their cells.
    local : float32 array of shape (d + 1, v)
        q − c, and a row of ones.
    half_norms : float32 array of shape (v,)
        ½‖q − c‖².
    """

    cell: int
    queries: IndexArray
    slots: IndexArray
    local: Float32Array
    half_norms: Float32Array


def count_in_cells(
    index: CellIndex, queries: Float32Array, n_labels: int, rank: int, cells_each: int
) -> IntArray:
    """Count the labels within a radius of each query, among the rows of its nearest cells.

    Parameters
    ----------
    index : CellIndex
        The rows and their labels.
    queries : float32 array of shape (m, d)
        At most a few thousand.
    n_labels : int
        The number of labels K.
    rank : int
        The radius reaches the rank-th nearest sampled row of the visited cells.
    cells_each : int
        The number of cells that a query visits.

    Returns
    -------
    int32 array of shape (m, K)
        Rows at the border, within the rounding of the distances, are counted.
    """
    cells = nearest(queries - index.shift, index.centers, cells_each)
    visits = list(_visits(index, queries, cells))
    radii = _radii(index, visits, len(queries), rank)
    counts = np.zeros((n_labels, len(queries)), dtype=np.int32)
    for visit in visits:
        _add_counts(index.cells[visit.cell], visit, radii, counts)
    return counts.T


def _visits(index: CellIndex, queries: Float32Array, cells: IntArray) -> Iterator[Visit]:
    """Yield the visits to each cell, given the cells of each query, int32 of (m, v)."""
    order = np.argsort(cells, axis=None, kind="stable")
    ends = np.searchsorted(cells.reshape(-1)[order], np.arange(len(index.cells) + 1))
    for number, cell in enumerate(index.cells):
        chosen, slots = np.divmod(order[ends[number] : ends[number + 1]], cells.shape[1])
        if len(chosen):
            local = np.ones((queries.shape[1] + 1, len(chosen)), dtype=np.float32)
            np.subtract(queries[chosen].T, cell.center[:, None], out=local[:-1])
            half_norms = 0.5 * np.einsum("ij,ij->j", local[:-1], local[:-1])
            yield Visit(number, chosen, slots, local, half_norms)


def _radii(index: CellIndex, visits: list[Visit], m: int, rank: int) -> Float32Array:
    """Return half the squared radius of each query, float32 of shape (m,)."""
    slots = 1 + max(int(visit.slots.max()) for visit in visits)
    half_squares = _buffer("sample", np.float32, (m, slots, index.sample_rows))
    half_squares.fill(np.inf)
    for visit in visits:
        sample = index.cells[visit.cell].sample
        # ½‖q − x‖² = ½‖q − c‖² − ((q − c)·(x − c) − ½‖x − c‖²)
        nearness = visit.half_norms - sample @ visit.local
        half_squares[visit.queries, visit.slots, : len(sample)] = nearness.T
    flat = half_squares.reshape(m, -1)
    flat.partition(rank - 1, axis=1)
    return flat[:, rank - 1].copy()


def _add_counts(cell: Cell, visit: Visit, radii: Float32Array, counts: IntArray) -> None:
    """Add a cell's rows within each visitor's radius, by label."""
    rounding = np.float32((len(visit.local) + 3) * np.finfo(np.float32).eps)
    least = visit.half_norms - radii[visit.queries]
    least -= rounding * (visit.half_norms + np.float32(cell.reach))
    inner = np.zeros((len(counts), len(visit.queries)), dtype=np.int32)
    for start in range(0, len(visit.queries), _TILE_QUERIES):
        tile = slice(start, start + _TILE_QUERIES)
        for block in cell.blocks:
            _add_block(block, visit.local[:, tile], least[tile], inner[:, tile])
    counts[:, visit.queries] += inner


def _add_block(block: Block, local: Float32Array, least: Float32Array, counts: IntArray) -> None:
    """Add the rows with (q − c)·(x − c) − ½‖x − c‖² ≥ ``least`` to ``counts``, by label."""
    shape = (len(block.rows), local.shape[1])
    products = np.matmul(block.rows, local, out=_buffer("products", np.float32, shape))
    inside = np.greater_equal(products, least, out=_buffer("inside", np.bool_, shape))
    for run in block.runs:
        rows = inside[run.first : run.last].view(np.uint8)
        counts[run.label] += rows.sum(axis=0, dtype=np.uint8)


def _buffer(name: str, kind: type[T], shape: tuple[int, ...]) -> npt.NDArray[T]:
    """Return this thread's array of that name with undefined content; fresh memory is slow."""
    size = math.prod(shape)
    held: npt.NDArray[T] | None = getattr(_buffers, name, None)
    if held is None or held.size < size:
        held = np.empty(size, dtype=kind)
        setattr(_buffers, name, held)
    return held[:size].reshape(shape)
