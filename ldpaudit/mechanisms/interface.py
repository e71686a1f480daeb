"""What every mechanism offers to the audits."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from ldpaudit.mechanisms.channel import Channel


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
