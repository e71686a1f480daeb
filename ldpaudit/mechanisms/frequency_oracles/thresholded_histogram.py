"""Thresholding with histogram encoding (THE)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.frequency_oracles.bits import BitReports
from ldpaudit.mechanisms.parameters import Parameter, check_finite


@lru_cache
def best_threshold(epsilon: float) -> float:
    """Return the θ in (1/2, 1] with the least variance q(1 − q)/(p − q)² of a frequency."""
    from scipy.optimize import minimize_scalar

    def variance(threshold: float) -> float:
        p = 1 - math.exp(epsilon * (threshold - 1) / 2) / 2
        q = math.exp(-epsilon * threshold / 2) / 2
        return q * (1 - q) / (p - q) ** 2

    best = minimize_scalar(variance, bounds=(0.5, 1.0), method="bounded")
    return min(max(float(best.x), 0.5 + 1e-9), 1.0)


def _best_threshold(fields: Mapping[str, Any]) -> float:
    return best_threshold(fields["stated_epsilon"])


@dataclass(frozen=True)
class ThresholdedHistogram(BitReports):
    """Laplace noise of scale 2/ε on a one-hot vector; the report says which entries exceed θ.

    Parameters
    ----------
    classes : tuple
        The k ≥ 2 labels.
    stated_epsilon : float
        ε of the noise in nats; the report's ``epsilon`` is smaller, as thresholding loses some.
    threshold : float
        θ in (1/2, 1].

    References
    ----------
    Wang et al. (2017), section 4.2.
    """

    protocol = "THE"
    declared = (*BitReports.declared, Parameter("threshold", default=_best_threshold))

    threshold: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.5 < check_finite("threshold", self.threshold) <= 1:
            raise InputError(f"The 'threshold' must lie in (1/2, 1]. Got {self.threshold:g}.")

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
        return self.unit

    @property
    def description(self) -> str:
        """Its parameters."""
        return (
            f"THE on {self.k} labels: Laplace noise of scale {2 / self.stated_epsilon:.6g}, "
            f"threshold {self.threshold:.6g}; ε = {self.epsilon:.6g} nats, "
            f"{self.stated_epsilon:.6g} for the noise"
        )
