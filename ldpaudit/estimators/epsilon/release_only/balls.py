"""Balls of feature space in which an output is unusually frequent, found on a sample of rows.

An anchor's nested balls are counted on one half of the rows; the best ones are then handed on as a
centre and a radius, so that the other half can test them.
"""

from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from ldpaudit.estimators.epsilon.release_only.score_groups import SMALLEST_GROUP, Ladder
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.release import BoolArray, Float32Array, FloatArray, IndexArray, IntArray

ANCHORS = 256
SAMPLE_ROWS = 100_000
_LARGEST_BALL = 32_768
_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class AnchorBalls:
    """Counts of outputs in nested balls around random rows.

    Attributes
    ----------
    anchors : float32 array of shape (a, d)
        The centres, in coordinates centred at ``origin``.
    origin : float32 array of shape (d,)
    sizes : int64 array of shape (s,)
        Rows of the sample in the balls, from the most to the fewest.
    radii : float32 array of shape (a, s)
        Squared radii (less the anchor's own squared norm) of the balls.
    counts : int32 array of shape (a, s, m)
        Rows of each output in them.
    sampled : int
        Rows of the sample.
    """

    anchors: Float32Array
    origin: Float32Array
    sizes: IndexArray
    radii: Float32Array
    counts: IntArray
    sampled: int

    def ladder(self, counts: IntArray, scale: float) -> tuple[Ladder, IndexArray]:
        """Return, for each group and ball size, the best anchor, int64 of shape (g, s), and what
        to expect of it on ``scale`` times as many rows.

        ``counts``: rows that are right for each group, int32 of shape (a, s, g). What to expect is
        a lower bound that holds for all anchors at once, and 0 for a single right row, so that a
        lucky ball is not preferred.
        """
        tail = 0.05 / (counts.shape[0] * counts.shape[1])
        most = counts.max(axis=0)  # Of balls of one size, the one with the most right rows.
        low = clopper_pearson_lower(most, self.sizes[:, None], tail)
        purity, best = np.where(most > 1, low, 0.0), counts.argmax(axis=0)
        sizes = np.append(np.floor(self.sizes * scale), 0.0)
        right = np.concatenate([purity, np.zeros((1, purity.shape[1]))]) * sizes[:, None]
        return Ladder(np.tile(sizes, (purity.shape[1], 1)), right.T), best.T

    def inside(self, points: Float32Array, anchor: int, step: int) -> IndexArray:
        """Return which of other points lie in a ball, int64."""
        distance = _distances(points - self.origin, self.anchors[anchor][None, :])[0]
        return np.flatnonzero(distance <= self.radii[anchor, step])


def find_balls(
    points: Float32Array,
    released: IntArray,
    n_outputs: int,
    *,
    rng: np.random.Generator,
    threads: int = 1,
) -> AnchorBalls:
    """Count the outputs in nested balls around random rows; exact neighbours.

    Parameters
    ----------
    points : float32 array of shape (n, d)
    released : int32 array of shape (n,)
        Output codes below ``n_outputs``.
    rng : numpy.random.Generator
        Draws at most 100,000 rows to count and 256 anchors among them.
    threads : int
        Of the matrix products.
    """
    rows = rng.permutation(len(points))[:SAMPLE_ROWS]
    origin = points[rows].mean(axis=0, dtype=np.float64).astype(np.float32)
    sample, labels = points[rows] - origin, released[rows]
    anchors = sample[:ANCHORS]
    sizes = _ball_sizes(len(rows))
    radii = np.empty((len(anchors), len(sizes)), dtype=np.float32)
    counts = np.empty((len(anchors), len(sizes), n_outputs), dtype=np.int32)
    with threadpool_limits(threads):
        for start in range(0, len(anchors), _AT_ONCE):
            block = _distances(sample, anchors[start : start + _AT_ONCE])
            for i, distance in enumerate(block, start):
                radii[i], counts[i] = _nested(distance, labels, sizes, n_outputs)
    return AnchorBalls(anchors, origin, sizes, radii, counts, len(rows))


def _ball_sizes(n: int) -> IndexArray:
    largest = min(n // 3, _LARGEST_BALL)
    steps = int(2 * np.log2(largest / SMALLEST_GROUP))
    return np.ceil(largest * 2.0 ** (-np.arange(steps + 1) / 2)).astype(np.int64)


def _distances(points: Float32Array, anchors: Float32Array) -> Float32Array:
    """Return ‖x‖² − 2⟨x, a⟩, which orders points as ‖x − a‖² does, float32 of shape (a, n)."""
    norms = np.einsum("ij,ij->i", points, points)
    return np.asarray(norms[None, :] - 2 * (anchors @ points.T), dtype=np.float32)


def _nested(
    distance: Float32Array, labels: IntArray, sizes: IndexArray, n_outputs: int
) -> tuple[Float32Array, IntArray]:
    near = np.argpartition(distance, sizes[0] - 1)[: sizes[0]]
    near = near[np.argsort(distance[near])]
    # Which of the nested shells each neighbour lies in, the innermost last.
    shell = len(sizes) - 1 - np.searchsorted(sizes[::-1], np.arange(sizes[0]), side="right")
    cells = np.bincount(shell * n_outputs + labels[near], minlength=len(sizes) * n_outputs)
    counts = np.cumsum(cells.reshape(len(sizes), n_outputs)[::-1], axis=0)[::-1]
    return distance[near][sizes - 1], counts.astype(np.int32)


def right_counts(counts: IntArray, outputs: BoolArray | None) -> IntArray:
    """Return the rows that are right for each group, from balls' counts by output.

    Without ``outputs`` every output is a group; with them there are two groups, the others and
    they: bool of shape (m,).
    """
    if outputs is None:
        return counts
    one = counts[..., outputs].sum(axis=-1)
    return np.stack([counts.sum(axis=-1) - one, one], axis=-1)


def as_scores(scores: FloatArray, outputs: BoolArray | None) -> FloatArray:
    """Return the probability of each group's outputs, groups as in :func:`right_counts`."""
    if outputs is None:
        return scores
    one = scores[:, outputs].sum(axis=1)
    return np.stack([np.maximum(1 - one, 0.0), one], axis=1)
