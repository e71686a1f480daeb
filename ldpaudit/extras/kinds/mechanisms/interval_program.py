"""The convex program over intervals of labels behind the optimal unbiased randomizer."""

# In: labels, a prior and ε. Out: an optimal channel with few outputs. A column of the program is
# e^ε on the labels of an interval and 1 on the others.
#
# Minimise Σ_I c_I G_I(m_I) over masses c_I ≥ 0 and outputs m_I subject to Σ_I c_I S_I = 1 and Σ_I
# c_I m_I S_I = y. The dual has two multipliers per label, α and β: maximise Σ_y (α_y + β_y y)
# subject to slack_I = −(A_I + G*_I(B_I)) ≥ 0 for every interval I, where A_I and B_I are the
# products of α and β with the column. The masses are the multipliers of the dual constraints.
#
# Each iterate is strictly dual feasible, so its dual value is a bound for every interval mechanism.
# The steps are Mehrotra's predictor and corrector (Mehrotra 1992) for c_I · slack_I = τ, on a 2k ×
# 2k system. See ``benchmarks/results/optimal_unbiased.md``.

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import scipy.linalg
from scipy.optimize import linprog
from scipy.special import xlogy

from ldpaudit.doors import FiniteMechanism, FloatArray, IndexArray, LdpAuditError
from ldpaudit.release import BoolArray

_KEEP_INSIDE: Final = 0.99
_MAXIMAL_STEPS: Final = 100
_RIDGES: Final = (1e-15, 1e-12, 1e-9)
_ROUNDING: Final = 1e-7
_REFINEMENTS: Final = 4
_UNDECIDED: Final = 1e-3


@dataclass(frozen=True)
class IntervalArcs:
    """The arcs of k labels at e^ε = 1 + growth: linear operators of the program."""

    # Node i is the boundary before label i (0-based), node k the end. The interval of labels i …
    # j−1 is the arc from i to j. In differences of neighbouring rows a column has three entries: +1
    # at node j, −1 at node i, and its entry at the last label. Every array over arcs has shape (n,)
    # with n = k(k + 1)/2 − 1, as the arc of all labels is left out.
    # Multipliers are float64 vectors of shape (k,): entries 0 … k − 2 are the potentials of the
    # inner nodes 1 … k − 1 times growth, entry k − 1 is the potential of the end. The multipliers
    # of the labels are the differences of the potentials.

    k: int
    growth: float

    @cached_property
    def ends(self) -> tuple[IndexArray, IndexArray]:
        """The nodes i < j of each arc."""
        start, end = np.triu_indices(self.k + 1, 1)
        arcs = (start > 0) | (end < self.k)
        return start[arcs], end[arcs]

    @cached_property
    def last(self) -> FloatArray:
        """Each column's entry at the last label."""
        return np.where(self.ends[1] == self.k, 1 + self.growth, 1.0)

    def spread(self, weights: FloatArray) -> FloatArray:
        """Return Σ_{labels} weight × column, shape (k,) → (n,)."""
        (start, end), cumulative = self.ends, np.concatenate([[0.0], np.cumsum(weights)])
        return np.asarray(cumulative[-1] + self.growth * (cumulative[end] - cumulative[start]))

    def columns(self, multipliers: FloatArray) -> FloatArray:
        """Return the product of the multipliers with each column."""
        (start, end), potential = self.ends, np.zeros(self.k + 1)
        potential[1 : self.k] = multipliers[:-1]
        return np.asarray(potential[end] - potential[start] + multipliers[-1] * self.last)

    def total(self, amounts: FloatArray) -> FloatArray:
        """Return Σ amount × column over the arcs, shape (k,): the transpose of `columns`."""
        start, end = (np.bincount(nodes, amounts, self.k + 1) for nodes in self.ends)
        return np.append((end - start)[1 : self.k], amounts @ self.last)

    def normal(self, amounts: FloatArray) -> FloatArray:
        """Return Σ amount × column columnᵀ over the arcs, shape (k, k): a bordered Laplacian."""
        between, matrix = np.zeros((self.k + 1, self.k + 1)), np.empty((self.k, self.k))
        between[self.ends] = amounts
        nodes = slice(1, self.k)
        matrix[:-1, :-1] = -(between + between.T)[nodes, nodes]
        matrix[:-1, :-1] += np.diag((between.sum(axis=0) + between.sum(axis=1))[nodes])
        matrix[-1] = matrix[:, -1] = self.total(amounts * self.last)
        return matrix

    def target(self, values: FloatArray) -> FloatArray:
        """Return Σ amount × column for the row sums ``values``, shape (k,) → (k,)."""
        return np.append(-np.diff(values) / self.growth, values[-1])

    def label_multipliers(self, multipliers: FloatArray) -> FloatArray:
        """Return the multipliers of the k labels' equations, shape (k,) → (k,)."""
        return np.diff([0.0, *(multipliers[:-1] / self.growth), multipliers[-1]])

    def random_partition(self, chance: float) -> FloatArray:
        """Return positive amounts with row sums 1: the bins of a random partition.

        Each inner boundary is drawn with probability ``chance``; an arc's amount is proportional
        to the probability that its interval is a bin.
        """
        start, end = self.ends
        drawn = (start > 0).astype(int) + (end < self.k)
        amounts = (1 - chance) ** (end - start - 1) * chance**drawn
        return np.asarray(amounts / self.total(amounts)[-1])

    def of(self, held: IndexArray) -> FloatArray:
        """Return the columns of some arcs in the program's basis, shape (k, m)."""
        eye = np.eye(self.k + 1)
        columns = eye[self.ends[1][held]] - eye[self.ends[0][held]]
        return np.vstack([columns.T[1 : self.k], self.last[held]])


