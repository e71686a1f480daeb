"""Equal rows, found once by a hash of their values."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.arrays import IndexArray, IntArray, WordArray
from ldpaudit.estimators.neighbors.points import Points, blocks


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows of a matrix.

    Attributes
    ----------
    points : Points
        Each distinct row once: u of them.
    inverse : int64 array of shape (n,) or None
        For each row of the matrix its position in ``points``; None where no two rows are equal.
    """

    points: Points
    inverse: IndexArray | None

    def label_counts(self, labels: IntArray, n_labels: int) -> IntArray:
        """Return how often each label occurs at each distinct row, int32 of shape (u, n_labels)."""
        inverse = np.arange(len(labels)) if self.inverse is None else self.inverse
        counts = np.bincount(inverse * n_labels + labels, minlength=len(self.points) * n_labels)
        return counts.reshape(len(self.points), n_labels).astype(np.int32)


def count_distinct(ordered: WordArray) -> int:
    """Return the number of different values of an ascending array."""
    return int((ordered[1:] != ordered[:-1]).sum()) + min(1, len(ordered))


def distinct_rows(points: Points, hashes: WordArray) -> DistinctRows:
    """Return the distinct rows, given one hash for each row, equal where rows are."""
    if points.width == 1:  # in order of their values, for a search on the line
        values, inverse = np.unique(points.take(slice(None)), return_inverse=True)
        return DistinctRows(Points(values[:, None]), inverse.reshape(-1).astype(np.int64))
    order = np.argsort(hashes, kind="stable")
    ranked = hashes[order]
    starts = np.ones(len(order), dtype=np.bool_)
    np.not_equal(ranked[1:], ranked[:-1], out=starts[1:])
    if starts.all():
        return DistinctRows(points, None)
    inverse = np.empty(len(order), dtype=np.int64)
    inverse[order] = np.cumsum(starts) - 1
    chosen = order[starts]
    if _all_equal(points, chosen, inverse):
        return DistinctRows(Points(points.take(chosen)), inverse)
    everything = points.take(slice(None))  # two rows had one hash
    rows, inverse = np.unique(everything, axis=0, return_inverse=True)
    return DistinctRows(Points(rows), inverse.reshape(-1).astype(np.int64))


def _all_equal(points: Points, chosen: IndexArray, inverse: IndexArray) -> bool:
    """Return whether every row equals the chosen row of its hash."""
    return all(
        np.array_equal(points.take(piece), points.take(chosen[inverse[piece]]))
        for piece in blocks(len(points))
    )
