"""Exact label counts among the k nearest rows: by sorting in one dimension, else by brute force."""

import numpy as np
import numpy.typing as npt

from ldpaudit.estimators.neighbors.distinct import DistinctRows
from ldpaudit.release import Float32Array, FloatArray, IndexArray, IntArray

Values = npt.NDArray[np.float32]

_DISTANCES_AT_ONCE = 4_000_000


class SortedLine:
    """Rows of one coordinate, sorted once; each query costs O(log n).

    Parameters
    ----------
    values : float32 array of shape (n,)
        The index rows.
    labels : int32 array of shape (n,)
        Their labels, 0 … n_labels − 1.
    n_labels : int
        The number of labels.
    """

    def __init__(self, values: Values, labels: IntArray, n_labels: int) -> None:
        order = np.argsort(values, kind="stable")
        self._values = values[order].astype(np.float64)
        self._before = np.zeros((n_labels, len(values) + 1), dtype=np.int32)
        for label in range(n_labels):
            np.cumsum(labels[order] == label, out=self._before[label, 1:])

    def count(self, queries: Values, k: int) -> IntArray:
        """Return the label counts of the k nearest rows and all ties, int32 of (m, n_labels)."""
        first, last = self._window(queries.astype(np.float64), k)
        return np.ascontiguousarray((self._before[:, last] - self._before[:, first]).T)

    def _window(self, queries: FloatArray, k: int) -> tuple[IndexArray, IndexArray]:
        """Return first and one past the last position of each query's neighbours."""
        values = self._values
        first = self._first_of_k(queries, k)
        reach = np.maximum(queries - values[first], values[first + k - 1] - queries)
        left = np.searchsorted(values, queries - reach, side="left")
        right = np.searchsorted(values, queries + reach, side="right")
        # The sums above may round past a border value that is surely inside.
        left = np.minimum(left, np.searchsorted(values, values[first], side="left"))
        right = np.maximum(right, np.searchsorted(values, values[first + k - 1], side="right"))
        return left, right

    def _first_of_k(self, queries: FloatArray, k: int) -> IndexArray:
        """Return where the k nearest values of each query begin, by bisection."""
        values = self._values
        low = np.zeros(len(queries), dtype=np.int64)
        high = np.full(len(queries), len(values) - k, dtype=np.int64)
        while (open_ := low < high).any():
            middle = (low + high) // 2
            beyond = np.minimum(middle + k, len(values) - 1)
            further = open_ & (queries - values[middle] > values[beyond] - queries)
            low = np.where(further, middle + 1, low)
            high = np.where(open_ & ~further, middle, high)
        return low


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
    """

    def __init__(self, distinct: DistinctRows, labels: IntArray, n_labels: int) -> None:
        self._center = distinct.rows.mean(axis=0, dtype=np.float64)
        self._rows = distinct.rows - self._center
        self._half_norms = 0.5 * np.einsum("ij,ij->i", self._rows, self._rows)
        self._weights = distinct.label_counts(labels, n_labels).astype(np.float64)
        self._sizes = self._weights.sum(axis=1)

    @property
    def batch(self) -> int:
        """How many queries to ask at once."""
        return max(1, _DISTANCES_AT_ONCE // len(self._rows))

    def count(self, queries: Float32Array, k: int) -> IntArray:
        """Return the label counts of the k nearest rows and all ties, int32 of (m, n_labels)."""
        local = queries - self._center
        # ½‖q − x‖² − ½‖q‖², in float64: ties differ by rounding only.
        far = self._half_norms - local @ self._rows.T
        norms = 0.5 * np.einsum("ij,ij->i", local, local)
        rounding = (local.shape[1] + 3) * np.finfo(np.float64).eps
        radii = self._radii(far, k) + rounding * (norms + self._half_norms.max())
        counts: FloatArray = (far <= radii[:, None]) @ self._weights
        return counts.astype(np.int32)

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
