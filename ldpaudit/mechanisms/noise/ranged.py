"""What mechanisms on a declared range of numbers share."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import Candidate, Proposal
from ldpaudit.mechanisms.interface import UNBIASED, NumericMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.options import MechanismOptions
from ldpaudit.mechanisms.parameters import check_epsilon, epsilon_or_scale, only_known, required
from ldpaudit.release import FloatArray, Label

_PARAMETERS: Final = ("scale", "gamma", "width")


class RangedMechanism(NumericMechanism):
    """A mechanism on labels in a declared range, whose outputs are real numbers or whole steps."""

    settings: ClassVar[tuple[str, ...]] = ()
    """The declared parameters besides the range and ``epsilon``: ``scale``, or fields."""
    default_step: ClassVar[float | None] = None
    """The labels' step where none is declared."""

    if TYPE_CHECKING:
        labels: LabelRange
        """The labels' range; its width is the sensitivity."""

    @property
    def label_bounds(self) -> tuple[float, float]:
        """The lowest and the highest label."""
        return self.labels.low, self.labels.high

    @property
    def label_values(self) -> FloatArray | None:
        """The labels of the grid, float64 of shape (k,); None: any number in the range."""
        return None if self.labels.step is None else self.labels.values

    def _values(self, labels: FloatArray | None) -> FloatArray:
        """Return label values inside the range; default: all labels of the grid."""
        return self.labels.values if labels is None else self.labels.check(labels)

    @property
    def output_values(self) -> FloatArray | None:
        """None: the outputs are not finitely many."""
        return None

    def bin_edges(self, bins: int) -> FloatArray:
        """Return equally spaced bounds, with a bin for each end of the range."""
        # Clipping puts mass at the ends, and tails distinguish labels best.
        edges = np.linspace(self.labels.low, self.labels.high, bins - 1)
        edges[-1] = np.nextafter(self.labels.high, -np.inf)
        return edges

    def parametrisations(self) -> dict[str, float]:
        """Return ``epsilon``, and those of ``scale``, ``gamma`` and ``width`` that it has."""
        values = {key: getattr(self, key, None) for key in _PARAMETERS}
        numbers = {key: float(value) for key, value in values.items() if value is not None}
        return super().parametrisations() | numbers

    @classmethod
    def parameters_from(cls, options: MechanismOptions) -> dict[str, Any]:
        """Return the stated parameters with the labels' range."""
        return options.stated() | options.stated_range()

    @classmethod
    def form(cls, labels: LabelRange) -> Callable[..., Any]:  # noqa: ARG003
        """Return the class for a range of labels: this one, unless the family has several."""
        return cls

    @classmethod
    def from_parameters(
        cls,
        parameters: Mapping[str, Any],
        classes: tuple[Label, ...],  # noqa: ARG003
    ) -> Self:
        """Build it from a declaration of the range, ε (or the scale) and the settings."""
        name = cls.traits.name
        only_known(parameters, {"low", "high", "step", "epsilon", *cls.settings}, name)
        labels = LabelRange.from_parameters({"step": cls.default_step, **parameters})
        if "scale" in cls.settings:
            epsilon = epsilon_or_scale(parameters, labels.width, name)
        else:
            epsilon = check_epsilon(required(parameters, "epsilon", name))
        fields = {k: parameters[k] for k in cls.settings if k in parameters and k != "scale"}
        mechanism: Self = cls.form(labels)(labels, epsilon, **fields)
        return mechanism


@dataclass(frozen=True)
class SymmetricNoise(RangedMechanism):
    """y + X with X of a law symmetric about 0, with or without clipping to the labels' range.

    Parameters
    ----------
    labels : LabelRange
        The labels' range; its width is the sensitivity.
    epsilon : float
        The exact ε > 0 in nats, attained by the lowest and the highest label.
    clipped : bool
        Whether outputs are clipped to the range. Clipping merges only outputs with the same
        likelihood ratio between these two labels (e^ε or e^{−ε}), so ε, δ(ε) and the Rényi
        divergences stay the same.
    """

    settings: ClassVar[tuple[str, ...]] = ("clipped",)

    labels: LabelRange
    epsilon: float
    clipped: bool = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not isinstance(self.clipped, bool):
            raise InputError("The 'clipped' parameter must be true or false.")

    @property
    def error_tolerance(self) -> float:
        """The largest absolute bias that is only rounding: unclipped there is no other."""
        return 0.0 if self.clipped else UNBIASED

    def declaration(self) -> Mapping[str, Any]:
        """Return the range, ``epsilon``, ``clipped`` and further settings."""
        fields = {key: getattr(self, key) for key in self.settings if key != "scale"}
        return self.labels.declaration() | {"epsilon": self.epsilon} | fields

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield it unclipped and clipped."""
        yield Candidate("unclipped", lambda p: Proposal(cls(p.labels, p.epsilon)))
        yield Candidate("clipped", lambda p: Proposal(cls(p.labels, p.epsilon, True)))
