"""Lower bounds of the instance-based loss over everything a posterior may be.

The averaged loss is convex in the posterior (section 6 and appendix D of the paper for two labels;
a sum of terms a log(a/b) in general), so its least value over a box is found in closed form for two
labels and bounded from below by tangents for more.
"""

import numpy as np
from scipy.special import logit

from ldpaudit.estimators.loss.instance_loss import BinaryLoss
from ldpaudit.estimators.loss.posterior_intervals import PosteriorBox
from ldpaudit.release import FloatArray, IntArray

_BATCH_CELLS = 2_000_000
_MOST_STEPS = 24
_FEWEST_STEPS = 2
_WORK = 4e8
"""Terms of the loss that are differentiated at most: many rows of many labels get fewer steps."""
_LEAST_PROBABILITY = 1e-12


def mean_loss_lower(
    box: PosteriorBox, prior_low: FloatArray, prior_high: FloatArray, channel: FloatArray | None
) -> FloatArray:
    """Return a lower bound of ν(x) for every posterior in the box and prior in the interval.

    Parameters
    ----------
    box : PosteriorBox
        m rows, k labels.
    prior_low, prior_high : float64 arrays of shape (k,)
        Intervals of the label shares, inside (0, 1).
    channel : float64 array of shape (k, m) or None
        P(z | y); None for the features' part alone.

    Returns
    -------
    float64 array of shape (m,)
        For two labels the exact minimum, H(clip(z*, lo, hi)) at the worse end of the prior's
        interval (the loss is linear in its log-odds). For more labels a tangent's minimum: below
        the exact one by the gap of a few Frank–Wolfe steps, never above it.
    """
    if box.estimate.shape[1] > 2:
        return _tangent_bound(box, prior_high, channel)
    bounds = []
    for prior in (prior_low[1], prior_high[1]):
        loss = BinaryLoss.of_channel(float(prior), channel)
        bounds.append(loss.value(np.clip(loss.minimizer, box.low[:, 1], box.high[:, 1])))
    return np.minimum(*bounds)


def row_loss_lower(
    box: PosteriorBox,
    labels: IntArray,
    released: IntArray,
    prior_high: FloatArray,
    channel: FloatArray | None,
) -> FloatArray:
    """Return a lower bound of ν(y_i, z_i, x_i) for every posterior in the box.

    ν grows with the share of y and falls with the others' likelihood of z, so the bound puts the
    share of y at its least and fills the rest with the labels that make z likeliest. Parameters as
    in :func:`ldpaudit.estimators.loss.instance_loss.row_loss`, the prior at its upper ends.
    """
    rows = np.arange(len(labels))
    k = box.estimate.shape[1]
    matrix = np.ones((k, 1)) if channel is None else np.asarray(channel, dtype=np.float64)
    likelihood = matrix[:, np.zeros_like(labels) if channel is None else released].T
    least = box.low[rows, labels]
    low, high = box.low.copy(), box.high.copy()
    low[rows, labels] = high[rows, labels] = least
    others = np.array(likelihood)
    others[rows, labels] = 0.0
    rest = (others * _least_point(-others, low, high)).sum(axis=1)
    with np.errstate(divide="ignore"):
        odds = np.log(least * likelihood[rows, labels]) - np.log(rest)
    return np.asarray(odds - logit(np.asarray(prior_high))[labels])


def _tangent_bound(
    box: PosteriorBox, prior_high: FloatArray, channel: FloatArray | None
) -> FloatArray:
    k = box.estimate.shape[1]
    matrix = np.ones((k, 1)) if channel is None else np.asarray(channel, dtype=np.float64)
    betraying = _betraying(matrix)
    matrix = np.maximum(matrix, _LEAST_PROBABILITY)
    work = max(1, len(box.estimate) * matrix.size)
    steps = int(np.clip(_WORK / work, _FEWEST_STEPS, _MOST_STEPS))
    cost = logit(np.asarray(prior_high))
    bounds = np.empty(len(box.estimate))
    batch = max(1, _BATCH_CELLS // matrix.size)
    for start in range(0, len(bounds), batch):
        part = slice(start, start + batch)
        bounds[part] = _frank_wolfe(
            box.estimate[part], box.low[part], box.high[part], matrix, cost, steps
        )
    return np.where((box.low[:, betraying] > 0).any(axis=1), np.inf, bounds)


def _betraying(matrix: FloatArray) -> IntArray:
    """Return the labels that some output proves: possible under them and under no other label."""
    possible = matrix > 0
    alone = possible & (possible.sum(axis=0) == 1) & (matrix.shape[1] > 0)
    return np.flatnonzero(alone.any(axis=1)).astype(np.int32)


def _frank_wolfe(
    start: FloatArray,
    low: FloatArray,
    high: FloatArray,
    matrix: FloatArray,
    cost: FloatArray,
    steps: int,
) -> FloatArray:
    """Return the best tangent bound of min F over each box, F(η) = versus_rest(η) − η·cost.

    F is homogeneous of degree 1, so F(η) ≥ ∇F(η₀)·η for any η₀, with equality at η₀.
    """
    point = np.maximum(start, _LEAST_PROBABILITY)
    best = np.full(len(point), -np.inf)
    for step in range(steps):
        gradient = _gradient(point, matrix) - cost
        vertex = _least_point(gradient, low, high)
        best = np.maximum(best, (gradient * vertex).sum(axis=1))
        point = point + 2.0 / (step + 3.0) * (np.maximum(vertex, _LEAST_PROBABILITY) - point)
    return best


def _gradient(point: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return the gradient of versus_rest, float64 of shape (n, k)."""
    joint = point[:, :, None] * matrix
    total = joint.sum(axis=1, keepdims=True)
    ratio = joint / np.maximum(total - joint, 1e-15 * total)
    inner = np.log(ratio) + 1 + ratio - ratio.sum(axis=1, keepdims=True)
    return np.asarray((matrix * inner).sum(axis=2))


def _least_point(gradient: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the probability vector in each box that makes ⟨gradient, ·⟩ least: greedy filling."""
    order = np.argsort(gradient, axis=1)
    room = np.take_along_axis(high - low, order, 1)
    before = np.cumsum(room, axis=1) - room
    left = 1 - low.sum(axis=1, keepdims=True)
    filled = np.clip(left - before, 0.0, room)
    point = np.empty_like(low)
    np.put_along_axis(point, order, np.take_along_axis(low, order, 1) + filled, 1)
    return point
