"""The exact optimum over interval columns: a primal–dual interior-point method.

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

import numpy as np
import scipy.linalg

from ldpaudit.mechanisms.numeric.interval.arcs import IntervalArcs
from ldpaudit.mechanisms.numeric.interval.losses import IntervalLoss
from ldpaudit.release import FloatArray

_KEEP_INSIDE = 0.99
_MAXIMAL_STEPS = 100
_RIDGE = 1e-15
_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class IntervalSolution:
    """A nearly optimal primal–dual pair of the interval program.

    Parameters
    ----------
    alpha, beta : float64 arrays of shape (k,)
        The multipliers of the labels' two equations.
    masses, outputs, slacks : float64 arrays of shape (k + 1, k + 1)
        Per arc; the masses' row sums are only nearly 1, and the biases only nearly 0.
    value : float
        The dual value.
    """

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


@dataclass(frozen=True, eq=False)
class _Direction:
    first: FloatArray
    second: FloatArray
    masses: FloatArray
    linear: FloatArray
    """−d slack, to first order."""
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

    def gap(self, point: _Point) -> float:
        return float(np.sum(point.masses * point.slacks))

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
    """Solve the interval program.

    Parameters
    ----------
    labels : float64 array of shape (k,)
        Increasing, scaled to a range near 1.
    arcs : IntervalArcs
        The arcs of k labels.
    loss : IntervalLoss
        The losses of the arcs.
    price : (float64 array of shape (k,), float)
        The prior and a positive number of the loss's size; the start is α = −number · prior, β = 0.
    tolerance : float
        Stop when the gap is below this part of the dual value.
    """
    ones = np.zeros(arcs.k)
    ones[-1] = 1.0
    program = _Program(arcs, loss, ones, arcs.target(labels))
    point = _start(program, *price)
    for _ in range(_MAXIMAL_STEPS):
        moved = None if _finished(program, point, tolerance) else _advance(program, point)
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


def _finished(program: _Program, point: _Point, tolerance: float) -> bool:
    value = program.value(point)
    # The residuals of the two equations at the multipliers' prices; rounding leaves about 1e-9 of
    # the value, which the repair of the support removes.
    mass, moment = program.residuals(point)
    missing = abs(mass @ point.first) + abs(moment @ point.second)
    return bool(program.gap(point) <= tolerance * value and missing <= _ROUNDING * value)


def _start(program: _Program, prior: FloatArray, price: float) -> _Point:
    arcs = program.arcs
    first = np.empty(arcs.k)
    first[:-1] = -arcs.growth * price * np.cumsum(prior)[:-1]
    first[-1] = -price
    chance = min(0.9, max(2 / arcs.k, math.sqrt(1 + arcs.growth) / arcs.k))
    return program.point(first, np.zeros(arcs.k), arcs.random_partition(chance))


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
    gap, count = program.gap(point), int(program.arcs.mask.sum())
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
