"""Rows grouped into k-means cells, laid out for counting labels by matrix products.

Everything here is chosen from the features alone; labels only order the rows inside a cell, after
the cells and the samples are fixed.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ldpaudit.release import Float32Array, IndexArray, IntArray

MOST_CELLS = 2048
LEAST_CELL = 256
BLOCK_ROWS = 1020
SUM_ROWS = 255
"""As many zeros and ones as an unsigned byte can add up."""

_POINTS_PER_CENTER = 32
_ITERATIONS = 6
_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class Run:
    """Neighbouring rows of one block that carry one label: ``first`` … ``last`` − 1."""

    label: int
    first: int
    last: int


@dataclass(frozen=True)
class Block:
    """At most 1020 neighbouring rows of one cell, ordered by label.

    Attributes
    ----------
    rows : float32 array of shape (b, d + 1)
        x − c, for the cell's center c, and −½‖x − c‖².
    runs : tuple of Run
        The rows of each label, in pieces of at most 255.
    """

    rows: Float32Array
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Cell:
    """Rows near one center.

    Attributes
    ----------
    center : float32 array of shape (d,)
        The cell's center c; several cells may share one.
    blocks : tuple of Block
        All its rows.
    sample : float32 array of shape (s, d + 1)
        Every step-th of its rows in an order blind to labels, in the form of ``Block.rows``.
    reach : float
        The largest ½‖x − c‖² in the cell.
    """

    center: Float32Array
    blocks: tuple[Block, ...]
    sample: Float32Array
    reach: float


@dataclass(frozen=True)
class CellIndex:
    """All cells of an index.

    Attributes
    ----------
    shift : float32 array of shape (d,)
        Subtracted from rows before they are compared with ``centers``.
    centers : float32 array of shape (c, d)
        The shifted center of each cell.
    cells : tuple of Cell
        c cells, none with less than an eighth of the rows of another.
    """

    shift: Float32Array
    centers: Float32Array
    cells: tuple[Cell, ...]

    @property
    def sample_rows(self) -> int:
        """The size of the largest sample of a cell."""
        return max(len(cell.sample) for cell in self.cells)


def build_cells(
    index: Float32Array,
    labels: IntArray,
    order: IndexArray,
    cell_rows: int,
    step: int,
    rng: np.random.Generator,
) -> CellIndex:
    """Return the cells of an index.

    Parameters
    ----------
    index : float32 array of shape (n, d)
        The rows.
    labels : int32 array of shape (n,)
        Their labels.
    order : int64 array of shape (n,)
        A permutation of the rows that is blind to the labels.
    cell_rows : int
        The wanted size of a cell.
    step : int
        One row in ``step`` is in its cell's sample.
    rng : numpy.random.Generator
        Chooses the k-means start and the samples' first rows.
    """
    shift = index.mean(axis=0, dtype=np.float64).astype(np.float32)
    centers = _centers(index, order, shift, max(1, len(index) // cell_rows), rng)
    places, centers = _without_small(index[order], shift, centers)
    grouped = order[np.argsort(places, kind="stable")]
    pieces = list(_pieces(np.bincount(places, minlength=len(centers)), len(index), len(centers)))
    cells = []
    for which, first, last in pieces:
        rows = grouped[first:last]
        begin = int(rng.integers(min(step, len(rows))))
        center = centers[which] + shift
        cells.append(_cell(index[rows], labels[rows], center, slice(begin, None, step)))
    return CellIndex(shift, centers[[which for which, _, _ in pieces]], tuple(cells))


def nearest(rows: Float32Array, centers: Float32Array, count: int) -> IntArray:
    """Return the ``count`` nearest centers of each row, in no order, int32 of (n, count)."""
    half_norms = 0.5 * np.einsum("ij,ij->i", centers, centers)
    centers_of = np.empty((len(rows), count), dtype=np.int32)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        piece = slice(start, start + _ROWS_AT_ONCE)
        far = half_norms - rows[piece] @ centers.T
        if count == 1:
            centers_of[piece, 0] = far.argmin(axis=1)
        else:
            centers_of[piece] = np.argpartition(far, count - 1, axis=1)[:, :count]
    return centers_of


def _centers(
    index: Float32Array,
    order: IndexArray,
    shift: Float32Array,
    count: int,
    rng: np.random.Generator,
) -> Float32Array:
    """Return the centers of k-means on a sample of the rows."""
    import faiss

    chosen = order[rng.permutation(len(order))[: count * _POINTS_PER_CENTER]]
    kmeans = faiss.Kmeans(
        index.shape[1],
        count,
        niter=_ITERATIONS,
        seed=int(rng.integers(1, 2**31 - 1)),
        min_points_per_centroid=1,
    )
    kmeans.train(np.ascontiguousarray(index[chosen] - shift))
    return np.asarray(kmeans.centroids, dtype=np.float32)


def _without_small(
    rows: Float32Array, shift: Float32Array, centers: Float32Array
) -> tuple[IntArray, Float32Array]:
    """Return the center of each row and the centers, those with very few rows given up."""
    places = nearest(rows - shift, centers, 1)[:, 0]
    sizes = np.bincount(places, minlength=len(centers))
    large = sizes * 4 * len(centers) >= len(rows)
    lost = np.flatnonzero(~large[places])
    renumbered = np.cumsum(large, dtype=np.int32) - 1
    moved = renumbered[places]
    moved[lost] = nearest(rows[lost] - shift, centers[large], 1)[:, 0]
    return moved, centers[large]


def _pieces(sizes: IndexArray, n: int, count: int) -> Iterator[tuple[int, int, int]]:
    """Yield (center, first, last) of equal pieces, none above the mean size of a cell."""
    start = 0
    for which, size in enumerate(sizes.tolist()):
        parts = -(-size * count // n)
        for part in range(parts):
            yield which, start + size * part // parts, start + size * (part + 1) // parts
        start += size


def _cell(rows: Float32Array, labels: IntArray, center: Float32Array, chosen: slice) -> Cell:
    local = np.empty((len(rows), rows.shape[1] + 1), dtype=np.float32)
    np.subtract(rows, center, out=local[:, :-1])
    local[:, -1] = -0.5 * np.einsum("ij,ij->i", local[:, :-1], local[:, :-1])
    by_label = np.argsort(labels, kind="stable")
    sample = local[chosen].copy()
    ranked = local[by_label]
    starts = range(0, len(rows), BLOCK_ROWS)
    codes = labels[by_label]
    blocks = tuple(
        Block(ranked[i : i + BLOCK_ROWS], tuple(_runs(codes[i : i + BLOCK_ROWS]))) for i in starts
    )
    return Cell(center, blocks, sample, float(-local[:, -1].min()))


def _runs(codes: IntArray) -> Iterator[Run]:
    """Yield the runs of equal labels in a sorted array, none longer than 255."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1)).tolist()
    for start, stop in zip(starts, [*starts[1:], len(codes)], strict=True):
        for first in range(start, stop, SUM_ROWS):
            yield Run(int(codes[start]), first, min(first + SUM_ROWS, stop))
