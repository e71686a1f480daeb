"""The convex program over intervals of labels behind the optimal unbiased randomizer.

In: labels, a prior and ε. Out: an optimal channel with few outputs. A column of the program is e^ε
on the labels of an interval and 1 on the others.

Minimise Σ_I c_I G_I(m_I) over masses c_I ≥ 0 and outputs m_I subject to Σ_I c_I S_I = 1 and
Σ_I c_I m_I S_I = y. The dual has two multipliers per label, α and β: maximise Σ_y (α_y + β_y y)
subject to slack_I = −(A_I + G*_I(B_I)) ≥ 0 for every interval I, where A_I and B_I are the products
of α and β with the column. The masses are the multipliers of the dual constraints.

Each iterate is strictly dual feasible, so its dual value is a bound for every interval mechanism.
The steps are Mehrotra's predictor and corrector (Mehrotra 1992) for c_I · slack_I = τ, on a 2k × 2k
system. See ``docs/mechanisms/optimal-unbiased.md``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import scipy.linalg
from scipy.optimize import linprog
from scipy.special import xlogy

from ldpaudit.errors import LdpAuditError
from ldpaudit.release import BoolArray, FloatArray, IndexArray

_KEEP_INSIDE: Final = 0.99
_MAXIMAL_STEPS: Final = 100
_RIDGE: Final = 1e-15
_ROUNDING: Final = 1e-7
_REFINEMENTS: Final = 4
_UNDECIDED: Final = 1e-3


@dataclass(frozen=True)
class IntervalArcs:
    """The arcs of k labels at e^ε = 1 + growth: linear operators of the program.

    Node i is the boundary before label i (0-based), node k the end. The interval of labels i … j−1
    is the arc from i to j. In differences of neighbouring rows a column has three entries: +1 at
    node j, −1 at node i, and its entry at the last label. So the sums over all k²/2 columns that a
    Newton step needs are sums along the rows and columns of one array. Every array over arcs has
    shape (k + 1, k + 1), entry [i, j] for the arc from i to j; entries off the arcs (j ≤ i, and the
    arc of all labels) must be 0 where they are summed.

    Multipliers are float64 vectors of shape (k,): entries 0 … k − 2 are the potentials of the inner
    nodes 1 … k − 1 times growth, entry k − 1 is the potential of the end. The multipliers of the
    labels are the differences of the potentials.
    """

    k: int
    growth: float

    @cached_property
    def mask(self) -> BoolArray:
        """Which entries are arcs: i < j, except the arc of all labels."""
        mask = np.triu(np.ones((self.k + 1, self.k + 1), dtype=np.bool_), 1)
        mask[0, self.k] = False
        return mask

    def spread(self, cumulative: FloatArray) -> FloatArray:
        """Return Σ_{labels} weight × column for cumulative weights of shape (k + 1,).

        The sum over all labels plus growth times the sum over the interval.
        """
        return np.asarray(
            cumulative[-1] + self.growth * (cumulative[None, :] - cumulative[:, None])
        )

    def columns(self, multipliers: FloatArray) -> FloatArray:
        """Return the product of the multipliers with each column, shape (k + 1, k + 1)."""
        potential = np.zeros(self.k + 1)
        potential[1 : self.k] = multipliers[:-1]
        product = potential[None, :] - potential[:, None] + multipliers[-1]
        product[:, self.k] += self.growth * multipliers[-1]
        return np.asarray(product)

    def columns_of(self, multipliers: FloatArray) -> FloatArray:
        """Return the same for multipliers of the labels, shape (k,)."""
        return self.spread(np.concatenate([[0.0], np.cumsum(multipliers)]))

    def total(self, amounts: FloatArray) -> FloatArray:
        """Return Σ amount × column over the arcs, shape (k,): the transpose of `columns`."""
        arriving, leaving = amounts.sum(axis=0), amounts.sum(axis=1)
        result = np.empty(self.k)
        result[:-1] = arriving[1 : self.k] - leaving[1 : self.k]
        result[-1] = amounts.sum() + self.growth * arriving[self.k]
        return result

    def normal(self, amounts: FloatArray) -> FloatArray:
        """Return Σ amount × column columnᵀ over the arcs, shape (k, k): a bordered Laplacian."""
        k, inner = self.k, amounts[1 : self.k, 1 : self.k]
        arriving, leaving = amounts.sum(axis=0), amounts.sum(axis=1)
        matrix = np.empty((k, k))
        matrix[:-1, :-1] = -(inner + inner.T)
        diagonal = np.arange(k - 1)
        matrix[diagonal, diagonal] += arriving[1:k] + leaving[1:k]
        border = arriving[1:k] - leaving[1:k] - self.growth * amounts[1:k, k]
        matrix[:-1, -1] = matrix[-1, :-1] = border
        high = 1 + self.growth
        matrix[-1, -1] = amounts.sum() + (high * high - 1) * arriving[k]
        return matrix

    def target(self, values: FloatArray) -> FloatArray:
        """Return Σ amount × column for the row sums ``values``, shape (k,) → (k,)."""
        result = np.empty(self.k)
        result[:-1] = -np.diff(values) / self.growth
        result[-1] = values[-1]
        return result

    def label_multipliers(self, multipliers: FloatArray) -> FloatArray:
        """Return the multipliers of the k labels' equations, shape (k,) → (k,)."""
        potential = np.zeros(self.k + 1)
        potential[1 : self.k] = multipliers[:-1] / self.growth
        potential[self.k] = multipliers[-1]
        return np.diff(potential)

    def random_partition(self, chance: float) -> FloatArray:
        """Return positive amounts with row sums 1: the bins of a random partition.

        Each inner boundary is drawn with probability ``chance``; an arc's amount is proportional to
        the probability that its interval is a bin. Shape (k + 1, k + 1).
        """
        node = np.arange(self.k + 1)
        inside = np.maximum(node[None, :] - node[:, None] - 1, 0)
        amounts = np.where(self.mask, (1 - chance) ** inside, 0.0)
        amounts[1:, :] *= chance
        amounts[:, : self.k] *= chance
        return np.asarray(amounts / self.total(amounts)[-1])


