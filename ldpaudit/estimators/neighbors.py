"""How many of each row's nearest neighbours carry each label, without listing any neighbour.

A query's neighbourhood is a ball whose radius is chosen without looking at a label. Given the
features, the counts inside are then sums of independent labels, and a binomial bound on them holds
whatever the radius: a search that misses some rows costs smoothness, never validity. Rows at the
border are all inside. Leaving some out by position would let the order of a file, which may follow
the labels, into the choice.

A search of a large index groups the rows by k-means. A query visits the nearest cells: a sample of
their rows, blind to labels, sets the radius, and all of their rows within it are counted. The loop
goes over cells, not over queries, so that the work is matrix products.

Index rows and queries must be different rows of the release. There is no leave-one-out: a row's
own label must not enter its own count, so split the rows before counting.
"""

import math
import threading
from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from threadpoolctl import threadpool_limits

from ldpaudit.arrays import Float32Array, FloatArray, IndexArray, IntArray, stable_order
from ldpaudit.errors import InputError
from ldpaudit.work.progress import NoProgress, Progress
from ldpaudit.work.tasks import Tasks, Threads

# Up to so many pairs of queries and index rows, every pair is compared.
EXACT_PAIRS: Final = 100_000_000
SECONDS_PER_PAIR: Final = 4e-9
_ITERATIONS: Final = 6
_ASSIGNED_AT_ONCE: Final = 65_536
MOST_AT_ONCE: Final = 16_384
# As many zeros and ones as an unsigned byte can add up.
_RUN: Final = 255
_FAR: Final = np.float32(1e37)
# So many numbers fit into a processor's cache.
_CACHED: Final = 1 << 20
# Of rows this wide, every sixteenth value is looked at before the others.
_WIDE: Final = 4096
_THINNED: Final = 16
# In units of the farthest index row: squares of more overflow.
_FARTHEST: Final = 1e15


