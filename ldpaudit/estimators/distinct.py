"""Equal feature rows, found once: a search over distinct rows is exact, and far smaller, with ties.

The distinct rows come in an order that depends on their values alone. Whatever is drawn or broken
by position afterwards is therefore blind to the labels, even where a file is sorted by label.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ldpaudit.release import Float32Array, IndexArray, IntArray

HashArray = npt.NDArray[np.uint64]


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


def distinct_rows(matrix: Float32Array) -> DistinctRows:
    """Return the distinct rows of a finite float32 matrix of shape (n, d), in O(n d + n log n).

    The result does not depend on the order of the rows, but for ``inverse``, which follows it.
    """
    matrix = np.ascontiguousarray(matrix, dtype=np.float32) + np.float32(0.0)  # -0.0 becomes 0.0
    hashes = _row_hashes(matrix)
    order = np.argsort(hashes, kind="stable")
    ranked = hashes[order]
    starts = np.ones(len(order), dtype=np.bool_)
    np.not_equal(ranked[1:], ranked[:-1], out=starts[1:])
    group = np.cumsum(starts) - 1
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = group
    rows = matrix[order[starts]]
    if not _equal_rows(matrix, rows, inverse):
        return _distinct_by_sorting(matrix)
    return DistinctRows(rows, inverse)


def _row_hashes(matrix: Float32Array) -> HashArray:
    """Return a 64-bit hash of each row's bits (the splitmix64 finalizer, column after column)."""
    bits = matrix.view(np.uint32)
    hashes = np.zeros(len(matrix), dtype=np.uint64)
    for column in range(matrix.shape[1]):
        hashes += bits[:, column]
        hashes += np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(30)
        hashes *= np.uint64(0xBF58476D1CE4E5B9)
        hashes ^= hashes >> np.uint64(27)
        hashes *= np.uint64(0x94D049BB133111EB)
        hashes ^= hashes >> np.uint64(31)
    return hashes


def _equal_rows(matrix: Float32Array, rows: Float32Array, inverse: IndexArray) -> bool:
    """Return whether every row equals the distinct row it was mapped to (no hash collision)."""
    if len(rows) == len(matrix):
        return True
    step = 65536
    pieces = range(0, len(matrix), step)
    return all(np.array_equal(matrix[i : i + step], rows[inverse[i : i + step]]) for i in pieces)


def _distinct_by_sorting(matrix: Float32Array) -> DistinctRows:
    """Return the distinct rows in lexicographic order: the way out of a hash collision."""
    rows, inverse = np.unique(matrix, axis=0, return_inverse=True)
    return DistinctRows(rows, inverse.reshape(-1).astype(np.int64))
