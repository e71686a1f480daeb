"""The nearest centers of many rows, by blocks of matrix products that stay in the cache."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from threading import local
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import Float32Array, IndexArray

T = TypeVar("T", bound=np.generic)

FAR = np.float32(1e37)
"""Farther than anything: an infinity would make products with 0 undefined."""
_TILE_ENTRIES = 524_288
_MOST_FOLDS = 8
_SPARE = 0.25

_buffers = local()


@dataclass(frozen=True, eq=False)
class Visits:
    """Which queries visit which cells, ordered by cell.

    Attributes
    ----------
    queries : int64 array of shape (v,)
        Who visits.
    ends : int64 array of shape (c + 1,)
        Where the visits of each cell begin.
    before, sizes : int64 arrays of shapes (v,) and (b,)
        The sampled rows of the cells that a query visits: how many there are before those of this
        visit, and of all visits.
    """

    queries: IndexArray
    ends: IndexArray
    before: IndexArray
    sizes: IndexArray

    def __iter__(self) -> Iterator[tuple[int, slice]]:
        """Yield each cell that is visited, and which visits are to it."""
        for cell in np.flatnonzero(np.diff(self.ends)).tolist():
            yield cell, slice(int(self.ends[cell]), int(self.ends[cell + 1]))


def nearest_center(rows: Float32Array, centers: Float32Array) -> npt.NDArray[np.uint16]:
    """Return the nearest of at most 65,536 centers for each row, uint16 of shape (n,)."""
    found = np.empty(len(rows), dtype=np.uint16)
    for start, far in _distances(rows, centers, 1):
        found[start : start + len(far)] = far.argmin(axis=1)
    return found


def most_visits(count: int, cells: int) -> int:
    """Return how many cells a query visits at most where ``count`` are wanted."""
    return min(cells, count + max(2, round(_SPARE * count)))


def folds_for(count: int, cells: int) -> int:
    """Return how many centers the least of is taken: so few that about ``count`` are visited."""
    folds = 1
    while 2 * folds <= _MOST_FOLDS and 2 * folds * count**2 <= 3 * cells:
        folds *= 2
    return folds


def nearest_visits(
    rows: Float32Array, centers: Float32Array, count: int, sizes: IndexArray
) -> Visits:
    """Return each row's visits to the ``count`` nearest centers, and a few more where it is quick.

    The distance up to which a row visits is found among the least of every few centers: it
    is never too small. ``sizes`` are the sampled rows of each center's cell.
    """
    most = most_visits(count, len(centers))
    folds = folds_for(count, len(centers))
    parts = [
        _hits(start, far, folds, count, most) for start, far in _distances(rows, centers, folds)
    ]
    queries, cells = (np.concatenate(part) for part in zip(*parts, strict=True))
    before = np.cumsum(sizes[cells]) - sizes[cells]
    first = np.searchsorted(queries, np.arange(len(rows)))
    before -= before[first][queries]
    order = np.argsort(cells.astype(np.uint16), kind="stable")
    ends = np.searchsorted(cells[order], np.arange(len(centers) + 1))
    totals = np.bincount(queries, weights=sizes[cells], minlength=len(rows)).astype(np.int64)
    return Visits(queries[order], ends, before[order], totals)


def _hits(
    start: int, far: Float32Array, folds: int, count: int, most: int
) -> tuple[IndexArray, IndexArray]:
    """Return queries and cells of a tile's visits, query by query."""
    least = far.reshape(len(far), folds, -1).min(axis=1) if folds > 1 else far
    reach = np.partition(least, count - 1, axis=1)[:, count - 1 : count]
    queries, cells = np.divmod(np.flatnonzero(far <= reach), far.shape[1])
    kept = np.arange(len(queries)) - np.searchsorted(queries, queries) < most
    return start + queries[kept], cells[kept]


def _distances(
    rows: Float32Array, centers: Float32Array, folds: int
) -> Iterator[tuple[int, Float32Array]]:
    """Yield tiles of ½‖c‖² − x·c, far away beyond the last center up to a multiple of ``folds``."""
    width = -(-len(centers) // folds) * folds
    against = np.zeros((rows.shape[1] + 1, width), dtype=np.float32)
    against[:-1, : len(centers)] = -centers.T
    against[-1] = FAR
    against[-1, : len(centers)] = 0.5 * np.einsum("ij,ij->i", centers, centers)
    size = max(1, min(len(rows), _TILE_ENTRIES // width))
    tile = np.ones((size, rows.shape[1] + 1), dtype=np.float32)
    for start in range(0, len(rows), size):
        part = tile[: len(rows) - start]
        part[:, :-1] = rows[start : start + size]
        yield start, np.matmul(part, against, out=buffer("far", np.float32, (len(part), width)))


def buffer(name: str, kind: type[T], shape: tuple[int, ...]) -> npt.NDArray[T]:
    """Return this thread's array of that name with undefined content; fresh memory is slow."""
    size = math.prod(shape)
    held: npt.NDArray[T] | None = getattr(_buffers, name, None)
    if held is None or held.size < size:
        held = np.empty(size, dtype=kind)
        setattr(_buffers, name, held)
    return held[:size].reshape(shape)
