"""A mechanism given by its channel matrix, and one of which nothing is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import IntArray


@dataclass(frozen=True)
class ExplicitChannel:
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

    @property
    def epsilon(self) -> float:
        """ε in nats."""
        return self.channel.epsilon

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters of the declaration."""
        return {
            "classes": list(self.channel.classes),
            "outputs": list(self.channel.outputs),
            "matrix": self.channel.matrix.tolist(),
        }

    def sample(self, labels: IntArray, rng: np.random.Generator) -> IntArray:
        """Release labels: codes of shape (n,) to output codes of shape (n,), int32."""
        cumulative = np.cumsum(self.channel.matrix, axis=1)
        cumulative[:, -1] = 1.0
        draws = rng.random(len(labels))
        out = np.empty(len(labels), dtype=np.int32)
        for y, row in enumerate(cumulative):
            rows = labels == y
            out[rows] = np.searchsorted(row, draws[rows], side="right")
        return out


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
