"""Exact label counts among the k nearest rows in one coordinate, by sorting them once."""

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import Float32Array, FloatArray, IndexArray, IntArray, WordArray
from ldpaudit.estimators.neighbors.points import Points

Values = npt.NDArray[np.float32]

_STRIDE = 32
_SIGN = np.uint32(1 << 31)


class SortedLine:
    """Rows of one coordinate, sorted once; each query costs O(log n).

    Takes 8 n bytes while it sorts, then 8 n + n K / 8.

    Parameters
    ----------
    values : float32 array of shape (n,)
        The index rows.
    labels : int32 array of shape (n,)
        Their labels, 0 … n_labels − 1.
    n_labels : int
        The number of labels.
    k : int
        The wanted neighbourhood size.
    """

    batch = 65_536

    def __init__(self, values: Values, labels: IntArray, n_labels: int, k: int) -> None:
        self._k = k
        self._values, self._codes = _sorted(values, labels)
        pieces = np.arange(len(values)) // _STRIDE
        table = np.bincount(pieces * n_labels + self._codes, minlength=(pieces[-1] + 1) * n_labels)
        self._before = np.zeros((int(pieces[-1]) + 2, n_labels), dtype=np.int32)
        np.cumsum(table.reshape(-1, n_labels), axis=0, out=self._before[1:])

    def count(self, queries: Values) -> IntArray:
        """Return the label counts of the k nearest rows and all ties, int32 of (m, n_labels).

        Fastest where the queries are in order.
        """
        first, last = self._window(queries.astype(np.float64), self._k)
        return self._below(last) - self._below(first)

    def _below(self, positions: IndexArray) -> IntArray:
        """Return the labels before each position, int32 of shape (m, n_labels)."""
        pieces, rest = np.divmod(positions, _STRIDE)
        counts = self._before[pieces]
        n_labels = counts.shape[1]
        owners = np.repeat(np.arange(len(positions)), rest)
        within = np.arange(len(owners)) - np.repeat(np.cumsum(rest) - rest, rest)
        codes = self._codes[pieces[owners] * _STRIDE + within]
        more = np.bincount(owners * n_labels + codes, minlength=counts.size)
        return (counts + more.reshape(counts.shape)).astype(np.int32)

    def _window(self, queries: FloatArray, k: int) -> tuple[IndexArray, IndexArray]:
        """Return first and one past the last position of each query's neighbours."""
        values = self._values
        first = self._first_of_k(queries, k)
        near, far = values[first], values[first + k - 1]
        reach = np.maximum(queries - near, far - queries)
        # The sums may round past a border value that is surely inside.
        low = np.minimum(_up(queries - reach), near)
        high = np.maximum(-_up(-(queries + reach)), far)
        left = np.searchsorted(values, low, side="left")
        return left, np.searchsorted(values, high, side="right")

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


def _up(values: FloatArray) -> Float32Array:
    """Return the least float32 at or above each value: comparing with it is exact."""
    rounded = values.astype(np.float32)
    return np.where(rounded < values, np.nextafter(rounded, np.float32(np.inf)), rounded)


def _sorted(values: Values, labels: IntArray) -> tuple[Values, IntArray]:
    """Return the values in order and their labels, by sorting one 64-bit word for each row."""
    bits = (values + np.float32(0.0)).view(np.uint32)  # -0.0 counts as 0.0
    words: WordArray = np.where(bits & _SIGN, ~bits, bits | _SIGN).astype(np.uint64)
    words <<= np.uint64(32)
    words |= labels.astype(np.uint32)
    words.sort()
    codes = words.astype(np.uint32).view(np.int32)  # the low half
    words >>= np.uint64(32)
    bits = words.astype(np.uint32)
    return np.where(bits & _SIGN, bits ^ _SIGN, ~bits).view(np.float32), codes


def count_on_line(batch: slice, asked: tuple[SortedLine, Points]) -> IntArray:
    """Return the label counts of a batch of queries, int32 of shape (m, n_labels)."""
    search, queries = asked
    return search.count(queries.take(batch)[:, 0])
