"""Rows as points that are read block by block, from memory or from a file."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpaudit.arrays import GOLDEN, Float32Array, FloatArray, WordArray, scrambled
from ldpaudit.errors import InputError
from ldpaudit.running.scratch import resting, rows_of
from ldpaudit.tasks import Threads

BLOCK_ROWS = 65_536
_HASHED_ROWS = 8192


@dataclass(frozen=True, eq=False)
class Points:
    """Rows of one width, times a factor.

    Attributes
    ----------
    rows : float32 array of shape (n, d)
        In memory or memory-mapped.
    factor : float
        A power of two, by which the rows are multiplied when they are read.
    """

    rows: Any
    factor: float = 1.0

    def __len__(self) -> int:
        """Return the number of rows n."""
        return int(self.rows.shape[0])

    @property
    def width(self) -> int:
        """The number of coordinates d."""
        return int(self.rows.shape[1])

    def take(self, which: Any) -> Float32Array:
        """Return some rows (a slice, or numbers), float32 of shape (m, d)."""
        rows = self.rows[which] if isinstance(which, slice) else rows_of(self.rows, which)
        part = np.ascontiguousarray(rows, dtype=np.float32)
        return part if self.factor == 1.0 else part * np.float32(self.factor)


@dataclass(frozen=True, eq=False)
class Summary:
    """What one pass over the rows finds.

    Attributes
    ----------
    mean : float64 array of shape (d,)
    largest : float
        The largest absolute value, 0 without rows.
    hashes : uint64 array of shape (n,)
        One for each row, equal where the rows are.
    """

    mean: FloatArray
    largest: float
    hashes: WordArray

    @property
    def ordered(self) -> WordArray:
        """The hashes in ascending order, uint64 of shape (n,)."""
        return np.sort(self.hashes)


def blocks(stop: int, size: int = BLOCK_ROWS, start: int = 0) -> Iterator[slice]:
    """Yield the rows ``start`` … ``stop`` − 1 in blocks."""
    for first in range(start, stop, size):
        yield slice(first, min(first + size, stop))


def summary(points: Points, threads: int) -> Summary:
    """Return what one pass over the rows finds.

    Raises
    ------
    ldpaudit.errors.InputError
        If a value is not finite.
    """
    hashes = np.empty(len(points), dtype=np.uint64)
    total, largest = np.zeros(points.width), 0.0
    pieces = blocks(len(points))
    found = Threads(threads).map(_summed, blocks(len(points)), shared=(points, hashes))
    for _, (sums, most) in zip(pieces, found, strict=True):
        total, largest = total + sums, max(largest, most)
    if not np.isfinite(largest) or not np.isfinite(total).all():
        raise InputError("The index and the queries must be finite.")
    return Summary(total / max(1, len(points)), largest, hashes)


def _summed(piece: slice, shared: tuple[Points, WordArray]) -> tuple[FloatArray, float]:
    points, hashes = shared
    rows = points.take(piece)
    hashes[piece] = row_hashes(rows)
    resting(points.rows)
    largest = max(float(rows.max(initial=0.0)), -float(rows.min(initial=0.0)))
    return rows.sum(axis=0, dtype=np.float64), largest


def row_hashes(matrix: Float32Array) -> WordArray:
    """Return a 64-bit hash of each row's bits (the splitmix64 finalizer, column after column)."""
    hashes = np.zeros(len(matrix), dtype=np.uint64)
    for piece in blocks(len(matrix), _HASHED_ROWS):
        part = hashes[piece]
        for column in matrix[piece].T:
            part += (column + np.float32(0.0)).view(np.uint32)  # -0.0 counts as 0.0
            part += GOLDEN
            scrambled(part)
    return hashes


def scale(*largest: float) -> float:
    """Return the power of two by which squares of such values neither overflow nor vanish."""
    most = max(largest)
    if most == 0.0 or 1e-6 < most < 1e12:
        return 1.0
    return float(np.exp2(-np.round(np.log2(most))))
