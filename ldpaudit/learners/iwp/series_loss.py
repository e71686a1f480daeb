"""Margin losses whose inverse Weierstrass series is cut off, the log loss first of all."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

import numpy as np
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval
from scipy.special import expit

from ldpaudit.learners.iwp.margin_losses import Gated, too_noisy
from ldpaudit.learners.iwp.truncation import GradientError, best_order, gradient_errors
from ldpaudit.release import FloatArray

_LEAST_STEP: Final = -24
"""Below s = 2^{−6} the order is the one of 2^{−6}."""


@dataclass(frozen=True)
class SeriesLoss(Gated):
    """A loss given by its derivatives, its inverse transform cut off after the order chosen.

    Parameters
    ----------
    derivative : callable
        ``derivative(u, j)`` returns f^{(j)}(u), float64 of the shape of u.
    growth : float or None
        The a of :class:`~ldpaudit.learners.iwp.margin_losses.MarginLoss`; then s < 1/(4a) is
        required, and the error of order K falls like (2 a s)^{K + 1}. None where there is no a:
        then the mean slope over ``rows`` rows must have an error of at most half the variance of
        the clean slope.
    fixed : int, optional
        The order; default: the one whose gradient has the least mean squared error, see
        :mod:`ldpaudit.learners.iwp.truncation`.
    reach : float
        The largest clean margin over which errors are looked at.
    rows : int
        How many rows' slopes are averaged, those of one step.

    References
    ----------
    Dufraiche et al., Theorem 5.1 (ii) and appendix D.7.
    """

    derivative: Callable[[FloatArray, int], FloatArray]
    growth: float | None = None
    fixed: int | None = None
    reach: float = 3.0
    rows: int = 128
    _orders: dict[int, int] = field(default_factory=dict, repr=False, compare=False)

    def check(self, largest: float) -> None:
        """Refuse a variance for which the series diverges, or means nothing when cut off.

        Raises
        ------
        InputError
            Naming the limit.
        """
        if self.growth is None:
            super().check(largest)
        elif largest >= (limit := 1 / (4 * max(self.growth, 1e-300))):
            raise too_noisy(f"must be below {limit:.6g}", largest)

    def error(self, variance: float) -> GradientError:
        """Return the error of one row's slope at a variance s > 0 and the order used there."""
        if self.fixed is not None:
            return gradient_errors(self.derivative, variance, self.reach, self.fixed + 1)[-1]
        return best_order(self.derivative, variance, self.reach, self.rows)

    def order(self, variance: float) -> int:
        """Return the order used at a variance s ≥ 0; chosen once for every power of 2^{1/4}."""
        if self.fixed is not None:
            return self.fixed
        if variance <= 0:
            return 0
        step = max(math.ceil(4 * math.log2(variance)), _LEAST_STEP)
        if step not in self._orders:
            self._orders[step] = self.error(2.0 ** (step / 4)).order
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


def log_loss(order: int | None = None, reach: float = 3.0, rows: int = 128) -> SeriesLoss:
    """Return f(u) = log(1 + e^{−u}), its series cut off.

    It has poles at ±iπ, so no inverse transform exists: the correction leaves a bias, and each
    further order adds variance. At 128 rows a step the order chosen is 2 up to s = 6, then 1, and
    from a variance s of about 55 of the margin's noise on none is of use.

    Parameters
    ----------
    order : int, optional
        K ≥ 0; default: the one whose gradient has the least mean squared error at each s.
    reach : float
        The largest margin |θᵀx| of clean features over which the error is looked at.
    rows : int
        Rows of a step.

    References
    ----------
    Dufraiche et al., Example 4.
    """
    return SeriesLoss(_log_loss_derivative, None, order, reach, rows)


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
