"""Find the unbiased randomizer of least loss for a prior, with a certified bound."""

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import Design
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.losses import loss as loss_of
from ldpaudit.mechanisms.numeric.interval.arcs import IntervalArcs
from ldpaudit.mechanisms.numeric.interval.columns import (
    IntervalColumns,
    lowered_growth,
    raised_growth,
)
from ldpaudit.mechanisms.numeric.interval.losses import (
    IntervalLoss,
    PoissonIntervalLoss,
    SquaredIntervalLoss,
)
from ldpaudit.mechanisms.numeric.interval.program import IntervalSolution, solve_interval_program
from ldpaudit.mechanisms.numeric.interval.support import interval_mechanism
from ldpaudit.mechanisms.numeric.optimal_unbiased import OptimalUnbiased
from ldpaudit.mechanisms.parameters import check_epsilon, check_numeric_classes, check_prior
from ldpaudit.release import FloatArray, Label

_TOLERANCE = 1e-12
_LARGEST_PROGRAM = 2000
_LARGEST_EPSILON = 28.0


def optimal_unbiased(
    classes: Sequence[Label],
    prior: Sequence[float] | FloatArray,
    epsilon: float,
    loss: Loss = "squared",
) -> Design:
    """Return the ε-DP unbiased randomizer of least expected loss.

    The design's bound holds for all ε-DP unbiased randomizers for the squared loss, for all on
    interval columns for the Poisson loss.

    Parameters
    ----------
    classes : sequence of k numbers
        The labels in increasing order.
    prior : float64 array of shape (k,)
        Their probabilities. The randomizer depends on it: it must be public or private itself.
    epsilon : float
        ε in nats.
    loss : {"squared", "poisson"}
        What to minimise. Poisson needs e^ε · (lowest label) > highest label, else no unbiased
        randomizer has positive outputs. The absolute loss has no optimum: its outputs diverge.

    Raises
    ------
    InputError
        If a parameter is out of range or the loss allows no unbiased randomizer.
    """
    labels = check_numeric_classes(classes)
    values = np.asarray(labels, dtype=np.float64)
    weights, epsilon = check_prior(prior, len(labels)), check_epsilon(epsilon)
    lowered_growth(epsilon)
    if loss == "squared":
        return _squared(labels, values, weights, epsilon)
    if loss == "poisson":
        return _poisson(labels, values, weights, epsilon)
    raise InputError(
        "An unbiased randomizer is designed for the squared or the poisson loss: for the absolute "
        f"one there is no best, its outputs diverge. Got {loss!r}; rr-on-bins takes any loss."
    )


def closed_form_is_optimal(prior: FloatArray, epsilon: float) -> bool:
    """Return whether the closed form is the optimum: always for ε ≤ log 2.

    The points (growth · F − growth/2, f(F)) of cumulative probabilities F lie on a circle of
    radius (e^ε + 1)/2; the closed form is optimal exactly if the chord from the lowest to the
    highest inner cumulative probability is at most 1.

    Parameters
    ----------
    prior : float64 array of shape (k,)
        Sums to 1.
    epsilon : float
        ε in nats.
    """
    growth = raised_growth(epsilon)
    ends = np.array([prior[0], 1 - prior[-1]])
    height = np.sqrt((1 + growth * ends) * (1 + growth * (1 - ends)))
    across = growth * (ends[1] - ends[0])
    return bool(math.hypot(across, height[1] - height[0]) <= 1)


def closed_form(
    labels: FloatArray, prior: FloatArray, growth: float
) -> tuple[IntervalColumns, float]:
    """Return the columns of the closed form and its squared loss, for e^ε = 1 + growth.

    A threshold is drawn with probability D_v f_v/K; the bit "label at or above it" goes through
    binary randomized response, and the outputs are μ − K√(ws/wp) and μ + K√(wp/ws).

    Parameters
    ----------
    labels, prior : float64 arrays of shape (k,)
    growth : float
        e^ε − 1 > 0.
    """
    below = np.cumsum(prior)[:-1]
    above = np.cumsum(prior[::-1])[::-1][1:]
    high, low = 1 + growth * above, 1 + growth * below
    size = np.diff(labels) / growth * np.sqrt(high * low)
    total = float(size.sum())
    mean, ratio = float(prior @ labels), np.sqrt(high / low)
    masses = size / (total * (2 + growth))
    k, threshold = len(labels), np.arange(1, len(labels))
    columns = IntervalColumns.ordered(
        mean + total * np.concatenate([-ratio, 1 / ratio]),
        np.concatenate([np.zeros(k - 1, dtype=np.int64), threshold]),
        np.concatenate([threshold - 1, np.full(k - 1, k - 1)]),
        np.concatenate([masses, masses]),
    )
    return columns, 0.5 * (total * total - float(prior @ (labels - mean) ** 2))


