"""Carathéodory's reduction: the same sums with no more columns than equations."""

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from ldpaudit.release import FloatArray

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
