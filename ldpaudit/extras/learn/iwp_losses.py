"""Losses f(y θᵀx) of a linear model, and how Gaussian noise on the features is taken off them."""

# Noise of variance s on the margin turns f into its Weierstrass transform W_s[f]; the inverse
# transform W_s⁻¹[f](u) = Σ_k (−s/2)^k f^{(2k)}(u)/k!, taken at the noisy margin, has mean f. For
# features with noise N(0, σ²I) the margin's noise has s = σ²‖θ‖².
#
# The quadratic and the exponential loss are corrected exactly. For any other loss the series is cut
# off: each further term takes away bias and adds variance, so the order is the one whose slope has
# the least mean squared error over the rows of a step. The same error is the gate of every loss:
# where it is too large, the descent follows noise, and may learn the opposite.

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numpy.polynomial import Polynomial
from numpy.polynomial.polynomial import polyval
from scipy.optimize import brentq
from scipy.special import expit

from ldpaudit.doors import FloatArray, InputError
from ldpaudit.mechanisms.parameters import check_number, check_proportion

# The orders of a series that are tried.
SERIES_ORDERS: Final = range(9)
# A lower order is preferred if its error is within this factor of the least.
_TIE = 1.01


class GradientError(NamedTuple):
    """How far the corrected slope of one row is from the clean one, over margins |u| ≤ reach."""

    order: int
    """K, the order of the series."""
    bias: float
    """The root mean square of its bias over the margins."""
    deviation: float
    """Its standard deviation over the features' noise, root mean square over the margins."""
    scale: float
    """The standard deviation of the clean slope over the margins: how much it tells rows apart."""

    def share(self, rows: float) -> float:
        """Return the mean squared error of the mean over ``rows`` rows, in units of ``scale``²."""
        return (self.bias**2 + self.deviation**2 / rows) / self.scale**2


