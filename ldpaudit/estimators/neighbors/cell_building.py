"""Building the cells: k-means on a sample, every row to its nearest center, cell after cell.

Everything is chosen from the features alone; labels only order the rows inside a cell, after the
cells and the samples are fixed. Equal rows are ordered at random, whatever order the file has.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import Float32Array, IndexArray, IntArray, WordArray
from ldpaudit.estimators.neighbors.cell_index import Allocate, CellIndex
from ldpaudit.estimators.neighbors.nearest_centers import nearest_center
from ldpaudit.estimators.neighbors.points import Points, Summary, blocks
from ldpaudit.running.scratch import resting
from ldpaudit.tasks import Threads

MOST_CELLS = 2048
LEAST_CELL = 256

_POINTS_PER_CENTER = 32
_ITERATIONS = 6
_SPREAD_ROWS = 262_144
_CENTERS_AT_ONCE = 16

Places = npt.NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class _Center:
    """The rows of one center, which become one cell or several equal ones.

    Attributes
    ----------
    first, last : int
        The rows ``first`` … ``last`` − 1, center after center.
    cell, cells : int
        The first of its cells, and how many there are.
    """

    first: int
    last: int
    cell: int
    cells: int

    def bounds(self) -> IndexArray:
        """Return where its cells begin, and where the last one ends."""
        return self.first + (self.last - self.first) * np.arange(self.cells + 1) // self.cells


@dataclass(frozen=True, eq=False)
class _Unfinished:
    """What threads fill in, cell by cell."""

    index: CellIndex
    labels: IntArray
    hashes: WordArray
    step: int
    seed: int


def build_cells(
    points: Points,
    labels: IntArray,
    found: Summary,
    n_labels: int,
    cell_rows: int,
    step: int,
    *,
    seed: int,
    threads: int = 1,
    allocate: Allocate = np.empty,
) -> CellIndex:
    """Return the cells of an index.

    Parameters
    ----------
    points : Points
        The n rows.
    labels : int32 array of shape (n,)
        Their labels, 0 … n_labels − 1.
    found : Summary
        Of the points, before their factor.
    n_labels : int
        The number of labels.
    cell_rows : int
        The wanted size of a cell.
    step : int
        One row in ``step`` is in its cell's sample.
    seed : int
        Chooses the k-means start, the order of equal rows and the samples' first rows.
    threads : int
        Threads used; the result does not depend on it.
    allocate : callable
        Makes the large arrays.
    """
    shift = (found.mean * points.factor).astype(np.float32)
    rng = np.random.default_rng(seed)
    centers = _centers(points, found, shift, max(1, len(points) // cell_rows), rng)
    places, centers = _without_small(points, shift, centers, threads)
    sizes = np.bincount(places, minlength=len(centers))
    parts = list(_parts(sizes, len(points)))
    starts = np.concatenate([[0], *(part.bounds()[1:] for part in parts)])
    rows = allocate((len(points), points.width + 1), np.float32)
    spread = _spread(points, labels, found.hashes, places, sizes, rows)
    sampled = -(-int(np.diff(starts).max()) // step)
    index = CellIndex(
        shift,
        np.repeat(centers, [part.cells for part in parts], axis=0),
        starts,
        np.zeros((len(starts) - 1, n_labels), np.int32),
        rows,
        allocate((len(starts) - 1, sampled, rows.shape[1]), np.float32),
        np.zeros(len(starts) - 1, np.int64),
        np.zeros(len(starts) - 1, np.float32),
    )
    groups = [parts[i : i + _CENTERS_AT_ONCE] for i in range(0, len(parts), _CENTERS_AT_ONCE)]
    for _ in Threads(threads).map(_finish, groups, shared=_Unfinished(index, *spread, step, seed)):
        pass
    return index


def _centers(
    points: Points, found: Summary, shift: Float32Array, count: int, rng: np.random.Generator
) -> Float32Array:
    """Return the centers of k-means on a sample of the rows."""
    import faiss

    sample = points.take(_blind_sample(found.hashes, count * _POINTS_PER_CENTER, rng)) - shift
    kmeans = faiss.Kmeans(
        points.width,
        count,
        niter=_ITERATIONS,
        seed=int(rng.integers(1, 2**31 - 1)),
        min_points_per_centroid=1,
    )
    kmeans.train(np.ascontiguousarray(sample))
    return np.asarray(kmeans.centroids, dtype=np.float32)


def _blind_sample(hashes: WordArray, most: int, rng: np.random.Generator) -> IndexArray:
    """Return rows at random, by their values: another order of the file gives equal rows.

    Ranks are drawn; the row of a rank is the first of those with the hash at that rank.
    """
    ordered = np.sort(hashes)
    ranks = rng.choice(len(ordered), min(most, len(ordered)), replace=False)
    wanted = ordered[ranks]
    del ordered
    marked = np.zeros(1 << 20, dtype=np.bool_)
    marked[wanted >> np.uint64(44)] = True
    candidates = np.concatenate(
        [piece.start + np.flatnonzero(marked[hashes[piece] >> np.uint64(44)])
         for piece in blocks(len(hashes))]
    )  # fmt: skip
    values, first = np.unique(hashes[candidates], return_index=True)
    return np.asarray(candidates[first[np.searchsorted(values, wanted)]])


def _without_small(
    points: Points, shift: Float32Array, centers: Float32Array, threads: int
) -> tuple[Places, Float32Array]:
    """Return the center of each row and the centers, those with very few rows given up."""
    places = np.empty(len(points), np.uint16)
    pieces = list(blocks(len(points)))
    for piece, part in zip(
        pieces, Threads(threads).map(_placed, pieces, shared=(points, shift, centers)), strict=True
    ):
        places[piece] = part
    sizes = np.bincount(places, minlength=len(centers))
    large = sizes * 4 * len(centers) >= len(points)
    if large.all():
        return places, centers
    renumbered = (np.cumsum(large) - 1).astype(np.uint16)
    for piece in pieces:
        lost = piece.start + np.flatnonzero(~large[places[piece]])
        places[piece] = renumbered[places[piece]]
        places[lost] = nearest_center(points.take(lost) - shift, centers[large])
    return places, centers[large]


def _placed(piece: slice, shared: tuple[Points, Float32Array, Float32Array]) -> Places:
    points, shift, centers = shared
    part = nearest_center(points.take(piece) - shift, centers)
    resting(points.rows)
    return part


def _parts(sizes: IndexArray, n: int) -> Iterator[_Center]:
    """Yield the centers, none of whose cells has more rows than centers have on average."""
    start = cell = 0
    for size in sizes.tolist():
        cells = -(-size * len(sizes) // n)
        yield _Center(start, start + size, cell, cells)
        start, cell = start + size, cell + cells


def _spread(
    points: Points,
    labels: IntArray,
    hashes: WordArray,
    places: Places,
    sizes: IndexArray,
    rows: Float32Array,
) -> tuple[IntArray, WordArray]:
    """Write the rows into ``rows`` center by center; return their labels and hashes likewise."""
    codes, keys = np.empty_like(labels), np.empty_like(hashes)
    cursors = np.cumsum(sizes) - sizes
    for piece in blocks(len(points), _SPREAD_ROWS):
        order = np.argsort(places[piece], kind="stable")
        parts = points.take(piece)[order], labels[piece][order], hashes[piece][order]
        counts = np.bincount(places[piece], minlength=len(sizes))
        ends = np.cumsum(counts)
        for which in np.flatnonzero(counts).tolist():
            source = slice(ends[which] - counts[which], ends[which])
            target = slice(cursors[which], cursors[which] + counts[which])
            rows[target, :-1] = parts[0][source]
            codes[target], keys[target] = parts[1][source], parts[2][source]
        cursors += counts
        resting(points.rows)
        resting(rows)
    return codes, keys


def _finish(centers: list[_Center], work: _Unfinished) -> None:
    for center in centers:
        _finish_center(center, work)
    resting(work.index.rows)
    resting(work.index.samples)


def _finish_center(center: _Center, work: _Unfinished) -> None:
    """Order the rows of a center blindly, then make its cells of them."""
    rng = np.random.default_rng([work.seed, center.cell])
    mine = slice(center.first, center.last)
    order = rng.permutation(center.last - center.first)
    order = order[np.argsort(work.hashes[mine][order], kind="stable")]
    points, labels = work.index.rows[mine, :-1][order], work.labels[mine][order]
    points -= work.index.origin(center.cell)
    bounds = center.bounds() - center.first
    for place, (first, last) in enumerate(pairwise(bounds.tolist())):
        begin = int(rng.integers(min(work.step, last - first)))
        cell = slice(first, last)
        _finish_cell(center.cell + place, points[cell], labels[cell], begin, work)


def _finish_cell(
    cell: int, points: Float32Array, labels: IntArray, begin: int, work: _Unfinished
) -> None:
    """Write a cell's rows and its sample, given its local points in an order blind to labels."""
    index = work.index
    local = np.empty((len(points), points.shape[1] + 1), dtype=np.float32)
    local[:, :-1] = points
    local[:, -1] = -0.5 * np.einsum("ij,ij->i", points, points)
    sample = local[begin :: work.step]
    index.samples[cell, : len(sample)] = sample
    index.sampled[cell] = len(sample)
    start = int(index.starts[cell])
    index.rows[start : start + len(local)] = local[np.argsort(labels, kind="stable")]
    index.label_counts[cell] = np.bincount(labels, minlength=index.label_counts.shape[1])
    index.reaches[cell] = -local[:, -1].min()
