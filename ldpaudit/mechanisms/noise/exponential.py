"""The exponential mechanism on numeric labels: Laplace noise restricted to the labels' range.

The usual proof gives ε for a density proportional to e^{−ε|ŷ−y|/(2Δ)}. The exact ε of that
mechanism is ε/2: the lowest and the highest label are the worst pair, because the family has a
monotone likelihood ratio, and have the same factor. So the scale Δ/ε, half of what the proof
requires, is enough for ε.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from scipy.special import gammainc

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.design import Candidate, Proposal, numeric_traits
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise.continuous import ContinuousMechanism, binned_channel, check_edges
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
        place = np.arange(self.labels.steps + 1)
        distance = np.abs(place[None, :] - place[:, None])
        weights = np.exp(-self.epsilon / self.labels.steps * distance)
        matrix = weights / weights.sum(axis=1, keepdims=True)
        return Channel(matrix, self.labels.classes, self.labels.classes)

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
class Exponential(ExponentialMechanism, ContinuousMechanism):
    """ŷ anywhere in [low, high] with density ∝ e^{−|ŷ−y|/b} and b = (high − low)/ε, ε exact.

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

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        if epsilon >= self.epsilon:
            return 0.0
        # The densities of the extreme labels cross at x = b(ε − ε')/2 above the lowest label.
        cross = (self.epsilon - epsilon) / 2
        mass = -math.expm1(-self.epsilon)
        return (-math.expm1(-cross) - math.exp(epsilon - self.epsilon) * math.expm1(cross)) / mass

    def rdp(self, alpha: float) -> float:
        """Return the Rényi divergence of the two extreme labels at order α > 0, in nats."""
        if not alpha > 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        epsilon, mass = self.epsilon, -math.expm1(-self.epsilon)
        if math.isinf(alpha):
            return epsilon
        if alpha == 1:
            return epsilon - 2 * (1 - epsilon * math.exp(-epsilon) / mass)
        # ∫ p^α q^{1−α} = e^{(α−1)ε} (1 − e^{(1−2α)ε}) / ((2α−1)(1 − e^{−ε})).
        odd = 2 * alpha - 1
        ratio = epsilon if odd == 0 else -math.expm1(-odd * epsilon) / odd
        return max(epsilon + math.log(ratio / mass) / (alpha - 1), 0.0)

    def _moment(self, order: int, room: FloatArray) -> FloatArray:
        """Return ∫ from 0 to room of t^order e^{−t/b} dt."""
        whole = math.factorial(order) * self.scale ** (order + 1)
        return np.asarray(whole * gammainc(order + 1, room / self.scale))

    def _moments(self, order: int, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the moments below and above each label, float64 of shape (k,) both."""
        low, high = self.labels.low, self.labels.high
        return self._moment(order, values - low), self._moment(order, high - values)

    def _deviations(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        mass, first, second = (self._moments(order, values) for order in (0, 1, 2))
        total = mass[0] + mass[1]
        down, up = first[0] / total, first[1] / total
        return up - down, up + down, (second[0] + second[1]) / total / 2

    def _poisson(self, y: float) -> float:
        if self.labels.low < 0:
            raise InputError("The Poisson log loss must be used with labels that are not negative.")
        mean = y + float(self.bias(np.array([y]))[0])
        if y == 0:
            return mean
        from scipy.integrate import quad

        def integrand(x: float) -> float:
            return math.log(x) * math.exp(-abs(x - y) / self.scale) if x > 0 else 0.0

        ends = sorted({self.labels.low, y, self.labels.high})
        parts = [quad(integrand, a, b, epsabs=1e-12) for a, b in pairwise(ends)]
        mass = self._moment(0, np.array([y - self.labels.low, self.labels.high - y])).sum()
        return mean - y * float(sum(part[0] for part in parts) / mass)

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the density of each released number, moved into the range, of shape (n, g)."""
        inside = np.clip(released, self.labels.low, self.labels.high)
        return self.density(inside, labels).T

    def density(self, outputs: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the density of each output under each label, float64 of shape (k, m)."""
        values = self.labels.check(labels)
        below, above = self._moments(0, values)
        outputs = np.asarray(outputs, dtype=np.float64)
        distance = np.abs(outputs[None, :] - values[:, None])
        inside = (outputs >= self.labels.low) & (outputs <= self.labels.high)
        return np.where(inside, np.exp(-distance / self.scale) / (below + above)[:, None], 0.0)

    def _simulated(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        uniform = rng.random(len(values))
        below, above = (moment / self.scale for moment in self._moments(0, values))
        place = uniform * (below + above) - below
        noisy = values - np.sign(place) * self.scale * np.log1p(-np.abs(place))
        return np.clip(noisy, self.labels.low, self.labels.high)

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        """Return the channel from labels to bins, as :meth:`NumericMechanism.binned`."""
        values = self._values(labels)
        cuts = np.clip(check_edges(edges), self.labels.low, self.labels.high)
        left, right = (moment[:, None] for moment in self._moments(0, values))
        offset = cuts[None, :] - values[:, None]
        inside = self._moment(0, np.abs(offset))
        below = np.where(offset < 0, left - inside, left + inside)
        above = np.where(offset < 0, right + inside, right - inside)
        return binned_channel(
            below / (left + right), above / (left + right), tuple(values.tolist())
        )
