"""Noise on any number of a range: labels are rounded to 1,024 steps, and noise is drawn in steps.

Drawn in floating point, continuous noise reveals labels through its last bits (Mironov 2012). Here
labels are rounded at random, without bias, and the discrete form of the noise is exact. Variance,
δ(ε) and Rényi divergences are within 2e-4 of those of continuous noise, and ε is the same.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import numeric_traits
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.finite import FiniteMechanism, StepLoss
from ldpaudit.mechanisms.label_range import LabelRange, between
from ldpaudit.mechanisms.losses import Loss, loss
from ldpaudit.mechanisms.noise.discrete import (
    DiscreteLaplace,
    DiscreteNoise,
    FineStaircase,
    optimal_gamma,
)
from ldpaudit.mechanisms.noise.ranged import RangedMechanism, SymmetricNoise
from ldpaudit.mechanisms.numeric.rounded_labels import Rounded
from ldpaudit.mechanisms.options import NOISE
from ldpaudit.mechanisms.parameters import check_number, check_prior
from ldpaudit.release import FloatArray

FINE_STEPS: Final = 1024
REMARK: Final = (
    f"Labels are rounded at random, without bias, to {FINE_STEPS:,} steps of their range, and "
    "noise is drawn in steps: its numbers are those of continuous noise to about 1 in 10,000."
)


class ContinuousMechanism(Rounded, RangedMechanism):
    """A mechanism whose labels and outputs may be any number of a range."""

    method = "unbiased"
    _values = RangedMechanism._values

    @property
    @abstractmethod
    def inner(self) -> DiscreteNoise | FiniteMechanism:
        """What releases the labels of :attr:`fine`."""

    @cached_property
    def fine(self) -> LabelRange:
        """The range in 1,024 steps."""
        return LabelRange(self.labels.low, self.labels.high, self.labels.width / FINE_STEPS)

    @property
    def output_step(self) -> float:
        """The 1,024th part of the range."""
        return self.fine.spacing

    @classmethod
    def applied_range(cls, labels: LabelRange) -> LabelRange:
        """Return the range unchanged: any number in it is a label."""
        return labels

    def bin_edges(self, bins: int) -> FloatArray:
        """Return bounds halfway between steps, with a bin for each end of the range."""
        low, high, half = self.labels.low, self.labels.high, self.fine.spacing / 2
        return between(self.fine.values, np.linspace(low + half, high - half, bins - 1))

    def expected_loss(
        self,
        prior: Sequence[float] | FloatArray,
        name: Loss = "squared",
        labels: FloatArray | None = None,
    ) -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior of shape (k,); squared is ½(ŷ − y)².

        With additive noise the Poisson loss is ∞ where an output at or below 0 is possible (for a
        label of 0, an output below 0).
        """
        values = self._values(labels)
        weights, outputs = check_prior(prior, len(values)), self.inner.output_values
        loss(name, values, values)  # Checks the labels.
        if outputs is not None:
            assert self.inner.channel is not None
            chances = weights[:, None] * self.rounding.mean(self.inner.channel.matrix, values)
            losses = loss(name, outputs[None, :], values[:, None])
            return float(np.where(chances > 0, losses, 0).ravel() @ chances.ravel())
        if name == "poisson":
            return math.inf
        if name == "absolute":
            return self.inner.expected_loss(np.eye(1, FINE_STEPS + 1)[0], name)
        return 0.5 * float(weights @ self.variance(values))

    def release(self, labels: npt.ArrayLike, rng: Randomness = None) -> FloatArray:
        """Release label values inside the range, float64 of shape (n,).

        ``rng`` is a source of randomness; default: the operating system.
        """
        codes = self.rounding.sample(self.labels.check(labels), rng)
        return self.fine.at(self.inner.sample(codes, rng).astype(np.int64))

    def remarks(self) -> tuple[str, ...]:
        """Say that noise is drawn in steps."""
        return (REMARK,)


