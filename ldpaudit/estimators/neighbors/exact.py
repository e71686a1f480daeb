"""Exact label counts among the k nearest rows: every query is compared with every row."""

import numpy as np

from ldpaudit.arrays import Float32Array, FloatArray, IntArray
from ldpaudit.estimators.neighbors.distinct import DistinctRows
from ldpaudit.estimators.neighbors.points import Points

_DISTANCES_AT_ONCE = 4_000_000
_FEWEST_AT_ONCE = 8
_LONG = 50_000
"""From so many rows on the few that are near are added up one by one."""


class WeightedRows:
    """Distinct rows with the label counts at each; every query is compared with every one.

    Parameters
    ----------
    distinct : DistinctRows
        The index rows.
    labels : int32 array of shape (n,)
        Their labels, 0 … n_labels − 1.
    n_labels : int
        The number of labels.
    k : int
        The wanted neighbourhood size.
    """

    def __init__(self, distinct: DistinctRows, labels: IntArray, n_labels: int, k: int) -> None:
        self._k = k
        rows = distinct.points.take(slice(None))
        self._center = rows.mean(axis=0, dtype=np.float64)
        self._rows = rows - self._center
        self._half_norms = 0.5 * np.einsum("ij,ij->i", self._rows, self._rows)
        self._weights = distinct.label_counts(labels, n_labels).astype(np.float64)
        self._sizes = self._weights.sum(axis=1)

    @property
    def batch(self) -> int:
        """How many queries to ask at once."""
        return max(_FEWEST_AT_ONCE, _DISTANCES_AT_ONCE // len(self._rows))

    def count(self, queries: Float32Array) -> IntArray:
        """Return the label counts of the k nearest rows and all ties, int32 of (m, n_labels)."""
        local = queries - self._center
        # ½‖q − x‖² − ½‖q‖², in float64: ties differ by rounding only.
        far = self._half_norms - local @ self._rows.T
        norms = 0.5 * np.einsum("ij,ij->i", local, local)
        rounding = (local.shape[1] + 3) * np.finfo(np.float64).eps
        radii = self._radii(far, self._k) + rounding * (norms + self._half_norms.max())
        return self._inside(far, radii).astype(np.int32)

    def _inside(self, far: FloatArray, radii: FloatArray) -> FloatArray:
        """Return the label counts of the rows within each radius, float64 of (m, n_labels)."""
        if far.shape[1] < _LONG:
            return np.asarray((far <= radii[:, None]) @ self._weights)
        near = [self._weights[row <= radius] for row, radius in zip(far, radii, strict=True)]
        return np.array([weights.sum(axis=0) for weights in near])

    def _radii(self, far: FloatArray, k: int) -> FloatArray:
        """Return the distance at which each query has k rows, counted with their multiplicity."""
        most = min(k, far.shape[1])
        if self._sizes.max() == 1:
            return np.asarray(np.partition(far, most - 1, axis=1)[:, most - 1])
        near = np.argpartition(far, most - 1, axis=1)[:, :most]
        distances = np.take_along_axis(far, near, axis=1)
        order = np.argsort(distances, axis=1)
        near = np.take_along_axis(near, order, axis=1)
        reached = (np.cumsum(self._sizes[near], axis=1) < k).sum(axis=1)
        where = np.take_along_axis(order, reached[:, None], axis=1)
        return np.asarray(np.take_along_axis(distances, where, axis=1)[:, 0])


def count_exactly(batch: slice, asked: tuple[WeightedRows, Points]) -> IntArray:
    """Return the label counts of a batch of queries, int32 of shape (m, n_labels)."""
    search, queries = asked
    return search.count(queries.take(batch))
