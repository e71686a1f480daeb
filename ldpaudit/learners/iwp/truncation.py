"""Where to cut off the inverse Weierstrass series of a loss that has no inverse transform."""

import math
from collections.abc import Callable

import numpy as np

from ldpaudit.release import FloatArray

ORDERS = range(9)
"""The orders that are tried."""
_MARGINS = 61
_NODES = 1201
_WIDTH = 9.0

Derivative = Callable[[FloatArray, int], FloatArray]


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
        The bias; the mean over the noise by the trapezoidal rule, whose error is below 1e-10 for
        functions as smooth as the log loss, the supremum on a grid of 61 margins.

    References
    ----------
    Dufraiche et al., appendix D.7.
    """
    return float(_biases(derivative, variance, reach, order + 1)[order])


def best_order(derivative: Derivative, variance: float, reach: float) -> int:
    """Return the order of :data:`ORDERS` with the least :func:`truncation_bias`."""
    return int(_biases(derivative, variance, reach, len(ORDERS)).argmin())


def _biases(derivative: Derivative, variance: float, reach: float, orders: int) -> FloatArray:
    margins = np.linspace(-reach, reach, _MARGINS)
    nodes = np.linspace(-_WIDTH, _WIDTH, _NODES)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    noisy = margins[:, None] + math.sqrt(variance) * nodes
    total, factor, target = np.zeros(_MARGINS), 1.0, derivative(margins, 0)
    biases = np.empty(orders)
    for k in range(orders):
        total += factor * (derivative(noisy, 2 * k) @ weights)
        factor *= -variance / 2 / (k + 1)
        biases[k] = np.abs(total - target).max()
    return biases