@dataclass(frozen=True)
class MarginLoss(ABC):
    """A convex loss f of the margin; a subclass gives its derivatives and its link.

    Parameters
    ----------
    rows : int
        How many rows' slopes are averaged, those of one step.
    reach : float
        The largest clean margin over which errors are looked at.
    worst : float
        The largest mean squared error of a step's slope, in units of the clean slope's variance;
        infinity opens the gate, where the parameters are known to stay far inside the ball.
    fixed : int, optional
        K ≥ 0; default: the order whose slope has the least mean squared error at each s.

    References
    ----------
    Dufraiche et al., section 5.2, Theorem 5.1 (ii) and appendix D.7.
    """

    rows: int = 128
    reach: float = 3.0
    worst: float = 0.5
    fixed: int | None = None
    # Whether :meth:`corrected` is W_s⁻¹[f] itself; then it is W_s[f] at −s.
    exact: ClassVar[bool] = False
    # Whether the slope is linear: then noise averages out over all steps, and not just one.
    linear: ClassVar[bool] = False

    @abstractmethod
    def derivative(self, margin: FloatArray, j: int) -> FloatArray:
        """Return f^{(j)}(u), float64 of the margin's shape."""

    @abstractmethod
    def probability(self, score: FloatArray) -> FloatArray:
        """Return P(y = 1 | x) where θᵀx = ``score`` minimises the expected loss."""

    def order(self, variance: float) -> int:
        """Return the order at which the series is cut off at a variance s."""
        if self.fixed is not None or variance <= 0:
            return self.fixed or 0
        # Chosen once for every power of 2^{1/4}; below s = 2^{−6} it is the one of 2^{−6}.
        return _error(self, 2.0 ** (max(math.ceil(4 * math.log2(variance)), -24) / 4)).order

    def corrected(self, margin: FloatArray, variance: float, j: int = 0) -> FloatArray:
        """Return the j-th derivative of W_s⁻¹[f], as far as its series is taken; s = 0: of f."""
        # The second one is taken up to K − 1: −½ times it is the derivative in s.
        total, factor = np.zeros(np.shape(margin)), 1.0
        for k in range(self.order(variance) + 1 - (j == 2)):
            total += factor * self.derivative(margin, 2 * k + j)
            factor *= -variance / 2 / (k + 1)
        return total

    def smoothed(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return W_s[f](u) = E f(u + √s Z), by the trapezoidal rule unless a form is closed."""
        if self.exact:
            return self.corrected(margin, -variance)
        nodes, weights = _normal(variance)
        return np.stack([self.derivative(u + nodes, 0) @ weights for u in np.ravel(margin)])

    def error(self, variance: float) -> GradientError:
        """Return the error of one row's slope at a variance s > 0."""
        return _error(self, variance)

    def bias(self, variance: float, reach: float, order: int) -> float:
        """Return sup over |u| ≤ reach of |W_s[g_K](u) − f(u)|, g_K the series up to order K."""
        means, _, clean = _moments(self, variance, reach, order + 1, 0)
        return float(np.abs(means[order] - clean).max())

    def largest_variance(self, most: float, rows: float, share: float) -> float:
        """Return the largest variance s ≤ ``most`` with at most this share of error."""
        if self.error(most).share(rows) <= share:
            return most
        return float(brentq(lambda s: self.error(s).share(rows) - share, 1e-9, most))

    def check(self, largest: float, rows: int | None) -> None:
        """Refuse margin noise with a variance of up to ``largest`` where that is too much.

        ``rows`` is the number of rows of the descent, None for a stream of unknown length.

        Raises
        ------
        InputError
            Naming the limit.
        """
        averaged = max(rows or math.inf, self.rows) if self.linear else self.rows
        limit = self.largest_variance(largest, averaged, self.worst)
        if limit < largest:
            raise InputError(
                f"The noise is too large for this loss: σ²·radius² must be at most {limit:.3g}, "
                f"where its gradient is still more signal than noise. Got {largest:.6g} instead; "
                "use a smaller radius, more rows (in a batch), or loss='quadratic'."
            )

    def curvature(self, reach: float) -> float:
        """Return the largest f''(u) for |u| ≤ ``reach``, on a grid."""
        return float(self.derivative(np.linspace(-reach, reach, 401), 2).max())

    def second_moment(self, sigma: float, norm: float, reach: float, dimension: int) -> float:
        """Return the largest E‖g‖² of one row's corrected gradient g, its label true.

        Parameters
        ----------
        sigma : float
            σ ≥ 0 of the noise on each of ``dimension`` features.
        norm : float
            The largest ‖θ‖; the largest moment is looked for at norms up to it.
        reach : float
            The largest norm R of a clean row.

        Notes
        -----
        With w ~ N(0, σ²I), t = θᵀw and margin m = θᵀx, where y = 1,

            g = φ₁(m + t)(x + w) − σ² φ₂(m + t) θ,

        φ_j the corrected j-th derivative. Only t and ‖x + w‖² matter: across θ the noise adds
        (p − 1)σ² to it. The mean over t is by quadrature, on a grid of m and ‖θ‖.
        """
        found = 0.0
        for size in np.linspace(norm / 4, norm, 4):
            margins, variance = size * reach * np.linspace(-1, 1, 21), (sigma * size) ** 2
            nodes, weights = _normal(variance)
            noisy = margins[:, None] + nodes
            slope, bend = (self.corrected(noisy, variance, j) for j in (1, 2))
            along = noisy / size
            across = reach**2 - (margins[:, None] / size) ** 2 + (dimension - 1) * sigma**2
            square = slope**2 * (across + along**2)
            square += (sigma**2 * bend * size) ** 2 - 2 * sigma**2 * slope * bend * size * along
            found = max(found, float((square @ weights).max()))
        return found


@dataclass(frozen=True)
class QuadraticLoss(MarginLoss):
    """f(u) = ½(u − 1)², with W_s⁻¹[f](u) = ½(u − 1)² − s/2 (Dufraiche et al., Example 2)."""

    fixed: int | None = 1
    exact, linear = True, True

    def derivative(self, margin: FloatArray, j: int) -> FloatArray:
        if j > 1:
            return np.full_like(margin, float(j == 2))
        return np.asarray(margin - 1 if j else 0.5 * (margin - 1) ** 2)

    def error(self, variance: float) -> GradientError:
        return GradientError(1, 0.0, math.sqrt(variance), self.reach / math.sqrt(3))

    def second_moment(self, sigma: float, norm: float, reach: float, dimension: int) -> float:
        # g = (m + t − 1)(x + w) − σ²θ: E‖g‖² = (m − 1)²‖x‖² + s‖x‖² + (m − 1)² p σ²
        # + 2m(m − 1)σ² + (p + 1)σ² s, largest at m = −R‖θ‖.
        s, least = (sigma * norm) ** 2, 1 + reach * norm
        square = least**2 * (reach**2 + dimension * sigma**2) + s * reach**2
        return square + 2 * (least - 1) * least * sigma**2 + (dimension + 1) * sigma**2 * s

    def probability(self, score: FloatArray) -> FloatArray:
        return np.clip((1 + score) / 2, 0.0, 1.0)


class ExponentialLoss(MarginLoss):
    """f(u) = e^{−u}, with W_s⁻¹[f](u) = e^{−u − s/2} (Dufraiche et al., Example 3)."""

    exact = True

    def derivative(self, margin: FloatArray, j: int) -> FloatArray:
        return np.asarray((-1) ** j * np.exp(-margin))

    def corrected(self, margin: FloatArray, variance: float, j: int = 0) -> FloatArray:
        return self.derivative(margin + variance / 2, j)

    def error(self, variance: float) -> GradientError:
        reach = self.reach
        square, mean = math.sinh(2 * reach) / (2 * reach), math.sinh(reach) / reach
        # e^s overflows beyond; the gate closes long before.
        spread = math.sqrt(square * math.expm1(min(variance, 600.0)))
        return GradientError(0, 0.0, spread, math.sqrt(square - mean**2))

    def second_moment(self, sigma: float, norm: float, reach: float, dimension: int) -> float:
        # g = −e^{−u − s/2}(x̃ + σ²θ), and tilting the noise to mean −2σ²θ gives
        # E‖g‖² = e^{s − 2m}(‖x − σ²θ‖² + p σ²), largest at x = −Rθ/‖θ‖.
        s = (sigma * norm) ** 2
        square = (reach + sigma**2 * norm) ** 2 + dimension * sigma**2
        return math.exp(min(s + 2 * reach * norm, 600.0)) * square

    def probability(self, score: FloatArray) -> FloatArray:
        return np.asarray(expit(2 * score))


class LogLoss(MarginLoss):
    """f(u) = log(1 + e^{−u}), its series cut off (Dufraiche et al., Example 4)."""

    # It has poles at ±iπ, so no inverse transform exists. At 128 rows a step the order chosen is 2
    # up to s = 6, then 1, and from a variance s of about 56 of the margin's noise on none is of
    # use.

    def derivative(self, margin: FloatArray, j: int) -> FloatArray:
        if j == 0:
            return np.asarray(np.logaddexp(0.0, -margin))
        # The second derivative is even: from there on the side where q ≤ 1/2 says all, without
        # the cancellation of the other side.
        mirrored = margin if j == 1 else np.abs(margin)
        values = np.asarray(polyval(expit(-mirrored), _polynomial(j).coef), dtype=np.float64)
        return values if j == 1 or j % 2 == 0 else np.where(margin < 0, -values, values)

    def probability(self, score: FloatArray) -> FloatArray:
        return np.asarray(expit(score))


LOSSES: Final[dict[str, type[MarginLoss]]] = {
    "quadratic": QuadraticLoss,
    "exponential": ExponentialLoss,
    "log": LogLoss,
}


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
        The mean over the rows; exact for the quadratic and the exponential loss.

    Raises
    ------
    InputError
        If the bias is too large for a float, or an argument lies outside its range.

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
    with np.errstate(over="ignore"):
        own, other = (float(loss.derivative(u, 0).mean()) for u in (margins, -margins))
        smooth, smooth_other = (float(loss.smoothed(u, s).mean()) for u in (margins, -margins))
    if not math.isfinite(smooth + smooth_other):
        raise InputError(f"The bias is too large for a float: σ²‖θ‖² is {s:.6g}.")
    return RiskBias(
        (1 - keep) * (other - own), keep * (smooth - own), (1 - keep) * (smooth_other - other)
    )


@cache
def _error(loss: MarginLoss, variance: float) -> GradientError:
    """Return the error of the fixed order, or of the order with the least one."""
    # Margins count equally. Label noise is left out: it adds to the slope of the log loss the same
    # variance at every order, because f(u) − f(−u) = −u is corrected exactly by all of them.
    orders = len(SERIES_ORDERS) if loss.fixed is None else loss.fixed + 1
    means, spreads, clean = _moments(loss, variance, loss.reach, orders, 1)
    biases = np.sqrt(((means - clean) ** 2).mean(axis=1)).tolist()
    pairs = enumerate(zip(biases, np.sqrt(spreads.mean(axis=1)).tolist(), strict=True))
    errors = [GradientError(k, *pair, float(clean.std())) for k, pair in pairs]
    if loss.fixed is not None:
        return errors[-1]
    least = min(error.share(loss.rows) for error in errors)
    return next(error for error in errors if error.share(loss.rows) <= _TIE * least)


def _normal(variance: float) -> tuple[FloatArray, FloatArray]:
    """Return nodes of N(0, s) on ±9 deviations, at most ½ apart up to s = 300,000, and weights."""
    nodes = np.linspace(-9.0, 9.0, max(601, min(math.ceil(36 * math.sqrt(variance)), 20_000)))
    weights = np.exp(-(nodes**2) / 2)
    return math.sqrt(variance) * nodes, weights / weights.sum()


def _moments(
    loss: MarginLoss, variance: float, reach: float, orders: int, shift: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean and variance of each order's series of f^(shift), (orders, 61), and f^(shift)."""
    margins = np.linspace(-reach, reach, 61)
    nodes, weights = _normal(variance)
    noisy = margins[:, None] + nodes
    total, factor = np.zeros_like(noisy), 1.0
    means, spreads = np.empty((2, orders, len(margins)))
    for k in range(orders):
        total += factor * loss.derivative(noisy, 2 * k + shift)
        factor *= -variance / 2 / (k + 1)
        means[k] = total @ weights
        spreads[k] = (total - means[k][:, None]) ** 2 @ weights
    return means, spreads, loss.derivative(margins, shift)


@cache
def _polynomial(j: int) -> Polynomial:
    # In q = 1/(1 + e^u) the first derivative is −q, and dq/du = −q(1 − q).
    if j == 1:
        return Polynomial([0.0, -1.0])
    return _polynomial(j - 1).deriv() * Polynomial([0.0, -1.0, 1.0])