def default_neighbors(n_index: int, dimensions: int | None = None) -> int:
    """Return how many neighbours to count by default: k as a function of the index size.

    4 √n in feature space, n^(3/4) in one coordinate (the score of a learned metric), at least 20
    and at most a tenth of the index.

    The error of η̂ alone is smallest at half to a whole √n in feature space, but the lower bound on
    the loss wants more: it cannot show log-odds above about log(k / 12), and the bias costs it
    little, since averaging over a ball draws η̂ to the prior and the loss down. On a Gaussian
    mixture in 18 dimensions and on Adult the mean bound was largest at 4 to 8 √n. In one
    coordinate the bias is small, and both want more.
    """
    wanted = math.pow(n_index, 0.75) if dimensions == 1 else 4 * math.sqrt(n_index)
    return min(n_index, max(20, min(round(wanted), n_index // 10)))


class _NeighborSearch(Protocol):
    """A prepared search; ``batch`` queries are asked at once."""

    batch: int
    method: str

    def count(self, queries: Float32Array) -> IntArray:
        """Return the label counts around some queries, int32 of shape (m, n_labels)."""


def neighbor_search(
    index: Float32Array,
    labels: IntArray,
    k: int,
    n_labels: int,
    queries: int,
    *,
    seed: int = 0,
    exact: bool = False,
) -> _NeighborSearch:
    """Return a search for the labels of about k nearest index rows.

    One coordinate, and up to 10⁸ pairs of queries and index rows, are searched exactly:
    neighbourhoods have k rows, or more where rows are tied. Otherwise they have k ± 14 % (one
    standard deviation).

    Parameters
    ----------
    index : float32 array of shape (n, d)
        The rows whose labels are counted; finite. The distance is L2.
    labels : int32 array of shape (n,)
        Their labels, 0 … n_labels − 1.
    k : int
        The wanted neighbourhood size, at least 1; taken as n where n is smaller.
    n_labels : int
        The number of labels.
    queries : int
        How many rows will ask: other rows of the same release.
    seed : int
        Chooses the cells of a large search; blind to the labels.
    exact : bool
        Compare every query with every row.

    Raises
    ------
    ldpaudit.errors.InputError
        If shapes, labels or k do not fit, or a value is not finite.
    """
    _check(index, labels, k, n_labels)
    k = min(k, len(index))
    if index.shape[1] == 1:
        return _Line(index[:, 0], labels, k, n_labels)
    whole = exact or k == len(index) or len(index) * queries <= EXACT_PAIRS
    return _Cells(index, labels, k, n_labels, np.random.default_rng(seed), whole)


def count_labels(
    search: _NeighborSearch,
    queries: Float32Array,
    tasks: Tasks | None = None,
    progress: Progress | None = None,
) -> IntArray:
    """Return the label counts around queries, int32 of shape (m, n_labels), no row all 0.

    ``tasks`` answer batches of queries; no count depends on who does.
    """
    if not np.isfinite(queries).all():
        raise InputError("The index and the queries must be finite.")
    starts = range(0, len(queries), search.batch)
    batches = [slice(start, min(start + search.batch, len(queries))) for start in starts]
    counts = [search.count(queries[:0])]
    with threadpool_limits(limits=1):  # Batches run in threads of our own.
        answers = (tasks or Threads()).map(_counted, batches, shared=(search, queries))
        for batch, answer in zip(batches, answers, strict=True):
            counts.append(answer)
            (progress or NoProgress()).advance(batch.stop, len(queries))
    vars(_rooms).clear()
    return np.concatenate(counts)


def _counted(batch: slice, asked: tuple[_NeighborSearch, Float32Array]) -> IntArray:
    return asked[0].count(asked[1][batch])


class _Line:
    """Rows of one coordinate in order: the exact search takes O(log n) for each query."""

    batch = 65_536
    method = "exact nearest neighbours in one coordinate, ties included"

    def __init__(self, values: Float32Array, labels: IntArray, k: int, n_labels: int) -> None:
        self._k, self._values = k, np.sort(values.astype(np.float64))
        order = np.lexsort((values, labels))
        ends = np.cumsum(np.bincount(labels, minlength=n_labels))[:-1]
        self._by_label = np.split(values[order].astype(np.float64), ends)

    def count(self, queries: Float32Array) -> IntArray:
        """Return the label counts of the k nearest rows and all ties."""
        asked, values = queries[:, 0].astype(np.float64), self._values
        first = self._first_of_k(asked)
        near, far = values[first], values[first + self._k - 1]
        reach = np.maximum(asked - near, far - asked)
        # The sums may round past a border value that is surely inside.
        low, high = np.minimum(asked - reach, near), np.maximum(asked + reach, far)
        each = [
            np.searchsorted(part, high, side="right") - np.searchsorted(part, low)
            for part in self._by_label
        ]
        return np.stack(each, axis=1).astype(np.int32)

    def _first_of_k(self, asked: FloatArray) -> IndexArray:
        values, low = self._values, np.zeros(len(asked), dtype=np.int64)
        high = np.full(len(asked), len(values) - self._k)
        while (low < high).any():
            middle = (low + high) // 2
            beyond = values[np.minimum(middle + self._k, len(values) - 1)]
            further = (low < high) & (asked - values[middle] > beyond - asked)
            low, high = np.where(further, middle + 1, low), np.where(further, high, middle)
        return low


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows seen from an origin, in the order of their labels.

    ``rows`` of shape (n, d + 1) hold x − origin and −½‖x − origin‖². ``runs`` are label, first
    and past the last row of pieces of at most 255 rows.
    """

    origin: Float32Array
    rows: Float32Array
    runs: list[tuple[int, int, int]]
    n_labels: int

    @classmethod
    def around(
        cls, origin: Float32Array, points: Float32Array, labels: IntArray, n_labels: int
    ) -> Self:
        """Return labelled points around an origin."""
        rows = np.empty((len(points), points.shape[1] + 1), dtype=np.float32)
        local = np.subtract(points[stable_order(labels)], origin, out=rows[:, :-1])
        rows[:, -1] = -0.5 * np.einsum("ij,ij->i", local, local)
        ends = np.cumsum([0, *np.bincount(labels, minlength=n_labels)]).tolist()
        runs = [
            (label, first, min(first + _RUN, ends[label + 1]))
            for label in range(n_labels)
            for first in range(ends[label], ends[label + 1], _RUN)
        ]
        return cls(origin, rows, runs, n_labels)

    def half_squares(self, queries: Float32Array, room: Float32Array | None = None) -> Float32Array:
        """Return ½‖q − x‖² for each pair, float32 of shape (m, n), in ``room`` where given."""
        local, norms = self._located(queries)
        near: Float32Array = np.matmul(local, self.rows.T, out=room)
        np.subtract(norms[:, None], near, out=near)
        return near

    def reach(self, queries: Float32Array, rank: int) -> Float32Array:
        """Return the half squared distance to each query's row of a rank, float32 of shape (m,)."""
        found, width = np.empty(len(queries), dtype=np.float32), len(self.rows)
        step = max(1, _CACHED // width)
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            squares = self.half_squares(part, _room(len(part), width))
            found[start : start + step] = _ranked(squares, rank)
        return found

    def within(self, queries: Float32Array, radii: Float32Array) -> IntArray:
        """Return the label counts within each half squared radius, int32 of (n_labels, m)."""
        local, norms = self._located(queries)
        # What rounding may change is added: a row inside has ‖x‖² ≤ 2‖q‖² + 2r².
        rounding = np.float32(self.rows.shape[1] * 2.0**-23)
        least, columns = norms - radii - rounding * (norms + radii), local.T
        counts = np.zeros((self.n_labels, len(queries)), dtype=np.int32)
        for label, first, last in self.runs:
            inside = self.rows[first:last] @ columns >= least
            counts[label] += inside.view(np.uint8).sum(axis=0, dtype=np.uint8)
        return counts

    def _located(self, queries: Float32Array) -> tuple[Float32Array, Float32Array]:
        local = np.ones((len(queries), self.rows.shape[1]), dtype=np.float32)
        offsets = np.subtract(queries, self.origin, out=local[:, :-1])
        return local, np.float32(0.5) * np.einsum("ij,ij->i", offsets, offsets)


# New memory costs more than what is written there, so a thread uses its own again.
_rooms = threading.local()


def _room(rows: int, width: int) -> Float32Array:
    """Return this thread's float32 array of a shape; what it lent before is no longer valid."""
    room: Float32Array | None = getattr(_rooms, "room", None)
    if room is None or len(room) < rows * width:
        room = _rooms.room = np.empty(rows * width, dtype=np.float32)
    return room[: rows * width].reshape(rows, width)


def _ranked(values: Float32Array, rank: int) -> Float32Array:
    """Return the value of a rank in each row, from 1; changes the order in ``values`` (m, n)."""
    width = values.shape[1]
    # What a part of a row seems to say of its smallest values leaves few to choose from.
    share = rank / _THINNED
    last = math.ceil(share + 4 * math.sqrt(share)) + 1
    if width < _WIDE or last >= width // _THINNED:
        values.partition(rank - 1, axis=1)
        return values[:, rank - 1].copy()
    some = np.ascontiguousarray(values[:, ::_THINNED])
    some.partition(last, axis=1)
    found = np.empty(len(values), dtype=np.float32)
    for place, (row, most) in enumerate(zip(values, some[:, last], strict=True)):
        near = row[row <= most]
        near = near if len(near) >= rank else row
        near.partition(rank - 1)
        found[place] = near[rank - 1]
    return found


class _Cells:
    """Rows in k-means cells; for an exact search one cell, and all its rows are the sample."""

    def __init__(
        self,
        index: Float32Array,
        labels: IntArray,
        k: int,
        n_labels: int,
        rng: np.random.Generator,
        exact: bool,
    ) -> None:
        # A radius reaches the 48th nearest row of a sample: totals then have a relative standard
        # deviation of 1/√48 around k.
        n, step = len(index), 1 if exact else max(1, k // 48)
        # Cells are made for about 2/3 k rows, the least error for the time on a mixture …
        size = n if exact else max(round((2 / 3) * k), 256, n // 2048)
        # A random order by the rows' values: the order of the file, and labels, play no part.
        values = np.einsum("ij,j->i", index, rng.standard_normal(index.shape[1]))
        order = np.argsort(values, kind="stable")[rng.permutation(n)]
        sample = index[order[: 32 * max(1, n // size)]]
        self._shift = np.median(sample, axis=0)
        farthest = np.maximum(index.max(axis=0) - self._shift, self._shift - index.min(axis=0))
        # A power of two, by which squares of the farthest row neither overflow nor vanish.
        self._factor = np.float32(2.0 ** -np.round(np.log2(farthest.max() or 1.0)))
        centers = _means(self._moved(sample), n // size, rng)
        cells = np.empty(n, dtype=np.int64)
        for start in range(0, n, _ASSIGNED_AT_ONCE):
            part = slice(start, start + _ASSIGNED_AT_ONCE)
            cells[part] = _nearest(self._moved(index[part]), centers, 1)[:, 0]
        order = order[stable_order(cells[order])]
        used, self._sizes = np.unique(cells, return_counts=True)
        self._centers = centers[used]
        self._rows, self._samples = [], []
        for center, mine in zip(
            self._centers, np.split(order, np.cumsum(self._sizes)[:-1]), strict=True
        ):
            points = self._moved(index[mine])
            self._rows.append(_Rows.around(center, points, labels[mine], n_labels))
            drawn = points[rng.integers(min(step, len(mine))) :: step]
            blind = np.zeros(len(drawn), dtype=np.int32)
            self._samples.append(_Rows.around(center, drawn, blind, 1))
        self._sampled = np.array([len(sample.rows) for sample in self._samples])
        self._rank, self._n_labels = max(1, round(k / step)), n_labels
        # … and about 20 k rows are visited, which gave the error of an exact search there.
        self.visited = max(20 * k, 24 * size)
        self._most = min(len(used), 2 * -(-self.visited * len(used) // n))
        entries = min(n, 1.5 * self.visited) / step
        self.batch = max(8, min(MOST_AT_ONCE, int(16_000_000 / entries)))
        self.method = "exact nearest neighbours, ties included"
        if not exact:
            self.method = (
                f"rows within a radius that holds about {k}, set for each query on a sample blind "
                f"to labels, in the nearest of {len(used)} k-means cells"
            )

    def count(self, queries: Float32Array) -> IntArray:
        """Return the label counts within each query's radius among its nearest cells."""
        asked = self._moved(queries)
        if len(self._rows) == 1:
            radii = self._samples[0].reach(asked, self._rank)
            return np.ascontiguousarray(self._rows[0].within(asked, radii).T)
        near = _nearest(asked, self._centers, self._most)
        rows = self._sizes[near]
        visited = np.cumsum(rows, axis=1) - rows < self.visited
        who, place = np.nonzero(visited)
        order = np.argsort(near[who, place], kind="stable")
        who, place = who[order], place[order]
        cells, starts = np.unique(near[who, place], return_index=True)
        parts = np.split(np.arange(len(who)), starts[1:]) if len(who) else []
        sampled = np.where(visited, self._sampled[near], 0)
        columns = (np.cumsum(sampled, axis=1) - sampled)[who, place]
        width = max(self._rank, int(sampled.sum(axis=1).max(initial=0)))
        squares = _room(len(asked), width)
        squares.fill(_FAR)
        for cell, part in zip(cells, parts, strict=True):
            sample = self._samples[cell]
            pieces = sliding_window_view(squares.reshape(-1), len(sample.rows), writeable=True)
            pieces[who[part] * width + columns[part]] = sample.half_squares(asked[who[part]])
        squares.partition(self._rank - 1, axis=1)
        radii = squares[:, self._rank - 1].copy()
        counts = np.zeros((self._n_labels, len(asked)), dtype=np.int32)
        for cell, part in zip(cells, parts, strict=True):
            mine = who[part]
            counts[:, mine] += self._rows[cell].within(asked[mine], radii[mine])
        return np.ascontiguousarray(counts.T)

    def _moved(self, points: Float32Array) -> Float32Array:
        moved = (points - self._shift) * self._factor
        return np.clip(moved, -_FARTHEST, _FARTHEST, out=moved)


def _means(sample: Float32Array, count: int, rng: np.random.Generator) -> Float32Array:
    import faiss

    if count <= 1:
        return np.zeros((1, sample.shape[1]), dtype=np.float32)
    seed, width = int(rng.integers(1, 2**31 - 1)), sample.shape[1]
    kmeans = faiss.Kmeans(width, count, niter=_ITERATIONS, seed=seed, min_points_per_centroid=1)
    kmeans.train(sample)
    return np.asarray(kmeans.centroids, dtype=np.float32)


def _nearest(points: Float32Array, centers: Float32Array, count: int) -> IndexArray:
    """Return the nearest centers of each point, nearest first, int64 of shape (m, count)."""
    import faiss

    found: IndexArray = faiss.knn(points, centers, count)[1]
    return found


def _check(index: Float32Array, labels: IntArray, k: int, n_labels: int) -> None:
    if index.ndim != 2 or 0 in index.shape or len(labels) != len(index):
        raise InputError("The index must have rows, columns and a label for each row.")
    if k < 1:
        raise InputError(f"The 'k' parameter must be at least 1. Got {k} instead.")
    if labels.min() < 0 or labels.max() >= n_labels:
        raise InputError(f"The labels must be codes from 0 to {n_labels - 1}.")
    if not np.isfinite(index).all():
        raise InputError("The index and the queries must be finite.")
