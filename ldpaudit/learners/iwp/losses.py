"""Losses f(y θᵀx) of a linear model, and their inverse Weierstrass transforms.

Gaussian noise of variance s on the margin turns f into its Weierstrass transform W_s[f]; the
inverse transform W_s⁻¹[f](u) = Σ_k (−s/2)^k f^{(2k)}(u)/k!, taken at the noisy margin, has mean f.
For features with noise N(0, σ²I) the margin's noise has s = σ²‖θ‖².
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval
from scipy.special import expit

from ldpaudit.errors import InputError
from ldpaudit.learners.iwp.truncation import GradientError, best_order, gradient_errors
from ldpaudit.mechanisms.parameters import check_number, check_proportion
from ldpaudit.release import FloatArray

WORST: Final = 0.5
"""The largest mean squared error of a step's slope, in units of the clean slope's variance."""
_ROUNDS: Final = 40
_LEAST_STEP: Final = -24
"""Below s = 2^{−6} the order is the one of 2^{−6}."""
_NODES = 401
_WIDTH = 9.0
_BLOCK = 1 << 12


class MarginLoss(ABC):
    """A loss of the margin u = y θᵀx whose bias under Gaussian noise can be taken away.

    Attributes
    ----------
    growth : float or None
        The a of |f(u)| ≤ M exp(a u²) and |f^{(2k)}(u)| ≤ A (4a)^k k!; the least one. 0 where every
        a > 0 works; None where none does, so that the series must be cut off.
    rows : int
        How many rows' slopes are averaged, those of one step.
    """

    growth: float | None
    rows: int

    @abstractmethod
    def error(self, variance: float) -> GradientError:
        """Return the error of one row's corrected slope at a variance s > 0."""

    @abstractmethod
    def order(self, variance: float) -> int | None:
        """Return the order at which the series is cut off; None for a closed form."""

    @abstractmethod
    def corrected(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return W_s⁻¹[f](u), float64 of the margin's shape; f(u) itself at variance 0."""

    @abstractmethod
    def slope(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return the derivative of :meth:`corrected` in u."""

    @abstractmethod
    def drift(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return the derivative of :meth:`corrected` in s."""

    @abstractmethod
    def derivative_bounds(self, reach: float) -> tuple[float, float, float]:
        """Return the largest |f'(u)|, f''(u) and |f‴(u)| for |u| ≤ ``reach``."""

    @abstractmethod
    def probability(self, score: FloatArray) -> FloatArray:
        """Return P(y = 1 | x) where θᵀx = ``score`` minimises the expected loss."""

    def check(self, largest: float) -> None:
        """Refuse a variance at which the error of a step's slope is too large (InputError)."""
        if self.error(largest).share(self.rows) > WORST:
            limit = math.floor(100 * self.limit(largest)) / 100
            raise too_noisy(f"must be at most {limit:.3g}, where a step still learns", largest)

    def limit(self, largest: float, share: float = WORST) -> float:
        """Return the largest variance up to ``largest`` with at most this share of error."""
        if self.error(largest).share(self.rows) <= share:
            return largest
        low, high = 0.0, largest
        for _ in range(_ROUNDS):
            middle = (low + high) / 2
            works = self.error(middle).share(self.rows) <= share
            low, high = (middle, high) if works else (low, middle)
            if high - low < 1e-3 * low:
                break
        return low


def too_noisy(allowed: str, largest: float) -> InputError:
    """Return the error that names what variance a loss takes."""
    return InputError(
        f"The noise is too large for this loss: σ²·radius² {allowed}. Got {largest:.6g} "
        "instead; use a smaller radius, larger batches, or loss='quadratic'."
    )


@dataclass(frozen=True)
class ClosedForm(MarginLoss):
    """A loss whose inverse transform has a closed form: at variance −s it is W_s[f] itself."""

    growth: float | None = 0.0
    rows: int = 128

    def order(self, variance: float) -> None:
        """Return None: the form is closed."""


@dataclass(frozen=True)
class QuadraticLoss(ClosedForm):
    """f(u) = ½(u − 1)², with W_s⁻¹[f](u) = ½(u − 1)² − s/2 (Dufraiche et al., Example 2)."""

    def error(self, variance: float) -> GradientError:
        """Return the error of a row's slope over clean margins within ±3: its noise is N(0, s)."""
        return GradientError(0, 0.0, math.sqrt(variance), math.sqrt(3.0))

    def corrected(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return W_s⁻¹[f](u)."""
        return np.asarray(0.5 * (margin - 1) ** 2 - variance / 2)

    def slope(self, margin: FloatArray, variance: float) -> FloatArray:  # noqa: ARG002
        """Return u − 1."""
        return np.asarray(margin - 1)

    def drift(self, margin: FloatArray, variance: float) -> FloatArray:  # noqa: ARG002
        """Return −1/2."""
        return np.full_like(margin, -0.5)

    def derivative_bounds(self, reach: float) -> tuple[float, float, float]:
        """Return 1 + reach, 1 and 0."""
        return 1.0 + reach, 1.0, 0.0

    def probability(self, score: FloatArray) -> FloatArray:
        """Return (1 + score)/2 within [0, 1]: the score is E[y | x]."""
        return np.clip((1 + score) / 2, 0.0, 1.0)


@dataclass(frozen=True)
class ExponentialLoss(ClosedForm):
    """f(u) = e^{−u}, with W_s⁻¹[f](u) = e^{−u − s/2} (Dufraiche et al., Example 3).

    The variance of the corrected slope grows like e^{s} − 1, so the noise must be small.
    """

    def error(self, variance: float) -> GradientError:
        """Return the error of a row's slope over clean margins within ±3: its variance is
        e^{−2u}(e^s − 1).
        """
        square, mean = math.sinh(6.0) / 6, math.sinh(3.0) / 3
        growth = math.expm1(min(variance, 700.0))
        return GradientError(0, 0.0, math.sqrt(square * growth), math.sqrt(square - mean**2))

    def corrected(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return W_s⁻¹[f](u)."""
        return np.asarray(np.exp(-margin - variance / 2))

    def slope(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return −W_s⁻¹[f](u)."""
        return -self.corrected(margin, variance)

    def drift(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return −W_s⁻¹[f](u)/2."""
        return -0.5 * self.corrected(margin, variance)

    def derivative_bounds(self, reach: float) -> tuple[float, float, float]:
        """Return e^reach for all three."""
        return (math.exp(reach),) * 3

    def probability(self, score: FloatArray) -> FloatArray:
        """Return 1/(1 + e^{−2 score}): the score is half the log-odds."""
        return np.asarray(expit(2 * score))


@dataclass(frozen=True)
class SeriesLoss(MarginLoss):
    """A loss given by its derivatives, its inverse transform cut off after the order chosen.

    Parameters
    ----------
    derivative : callable
        ``derivative(u, j)`` returns f^{(j)}(u), float64 of the shape of u.
    growth : float or None
        The a of :class:`MarginLoss`; then s < 1/(4a) is
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


class RiskBias(NamedTuple):
    """The parts of R̃(θ) − R(θ), the bias of the risk on noisy rows.

    Attributes
    ----------
    labels, features, both : float
        What the flipped labels add, what the features' noise adds, and their interaction.
    """

    labels: float
    features: float
    both: float

    @property
    def total(self) -> float:
        """R̃(θ) − R(θ)."""
        return self.labels + self.features + self.both


def noisy_risk_bias(
    loss: MarginLoss,
    theta: npt.ArrayLike,
    X: npt.ArrayLike,
    signs: npt.ArrayLike,
    sigma: float,
    flip: float,
) -> RiskBias:
    """Return the bias of the mean of f(y θᵀx) when features and labels are released with noise.

    Parameters
    ----------
    loss : MarginLoss
        f, uncorrected.
    theta : float array of shape (d,)
        θ.
    X : float array of shape (n, d)
        Clean features.
    signs : array of shape (n,)
        Clean labels, −1 and +1.
    sigma : float
        σ ≥ 0 of the Gaussian noise on each feature.
    flip : float
        The chance that a label is released as the other one: 1/(1 + e^ε), or λ/2.

    Returns
    -------
    RiskBias
        The mean over the rows; the mean over the noise in closed form, or, where there is none,
        by the trapezoidal rule, which needs a loss that grows like a power of the margin at most.

    References
    ----------
    Dufraiche et al., Theorem 4.2. For a loss of the margin the iterated Laplacians are
    ‖θ‖^{2k} f^{(2k)}, so each series is the Weierstrass transform of f at s = σ²‖θ‖², minus f.
    """
    weights = np.asarray(theta, dtype=np.float64)
    labels = np.asarray(signs, dtype=np.float64)
    if not np.isin(labels, (-1.0, 1.0)).all():
        raise InputError("The 'signs' must be -1 and +1.")
    if not (math.isfinite(check_number("sigma", sigma)) and sigma >= 0):
        raise InputError(f"The 'sigma' parameter must be finite and ≥ 0. Got {sigma!r} instead.")
    keep = 1 - check_proportion("flip", flip)
    margins = labels * (np.asarray(X, dtype=np.float64) @ weights)
    s = sigma**2 * float(weights @ weights)
    own, other = (float(loss.corrected(u, 0.0).mean()) for u in (margins, -margins))
    smooth, smooth_other = (_smoothed(loss, u, s) for u in (margins, -margins))
    return RiskBias(
        (1 - keep) * (other - own), keep * (smooth - own), (1 - keep) * (smooth_other - other)
    )


def _smoothed(loss: MarginLoss, margins: FloatArray, s: float) -> float:
    """Return the mean over the margins of W_s[f] = E[f(u + √s Z)]."""
    if loss.order(s) is None:
        # A closed form of the inverse transform at −s is the transform at s.
        return float(loss.corrected(margins, -s).mean())
    nodes = np.linspace(-_WIDTH, _WIDTH, _NODES)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    total = 0.0
    for start in range(0, len(margins), _BLOCK):
        noisy = margins[start : start + _BLOCK, None] + math.sqrt(s) * nodes
        total += float((loss.corrected(noisy, 0.0) @ weights).sum())
    return total / len(margins)
