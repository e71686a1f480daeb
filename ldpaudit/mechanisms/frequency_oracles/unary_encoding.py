"""Symmetric and optimized unary encoding (SUE, also basic RAPPOR, and OUE)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from ldpaudit.mechanisms.frequency_oracles.bits import BitReports
from ldpaudit.mechanisms.frequency_oracles.interface import NAME
from ldpaudit.mechanisms.parameters import check_classes, check_epsilon, only_known, required
from ldpaudit.release import Label


@dataclass(frozen=True)
class _UnaryEncoding(BitReports):
    classes: tuple[Label, ...]
    stated_epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "classes", check_classes(self.classes))
        object.__setattr__(self, "stated_epsilon", check_epsilon(self.stated_epsilon))

    @property
    def description(self) -> str:
        """Its parameters."""
        return (
            f"{self.protocol} on {self.k} labels: a true bit is 1 with probability {self.p:.6g}, "
            f"another with {self.q:.6g}; ε = {self.epsilon:.6g} nats"
        )

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration without its protocol."""
        only_known(parameters, {"classes", "epsilon"}, NAME)
        named = tuple(parameters.get("classes") or classes)
        return cls(named, required(parameters, "epsilon", NAME))


@dataclass(frozen=True)
class SymmetricUnaryEncoding(_UnaryEncoding):
    """p = e^{ε/2}/(e^{ε/2} + 1), q = 1 − p.

    References
    ----------
    Erlingsson, Pihur & Korolova (2014), RAPPOR; Wang et al. (2017), section 4.3.
    """

    @property
    def protocol(self) -> str:
        """``SUE``."""
        return "SUE"

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

    @property
    def protocol(self) -> str:
        """``OUE``."""
        return "OUE"

    @property
    def p(self) -> float:
        """P(true bit is 1)."""
        return 0.5

    @property
    def q(self) -> float:
        """P(another bit is 1)."""
        return 1 / (1 + math.exp(self.stated_epsilon))
