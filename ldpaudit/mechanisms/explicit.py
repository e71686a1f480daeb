"""A mechanism given by its channel matrix, and the unknown mechanism."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.interface import Mechanism, Traits
from ldpaudit.mechanisms.parameters import only_known
from ldpaudit.release import FloatArray, Label


@dataclass(frozen=True)
class ExplicitChannel(FiniteMechanism):
    """A label channel declared entry by entry.

    Parameters
    ----------
    channel : Channel
        The probability of each output for each true label.

    Examples
    --------
    >>> import numpy as np
    >>> from ldpaudit.mechanisms import Channel, ExplicitChannel
    >>> matrix = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> round(ExplicitChannel(Channel(matrix, (0, 1), (0, 1))).epsilon, 6)
    1.098612
    """

    traits = Traits(
        name="channel",
        title="the declared channel",
        labels="classes",
        outputs="labels",
        label_depends_on_features=False,
        features="unchanged",
        rows="independent",
        options=("channel",),
        stated_by=(),
        whole=False,
        needs=frozenset({"matrix"}),
    )

    channel: Channel

    @property
    def description(self) -> str:
        """Its size and ε."""
        k, m = self.channel.matrix.shape
        return f"a declared channel of {k} labels and {m} outputs, ε = {self.epsilon:.6g} nats"

    def declaration(self) -> Mapping[str, Any]:
        """Return classes, outputs and matrix."""
        return {
            "classes": list(self.channel.classes),
            "outputs": list(self.channel.outputs),
            "matrix": self.channel.matrix.tolist(),
        }

    @property
    def error_tolerance(self) -> float:
        """The largest absolute bias that is only rounding."""
        return 1e-12

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], classes: tuple[Label, ...]) -> Self:
        """Build it from a declaration; the outputs are by default the classes."""
        only_known(parameters, {"classes", "outputs", "matrix"}, cls.traits.name)
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
class UnknownMechanism(Mechanism):
    """The mechanism where nothing is claimed: no ε, no channel."""

    traits = Traits(
        name="unknown",
        title="an unknown mechanism",
        labels="classes",
        outputs="unknown",
        label_depends_on_features=False,
        features="unknown",
        rows="independent",
        options=(),
        stated_by=(),
        whole=True,
        needs=frozenset(),
    )

    @property
    def description(self) -> str:
        """A phrase for reports."""
        return "an undeclared mechanism"

    @property
    def epsilon(self) -> None:
        """None: nothing is claimed."""
        return None

    @property
    def channel(self) -> None:
        """None: nothing is known."""
        return None

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[str, Any],  # noqa: ARG003
        classes: tuple[Label, ...],  # noqa: ARG003
    ) -> Self:
        """Build it, whatever the parameters."""
        return cls()
