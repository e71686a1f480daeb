"""Rows grouped into k-means cells, laid out for counting labels by matrix products.

All of it lies in a few arrays, in memory or in files of a scratch folder: other threads and
processes read the same ones.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpaudit.arrays import Float32Array, IndexArray, IntArray

Allocate = Callable[[tuple[int, ...], Any], Any]
"""Makes an array of a shape and a dtype, in memory or in a file."""

BLOCK_ROWS = 1020
SUM_ROWS = 255
"""As many zeros and ones as an unsigned byte can add up."""


@dataclass(frozen=True, eq=False)
class CellIndex:
    """n rows in c cells, none of which has less than an eighth of the rows of another.

    Attributes
    ----------
    shift : float32 array of shape (d,)
        Subtracted from rows before they are compared with ``centers``.
    centers : float32 array of shape (c, d)
        The shifted center of each cell; several cells may share one.
    starts : int64 array of shape (c + 1,)
        The first row of each cell, and n.
    label_counts : int32 array of shape (c, K)
        How many rows of each cell carry each label.
    rows : float32 array of shape (n, d + 1)
        x − o, for the origin o = center + shift of its cell, and −½‖x − o‖²; ordered by cell, then
        label.
    samples : float32 array of shape (c, s, d + 1)
        Every step-th row of each cell in an order blind to labels, in the form of ``rows``.
    sampled : int64 array of shape (c,)
        How many rows each sample has.
    reaches : float32 array of shape (c,)
        The largest ½‖x − o‖² of each cell.
    """

    shift: Float32Array
    centers: Float32Array
    starts: IndexArray
    label_counts: IntArray
    rows: Float32Array
    samples: Float32Array
    sampled: IndexArray
    reaches: Float32Array

    def __len__(self) -> int:
        """Return the number of cells c."""
        return len(self.centers)

    def origin(self, cell: int) -> Float32Array:
        """Return the origin of a cell, float32 of shape (d,)."""
        return np.asarray(self.centers[cell] + self.shift)

    def blocks(self, cell: int) -> Iterator[tuple[Float32Array, list[tuple[int, int, int]]]]:
        """Yield a cell's rows in blocks of at most 1020, each with its :func:`runs`."""
        ends = np.cumsum(self.label_counts[cell]).tolist()
        begin = int(self.starts[cell])
        for first in range(0, ends[-1], BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, ends[-1])
            yield self.rows[begin + first : begin + last], runs(ends, first, last)


def runs(ends: list[int], first: int, last: int) -> list[tuple[int, int, int]]:
    """Return (label, from, to) of the pieces of equal labels in a block, none longer than 255.

    ``ends`` holds where the rows of each label end in the cell, ``first`` and ``last`` the block.
    """
    pieces, start = [], 0
    for label, stop in enumerate(ends):
        begin, end = max(start, first) - first, min(stop, last) - first
        for piece in range(begin, end, SUM_ROWS):
            pieces.append((label, piece, min(piece + SUM_ROWS, end)))
        start = stop
    return pieces
