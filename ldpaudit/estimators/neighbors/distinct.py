"""Equal feature rows, found once, and an order of rows that is blind to the order of the file.

A file may be sorted by label. Whatever is sampled by position or left to rounding afterwards must
not follow it, so rows are ordered by a hash of their values, equal rows among themselves at random.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpaudit.release import BoolArray, Float32Array, IndexArray, IntArray

HashArray = npt.NDArray[np.uint64]

_ROWS_AT_ONCE = 65_536


@dataclass(frozen=True)
class RowOrder:
    """Rows in the order of a hash of their values.

    Attributes
    ----------
    order : int64 array of shape (n,)
        The rows, equal ones side by side.
    starts : bool array of shape (n,)
        True where, in that order, a new value begins.
    """

    order: IndexArray
    starts: BoolArray

    @property
    def distinct(self) -> int:
        """The number of distinct rows."""
        return int(self.starts.sum())


@dataclass(frozen=True)
class DistinctRows:
    """The distinct rows of a matrix.

    Attributes
    ----------
    rows : float32 array of shape (u, d)
        Each distinct row once, ordered by a hash of its values.
    inverse : int64 array of shape (n,)
        For each row of the matrix its position in ``rows``.
    """

    rows: Float32Array
    inverse: IndexArray

    def label_counts(self, labels: IntArray, n_labels: int) -> IntArray:
        """Return how often each label occurs at each distinct row, int32 of shape (u, n_labels)."""
        cells = self.inverse * n_labels + labels
        counts = np.bincount(cells, minlength=len(self.rows) * n_labels)
        return counts.reshape(len(self.rows), n_labels).astype(np.int32)


def row_order(matrix: Float32Array, rng: np.random.Generator) -> RowOrder:
    """Return the rows of a float32 matrix of shape (n, d) in an order blind to the file's.

    Parameters
    ----------
    matrix : float32 array of shape (n, d)
        The rows; finite. O(n d + n log n).
    rng : numpy.random.Generator
        Orders equal rows among themselves.
    """
    shuffled = rng.permutation(len(matrix))
    hashes = _row_hashes(matrix)[shuffled]
    ranks = np.argsort(hashes, kind="stable")
    hashes = hashes[ranks]
    starts = np.ones(len(hashes), dtype=np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=starts[1:])
    return RowOrder(shuffled[ranks], starts)


def distinct_rows(matrix: Float32Array, order: RowOrder) -> DistinctRows:
    """Return the distinct rows of a matrix, given its :func:`row_order`."""
    inverse = np.empty(len(matrix), dtype=np.int64)
    inverse[order.order] = np.cumsum(order.starts) - 1
    rows = matrix[order.order[order.starts]]
    if _equal_rows(matrix, rows, inverse):
        return DistinctRows(rows, inverse)
    rows, inverse = np.unique(matrix, axis=0, return_inverse=True)  # two rows had one hash
    return DistinctRows(rows, inverse.reshape(-1).astype(np.int64))


def _row_hashes(matrix: Float32Array) -> HashArray:
    """Return a 64-bit hash of each row's bits (the splitmix64 finalizer, column after column)."""
    hashes = np.zeros(len(matrix), dtype=np.uint64)
    for column in matrix.T:
        hashes += (column + np.float32(0.0)).view(np.uint32)  # -0.0 counts as 0.0
        hashes += np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(30)
        hashes *= np.uint64(0xBF58476D1CE4E5B9)
        hashes ^= hashes >> np.uint64(27)
        hashes *= np.uint64(0x94D049BB133111EB)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _equal_rows(matrix: Float32Array, rows: Float32Array, inverse: IndexArray) -> bool:
    """Return whether every row equals its distinct row."""
    if len(rows) == len(matrix):
        return True
    pieces = [slice(i, i + _ROWS_AT_ONCE) for i in range(0, len(matrix), _ROWS_AT_ONCE)]
    return all(np.array_equal(matrix[piece], rows[inverse[piece]]) for piece in pieces)
