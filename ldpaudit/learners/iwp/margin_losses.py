"""Losses f(y θᵀx) of a linear model, and their inverse Weierstrass transforms.

Gaussian noise of variance s on the margin turns f into its Weierstrass transform W_s[f]; the
inverse transform W_s⁻¹[f](u) = Σ_k (−s/2)^k f^{(2k)}(u)/k!, taken at the noisy margin, has mean f.
For features with noise N(0, σ²I) the margin's noise has s = σ²‖θ‖².
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from scipy.special import expit

from ldpaudit.errors import InputError
from ldpaudit.learners.iwp.truncation import GradientError
from ldpaudit.release import FloatArray

WORST: Final = 0.5
"""The largest mean squared error of a step's slope, in units of the clean slope's variance."""
_ROUNDS: Final = 40


class MarginLoss(Protocol):
    """A loss of the margin u = y θᵀx whose bias under Gaussian noise can be taken away."""

    @property
    def growth(self) -> float | None:
        """The a of |f(u)| ≤ M exp(a u²) and |f^{(2k)}(u)| ≤ A (4a)^k k!; the least one.

        0 where every a > 0 works; None where none does, so that the series must be cut off.
        """

    def check(self, largest: float) -> None:
        """Refuse margin noise with a variance of up to ``largest`` where that is too much."""

    def order(self, variance: float) -> int | None:
        """Return the order at which the series is cut off; None for a closed form."""

    def corrected(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return W_s⁻¹[f](u), float64 of the margin's shape; f(u) itself at variance 0."""

    def slope(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return the derivative of :meth:`corrected` in u."""

    def drift(self, margin: FloatArray, variance: float) -> FloatArray:
        """Return the derivative of :meth:`corrected` in s."""

    def derivative_bounds(self, reach: float) -> tuple[float, float, float]:
        """Return the largest |f'(u)|, f''(u) and |f‴(u)| for |u| ≤ ``reach``."""

    def probability(self, score: FloatArray) -> FloatArray:
        """Return P(y = 1 | x) where θᵀx = ``score`` minimises the expected loss."""


class Gated(ABC):
    """A loss that refuses so much noise that a step's slope is hardly more than noise."""

    rows: int
    """How many rows' slopes are averaged, those of one step."""

    @abstractmethod
    def error(self, variance: float) -> GradientError:
        """Return the error of one row's corrected slope at a variance s > 0."""

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
class ClosedForm(Gated):
    """A loss whose inverse transform has a closed form: at variance −s it is W_s[f] itself."""

    growth: float = 0.0
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
