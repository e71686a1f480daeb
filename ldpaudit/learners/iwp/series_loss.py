"""Margin losses whose inverse Weierstrass series is cut off, the log loss first of all."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval
from scipy.special import expit

from ldpaudit.errors import InputError
from ldpaudit.learners.iwp.truncation import best_order
from ldpaudit.release import FloatArray


@dataclass(frozen=True)
class SeriesLoss:
    """A loss given by its derivatives, its inverse transform cut off after the order chosen.

    Parameters
    ----------
    derivative : callable
        ``derivative(u, j)`` returns f^{(j)}(u), float64 of the shape of u.
    growth : float or None
        The a of :class:`~ldpaudit.learners.iwp.margin_losses.MarginLoss`; then s < 1/(4a) is
        required, and the error of order K falls like (2 a s)^{K + 1}. None where there is no a:
        then s must not exceed ``largest``.
    largest : float
        The largest variance s of the margin's noise for a loss without growth.
    fixed : int, optional
        The order; default: the one of least bias, see :mod:`ldpaudit.learners.iwp.truncation`.
    reach : float
        The largest clean margin over which the bias is looked at.

    References
    ----------
    Dufraiche et al., Theorem 5.1 (ii) and appendix D.7.
    """

    derivative: Callable[[FloatArray, int], FloatArray]
    growth: float | None = None
    largest: float = 50.0
    fixed: int | None = None
    reach: float = 3.0
    _orders: dict[int, int] = field(default_factory=dict, repr=False, compare=False)

    def check(self, largest: float) -> None:
        """Refuse a variance for which the series diverges, or means nothing when cut off.

        Raises
        ------
        InputError
            Naming the limit.
        """
        limit = self.largest if self.growth is None else 1 / (4 * max(self.growth, 1e-300))
        if largest < limit or (self.growth is None and largest == limit):
            return
        raise InputError(
            f"The noise is too large for this loss: σ²·radius² must be below {limit:.6g}. "
            f"Got {largest:.6g} instead; use a smaller radius, or loss='quadratic'."
        )

    def order(self, variance: float) -> int:
        """Return the order used at a variance s ≥ 0; chosen once for every power of 2^{1/4}."""
        if self.fixed is not None:
            return self.fixed
        if variance <= 0:
            return 0
        step = math.ceil(4 * math.log2(variance))
        if step not in self._orders:
            self._orders[step] = best_order(self.derivative, 2.0 ** (step / 4), self.reach)
        return self._orders[step]

    def corrected(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return Σ_{k ≤ K} (−s/2)^k f^{(2k)}(u)/k!."""
        return self._series(margin, variance, self.order(variance), 0)

    def slope(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return the derivative in u."""
        return self._series(margin, variance, self.order(variance), 1)

    def drift(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return the derivative in s: −½ times the series of f'' up to K − 1."""
        return -0.5 * self._series(margin, variance, self.order(variance) - 1, 2)

    def derivative_bounds(self, reach: float) -> tuple[float, float, float]:
        """Return the largest |f'(u)|, f''(u) and |f‴(u)| for |u| ≤ ``reach``, on a grid."""
        grid = np.linspace(-reach, reach, 401)
        first, second, third = (self.derivative(grid, j) for j in (1, 2, 3))
        return float(np.abs(first).max()), float(second.max()), float(np.abs(third).max())

    def probability(self, score: FloatArray) -> FloatArray:
        """Return 1/(1 + e^{−score}), right for the log loss: the score is the log-odds."""
        return np.asarray(expit(score))

    def _series(self, margin: FloatArray, variance: float, order: int, shift: int) -> FloatArray:
        total = np.zeros_like(margin)
        factor = 1.0
        for k in range(order + 1):
            total += factor * self.derivative(margin, 2 * k + shift)
            factor *= -variance / 2 / (k + 1)
        return total


def log_loss(order: int | None = None, reach: float = 3.0) -> SeriesLoss:
    """Return f(u) = log(1 + e^{−u}), its series cut off.

    It has poles at ±iπ, so no inverse transform exists: the correction leaves a bias, least at an
    order that falls with the noise, and the variance s of the margin's noise may be at most 50.

    Parameters
    ----------
    order : int, optional
        K ≥ 0; default: the one of least bias at each s.
    reach : float
        The largest margin |θᵀx| of clean features over which the bias is looked at.

    References
    ----------
    Dufraiche et al., Example 4.
    """
    return SeriesLoss(_log_loss_derivative, None, 50.0, order, reach)


def _log_loss_derivative(margin: FloatArray, j: int) -> FloatArray:
    if j == 0:
        return np.asarray(np.logaddexp(0.0, -margin))
    # The second derivative is even: from there on the side where q ≤ 1/2 says all, without the
    # cancellation of the other side.
    mirrored = margin if j == 1 else np.abs(margin)
    values = np.asarray(polyval(expit(-mirrored), _polynomial(j).coef), dtype=np.float64)
    return values if j == 1 or j % 2 == 0 else np.where(margin < 0, -values, values)


@cache
def _polynomial(j: int) -> Polynomial:
    # In q = 1/(1 + e^u) the first derivative is −q, and dq/du = −q(1 − q).
    if j == 1:
        return Polynomial([0.0, -1.0])
    return _polynomial(j - 1).deriv() * Polynomial([0.0, -1.0, 1.0])