def _squared(
    classes: tuple[Label, ...], labels: FloatArray, prior: FloatArray, epsilon: float
) -> Design:
    if closed_form_is_optimal(prior, epsilon):
        columns, value = closed_form(labels, prior, lowered_growth(epsilon))
        _, best = closed_form(labels, prior, raised_growth(epsilon))
        mechanism = OptimalUnbiased(classes, epsilon, columns)
        return Design(mechanism, value, min(best, value), "closed-form")
    mean, scale = float(prior @ labels), float(labels[-1] - labels[0])
    scaled, growth = (labels - mean) / scale, raised_growth(epsilon)
    arcs = IntervalArcs(len(labels), growth)
    _, price = closed_form(scaled, prior, growth)
    price += 0.5 * float(prior @ scaled**2)
    columns, solution = _program(
        scaled, prior, arcs, SquaredIntervalLoss.of(arcs, scaled, prior), price, epsilon
    )
    bound = squared_loss_bound(scaled, prior, growth, solution.alpha, solution.beta)
    value = _expected("squared", columns, scaled, prior, epsilon)
    moved = IntervalColumns(
        mean + scale * columns.outputs, columns.first, columns.last, columns.masses
    )
    mechanism = OptimalUnbiased(classes, epsilon, moved)
    return Design(mechanism, scale**2 * value, scale**2 * bound, "interval-program")


def _poisson(
    classes: tuple[Label, ...], labels: FloatArray, prior: FloatArray, epsilon: float
) -> Design:
    if not 0 < labels[-1] < (1 + lowered_growth(epsilon)) * labels[0]:
        raise InputError(
            "An unbiased randomizer with positive outputs, which the Poisson loss needs, exists "
            "only if the highest label is below e^epsilon times the lowest; use squared loss."
        )
    scale, growth = float(labels[-1] - labels[0]), raised_growth(epsilon)
    scaled = labels / scale
    arcs = IntervalArcs(len(labels), growth)
    _, price = closed_form(scaled, prior, growth)
    columns, solution = _program(
        scaled, prior, arcs, PoissonIntervalLoss.of(arcs, scaled, prior), price, epsilon
    )
    moved = IntervalColumns(scale * columns.outputs, columns.first, columns.last, columns.masses)
    value = _expected("poisson", moved, labels, prior, epsilon)
    # The program's losses are relative to releasing each label unchanged.
    perfect = float(prior @ loss_of("poisson", labels, labels))
    mechanism = OptimalUnbiased(classes, epsilon, moved)
    return Design(mechanism, value, perfect + scale * solution.value, "interval-program")


def _program(
    labels: FloatArray,
    prior: FloatArray,
    arcs: IntervalArcs,
    loss: IntervalLoss,
    price: float,
    epsilon: float,
) -> tuple[IntervalColumns, IntervalSolution]:
    if arcs.k > _LARGEST_PROGRAM:
        raise InputError(
            f"The exact program takes at most {_LARGEST_PROGRAM} labels, got {arcs.k}; "
            f"use a larger step between labels."
        )
    if epsilon > _LARGEST_EPSILON:
        raise InputError(
            f"The exact program works up to epsilon = {_LARGEST_EPSILON:g}. Got {epsilon:g}; use "
            f"'debiased-rr', which it approaches."
        )
    # Small factorisations are far slower on several threads than on one.
    with _threads().limit(limits=1):
        solution = solve_interval_program(labels, arcs, loss, (prior, price), _TOLERANCE)
        exact = IntervalArcs(arcs.k, lowered_growth(epsilon))
        curvature = loss.curvature(arcs.columns_of(solution.beta))
        return interval_mechanism(labels, exact, solution, curvature), solution


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def _expected(
    name: Loss, columns: IntervalColumns, labels: FloatArray, prior: FloatArray, epsilon: float
) -> float:
    matrix = columns.matrix(len(labels), lowered_growth(epsilon))
    losses = loss_of(name, columns.outputs[None, :], labels[:, None])
    return float(prior @ (matrix * losses).sum(axis=1))


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
