"""Columns of a channel that say the same of the true label, merged."""

import math

import numpy as np

from ldpaudit.doors import FloatArray, IndexArray


def merged_columns(matrix: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Add up columns that are multiples of each other."""
    group = np.full(matrix.shape[1], -1, dtype=np.int64)
    present = np.flatnonzero(matrix.max(axis=0) > 0)
    used = matrix[:, present]
    with np.errstate(divide="ignore"):
        logs = np.log(used) - np.log(used.max(axis=0))
    shape = np.where(np.isfinite(logs), np.round(logs, 12) + 0.0, -math.inf)
    group[present] = np.unique(shape, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(group[present], kind="stable")
    starts = np.flatnonzero(np.diff(group[present][order], prepend=-1))
    return np.asarray(np.add.reduceat(used[:, order], starts, axis=1), dtype=np.float64), group
