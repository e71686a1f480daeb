"""Point estimates of Rényi divergences, and how far the rows support them.

Both variational forms are given with their means plugged in. The Donsker–Varadhan form errs upward
when E_Q[e^{αφ}] rests on rows that are too rare to occur, the convex-conjugate form

    E_Q[g] + α/(α − 1) log E_P[(|g|/α)^{(α−1)/α}] + log α + 1,        g < 0, g = −c e^{αφ},

at a c fixed beforehand errs low. The estimate to report takes the part of E_Q[e^{αφ}] above a cut
from the rows of P, as E_P[e^{(α−1)φ}; φ > cut]: there Q has few rows and P has many, but there it
trusts φ. All are estimates, never bounds.

References
----------
Birrell et al. (2021), Theorem 3.1; Birrell et al. (2023), Function-space regularized Rényi
divergences, Theorem 2.1 (the convex-conjugate form); Kong (1992) for the effective sample size.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.renyi.critics import Scores
from ldpaudit.release import FloatArray

FEWEST_EFFECTIVE = 30.0
"""Effective rows of the weights e^{αφ} under Q below which an estimate is not supported."""
_WANTED = 0.012
"""The standard error, as a share of the divergence, that the part seen in Q may have."""
_CUTS = 60
_LARGEST = 10.0
"""Beyond this order no number of rows that occurs supports an estimate worth having."""
_FAR = 25.0


@dataclass(frozen=True)
class RenyiPoint:
    """Estimates of D_α in nats at one order.

    Attributes
    ----------
    order : float
        α.
    value : float
        The estimate to report.
    donsker_varadhan, convex_conjugate : float
        The two forms with plain means.
    effective_rows : float
        Rows of Q that the exponential weights e^{αφ} leave: n (E w)²/E w².
    supported : bool
        Whether that is enough (30).
    """

    order: float
    value: float
    donsker_varadhan: float
    convex_conjugate: float
    effective_rows: float
    supported: bool


def renyi_points(scores: Scores, orders: Sequence[float]) -> tuple[RenyiPoint, ...]:
    """Return estimates for each order from held-out rows.

    Parameters
    ----------
    scores : Scores
        Calibrated guesses of log dP/dQ for rows that they were not fitted on.
    orders : sequence of float
        Ascending orders α in (1, 10].

    Returns
    -------
    tuple of RenyiPoint
        An order is supported only where all smaller ones are.

    Raises
    ------
    InputError
        If an order lies outside (1, 10], or the orders do not ascend.
    InsufficientDataError
        If a side has no row.
    """
    if not all(1 < order <= _LARGEST for order in orders) or list(orders) != sorted(orders):
        raise InputError(f"Orders of an estimate must ascend within (1, {_LARGEST:g}].")
    if not (len(scores.p) and len(scores.q)):
        raise InsufficientDataError("An estimate of a divergence needs rows on both sides.")
    p, q = np.clip(scores.p, -_FAR, _FAR), np.clip(scores.q, -_FAR, _FAR)
    points: list[RenyiPoint] = []
    for order in orders:
        rows = _effective_rows(p, q, order)
        held = rows >= FEWEST_EFFECTIVE and all(point.supported for point in points)
        value = max(0.0, _balanced(p, q, order))
        points.append(RenyiPoint(order, value, *_plug_in(p, q, order), rows, held))
    return tuple(points)


def largest_order(points: Sequence[RenyiPoint]) -> float | None:
    """Return the largest order that the rows support, None where they support none."""
    return max((point.order for point in points if point.supported), default=None)


def effective_rows(weights: FloatArray) -> float:
    """Return (Σ w)²/Σ w², the number of equally weighted rows that weights are worth."""
    return float(weights.sum() ** 2 / np.square(weights).sum())


def calibration_error(scores: Scores, bins: int = 20) -> float:
    """Return the expected calibration error of the discriminator, in [0, 1].

    The mean over quantile bins of |share of P − mean probability of P|, both sides weighted as if
    they had equally many rows.
    """
    both = np.concatenate([scores.p, scores.q])
    weight = np.concatenate(
        [np.full(len(scores.p), 0.5 / len(scores.p)), np.full(len(scores.q), 0.5 / len(scores.q))]
    )
    is_p = np.arange(len(both)) < len(scores.p)
    chance = 1 / (1 + np.exp(-np.clip(both, -_FAR, _FAR)))
    edges = np.unique(np.quantile(both, np.arange(1, bins) / bins))
    cell = np.searchsorted(edges, both, side="right")
    gap = np.bincount(cell, weight * (is_p - chance))
    return float(np.abs(gap).sum())


def _effective_rows(p: FloatArray, q: FloatArray, order: float) -> float:
    """Return the fewer of what Q's own rows show and what P's rows say of E_Q[e^{2αφ}].

    Few rows of Q lack the largest weights and so look like many effective ones.
    """
    top = max(float(p.max()), float(q.max()))
    direct = effective_rows(np.exp(order * (q - q.max())))
    first = float(np.exp((order - 1) * (p - top)).mean())
    square = float(np.exp((2 * order - 1) * (p - top)).mean())
    implied = len(q) * first**2 / square * math.exp(-top)
    return min(direct, implied)


def _balanced(p: FloatArray, q: FloatArray, order: float) -> float:
    """Return the Donsker–Varadhan form with the far part of E_Q taken from P."""
    first, second = np.exp((order - 1) * p), np.exp(order * q)
    mean = float(first.mean())
    rough = max(math.log(mean) / (order - 1), 0.01)
    order_q, order_p = np.sort(q), np.sort(p)
    cumulative = np.cumsum(np.sort(second)) / len(q)
    squares = np.cumsum(np.square(np.sort(second))) / len(q)
    tail = np.cumsum(np.sort(first)[::-1])[::-1] / len(p)
    cuts = np.unique(np.quantile(q, 1 - np.geomspace(1, 1 / len(q), _CUTS)))
    below = np.searchsorted(order_q, cuts, side="right") - 1
    above = np.searchsorted(order_p, cuts, side="right")
    far = np.append(tail, 0.0)[above]
    total = cumulative[below] + far
    error = np.sqrt(np.maximum(squares[below] - cumulative[below] ** 2, 0) / len(q)) / total
    allowed = np.flatnonzero(error <= _WANTED * rough)
    chosen = int(allowed[-1]) if len(allowed) else 0
    return order / (order - 1) * math.log(mean) - math.log(float(total[chosen]))


def _plug_in(p: FloatArray, q: FloatArray, order: float) -> tuple[float, float]:
    """Return both forms with plain means, the convex-conjugate one at c = 1/(α E_Q[e^{αφ}]).

    There that mean is taken from the rows of P.
    """
    first, second = np.exp((order - 1) * p).mean(), np.exp(order * q).mean()
    size, scaled = 1.0 / first, order / (order - 1) * np.log(first)
    return float(scaled - np.log(second)), float(scaled + np.log(size) + 1 - size * second)