@dataclass(frozen=True)
class Laplace(ContinuousMechanism, SymmetricNoise):
    """y + X with X of density e^{−|x|/b}/(2b), in steps, and scale b = (high − low)/ε.

    Parameters
    ----------
    labels : LabelRange
        The labels' range, with a step where they lie on a grid; declared, never taken from data.
    epsilon : float
        ε in nats, above 0.
    clipped : bool
        Whether released labels are moved into the range, which makes them biased.

    References
    ----------
    Dwork et al. (2006); Ghazi et al. (2023), Definition 23, clipping in appendix F.

    Examples
    --------
    >>> from ldpaudit.mechanisms import LabelRange, Laplace
    >>> Laplace(LabelRange(0, 10), epsilon=2.0).scale
    5.0
    """

    traits = numeric_traits("laplace", "Laplace noise", NOISE, "range")
    settings = ("scale", "clipped")

    @property
    def scale(self) -> float:
        """The scale b of the noise, in units of the label."""
        return self.labels.width / self.epsilon

    @property
    def description(self) -> str:
        """Both parametrisations."""
        clip = "clipped to the labels' range" if self.clipped else "not clipped"
        return f"Laplace noise of scale {self.scale:.6g}, {clip}: ε = {self.epsilon:.6g} nats"

    @cached_property
    def inner(self) -> DiscreteLaplace:
        """Discrete Laplace noise on 1,024 steps."""
        return DiscreteLaplace(self.fine, self.epsilon, self.clipped)


def laplace_draws(n: int, epsilon: float, rng: Randomness) -> FloatArray:
    """Draw Laplace noise of scale 1/ε in steps of 1/1,024, for numbers that differ by up to 1."""
    law = DiscreteLaplace(LabelRange(0, 1, 1 / FINE_STEPS), epsilon).law
    return law.draw(n, rng) / FINE_STEPS


def laplace_delta(at: float, epsilon: float) -> float:
    """Return δ = 1 − e^{(at − ε)/2} of two Laplace laws whose centres are ε scales apart."""
    return max(-math.expm1((at - epsilon) / 2), 0.0)


def laplace_rdp(alpha: float, epsilon: float) -> float:
    """Return D_α of two Laplace laws whose centres are ε scales apart, in nats, α > 0.

    References
    ----------
    Mironov (2017), Table II, with λ = 1/ε.
    """
    if not alpha > 0:
        raise InputError(f"The order alpha must be above 0, got {alpha}.")
    if math.isinf(alpha):
        return epsilon
    if alpha == 1:
        return epsilon + math.expm1(-epsilon)
    if alpha == 0.5:
        return epsilon - 2 * math.log1p(epsilon / 2)
    # (α e^{(α−1)ε} + (α−1) e^{−αε})/(2α−1), with e^{(α−1)ε} taken out of the bracket.
    rest = (alpha - 1) * math.expm1(-(2 * alpha - 1) * epsilon) / (2 * alpha - 1)
    return max(epsilon + math.log1p(rest) / (alpha - 1), 0.0)


@dataclass(frozen=True)
class Staircase(StepLoss, ContinuousMechanism, SymmetricNoise):
    """y + X with a density in stairs: high on [0, γΔ), e^{−ε} of it up to Δ, and so on.

    Δ = high − low. The default γ has the least variance at this ε.

    Parameters
    ----------
    labels : LabelRange
        The labels' range, with a step where they lie on a grid; declared, never taken from data.
    epsilon : float
        ε in nats, above 0.
    clipped : bool
        Whether released labels are moved into the range, which makes them biased.
    gamma : float, optional
        γ in (0, 1), the width of the highest step; default: that of the least variance.

    References
    ----------
    Geng and Viswanath (2014); Ghazi et al. (2023), Definition 25.
    """

    traits = numeric_traits("staircase", "staircase noise", NOISE, "range")
    settings = ("clipped", "gamma")

    gamma: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        stated = optimal_gamma(self.epsilon) if self.gamma is None else self.gamma
        gamma = check_number("gamma", stated)
        if not 0 < gamma < 1:
            raise InputError(f"The 'gamma' parameter must lie in (0, 1). Got {gamma!r} instead.")
        object.__setattr__(self, "gamma", gamma)

    @property
    def description(self) -> str:
        """Its parameters."""
        clip = "clipped to the labels' range" if self.clipped else "not clipped"
        return f"staircase noise with γ = {self.gamma:.6g}, {clip}: ε = {self.epsilon:.6g} nats"

    @cached_property
    def inner(self) -> DiscreteNoise:
        """Discrete staircase noise on 1,024 steps."""
        assert self.gamma is not None
        # A step holds what is within half a step of it.
        width = self.gamma * FINE_STEPS + 0.5
        return FineStaircase(self.fine, self.epsilon, self.clipped, width)

    @cached_property
    def total_variation(self) -> float:
        """TV of the extreme labels: P(|X| ≤ Δ/2), as unimodal laws Δ apart cross halfway.

        With its edges between steps the noise has this TV exactly; the steps themselves lose some.
        """
        middle = np.array([FINE_STEPS // 2])
        law = self.inner.law
        return 1 - 2 * float(law.tail(middle + 1)[0]) - float(law.pmf(middle)[0])
