"""Labels released as they are: how few of them an audit with true labels would find."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldpaudit.estimators.epsilon.power import detection_power
from ldpaudit.estimators.epsilon.strongest import design_bounds
from ldpaudit.estimators.epsilon.subgroups import CANDIDATES, CHOSEN_SHARE, betraying
from ldpaudit.release import FloatArray, IndexArray

_SEEN = 5.5
"""Standard errors by which a group must stand out for a model to rank its rows first."""
_FEWEST_SEEN = 40
"""Rows of a group that a model must have seen: twice its smallest leaf."""
_PRECISION = 1.02
_FEW_LABELS = 12


def clear_channel(channel: FloatArray, sizes: IndexArray) -> FloatArray:
    """Return the channel that gives each label away as plainly as its outputs allow.

    Where outputs are the classes, the labels themselves; else for each label the output that is
    likelier than usual by the largest factor. Parameters as for
    :func:`ldpaudit.estimators.epsilon.subgroups.betraying`; float64 of shape (k, m).
    """
    k, m = channel.shape
    if k == m:
        return np.eye(k)
    usual = np.maximum(sizes @ channel / max(int(sizes.sum()), 1), 1e-300)
    return np.asarray(np.eye(m)[(channel / usual).argmax(axis=1)])


@dataclass(frozen=True, eq=False)
class Claimed:
    """What is claimed of a release, and how it is audited.

    Attributes
    ----------
    sizes : int64 array of shape (k,)
        Rows of each true label.
    channel : float64 array of shape (k, m)
        The claimed channel, by which all rows that are not in the clear are released.
    presumed : float64 array of shape (k, m)
        The channel that bounds are designed for: the claimed one, unless it tells nothing apart.
    limit : float
        The claimed ε in nats.
    """

    sizes: IndexArray
    channel: FloatArray
    presumed: FloatArray
    limit: float


def smallest_clear_share(claimed: Claimed, alpha: float, wanted: float) -> float:
    """Return the smallest share of rows, at random, whose release in the clear would be found.

    Parameters
    ----------
    claimed : Claimed
    alpha : float
        The error probability of the bound from all rows.
    wanted : float
        The probability of finding it.

    Returns
    -------
    float
        To 2 %, rounded up; ∞ where not even all rows would be found.
    """
    sizes, channel = claimed.sizes, claimed.channel
    design = design_bounds(sizes, claimed.presumed)
    if design is None:
        return math.inf
    clear = clear_channel(claimed.presumed, sizes)

    def found(share: float) -> bool:
        mixed = (1 - share) * channel + share * clear
        return detection_power(design, sizes, mixed, claimed.limit, alpha) >= wanted

    return _smallest(found)


def smallest_clear_group(claimed: Claimed, alpha: float, wanted: float, fitted: float) -> float:
    """Return the smallest share of rows that, told apart by features, would be found in the clear.

    The group is one of those of :mod:`ldpaudit.estimators.epsilon.subgroups`, filled up with rows
    released as claimed. More than a dozen labels count as two, the commonest and the others, which
    understates the power.

    Parameters
    ----------
    claimed, wanted
        As for :func:`smallest_clear_share`.
    alpha : float
        The error probability of all groups, both ways round.
    fitted : float
        The share of rows that a model is fitted on; half of the rows are counted.
    """
    rows, one, clear_one = _simplified(claimed)
    betrayed = float(rows @ (one * (clear_one > 0)).sum(axis=1)) / rows.sum()
    spread = math.sqrt(betrayed * (1 - betrayed))

    def found(share: float) -> bool:
        seen = share * fitted * rows.sum()
        if seen < _FEWEST_SEEN or (1 - betrayed) * math.sqrt(seen) < _SEEN * spread:
            return False
        top = next((t for t in sorted(CANDIDATES) if t >= share), 0.5)
        clear = min(share / top, 1.0)
        inside = np.floor(rows * top / 2).astype(np.int64)
        mixed = (1 - clear) * one + clear * clear_one
        design = design_bounds(inside, mixed)
        level = alpha / 2 * CHOSEN_SHARE
        if design is None:
            return False
        return detection_power(design, inside, mixed, claimed.limit, level) >= wanted

    return _smallest(found)


def _simplified(claimed: Claimed) -> tuple[IndexArray, FloatArray, FloatArray]:
    """Return rows by label, the claimed channel and that in the clear, for a dozen labels at most.

    Of more labels two are made, the commonest and the others, with outputs of two kinds.
    """
    sizes, channel = claimed.sizes, claimed.channel
    if len(sizes) <= _FEW_LABELS:
        return sizes, channel, clear_channel(claimed.presumed, sizes)
    first = int(sizes.argmax())
    kind = betraying(claimed.presumed, sizes)[first]
    others = np.arange(len(sizes)) != first
    rest = sizes[others] @ channel[others] / max(int(sizes[others].sum()), 1)
    hits = np.array([channel[first, kind].sum(), rest[kind].sum()])
    rows = np.array([sizes[first], sizes[others].sum()], dtype=np.int64)
    return rows, np.array([[hits[0], 1 - hits[0]], [hits[1], 1 - hits[1]]]), np.eye(2)


def _smallest(found: Callable[[float], bool]) -> float:
    """Return the smallest share that is found, ∞ where none is; more is found more easily."""
    low, high = 1e-5, 1.0
    if not found(high):
        return math.inf
    while high / low > _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if found(middle) else (middle, high)
    return high
