"""From a nearly optimal pair of the interval program to an exact mechanism with few outputs."""

from collections.abc import Callable

import numpy as np
import scipy.linalg

from ldpaudit.errors import LdpAuditError
from ldpaudit.mechanisms.numeric.interval.arcs import IntervalArcs
from ldpaudit.mechanisms.numeric.interval.columns import IntervalColumns
from ldpaudit.mechanisms.numeric.interval.program import IntervalSolution
from ldpaudit.mechanisms.numeric.interval.reduction import reduced_amounts
from ldpaudit.release import FloatArray, IndexArray

_REFINEMENTS = 4
_UNDECIDED = 1e-3


def interval_mechanism(
    labels: FloatArray, arcs: IntervalArcs, solution: IntervalSolution, curvature: FloatArray
) -> IntervalColumns:
    """Return interval columns with row sums 1 and no bias, up to rounding.

    Columns whose mass vanishes at the optimum are dropped; at most 2k remain. Their masses are
    corrected by the smallest relative change, their outputs by the change that raises the loss
    least.

    Parameters
    ----------
    labels : float64 array of shape (k,)
        In the units of the program.
    arcs : IntervalArcs
        With the lowered growth of the mechanism.
    solution : IntervalSolution
        A nearly optimal pair.
    curvature : float64 array of shape (k + 1, k + 1)
        dm/db of each arc's loss at the solution.

    Raises
    ------
    LdpAuditError
        If rounding leaves no feasible support.
    """
    start, end, first = _support(arcs, solution)
    for _ in range(len(start)):
        masses = _corrected_masses(arcs, start, end, first)
        if (masses > 0).all():
            break
        positive = masses > 0
        start, end, first = start[positive], end[positive], first[positive]
    else:
        raise LdpAuditError("The interval program could not be solved; round the labels or ε.")
    outputs = _corrected_outputs(
        (labels, arcs), (start, end), masses, (solution.outputs, curvature)
    )
    return IntervalColumns.ordered(outputs, start, end - 1, masses)


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


def _corrected_masses(
    arcs: IntervalArcs, start: IndexArray, end: IndexArray, masses: FloatArray
) -> FloatArray:
    columns = _columns(arcs, start, end)
    solve = _weighted(columns, masses)
    goal = np.zeros(arcs.k)
    goal[-1] = 1.0
    corrected = masses
    for _ in range(_REFINEMENTS):
        corrected = corrected + masses * solve(goal - columns @ corrected)
    return corrected


def _corrected_outputs(
    problem: tuple[FloatArray, IntervalArcs],
    support: tuple[IndexArray, IndexArray],
    masses: FloatArray,
    model: tuple[FloatArray, FloatArray],
) -> FloatArray:
    (labels, arcs), (start, end) = problem, support
    columns = _columns(arcs, start, end)
    outputs, curvature = (values[start, end] for values in model)
    weights = masses * curvature
    solve = _weighted(columns, weights)
    moments = masses * outputs
    for _ in range(_REFINEMENTS):
        moments = moments + weights * solve(arcs.target(labels) - columns @ moments)
    return moments / masses


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
