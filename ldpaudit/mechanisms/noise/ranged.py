"""What mechanisms on a declared range of numbers share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import Candidate, Proposal, numeric_traits
from ldpaudit.mechanisms.interface import UNBIASED, NumericMechanism, Traits
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.options import NOISE, MechanismOptions
from ldpaudit.mechanisms.parameters import (
    check_epsilon,
    epsilon_or_scale,
    only_known,
    real,
    required,
)
from ldpaudit.release import FloatArray, Label

_PARAMETERS: Final = ("scale", "gamma", "width")


class RangedMechanism(NumericMechanism):
    """A mechanism on labels of a declared range, whose outputs are real numbers or whole steps."""

    if TYPE_CHECKING:
        labels: LabelRange
        """The labels' range; its width is the sensitivity."""

    @property
    def label_bounds(self) -> tuple[float, float]:
        """The lowest and the highest label."""
        return self.labels.low, self.labels.high

    @property
    def label_values(self) -> FloatArray | None:
        """The labels of the grid, float64 of shape (k,); None: any number of the range."""
        return None if self.labels.step is None else self.labels.values

    @property
    def output_values(self) -> FloatArray | None:
        """None: the outputs are not finitely many."""
        return None

    def bin_edges(self, bins: int) -> FloatArray:
        """Return equally spaced bounds, with a bin for each end of the range."""
        # Clipping puts mass at the ends, and tails tell labels best.
        edges = np.linspace(self.labels.low, self.labels.high, bins - 1)
        edges[-1] = np.nextafter(self.labels.high, -np.inf)
        return edges

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon``, and the family's own parameters."""
        values = {key: getattr(self, key, None) for key in _PARAMETERS}
        own = {key: float(value) for key, value in values.items() if value is not None}
        return super().parametrisations() | own

    @classmethod
    def parameters_from(cls, options: MechanismOptions) -> dict[str, Any]:
        """Return the stated parameters with the labels' range."""
        return options.stated() | options.stated_range()


@dataclass(frozen=True)
class SymmetricNoise(RangedMechanism):
    """y + X with X of a law that is symmetric about 0; clipped to the labels' range or not.

    Parameters
    ----------
    labels : LabelRange
        The labels' range; its width is the sensitivity.
    epsilon : float
        The exact ε > 0 in nats, reached by the lowest and the highest label.
    clipped : bool
        Whether outputs are clipped to the range. Clipping merges only outputs whose likelihood
        ratio between these two labels is the same (e^ε or e^{−ε}), so that ε, δ(ε) and the Rényi
        divergences of the clipped and the unclipped mechanism are equal.
    """

    own_parameter: ClassVar[str] = "scale"
    """What a declaration may state besides the range, ε and clipping; a scale implies ε."""
    range_defaults: ClassVar[Mapping[str, float]] = {}

    labels: LabelRange
    epsilon: float
    clipped: bool = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not isinstance(self.clipped, bool):
            raise InputError("The 'clipped' parameter must be true or false.")

    @property
    def error_tolerance(self) -> float:
        """Up to which |bias| is rounding: without clipping it is unbiased by construction."""
        return 0.0 if self.clipped else UNBIASED

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters of the declaration."""
        return self.labels.declaration() | {"epsilon": self.epsilon, "clipped": self.clipped}

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[str, Any],
        classes: tuple[Label, ...],  # noqa: ARG003
    ) -> Self:
        """Build it from a declaration."""
        name, own = cls.traits.name, cls.own_parameter
        only_known(parameters, {"low", "high", "step", "epsilon", "clipped", own}, name)
        labels = LabelRange.from_parameters({**cls.range_defaults, **parameters})
        clipped = parameters.get("clipped", False)
        if own == "scale":
            return cls(labels, epsilon_or_scale(parameters, labels.width, name), clipped)
        epsilon = check_epsilon(required(parameters, "epsilon", name))
        shape: dict[str, Any] = {own: real(parameters, own)}
        return cls(labels, epsilon, clipped, **shape)

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield it without and with clipping."""
        yield Candidate("unclipped", lambda p: Proposal(cls(p.labels, p.epsilon)))
        yield Candidate("clipped", lambda p: Proposal(cls(p.labels, p.epsilon, True)))


def noise_traits(name: str, title: str) -> Traits:
    """Return what every family of noise on a range of numbers is, under its own name."""
    return numeric_traits(name, title, NOISE, "range")