@dataclass(frozen=True, eq=False)
class IntervalLoss:
    """Expected losses of one output of each interval column, by their convex conjugates.

    For an output m with the column S the loss per unit of mass is G(m) = Σ_y p_y S_y g(m, y), with
    g shifted so that a perfect output has loss 0. Each function maps slopes b over the arcs to an
    array over the arcs.

    Attributes
    ----------
    conjugate : callable
        G*(b) = max_m (b m − G(m)) and the m that attains it.
    curvature : callable
        dm/db, positive.
    allows : callable
        Where G*(b) is finite.
    """

    conjugate: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    curvature: Callable[[FloatArray], FloatArray]
    allows: Callable[[FloatArray], BoolArray]


def _cumulative(values: FloatArray) -> FloatArray:
    return np.concatenate([[0.0], np.cumsum(values)])


def squared_loss(arcs: IntervalArcs, labels: FloatArray, prior: FloatArray) -> IntervalLoss:
    """g(m, y) = ½(m − y)²: G(m) = ½w(m − centre)² + ½rest; labels near 0 keep it accurate."""
    weight = np.where(arcs.mask, arcs.spread(_cumulative(prior)), 1.0)
    first = arcs.spread(_cumulative(prior * labels))
    second = arcs.spread(_cumulative(prior * labels**2))
    centre = np.where(arcs.mask, first / weight, 0.0)
    rest = np.where(arcs.mask, second - first * centre, 0.0)

    def conjugate(slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        output = centre + slope / weight
        return 0.5 * (slope * (centre + output) - rest), output

    return IntervalLoss(
        conjugate,
        lambda slope: np.broadcast_to(1 / weight, slope.shape),
        lambda slope: np.ones(slope.shape, dtype=np.bool_),
    )


def poisson_loss(arcs: IntervalArcs, labels: FloatArray, prior: FloatArray) -> IntervalLoss:
    """g(m, y) = m − y − y log(m/y): G(m) = wm − v log m + rest, for m > 0 and positive labels."""
    weight = arcs.spread(_cumulative(prior))
    moment = arcs.spread(_cumulative(prior * labels))
    rest = arcs.spread(_cumulative(prior * (xlogy(labels, labels) - labels)))
    weight, moment = np.where(arcs.mask, weight, 1.0), np.where(arcs.mask, moment, 1.0)
    rest = np.where(arcs.mask, rest, 0.0)

    def conjugate(slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        output = moment / (weight - slope)
        return moment * (np.log(output) - 1) - rest, output

    return IntervalLoss(
        conjugate, lambda slope: moment / (weight - slope) ** 2, lambda slope: slope < weight
    )


@dataclass(frozen=True, eq=False)
class IntervalSolution:
    """A nearly optimal primal–dual pair of the interval program."""

    alpha: FloatArray
    beta: FloatArray
    masses: FloatArray
    outputs: FloatArray
    slacks: FloatArray
    value: float


@dataclass(frozen=True, eq=False)
class _Point:
    """An iterate: two multiplier vectors, the masses, and what follows from them."""

    first: FloatArray
    second: FloatArray
    masses: FloatArray
    slopes: FloatArray
    outputs: FloatArray
    slacks: FloatArray

    @property
    def gap(self) -> float:
        return float(np.sum(self.masses * self.slacks))


@dataclass(frozen=True, eq=False)
class _Direction:
    first: FloatArray
    second: FloatArray
    masses: FloatArray
    # −d slack, to first order.
    linear: FloatArray
    slopes: FloatArray


@dataclass(frozen=True, eq=False)
class _Program:
    arcs: IntervalArcs
    loss: IntervalLoss
    mass_target: FloatArray
    moment_target: FloatArray

    def point(self, first: FloatArray, second: FloatArray, masses: FloatArray) -> _Point:
        slopes = np.where(self.arcs.mask, self.arcs.columns(second), 0.0)
        conjugate, outputs = self.loss.conjugate(slopes)
        slacks = np.where(self.arcs.mask, -self.arcs.columns(first) - conjugate, 1.0)
        return _Point(first, second, masses, slopes, outputs, slacks)

    def value(self, point: _Point) -> float:
        return float(self.mass_target @ point.first + self.moment_target @ point.second)

    def residuals(self, point: _Point) -> tuple[FloatArray, FloatArray]:
        return (
            self.mass_target - self.arcs.total(point.masses),
            self.moment_target - self.arcs.total(point.masses * point.outputs),
        )


def solve_interval_program(
    labels: FloatArray,
    arcs: IntervalArcs,
    loss: IntervalLoss,
    price: tuple[FloatArray, float],
    tolerance: float,
) -> IntervalSolution:
    """Solve the interval program."""
    ones = np.zeros(arcs.k)
    ones[-1] = 1.0
    program = _Program(arcs, loss, ones, arcs.target(labels))
    (prior, cost), k = price, arcs.k
    first = np.append(-arcs.growth * cost * np.cumsum(prior)[:-1], -cost)
    chance = min(0.9, max(2 / k, math.sqrt(1 + arcs.growth) / k))
    point = program.point(first, np.zeros(k), arcs.random_partition(chance))
    for _ in range(_MAXIMAL_STEPS):
        value, (mass, moment) = program.value(point), program.residuals(point)
        # The residuals of the two equations at the multipliers' prices; rounding leaves about 1e-9
        # of the value, which the repair of the support removes.
        missing = abs(mass @ point.first) + abs(moment @ point.second)
        if point.gap <= tolerance * value and missing <= _ROUNDING * value:
            break
        moved = _advance(program, point)
        if moved is None:
            break
        point = moved
    return IntervalSolution(
        arcs.label_multipliers(point.first),
        arcs.label_multipliers(point.second),
        point.masses,
        point.outputs,
        point.slacks,
        program.value(point),
    )


def _advance(program: _Program, point: _Point) -> _Point | None:
    """Take one predictor–corrector step; None if rounding leaves no direction."""
    solve = _newton(program, point)
    if solve is None:
        return None
    complementarity = -point.masses * point.slacks
    predicted = solve(complementarity)
    target = _centre(program, point, predicted)
    curved = 0.5 * point.masses * program.loss.curvature(point.slopes) * predicted.slopes**2
    corrected = solve(
        np.where(
            program.arcs.mask,
            complementarity + target + predicted.masses * predicted.linear + curved,
            0.0,
        )
    )
    return _moved(program, point, corrected)


def _newton(program: _Program, point: _Point) -> Callable[[FloatArray], _Direction] | None:
    """Factor the normal equations; return the map from a complementarity target to a direction."""
    arcs, k = program.arcs, program.arcs.k
    ratio = point.masses / point.slacks
    weighted = ratio * point.outputs
    system = np.empty((2 * k, 2 * k))
    system[:k, :k] = arcs.normal(ratio)
    system[:k, k:] = arcs.normal(weighted)
    system[k:, :k] = system[:k, k:].T
    curvature = program.loss.curvature(point.slopes)
    system[k:, k:] = arcs.normal(weighted * point.outputs + point.masses * curvature)
    scale = np.sqrt(np.diagonal(system))
    factor = _factor(system / scale / scale[:, None])
    if factor is None:
        return None
    mass, moment = program.residuals(point)

    def direction(target: FloatArray) -> _Direction:
        pushed = np.where(arcs.mask, target / point.slacks, 0.0)
        right = np.concatenate(
            [mass - arcs.total(pushed), moment - arcs.total(pushed * point.outputs)]
        )
        step = scipy.linalg.cho_solve(factor, right / scale, check_finite=False) / scale
        slopes = arcs.columns(step[k:])
        linear = arcs.columns(step[:k]) + point.outputs * slopes
        return _Direction(step[:k], step[k:], pushed + ratio * linear, linear, slopes)

    return direction


def _factor(system: FloatArray) -> tuple[FloatArray, bool] | None:
    """Return the Cholesky factor, with a larger ridge if rounding made the matrix indefinite."""
    if not np.isfinite(system).all():
        return None
    diagonal = np.arange(len(system))
    for ridge in (_RIDGE, 1e3 * _RIDGE, 1e6 * _RIDGE):
        system[diagonal, diagonal] = 1 + ridge
        try:
            factor: tuple[FloatArray, bool] = scipy.linalg.cho_factor(
                system, lower=True, check_finite=False
            )
        except np.linalg.LinAlgError:
            continue
        return factor
    return None


def _centre(program: _Program, point: _Point, predicted: _Direction) -> float:
    """Return the complementarity to aim at: Mehrotra's cube of the predicted decrease."""
    gap, count = point.gap, int(program.arcs.mask.sum())
    primal = _primal_length(point, predicted)
    dual = _dual_length(program, point, predicted)
    slacks = point.slacks - dual * predicted.linear
    masses = point.masses + primal * predicted.masses
    left = float(np.sum(masses * np.where(program.arcs.mask, np.maximum(slacks, 0), 0)))
    return min(max((left / gap) ** 3, 1e-6), 1.0) * gap / count


def _moved(program: _Program, point: _Point, direction: _Direction) -> _Point | None:
    primal = min(1.0, _KEEP_INSIDE * _primal_length(point, direction))
    dual = min(1.0, _KEEP_INSIDE * _dual_length(program, point, direction))
    masses = np.where(program.arcs.mask, point.masses + primal * direction.masses, 0.0)
    for _ in range(60):
        first = point.first + dual * direction.first
        second = point.second + dual * direction.second
        if program.loss.allows(point.slopes + dual * direction.slopes)[program.arcs.mask].all():
            moved = program.point(first, second, masses)
            if (moved.slacks > 0).all():
                return moved
        dual *= 0.7
    return None


def _primal_length(point: _Point, direction: _Direction) -> float:
    shrinking = direction.masses < 0
    lengths = -point.masses[shrinking] / direction.masses[shrinking]
    return float(min(1.0, lengths.min(initial=1.0)))


def _dual_length(program: _Program, point: _Point, direction: _Direction) -> float:
    """Return where the slack's second-order model reaches 0: exact for the squared loss."""
    curved = 0.5 * program.loss.curvature(point.slopes) * direction.slopes**2
    root = np.sqrt(direction.linear**2 + 4 * curved * point.slacks)
    speed = np.where(program.arcs.mask, direction.linear + root, 0.0)
    return float(1 / max(1.0, (speed / (2 * point.slacks)).max()))


@dataclass(frozen=True, eq=False)
class IntervalColumns:
    """Outputs with their intervals of labels, in increasing order of output.

    Parameters
    ----------
    outputs : float64 array of shape (m,)
        The released values.
    first, last : int64 arrays of shape (m,)
        The interval of label codes, both ends included.
    masses : float64 array of shape (m,)
        The probability of the output outside its interval.
    """

    outputs: FloatArray
    first: IndexArray
    last: IndexArray
    masses: FloatArray

    @classmethod
    def ordered(
        cls, outputs: FloatArray, first: IndexArray, last: IndexArray, masses: FloatArray
    ) -> "IntervalColumns":
        """Build it with the outputs sorted."""
        order = np.argsort(outputs, kind="stable")
        return cls(outputs[order], first[order], last[order], masses[order])

    def __len__(self) -> int:
        return len(self.outputs)

    def inside(self, k: int) -> BoolArray:
        """Return which of k labels lie in each interval, shape (k, m)."""
        label = np.arange(k)[:, None]
        return np.asarray((self.first <= label) & (label <= self.last))

    def matrix(self, k: int, growth: float) -> FloatArray:
        """Return the probabilities, float64 of shape (k, m), for e^ε = 1 + growth."""
        return np.where(self.inside(k), self.masses * (1 + growth), self.masses)


def interval_mechanism(
    labels: FloatArray, arcs: IntervalArcs, solution: IntervalSolution, curvature: FloatArray
) -> IntervalColumns:
    """Return interval columns with row sums 1 and no bias, up to rounding.

    Columns whose mass vanishes at the optimum are dropped; at most 2k remain. Their masses are
    corrected by the smallest relative change, their outputs by the change that raises the loss
    least.
    """
    start, end, first = _support(arcs, solution)
    ones = np.zeros(arcs.k)
    ones[-1] = 1.0
    for _ in range(len(start)):
        columns = _columns(arcs, start, end)
        masses = _corrected(columns, first, first, ones)
        positive = masses > 0
        if positive.all():
            break
        start, end, first = start[positive], end[positive], first[positive]
    else:
        raise LdpAuditError("The interval program could not be solved; round the labels or ε.")
    weights, moments = masses * curvature[start, end], masses * solution.outputs[start, end]
    moments = _corrected(columns, moments, weights, arcs.target(labels))
    return IntervalColumns.ordered(moments / masses, start, end - 1, masses)


def _support(
    arcs: IntervalArcs, solution: IntervalSolution
) -> tuple[IndexArray, IndexArray, FloatArray]:
    """Keep the arcs whose mass is not far below their slack, each in units of its own size."""
    masses = solution.masses / solution.masses.max()
    slacks = solution.slacks / abs(solution.value)
    start, end = np.nonzero(arcs.mask & (masses > _UNDECIDED * slacks))
    amounts = solution.masses[start, end]
    if len(start) > 2 * arcs.k:
        columns = _columns(arcs, start, end)
        equations = np.vstack([columns, columns * solution.outputs[start, end]])
        amounts = reduced_amounts(equations, amounts, solution.slacks[start, end])
    return start[amounts > 0], end[amounts > 0], amounts[amounts > 0]


def _columns(arcs: IntervalArcs, start: IndexArray, end: IndexArray) -> FloatArray:
    """Return the columns of the support in the program's basis, shape (k, m)."""
    k, z = arcs.k, np.arange(len(start))
    columns = np.zeros((k, len(start)))
    columns[-1] = np.where(end == k, 1 + arcs.growth, 1.0)
    ends, starts = end < k, start > 0
    columns[end[ends] - 1, z[ends]] += 1.0
    columns[start[starts] - 1, z[starts]] -= 1.0
    return columns


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
