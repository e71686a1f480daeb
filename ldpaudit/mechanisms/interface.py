"""What every mechanism offers to the audits."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.release import FloatArray


@runtime_checkable
class Mechanism(Protocol):
    """A mechanism as it was declared: a frozen value with an exact analysis."""

    @property
    def name(self) -> str:
        """The name in the contract, for instance ``"randomized-response"``."""

    @property
    def description(self) -> str:
        """One phrase with every parametrisation, for people; holds no label value."""

    @property
    def epsilon(self) -> float | None:
        """The declared mechanism's ε in nats; None where nothing is claimed."""

    @property
    def channel(self) -> Channel | None:
        """The label channel; None where it is unknown or depends on the features."""

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters that rebuild the mechanism (without its name)."""


@runtime_checkable
class AnalysedMechanism(Mechanism, Protocol):
    """A mechanism whose whole privacy curve is known exactly."""

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats."""


@runtime_checkable
class NumericMechanism(AnalysedMechanism, Protocol):
    """A mechanism on numeric labels, whose error is known exactly as well."""

    def bias(self) -> FloatArray:
        """Return E[ŷ | y] − y for each label, float64 of shape (k,)."""

    def variance(self) -> FloatArray:
        """Return Var[ŷ | y] for each label, float64 of shape (k,)."""

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior of shape (k,); squared is ½(ŷ − y)²."""