# The expected loss of one output of each interval column, by its convex conjugate.
# For an output m with the column S the loss per unit of mass is G(m) = Σ_y p_y S_y g(m, y), with g
# shifted so that a perfect output has loss 0. Maps slopes b over the arcs to G*(b) = max_m (b m −
# G(m)), the m that attains it, and dm/db > 0; NaN where G*(b) is infinite.
IntervalLoss = Callable[[FloatArray], tuple[FloatArray, FloatArray, FloatArray]]


def squared_loss(arcs: IntervalArcs, labels: FloatArray, prior: FloatArray) -> IntervalLoss:
    """g(m, y) = ½(m − y)²: G(m) = ½w(m − centre)² + ½rest; labels near 0 keep it accurate."""
    weight, first, second = (arcs.spread(prior * labels**power) for power in range(3))
    centre = first / weight
    rest = second - first * centre

    def conjugate(slope: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        output = centre + slope / weight
        return 0.5 * (slope * (centre + output) - rest), output, 1 / weight

    return conjugate


def poisson_loss(arcs: IntervalArcs, labels: FloatArray, prior: FloatArray) -> IntervalLoss:
    """g(m, y) = m − y − y log(m/y): G(m) = wm − v log m + rest, for m > 0 and positive labels."""
    weight, moment = arcs.spread(prior), arcs.spread(prior * labels)
    rest = arcs.spread(prior * (xlogy(labels, labels) - labels))

    def conjugate(slope: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        room = np.where(slope < weight, weight - slope, np.nan)
        output = moment / room
        return moment * (np.log(output) - 1) - rest, output, output / room

    return conjugate


class IntervalSolution(NamedTuple):
    """A nearly optimal primal–dual pair of the interval program."""

    alpha: FloatArray
    beta: FloatArray
    masses: FloatArray
    outputs: FloatArray
    curvature: FloatArray
    slacks: FloatArray
    value: float


class _Point(NamedTuple):
    """An iterate: two multiplier vectors, (2, k), the masses, and what follows from them."""

    multipliers: FloatArray
    masses: FloatArray
    outputs: FloatArray
    curvature: FloatArray
    slacks: FloatArray


class _Direction(NamedTuple):
    multipliers: FloatArray
    masses: FloatArray
    linear: FloatArray  # −d slack, to first order.
    slopes: FloatArray


@dataclass(frozen=True, eq=False)
class _Program:
    arcs: IntervalArcs
    loss: IntervalLoss
    goals: FloatArray  # Of the masses and of the moments, (2, k).

    def point(self, multipliers: FloatArray, masses: FloatArray) -> _Point:
        conjugate, outputs, curvature = self.loss(self.arcs.columns(multipliers[1]))
        slacks = -self.arcs.columns(multipliers[0]) - conjugate
        return _Point(multipliers, masses, outputs, curvature, slacks)

    def missing(self, amounts: FloatArray, outputs: FloatArray) -> FloatArray:
        return self.goals - [self.arcs.total(amounts), self.arcs.total(amounts * outputs)]

    def advanced(self, point: _Point) -> _Point | None:
        """Take one predictor–corrector step; None if rounding leaves no direction."""
        _, masses, outputs, curvature, slacks = point
        ratio, products = masses / slacks, masses * slacks
        crossed = self.arcs.normal(ratio * outputs)
        bent = self.arcs.normal(ratio * outputs**2 + masses * curvature)
        system = np.block([[self.arcs.normal(ratio), crossed], [crossed, bent]])
        scale = np.sqrt(np.diagonal(system))
        factor = _factor(system / scale / scale[:, None])
        if factor is None:
            return None
        goals = self.missing(masses, outputs)

        def direction(target: FloatArray) -> _Direction:
            pushed = target / slacks
            right = goals - self.goals + self.missing(pushed, outputs)
            step = scipy.linalg.cho_solve(factor, right.ravel() / scale, check_finite=False)
            multipliers = (step / scale).reshape(2, -1)
            slopes = self.arcs.columns(multipliers[1])
            linear = self.arcs.columns(multipliers[0]) + outputs * slopes
            return _Direction(multipliers, pushed + ratio * linear, linear, slopes)

        def lengths(along: _Direction) -> tuple[float, float]:
            """Return how far the masses, and the slacks' second-order model, stay above 0."""
            shrinking = along.masses < 0
            primal = (masses[shrinking] / -along.masses[shrinking]).min(initial=1.0)
            root = np.sqrt(along.linear**2 + 2 * curvature * along.slopes**2 * slacks)
            dual = 1 / max(1.0, ((along.linear + root) / (2 * slacks)).max())
            return float(primal), float(dual)

        predicted = direction(-products)
        primal, dual = lengths(predicted)
        left = masses + primal * predicted.masses
        left = left @ np.maximum(slacks - dual * predicted.linear, 0)
        # Mehrotra's cube of the predicted decrease.
        gap = float(products.sum())
        centre = min(max((float(left) / gap) ** 3, 1e-6), 1.0) * gap / len(masses)
        bend = predicted.masses * predicted.linear + 0.5 * masses * curvature * predicted.slopes**2
        along = direction(centre - products + bend)
        primal, dual = (min(1.0, _KEEP_INSIDE * length) for length in lengths(along))
        for _ in range(60):
            multipliers = point.multipliers + dual * along.multipliers
            there = self.point(multipliers, masses + primal * along.masses)
            if (there.slacks > 0).all():
                return there
            dual *= 0.7
        return None


def solve_interval_program(
    labels: FloatArray,
    arcs: IntervalArcs,
    loss: IntervalLoss,
    price: tuple[FloatArray, float],
    tolerance: float,
) -> IntervalSolution:
    """Solve the interval program."""
    (prior, cost), k = price, arcs.k
    program = _Program(arcs, loss, np.stack([np.eye(k)[-1], arcs.target(labels)]))
    first = np.append(-arcs.growth * cost * np.cumsum(prior)[:-1], -cost)
    chance = min(0.9, max(2 / k, math.sqrt(1 + arcs.growth) / k))
    point = program.point(np.stack([first, np.zeros(k)]), arcs.random_partition(chance))
    for _ in range(_MAXIMAL_STEPS):
        value, residuals = _value(program, point), program.missing(point.masses, point.outputs)
        # The residuals of the two equations at the multipliers' prices; rounding leaves about 1e-9
        # of the value, which the repair of the support removes.
        missing = np.abs((residuals * point.multipliers).sum(axis=1)).sum()
        if point.masses @ point.slacks <= tolerance * value and missing <= _ROUNDING * value:
            break
        moved = program.advanced(point)
        if moved is None:
            break
        point = moved
    alpha, beta = map(arcs.label_multipliers, point.multipliers)
    return IntervalSolution(alpha, beta, *point[1:], _value(program, point))


def _value(program: _Program, point: _Point) -> float:
    return float((program.goals * point.multipliers).sum())


def _factor(system: FloatArray) -> tuple[FloatArray, bool] | None:
    """Return the Cholesky factor, with a larger ridge if rounding made the matrix indefinite."""
    if not np.isfinite(system).all():
        return None
    for ridge in _RIDGES:
        np.fill_diagonal(system, 1 + ridge)
        try:
            factor: tuple[FloatArray, bool] = scipy.linalg.cho_factor(
                system, lower=True, check_finite=False
            )
        except np.linalg.LinAlgError:
            continue
        return factor
    return None


@dataclass(frozen=True, eq=False)
class IntervalColumns:
    """Outputs with their intervals of labels, in increasing order of output."""

    outputs: FloatArray
    """Float64 array of shape (m,): the released values."""
    first: IndexArray
    last: IndexArray
    """``first`` and ``last``: int64 arrays of shape (m,): the interval of label codes, both ends
    included."""
    masses: FloatArray
    """Float64 array of shape (m,): the probability of the output outside its interval."""

    @classmethod
    def ordered(
        cls, outputs: FloatArray, first: IndexArray, last: IndexArray, masses: FloatArray
    ) -> "IntervalColumns":
        """Build it with the outputs sorted."""
        order = np.argsort(outputs, kind="stable")
        return cls(outputs[order], first[order], last[order], masses[order])

    def inside(self, k: int) -> BoolArray:
        """Return which of k labels lie in each interval, shape (k, m)."""
        label = np.arange(k)[:, None]
        return np.asarray((self.first <= label) & (label <= self.last))

    def matrix(self, k: int, growth: float) -> FloatArray:
        """Return the probabilities, float64 of shape (k, m), for e^ε = 1 + growth."""
        return np.where(self.inside(k), self.masses * (1 + growth), self.masses)


def interval_mechanism(
    labels: FloatArray, arcs: IntervalArcs, solution: IntervalSolution
) -> IntervalColumns:
    """Return interval columns with row sums 1 and no bias, up to rounding."""
    # Columns whose mass vanishes at the optimum are dropped, those with a mass far below their
    # slack, each in units of its own size; at most 2k remain. Their masses are corrected by the
    # smallest relative change, their outputs by the change that raises the loss least.
    amounts, slacks = solution.masses, solution.slacks
    shares = amounts / amounts.max()
    held = np.flatnonzero(shares > _UNDECIDED * slacks / abs(solution.value))
    if len(held) > 2 * arcs.k:
        columns = arcs.of(held)
        equations = np.vstack([columns, columns * solution.outputs[held]])
        left = reduced_amounts(equations, amounts[held], slacks[held])
        amounts = np.zeros(len(amounts))
        amounts[held] = left
        held = held[left > 0]
    for _ in range(len(held)):
        columns = arcs.of(held)
        masses = _corrected(columns, amounts[held], amounts[held], np.eye(arcs.k)[-1])
        if (masses > 0).all():
            break
        held = held[masses > 0]
    else:
        raise LdpAuditError("The interval program could not be solved; round the labels or ε.")
    weights, moments = masses * solution.curvature[held], masses * solution.outputs[held]
    moments = _corrected(columns, moments, weights, arcs.target(labels))
    start, end = arcs.ends
    return IntervalColumns.ordered(moments / masses, start[held], end[held] - 1, masses)


def _corrected(
    columns: FloatArray, amounts: FloatArray, weights: FloatArray, goal: FloatArray
) -> FloatArray:
    """Return amounts with columns @ amounts = goal, by the least change relative to weights."""
    solve = _weighted(columns, weights)
    for _ in range(_REFINEMENTS):
        amounts = amounts + weights * solve(goal - columns @ amounts)
    return amounts


def _weighted(columns: FloatArray, weights: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Return the map from a residual r to columnsᵀ λ with Σ weight · column columnᵀ λ = r."""
    system = (columns * weights) @ columns.T
    scale = np.sqrt(np.diagonal(system))
    system = system / scale / scale[:, None]

    def solve(residual: FloatArray) -> FloatArray:
        try:
            solution: FloatArray = scipy.linalg.solve(system, residual / scale, assume_a="pos")
        except np.linalg.LinAlgError:
            solution = np.asarray(np.linalg.lstsq(system, residual / scale, rcond=None)[0])
        return np.asarray(columns.T @ (solution / scale))

    return solve


def reduced_amounts(columns: FloatArray, amounts: FloatArray, costs: FloatArray) -> FloatArray:
    """Return amounts ≥ 0 with the same Σ amount · column, shape (r, n), at most r of them above 0.

    They are a vertex of the linear program of least cost: costs and amounts of shape (n,).
    """
    shares = columns * amounts
    shares /= np.abs(shares).sum(axis=1, keepdims=True)
    found = linprog(costs * amounts, A_eq=shares, b_eq=shares.sum(axis=1), method="highs-ds")
    if found.x is None:
        raise LdpAuditError("The interval program could not be solved; round the labels or ε.")
    return np.asarray(found.x * amounts)


@dataclass(frozen=True, eq=False)
class Design:
    """A mechanism of least expected loss, and how far it may be from the best one."""

    mechanism: FiniteMechanism
    loss: float
    bound: float
    method: str

    @property
    def gap(self) -> float:
        """How much better a mechanism could be at most, relative to the loss."""
        return max(self.loss - self.bound, 0.0) / abs(self.loss) if self.loss else 0.0
