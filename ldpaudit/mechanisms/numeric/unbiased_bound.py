"""A lower bound on the squared loss of every ε-DP unbiased randomizer, from any multipliers.

It holds for every channel, with any outputs, not only for interval columns, however the multipliers
were found. See ``docs/mechanisms/optimal-unbiased.md``.
"""

import numpy as np

from ldpaudit.release import FloatArray


def squared_loss_bound(
    labels: FloatArray, prior: FloatArray, growth: float, alpha: FloatArray, beta: FloatArray
) -> float:
    """Return a lower bound on E[½(ŷ − y)²] over all unbiased channels at e^ε = 1 + growth.

    For multipliers α, β let h_y(m) = α_y + β_y m − ½p_y(m − y)². Where
    Σ_y h_y(m) + growth · Σ_y max(h_y(m), 0) ≤ 0 for every real m, Σ_y (α_y + β_y y) is a bound.
    Each h_y has at most two zeros, so at most 2k + 1 sets {y : h_y(m) > 0} occur; on each of them
    the left side is a parabola, whose top is checked. Violations are subtracted from the bound.

    Parameters
    ----------
    labels, prior, alpha, beta : float64 arrays of shape (k,)
        Labels near 0 keep it accurate.
    growth : float
        e^ε − 1, rounded up.

    Returns
    -------
    float
        The bound, less an allowance for rounding.
    """
    weights = 1 + growth * _positive_sets(labels, prior, alpha, beta)
    # The parabola Σ_y S_y h_y(m) is highest at the mean of the labels plus the mean slope.
    tops_at = (weights @ (prior * labels + beta)) / (weights @ prior)
    # α_y + β_y y cancels, the more the larger ε: more bits where the machine has them.
    wide = np.asarray(labels, dtype=np.longdouble)
    value, size = alpha + beta * wide, np.abs(alpha) + np.abs(beta * wide)
    offset = tops_at[:, None] - wide
    linear, square = beta * offset, 0.5 * prior * offset**2
    rounding = (len(labels) + 8) * np.finfo(np.longdouble).eps
    tops = np.sum(weights * (value + linear - square), axis=1)
    tops += rounding * np.sum(weights * (size + np.abs(linear) + square), axis=1)
    excess = _price(tops, weights, growth)
    return float(value.sum() - rounding * size.sum()) - excess


def _price(tops: FloatArray, weights: FloatArray, growth: float) -> float:
    """Return the fall of the bound when α is lowered until no top is above 0.

    Lowering α by a multiple of the prior lowers every top by at least that multiple; lowering it
    by one number on all k labels lowers a set's top by e^ε + k − 1 times that number or more,
    that of the empty set by k times.
    """
    k = weights.shape[1]
    empty = np.max(tops, where=weights.max(axis=1) == 1, initial=0)
    some = np.max(tops, where=weights.max(axis=1) > 1, initial=0)
    everywhere = max(float(some) / (growth + k), float(empty) / k)
    return float(min(max(some, empty), k * everywhere))


def _positive_sets(
    labels: FloatArray, prior: FloatArray, alpha: FloatArray, beta: FloatArray
) -> FloatArray:
    """Return the sets {y : h_y(m) > 0} between neighbouring zeros, float64 0/1 of shape (r, k)."""
    value = alpha + beta * labels
    root = np.sqrt(np.maximum(beta**2 + 2 * prior * value, 0.0))
    far = beta + np.copysign(root, beta)
    with np.errstate(divide="ignore", invalid="ignore"):
        zeros = np.concatenate([labels + far / prior, labels - 2 * value / far])
    zeros = np.unique(zeros[np.isfinite(zeros)])
    outer = [zeros[0] - 1, zeros[-1] + 1] if len(zeros) else [0.0]
    middles = np.concatenate([0.5 * (zeros[1:] + zeros[:-1]), outer])
    offset = middles[:, None] - labels
    heights = value + beta * offset - 0.5 * prior * offset**2
    return np.asarray((heights > 0).astype(np.float64))
