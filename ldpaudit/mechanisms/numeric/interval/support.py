"""From a nearly optimal pair of the interval program to an exact mechanism with few outputs."""

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ldpaudit.errors import LdpAuditError
from ldpaudit.mechanisms.numeric.interval.arcs import IntervalArcs
from ldpaudit.mechanisms.numeric.interval.columns import IntervalColumns
from ldpaudit.mechanisms.numeric.interval.program import IntervalSolution
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


_MORE = 5
"""Groups beyond the number r of equations: r divided by this."""


def reduced_amounts(columns: FloatArray, amounts: FloatArray, costs: FloatArray) -> FloatArray:
    """Return amounts ≥ 0 with the same Σ amount · column, at most r of them above 0.

    It follows directions that keep the sum and lower the cost, until one amount after the other is
    0. Many columns are first reduced as groups with one factor each (Maalouf, Jubran and Feldman
    2019): a group whose factor becomes 0 vanishes at once.

    Parameters
    ----------
    columns : float64 array of shape (r, n)
        Some positive combination of its rows must be positive on every column.
    amounts : float64 array of shape (n,)
        Above 0.
    costs : float64 array of shape (n,)
        Per unit of amount.

    Returns
    -------
    float64 array of shape (n,)
    """
    r = len(columns)
    result = amounts.copy()
    while (left := np.flatnonzero(result > 0)).size > r:
        groups = min(left.size, r + max(r // _MORE, 1))
        # Neighbours in size go to different groups, so that the groups weigh about the same.
        group = np.empty(left.size, dtype=np.int64)
        group[np.argsort(-result[left], kind="stable")] = np.arange(left.size) % groups
        belongs = sp.csr_array((result[left], (np.arange(left.size), group)))
        sums, group_costs = columns[:, left] @ belongs, costs[left] @ belongs
        factors = _reduced(np.asarray(sums), np.asarray(group_costs))
        result[left] *= factors[group]
    return result


def _reduced(columns: FloatArray, costs: FloatArray) -> FloatArray:
    """Return shares ≥ 0 with columns @ shares = columns @ 1, at most r of them above 0."""
    r, n = columns.shape
    scale = np.abs(columns).sum(axis=1)
    basis, _ = scipy.linalg.qr((columns / np.where(scale > 0, scale, 1)[:, None]).T)
    null: FloatArray = np.ascontiguousarray(basis[:, r:], dtype=np.float64)
    shares, left = np.ones(n), np.ones(n, dtype=np.bool_)
    while null.shape[1]:
        direction: FloatArray = np.asarray(-null @ (costs @ null), dtype=np.float64)
        if not np.abs(direction).max() > np.finfo(np.float64).eps * np.abs(costs).max():
            direction = null[:, 0]
        falling = np.flatnonzero(left & (direction < 0))
        if not len(falling):
            direction = -direction
            falling = np.flatnonzero(left & (direction < 0))
        steps = -shares[falling] / direction[falling]
        gone = falling[steps.argmin()]
        shares = np.where(left, np.maximum(shares + steps.min() * direction, 0), 0.0)
        shares[gone], left[gone] = 0.0, False
        null = _without(null, int(gone))
    return shares


def _without(null: FloatArray, row: int) -> FloatArray:
    """Return an orthonormal basis of the vectors of the span that are 0 at ``row``."""
    mirror = null[row].copy()
    mirror[0] += np.copysign(np.linalg.norm(mirror), mirror[0])
    size = float(mirror @ mirror)
    if size > 0:
        null = null - np.outer(null @ mirror, (2 / size) * mirror)
    rest = null[:, 1:]
    rest[row] = 0.0
    return rest
