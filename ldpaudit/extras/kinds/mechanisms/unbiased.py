"""The optimal unbiased randomizer for numeric labels, without a mesh."""

# Among all ε-DP channels with E[ŷ | y] = y for every label it has the least expected loss under a
# prior. Squared loss: a closed form where it is optimal, else the exact program over intervals of
# labels (``interval_program``). Poisson log loss: the program. Derivation,
# proofs and numerical checks: ``benchmarks/results/optimal_unbiased.md``.

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

from ldpaudit.doors import (
    Channel,
    Family,
    FiniteMechanism,
    FloatArray,
    IndexArray,
    InputError,
    Parameter,
    check_epsilon,
)
from ldpaudit.extras.kinds.mechanisms.growths import lowered_growth, raised_growth
from ldpaudit.extras.kinds.mechanisms.interval_program import (
    Design,
    IntervalArcs,
    IntervalColumns,
    interval_mechanism,
    poisson_loss,
    solve_interval_program,
    squared_loss,
)
from ldpaudit.mechanisms.exact_sampling import TOTAL, WeightTable
from ldpaudit.mechanisms.finite import PROVED
from ldpaudit.mechanisms.interface import DESIGN, Problem, Proposal, numeric_traits
from ldpaudit.mechanisms.label_range import Loss
from ldpaudit.mechanisms.label_range import loss as loss_of
from ldpaudit.mechanisms.parameters import check_numeric_classes, check_prior
from ldpaudit.release import Label

# How far from unbiased a declared randomizer may be, in units of its largest output or label.
BIAS_TOLERANCE: Final = 1e-9
_TOLERANCE: Final = 1e-12
_LARGEST_PROGRAM: Final = 2000
_LARGEST_EPSILON: Final = 28.0


