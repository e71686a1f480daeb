"""Where to cut off the inverse Weierstrass series of a loss that has no inverse transform.

Each further term takes away bias and adds variance, at strong noise a great deal of it. So the
order is the one whose gradient has the least mean squared error, for as many rows as a step takes.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ldpaudit.release import FloatArray

ORDERS = range(9)
"""The orders that are tried."""
_MARGINS = 61
_NODES = 601
_WIDTH = 9.0
_TIE = 1.01
"""A lower order is preferred if its error is within this factor of the least."""

Derivative = Callable[[FloatArray, int], FloatArray]


@dataclass(frozen=True)
class GradientError:
    """How far the corrected slope of one row is from the clean loss's, on margins |u| ≤ reach.

    Attributes
    ----------
    order : int
        K, the order of the series.
    bias : float
        The root mean square of its bias over the margins.
    deviation : float
        Its standard deviation over the features' noise, root mean square over the margins.
    scale : float
        The standard deviation of the clean slope over the margins: how much it tells rows apart.
    """

    order: int
    bias: float
    deviation: float
    scale: float

    def share(self, rows: int) -> float:
        """Return the mean squared error of the mean over ``rows`` rows, in units of ``scale``²."""
        return (self.bias**2 + self.deviation**2 / rows) / self.scale**2


def truncation_bias(derivative: Derivative, variance: float, reach: float, order: int) -> float:
    """Return sup over |u| ≤ reach of |W_s[g_K](u) − f(u)|, g_K the series up to order K.

    Parameters
    ----------
    derivative : callable
        ``derivative(u, j)`` returns f^{(j)}(u).
    variance : float
        s > 0, the variance of the margin's noise.
    reach : float
        The largest clean margin looked at.
    order : int
        K ≥ 0.

    Returns
    -------
    float
        The bias of the loss; the mean over the noise by the trapezoidal rule, whose error is below
        1e-10 for functions as smooth as the log loss, the supremum on a grid of 61 margins.

    References
    ----------
    Dufraiche et al., appendix D.7.
    """
    means, _, clean = _moments(derivative, variance, reach, order + 1, 0)
    return float(np.abs(means[order] - clean).max())


def gradient_errors(
    derivative: Derivative, variance: float, reach: float, orders: int
) -> list[GradientError]:
    """Return the error of the slope of one row for each order 0 … ``orders`` − 1.

    Parameters
    ----------
    derivative, variance, reach
        As in :func:`truncation_bias`.
    orders : int

    Notes
    -----
    Margins count equally. Label noise is left out: it adds to the slope of the log loss the same
    variance at every order, because f(u) − f(−u) = −u is corrected exactly by all of them.
    """
    means, spreads, clean = _moments(derivative, variance, reach, orders, 1)
    biases = np.sqrt(((means - clean) ** 2).mean(axis=1))
    deviations = np.sqrt(spreads.mean(axis=1))
    return [
        GradientError(k, float(biases[k]), float(deviations[k]), float(clean.std()))
        for k in range(orders)
    ]


def best_order(derivative: Derivative, variance: float, reach: float, rows: int) -> GradientError:
    """Return the order of :data:`ORDERS` whose mean slope over ``rows`` rows has the least error.

    The error is bias² + variance/rows, its mean over the margins.
    """
    errors = gradient_errors(derivative, variance, reach, len(ORDERS))
    least = min(error.share(rows) for error in errors)
    return next(error for error in errors if error.share(rows) <= _TIE * least)


def _moments(
    derivative: Derivative, variance: float, reach: float, orders: int, shift: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean and variance of each order's series of f^(shift), (orders, 61), and f^(shift)."""
    margins = np.linspace(-reach, reach, _MARGINS)
    nodes = np.linspace(-_WIDTH, _WIDTH, _NODES)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    noisy = margins[:, None] + math.sqrt(variance) * nodes
    total, factor = np.zeros_like(noisy), 1.0
    means, spreads = np.empty((2, orders, _MARGINS))
    for k in range(orders):
        total += factor * derivative(noisy, 2 * k + shift)
        factor *= -variance / 2 / (k + 1)
        means[k] = total @ weights
        spreads[k] = (total - means[k][:, None]) ** 2 @ weights
    return means, spreads, derivative(margins, shift)
