"""Several releases of the same labels: the product of their channels, exactly."""

import math
from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray, IndexArray

_DIGITS: Final = 12
_LARGEST: Final = 1 << 24


def compose(*channels: Channel) -> Channel:
    """Return the channel of independent releases by each of the channels.

    Outputs with the same information on the label (columns that are multiples of each other) are
    merged, which changes no ε, δ(ε) or Rényi divergence: n releases by randomized response have
    about n^(k−1) outputs, not k^n.

    Parameters
    ----------
    *channels : Channel
        At least one; all of the same labels in the same order.

    Returns
    -------
    Channel
        With outputs 0 … m − 1. Merged columns agree to a relative 1e-12.

    Raises
    ------
    InputError
        If the labels differ, or the product is too large to be computed.
    """
    if not channels:
        raise InputError("A composition must have at least one channel.")
    classes = channels[0].classes
    if any(channel.classes != classes for channel in channels):
        raise InputError("Composed channels must have the same labels in the same order.")
    matrix, _ = merged_columns(channels[0].matrix)
    for channel in channels[1:]:
        matrix, _ = merged_columns(_product(matrix, merged_columns(channel.matrix)[0]))
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    return Channel(matrix, classes, tuple(range(matrix.shape[1])))


def _product(first: FloatArray, second: FloatArray) -> FloatArray:
    k = len(first)
    cells = k * first.shape[1] * second.shape[1]
    if cells > _LARGEST:
        raise InputError(f"The composition would have {cells} probabilities: too many.")
    return (first[:, :, None] * second[:, None, :]).reshape(k, -1)


def merged_columns(matrix: FloatArray) -> tuple[FloatArray, IndexArray]:
    """Add up columns that are multiples of each other.

    Returns
    -------
    float64 array of shape (k, g), int64 array of shape (m,)
        The sums, and which of them each column went into; −1 for a column of zeros.
    """
    group = np.full(matrix.shape[1], -1, dtype=np.int64)
    present = np.flatnonzero(matrix.max(axis=0) > 0)
    used = matrix[:, present]
    with np.errstate(divide="ignore"):
        logs = np.log(used) - np.log(used.max(axis=0))
    shape = np.where(np.isfinite(logs), np.round(logs, _DIGITS) + 0.0, -math.inf)
    group[present] = np.unique(shape, axis=1, return_inverse=True)[1].reshape(-1)
    order = np.argsort(group[present], kind="stable")
    starts = np.flatnonzero(np.diff(group[present][order], prepend=-1))
    return np.asarray(np.add.reduceat(used[:, order], starts, axis=1), dtype=np.float64), group