def integer_columns(columns: IntervalColumns, k: int, growth: float) -> npt.NDArray[np.uint64]:
    """Turn interval columns into integers that keep ε exactly and sum to 2⁶³ in each row."""
    # The part of each column that exceeds its mass, inside its interval, is a flow along the line
    # of label boundaries: as every label has the same total, what ends at a boundary starts again
    # there. An integer flow keeps the row sums equal despite rounding, and the rest is rounded up,
    # towards privacy.
    rational = Fraction(1 + growth) - 1
    source = int(float(columns.masses[columns.first == 0].sum()) * growth * TOTAL)
    while True:
        flow = _integer_flow(columns, k, source)
        low = [-(-x * rational.denominator // rational.numerator) for x in flow]
        rest = TOTAL - source - sum(low)
        if rest >= 0:
            break
        source += rest
    share, left = divmod(rest, len(low))
    base = np.array([v + share + (i < left) for i, v in enumerate(low)], dtype=np.uint64)
    extra = np.where(columns.inside(k), np.array(flow, dtype=np.uint64), np.uint64(0))
    table = np.asarray(base + extra, dtype=np.uint64)
    if (table.sum(axis=1) != TOTAL).any():
        raise InputError("The declared intervals do not fit together: rows have different sums.")
    return table


def _integer_flow(columns: IntervalColumns, k: int, source: int) -> list[int]:
    """Send ``source`` units from the first boundary to the last, in proportion to the masses."""
    starting = defaultdict(list)
    for z, first in enumerate(columns.first.tolist()):
        starting[first].append(z)
    parts = [int(Fraction(mass) * (1 << 100)) for mass in columns.masses.tolist()]
    arrived, flow = [0] * (k + 1), [0] * len(parts)
    arrived[0] = source
    for node in range(k):
        total, sent, reached = sum(parts[z] for z in starting[node]), 0, 0
        for z in starting[node]:
            reached += parts[z]
            upto = arrived[node] * reached // total
            flow[z] = upto - sent
            arrived[int(columns.last[z]) + 1] += flow[z]
            sent = upto
    return flow


class Unbiased(FiniteMechanism):
    """An unbiased randomizer made of interval columns."""

    # Output z is released with probability e^ε c_z for a label inside its interval and c_z outside.

    @cached_property
    def columns(self) -> IntervalColumns:
        """Its outputs, intervals and masses."""
        return _columns(self.outputs, self.intervals, self.masses)

    @cached_property
    def weights(self) -> WeightTable:
        """The channel as integers; their own ε is never above the target."""
        growth = lowered_growth(self.target_epsilon)
        table = integer_columns(self.columns, len(self.classes), growth)
        return WeightTable(np.add.reduceat(table, _firsts(self.columns), axis=1))


def _columns(outputs: FloatArray, intervals: IndexArray, masses: FloatArray) -> IntervalColumns:
    first, last = intervals.T
    return IntervalColumns.ordered(outputs, first, last, masses)


def _firsts(columns: IntervalColumns) -> IndexArray:
    """Return where a new output begins."""
    return np.flatnonzero(np.diff(columns.outputs, prepend=-np.inf) > 0)


def _channel(
    classes: tuple[Label, ...],
    target_epsilon: float,
    outputs: FloatArray,
    intervals: IndexArray,
    masses: FloatArray,
) -> Channel:
    """Return the channel; columns with the same output are added up."""
    columns = _columns(outputs, intervals, masses)
    matrix = columns.matrix(len(classes), lowered_growth(target_epsilon))
    matrix = np.add.reduceat(matrix, _firsts(columns), axis=1)
    # Rounding leaves row sums of 1 ± 1e-15; the lowered growth has room for this division.
    matrix /= matrix.sum(axis=1, keepdims=True)
    return Channel(matrix, classes, tuple(columns.outputs[_firsts(columns)].tolist()))


def _check(
    classes: tuple[Label, ...],
    target_epsilon: float,
    outputs: FloatArray,
    intervals: IndexArray,
    masses: FloatArray,
) -> None:
    m, k = len(outputs), len(classes)
    if m == 0 or masses.shape != (m,) or intervals.shape != (m, 2):
        raise InputError("Each output must have one interval and one mass.")
    outside = (intervals < 0).any() or (intervals >= k).any()
    if intervals.dtype != np.int64 or outside or (intervals[:, 0] > intervals[:, 1]).any():
        raise InputError(f"Each interval must be two label codes from 0 to {k - 1}, in order.")
    if (masses <= 0).any():
        raise InputError("The masses must be above 0.")
    channel = _channel(classes, target_epsilon, outputs, intervals, masses)
    labels, released = (np.asarray(v, np.float64) for v in (classes, channel.outputs))
    bias = (channel.matrix * (released[None, :] - labels[:, None])).sum(axis=1)
    if np.abs(bias).max() > BIAS_TOLERANCE * float(np.max(np.abs(released), initial=1.0)):
        raise InputError("The randomizer must be unbiased: E[ŷ | y] = y for every label.")


def _numbers(dimensions: int, values: Any) -> FloatArray:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError("The outputs, intervals and masses must be lists of numbers.") from None
    if array.ndim != dimensions or not np.isfinite(array).all():
        raise InputError("The outputs, intervals and masses must be lists of finite numbers.")
    codes = dimensions == 2 and bool(np.all(array == np.rint(array)))
    return array.astype(np.int64) if codes else array


def _candidate(problem: Problem) -> Proposal:
    """Return the optimum; it is proved optimal if the solver closed the gap."""
    design = optimal_unbiased(problem.labels.classes, problem.prior, problem.epsilon, problem.loss)
    among = "unbiased ε-label-DP mechanisms"
    return Proposal(design.mechanism, among if design.gap <= PROVED else "")


OptimalUnbiased: Final = Family(
    traits=numeric_traits("optimal-unbiased", "the optimal unbiased randomizer", DESIGN, "prior"),
    parameters=(
        Parameter("classes", check_numeric_classes),
        Parameter("epsilon", check_epsilon, "target_epsilon"),
        Parameter("outputs", partial(_numbers, 1)),
        Parameter("intervals", partial(_numbers, 2)),
        Parameter("masses", partial(_numbers, 1)),
    ),
    channel=_channel,
    describe=lambda m: (
        f"the optimal unbiased randomizer on {len(m.classes)} labels with "
        f"{len(m.channel.outputs)} outputs, ε = {m.target_epsilon:.6g} nats"
    ),
    kind=Unbiased,
    check=_check,
    tolerance=BIAS_TOLERANCE,
    best=lambda *problem: optimal_unbiased(*problem).mechanism,
    designs={"": _candidate},
)
"""The optimal unbiased randomizer, declared by its outputs, the interval of label codes of each
(both ends included), and the masses: the probability of each output outside its interval."""


def _mechanism(
    classes: tuple[Label, ...], epsilon: float, columns: IntervalColumns
) -> FiniteMechanism:
    """Return the mechanism of columns that were found; their bias is the solver's rounding."""
    intervals = np.column_stack([columns.first, columns.last])
    values = (columns.outputs, intervals, columns.masses)
    names = ("outputs", "intervals", "masses")
    rest = dict(zip(names, values, strict=True))
    return Unbiased(OptimalUnbiased, {"classes": classes, "target_epsilon": epsilon, **rest})


def optimal_unbiased(
    classes: Sequence[Label],
    prior: Sequence[float] | FloatArray,
    epsilon: float,
    loss: Loss = "squared",
) -> Design:
    """Return the ε-DP unbiased randomizer of least expected loss."""
    # The design's bound holds for all ε-DP unbiased randomizers for the squared loss, for all on
    # interval columns for the Poisson loss.
    labels = check_numeric_classes(classes)
    values = np.asarray(labels, dtype=np.float64)
    weights, epsilon = check_prior(prior, len(labels)), check_epsilon(epsilon)
    lowered_growth(epsilon)
    if loss not in ("squared", "poisson"):
        raise InputError(
            "An unbiased randomizer is designed for the squared or the poisson loss: for the "
            f"absolute one there is no best, its outputs diverge. Got {loss!r}; rr-on-bins takes "
            "any loss."
        )
    if loss == "squared" and closed_form_is_optimal(weights, epsilon):
        columns, value = closed_form(values, weights, lowered_growth(epsilon))
        _, best = closed_form(values, weights, raised_growth(epsilon))
        mechanism = _mechanism(labels, epsilon, columns)
        return Design(mechanism, value, min(best, value), "closed-form")
    if loss == "poisson" and not 0 < values[-1] < (1 + lowered_growth(epsilon)) * values[0]:
        raise InputError(
            "An unbiased randomizer with positive outputs, which the Poisson loss needs, exists "
            "only if the highest label is below e^epsilon times the lowest; use squared loss."
        )
    return _by_program(labels, values, weights, epsilon, loss)


def closed_form_is_optimal(prior: FloatArray, epsilon: float) -> bool:
    """Return whether the closed form is the optimum: always for ε ≤ log 2."""
    # The points (growth · F − growth/2, f(F)) of cumulative probabilities F lie on a circle of
    # radius (e^ε + 1)/2; the closed form is optimal exactly if the chord from the lowest to the
    # highest inner cumulative probability is at most 1.
    growth = raised_growth(epsilon)
    ends = np.array([prior[0], 1 - prior[-1]])
    height = np.sqrt((1 + growth * ends) * (1 + growth * (1 - ends)))
    across = growth * (ends[1] - ends[0])
    return bool(math.hypot(across, height[1] - height[0]) <= 1)


def closed_form(
    labels: FloatArray, prior: FloatArray, growth: float
) -> tuple[IntervalColumns, float]:
    """Return the columns of the closed form and its squared loss, for e^ε = 1 + growth."""
    # A threshold is drawn with probability D_v f_v/K; the bit "label at or above it" goes through
    # binary randomized response, and the outputs are μ − K√(ws/wp) and μ + K√(wp/ws).
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


def _by_program(
    classes: tuple[Label, ...], labels: FloatArray, prior: FloatArray, epsilon: float, loss: Loss
) -> Design:
    """Solve the program for labels scaled to a range of 1, for the squared loss around 0."""
    if len(labels) > _LARGEST_PROGRAM:
        raise InputError(
            f"The exact program takes at most {_LARGEST_PROGRAM} labels, got {len(labels)}; "
            f"use a larger step between labels."
        )
    if epsilon > _LARGEST_EPSILON:
        raise InputError(
            f"The exact program works up to epsilon = {_LARGEST_EPSILON:g}. Got {epsilon:g}; use "
            f"'debiased-rr', which it approaches."
        )
    squared, growth = loss == "squared", raised_growth(epsilon)
    centre, scale = float(prior @ labels) if squared else 0.0, float(labels[-1] - labels[0])
    scaled, arcs = (labels - centre) / scale, IntervalArcs(len(labels), growth)
    _, price = closed_form(scaled, prior, growth)
    price += 0.5 * float(prior @ scaled**2) if squared else 0.0
    losses = (squared_loss if squared else poisson_loss)(arcs, scaled, prior)
    # Small factorisations are far slower on several threads than on one.
    with _threads().limit(limits=1):
        solution = solve_interval_program(scaled, arcs, losses, (prior, price), _TOLERANCE)
        exact = IntervalArcs(arcs.k, lowered_growth(epsilon))
        columns = interval_mechanism(scaled, exact, solution)
    moved = replace(columns, outputs=centre + scale * columns.outputs)
    if squared:
        bound = squared_loss_bound(scaled, prior, growth, solution.alpha, solution.beta)
        bound *= scale**2
    else:
        # The program's losses are relative to releasing each label unchanged.
        bound = float(prior @ loss_of(loss, labels, labels)) + scale * solution.value
    mechanism = _mechanism(classes, epsilon, moved)
    return Design(mechanism, mechanism.expected_loss(prior, loss), bound, "interval-program")


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def squared_loss_bound(
    labels: FloatArray, prior: FloatArray, growth: float, alpha: FloatArray, beta: FloatArray
) -> float:
    """Return a lower bound on E[½(ŷ − y)²] over all unbiased channels at e^ε = 1 + growth."""
    # For multipliers α, β let h_y(m) = α_y + β_y m − ½p_y(m − y)². Where Σ_y h_y(m) + growth · Σ_y
    # max(h_y(m), 0) ≤ 0 for every real m, Σ_y (α_y + β_y y) is a bound. Each h_y has at most two
    # zeros, so at most 2k + 1 sets {y : h_y(m) > 0} occur; on each of them the left side is a
    # parabola, whose top is checked. Violations are subtracted from the bound.
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
    """Return the fall of the bound when α is lowered until no top is above 0."""
    # Lowering α by a multiple of the prior lowers every top by at least that multiple; lowering it
    # by one number on all k labels lowers a set's top by e^ε + k − 1 times that number or more,
    # that of the empty set by k times.
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
