"""Thresholding with histogram encoding (THE)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.frequency_oracles.bits import BitReports
from ldpaudit.mechanisms.frequency_oracles.interface import logit
from ldpaudit.mechanisms.parameters import (
    check_finite,
    real,
)
from ldpaudit.release import Label


@dataclass(frozen=True)
class ThresholdedHistogram(BitReports):
    """Laplace noise of scale 2/ε on a one-hot vector; the report says which entries exceed θ.

    Parameters
    ----------
    classes : tuple
        The k ≥ 2 labels.
    stated_epsilon : float
        ε of the noise in nats. Thresholding loses some: the report's own ``epsilon`` is smaller.
    threshold : float
        θ in (1/2, 1].

    References
    ----------
    Wang et al. (2017), section 4.2.
    """

    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.5 < check_finite("threshold", self.threshold) <= 1:
            raise InputError(f"The 'threshold' must lie in (1/2, 1]. Got {self.threshold:g}.")

    protocol = "THE"
    parameters = frozenset({"threshold"})

    @property
    def p(self) -> float:
        """P(1 + noise > θ)."""
        return 1 - math.exp(self.stated_epsilon * (self.threshold - 1) / 2) / 2

    @property
    def q(self) -> float:
        """P(noise > θ)."""
        return math.exp(-self.stated_epsilon * self.threshold / 2) / 2

    @property
    def epsilon(self) -> float:
        """The exact ε = logit p − logit q of the bits, in nats."""
        return logit(self.p) - logit(self.q)

    @property
    def description(self) -> str:
        """Its parameters."""
        return (
            f"THE on {self.k} labels: Laplace noise of scale {2 / self.stated_epsilon:.6g}, "
            f"threshold {self.threshold:.6g}; ε = {self.epsilon:.6g} nats of "
            f"{self.stated_epsilon:.6g} for the noise"
        )

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild it."""
        return {**super().declaration(), "threshold": self.threshold}

    @classmethod
    def built(
        cls, classes: tuple[Label, ...], epsilon: float, parameters: Mapping[str, Any]
    ) -> Self:
        """Build it, without a declared threshold with the best one."""
        threshold = real(parameters, "threshold")
        return cls(classes, epsilon, best_threshold(epsilon) if threshold is None else threshold)


@lru_cache
def best_threshold(epsilon: float) -> float:
    """Return the θ in (1/2, 1] of the least variance q(1 − q)/(p − q)² of a frequency."""
    from scipy.optimize import minimize_scalar

    def variance(threshold: float) -> float:
        p = 1 - math.exp(epsilon * (threshold - 1) / 2) / 2
        q = math.exp(-epsilon * threshold / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    found = minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded")
    return min(max(float(found.x), 0.5 + 1e-9), 1.0)
