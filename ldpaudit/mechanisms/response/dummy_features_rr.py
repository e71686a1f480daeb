"""Randomized response on the label with the features withheld."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse
from ldpaudit.release import Label


@dataclass(frozen=True)
class DummyFeaturesRR(RandomizedResponse):
    """Randomized response with λ on the label; the features are replaced by a constant.

    Useless for learning, it is the floor with which mechanisms that release features are compared.

    References
    ----------
    Busa-Fekete et al. (2023), Mechanism 3.
    """

    @property
    def name(self) -> str:
        """The name in the contract."""
        return "dummy-features-rr"

    @property
    def description(self) -> str:
        """Both parametrisations in words."""
        return super().description + ", released without its features"

    def conditional_rdp_floor(self, alpha: float) -> float:
        """Return a lower bound of the Rényi label-DP with conditional features, α > 1, in nats.

        α/(α − 1) · log(1 + (1 − λ)k/λ) − log(k/λ)/(α − 1).

        References
        ----------
        Busa-Fekete et al. (2023), Theorem 7.2.
        """
        if not alpha > 1:
            raise InputError(f"The order alpha must be above 1, got {alpha}.")
        if self.noise == 0:
            return math.inf
        if math.isinf(alpha):
            return self.epsilon
        floor = alpha * self.epsilon - math.log(len(self.classes) / self.noise)
        return max(floor / (alpha - 1), 0.0)

    @classmethod
    def from_parameters(
        cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> "DummyFeaturesRR":
        """Build it from a declaration."""
        plain = RandomizedResponse.from_parameters(parameters, classes)
        return cls(plain.classes, plain.noise)
