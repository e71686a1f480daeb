"""Symmetric and optimized unary encoding (SUE, also basic RAPPOR, and OUE)."""

import math
from dataclasses import dataclass

from ldpaudit.mechanisms.frequency_oracles.bits import BitReports


@dataclass(frozen=True)
class _UnaryEncoding(BitReports):
    @property
    def description(self) -> str:
        """Its parameters."""
        return (
            f"{self.protocol} on {self.k} labels: a true bit is 1 with probability {self.p:.6g}, "
            f"another with {self.q:.6g}; ε = {self.epsilon:.6g} nats"
        )


@dataclass(frozen=True)
class SymmetricUnaryEncoding(_UnaryEncoding):
    """p = e^{ε/2}/(e^{ε/2} + 1), q = 1 − p.

    References
    ----------
    Erlingsson, Pihur & Korolova (2014), RAPPOR; Wang et al. (2017), section 4.3.
    """

    protocol = "SUE"

    @property
    def p(self) -> float:
        """P(true bit is 1)."""
        return 1 / (1 + math.exp(-self.stated_epsilon / 2))

    @property
    def q(self) -> float:
        """P(another bit is 1)."""
        return 1 / (1 + math.exp(self.stated_epsilon / 2))


@dataclass(frozen=True)
class OptimizedUnaryEncoding(_UnaryEncoding):
    """p = 1/2, q = 1/(e^ε + 1).

    References
    ----------
    Wang et al. (2017), section 4.3.
    """

    protocol = "OUE"

    @property
    def p(self) -> float:
        """P(true bit is 1)."""
        return 0.5

    @property
    def q(self) -> float:
        """P(another bit is 1)."""
        return 1 / (1 + math.exp(self.stated_epsilon))
