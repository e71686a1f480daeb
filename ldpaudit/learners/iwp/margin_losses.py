"""Losses f(y θᵀx) of a linear model, and their inverse Weierstrass transforms.

Gaussian noise of variance s on the margin turns f into its Weierstrass transform W_s[f]; the
inverse transform W_s⁻¹[f](u) = Σ_k (−s/2)^k f^{(2k)}(u)/k!, taken at the noisy margin, has mean f.
For features with noise N(0, σ²I) the margin's noise has s = σ²‖θ‖².
"""

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from ldpaudit.release import FloatArray


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


@dataclass(frozen=True)
class ClosedForm:
    """A loss whose inverse transform has a closed form, whatever the variance."""

    growth: float = 0.0

    def check(self, largest: float) -> None:
        """Accept any variance."""

    def order(self, variance: float) -> None:
        """Return None: the form is closed."""


@dataclass(frozen=True)
class QuadraticLoss(ClosedForm):
    """f(u) = ½(u − 1)², with W_s⁻¹[f](u) = ½(u − 1)² − s/2 (Dufraiche et al., Example 2)."""

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

    Any σ is allowed, but the variance of the corrected loss grows like e^{s}.
    """

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
