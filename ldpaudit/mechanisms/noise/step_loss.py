"""Mechanisms whose privacy loss takes only the values −ε, 0 and ε.

Randomized response and the staircase mechanisms are such: everything follows from ε and the total
variation distance TV.
"""

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.interface import AnalysedMechanism


class StepLoss(AnalysedMechanism):
    """A mechanism whose privacy loss is −ε, 0 or ε for its worst pair of labels."""

    if TYPE_CHECKING:

        @property
        def epsilon(self) -> float:
            """The exact ε in nats."""

    @property
    @abstractmethod
    def total_variation(self) -> float:
        """TV of the worst pair of labels, in [0, 1]."""

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε', δ)-label-DP, ε' ≥ 0 in nats.

        The mass with loss ε is p = TV/(1 − e^{−ε}), and δ(ε') = p(1 − e^{ε' − ε})₊.
        """
        if self.total_variation == 0:
            return 0.0
        mass = self.total_variation / -math.expm1(-self.epsilon)
        return mass * -math.expm1(min(epsilon - self.epsilon, 0.0))

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats.

        D_α = log(1 + t(E^α + E^{1−α} − E − 1))/(α − 1) with E = e^ε and t(E − 1) = TV, so that the
        bracket is t(E^α − 1)(1 − E^{1−α}).
        """
        if not alpha > 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        distance, epsilon = self.total_variation, self.epsilon
        if distance == 0:
            return 0.0
        if math.isinf(alpha) or math.isinf(epsilon):
            return epsilon
        if alpha == 1:
            return epsilon * distance
        log_t = math.log(distance) - math.log(math.expm1(epsilon))
        if (alpha - 1) * epsilon > 500:
            # (E^α − 1)(1 − E^{1−α}) is E^α to all digits, and adding 1 to it changes nothing.
            return (log_t + alpha * epsilon + math.log1p(-math.exp(-alpha * epsilon))) / (alpha - 1)
        bracket = math.expm1(alpha * epsilon) * -math.expm1((1 - alpha) * epsilon)
        return max(math.log1p(math.exp(log_t) * bracket) / (alpha - 1), 0.0)
