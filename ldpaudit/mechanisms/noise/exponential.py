"""The exponential mechanism on numeric labels: Laplace noise restricted to the labels' range.

The usual proof gives ε for a density proportional to e^{−ε|ŷ−y|/(2Δ)}. The exact ε of that
mechanism is ε/2: the lowest and the highest label are the worst pair, because the family has a
monotone likelihood ratio, and have the same factor. So the scale Δ/ε, half of what the proof
requires, is enough for ε.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import Candidate, Proposal, numeric_traits
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise.continuous import ContinuousMechanism
from ldpaudit.mechanisms.noise.ranged import RangedMechanism
from ldpaudit.mechanisms.parameters import check_epsilon
from ldpaudit.release import FloatArray

_LARGEST_MATRIX: Final = 4096


class ExponentialMechanism(RangedMechanism):
    """Both forms under one name: on the labels' grid, and anywhere in their range."""

    traits = numeric_traits(
        "exponential", "the exponential mechanism", ("epsilon", "labels", "round"), "range"
    )
    settings = ("scale",)

    if TYPE_CHECKING:

        @property
        def epsilon(self) -> float:
            """The exact ε in nats."""

    @property
    def scale(self) -> float:
        """The scale b of the weights or the density, in units of the label."""
        return self.labels.width / self.epsilon

    def declaration(self) -> Mapping[str, Any]:
        """Return the range and ``epsilon``."""
        return self.labels.declaration() | {"epsilon": self.epsilon}

    @classmethod
    def candidates(cls) -> Iterator[Candidate]:
        """Yield both forms."""
        yield Candidate(
            "on the labels", lambda p: Proposal(DiscreteExponential(p.labels, p.epsilon))
        )
        yield Candidate("on their range", lambda p: Proposal(Exponential(p.labels, p.epsilon)))

    @classmethod
    def form(cls, labels: LabelRange) -> Callable[..., Any]:
        """Return the discrete form for labels with a step, else the continuous one."""
        return Exponential if labels.step is None else DiscreteExponential


@dataclass(frozen=True)
class DiscreteExponential(FiniteMechanism, ExponentialMechanism):
    """ŷ on the labels' grid with P(ŷ | y) ∝ e^{−|ŷ−y|/b} and b = (high − low)/ε, ε exact.

    Parameters
    ----------
    labels : LabelRange
        The labels, with a step.
    target_epsilon : float
        The exact ε > 0 in nats.

    References
    ----------
    McSherry and Talwar (2007); Ghazi et al. (2023), Definition 26 and appendix F, where the scale
    is 2Δ/ε: the exact ε is then half of that ε.
    """

    labels: LabelRange
    target_epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.target_epsilon)
        if self.labels.steps >= _LARGEST_MATRIX:
            raise InputError(f"This mechanism takes at most {_LARGEST_MATRIX} labels.")

    @property
    def epsilon(self) -> float:
        """The exact ε in nats."""
        return self.target_epsilon

    @property
    def description(self) -> str:
        """Its parametrisations."""
        return (
            f"exponential mechanism on {self.labels.steps + 1} labels, scale {self.scale:.6g}: "
            f"ε = {self.epsilon:.6g} nats exactly, {2 * self.epsilon:.6g} by the usual proof"
        )

    @cached_property
    def channel(self) -> Channel:
        """The k × k channel."""
        weights = self._weights()
        matrix = weights / weights.sum(axis=1, keepdims=True)
        return Channel(matrix, self.labels.classes, self.labels.classes)

    def _weights(self) -> FloatArray:
        place = np.arange(self.labels.steps + 1)
        distance = np.abs(place[None, :] - place[:, None])
        return np.asarray(np.exp(-self.epsilon / self.labels.steps * distance))

    @cached_property
    def _extremes(self) -> Channel:
        """The channel of the lowest and the highest label, the worst pair."""
        outputs = tuple(range(self.labels.steps + 1))
        return Channel(self.channel.matrix[[0, -1]], (0, 1), outputs)

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        return self._extremes.delta(epsilon)

    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats."""
        return self._extremes.rdp(alpha)


@dataclass(frozen=True)
class _HalvedEnds(DiscreteExponential):
    """The same with half the weight of the two ends, as the density has: ε stays the same."""

    def _weights(self) -> FloatArray:
        weights = super()._weights()
        weights[:, [0, -1]] /= 2
        return weights


@dataclass(frozen=True)
class Exponential(ContinuousMechanism, ExponentialMechanism):
    """ŷ anywhere in [low, high], in steps, with density ∝ e^{−|ŷ−y|/b}, b = (high − low)/ε.

    Parameters
    ----------
    labels : LabelRange
        The labels' range.
    epsilon : float
        The exact ε > 0 in nats.

    References
    ----------
    As :class:`DiscreteExponential`.
    """

    labels: LabelRange
    epsilon: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)

    @property
    def description(self) -> str:
        """Its parametrisations."""
        return (
            f"exponential mechanism on a range of numbers, scale {self.scale:.6g}: "
            f"ε = {self.epsilon:.6g} nats exactly, {2 * self.epsilon:.6g} by the usual proof"
        )

    @cached_property
    def inner(self) -> DiscreteExponential:
        """The exponential mechanism on 1,024 steps."""
        return _HalvedEnds(self.fine, self.epsilon)
