"""A mechanism given by its channel matrix, and one of which nothing is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.parameters import only_known
from ldpaudit.release import FloatArray, Label


@dataclass(frozen=True)
class ExplicitChannel(FiniteMechanism):
    """A label channel declared entry by entry."""

    channel: Channel

    @property
    def name(self) -> str:
        """The name in the contract."""
        return "channel"

    @property
    def description(self) -> str:
        """Its size and ε."""
        k, m = self.channel.matrix.shape
        return f"a declared channel of {k} labels and {m} outputs, ε = {self.epsilon:.6g} nats"

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters of the declaration."""
        return {
            "classes": list(self.channel.classes),
            "outputs": list(self.channel.outputs),
            "matrix": self.channel.matrix.tolist(),
        }

    @classmethod
    def from_parameters(
        cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]
    ) -> "ExplicitChannel":
        """Build it from a declaration; ``classes`` stands in where none are declared."""
        only_known(parameters, {"classes", "outputs", "matrix"}, "channel")
        if "matrix" not in parameters:
            raise InputError("A declared channel must give its matrix.")
        rows = tuple(parameters.get("classes") or classes)
        columns = tuple(parameters.get("outputs") or rows)
        return cls(Channel(_matrix(parameters["matrix"]), rows, columns))


def _matrix(value: Any) -> FloatArray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("A channel's matrix must be a rectangle of numbers.") from None


@dataclass(frozen=True)
class UnknownMechanism:
    """Nothing is claimed: no ε, no channel."""

    @property
    def name(self) -> str:
        """The name in the contract."""
        return "unknown"

    @property
    def description(self) -> str:
        """The words for a report."""
        return "an undeclared mechanism"

    @property
    def epsilon(self) -> None:
        """Nothing is claimed."""
        return None

    @property
    def channel(self) -> None:
        """Nothing is known."""
        return None

    def declaration(self) -> Mapping[str, Any]:
        """Return no parameters."""
        return {}

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[str, Any],  # noqa: ARG003
        classes: tuple[Label, ...],  # noqa: ARG003
    ) -> "UnknownMechanism":
        """Build it; nothing is declared."""
        return cls()
