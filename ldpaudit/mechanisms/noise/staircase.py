"""The staircase mechanism, continuous and discrete."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import numeric_traits
from ldpaudit.mechanisms.noise.additive import AdditiveNoise
from ldpaudit.mechanisms.noise.block_law import BlockLaw
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.noise.noise_laws import StaircaseLaw, optimal_gamma
from ldpaudit.mechanisms.noise.step_loss import StepLoss
from ldpaudit.mechanisms.options import NOISE, STEPS
from ldpaudit.mechanisms.parameters import check_finite, check_number


@dataclass(frozen=True)
class Staircase(StepLoss, AdditiveNoise):
    """y + X with a density in steps: high on [0, γΔ), e^{−ε} of it up to Δ, and so on.

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
    def law(self) -> StaircaseLaw:
        """The law of the noise."""
        assert self.gamma is not None
        return StaircaseLaw(self.labels.width, self.epsilon, self.gamma)

    @property
    def _knees(self) -> tuple[float, ...]:
        assert self.gamma is not None
        return (0.0, self.gamma * self.labels.width)

    @cached_property
    def total_variation(self) -> float:
        """TV of the extreme labels: P(|X| ≤ Δ/2), as unimodal laws Δ apart cross halfway."""
        return 1 - 2 * float(self.law.tail_moment(0, np.array([self.labels.width / 2]))[0])


@dataclass(frozen=True)
class DiscreteStaircase(StepLoss, DiscreteNoise):
    """y + step · X with weight 1 for |x| < r, e^{−ε} for r ≤ |x| < r + n, e^{−2ε} for the next n …

    n = (high − low)/step. The default r has the least variance at this ε; 1 ≤ r ≤ n.

    Parameters
    ----------
    labels : LabelRange
        The labels' range, with a step where they lie on a grid; declared, never taken from data.
    epsilon : float
        ε in nats, above 0.
    clipped : bool
        Whether released labels are moved into the range, which makes them biased.
    width : int, optional
        r, the steps at the highest weight; default: those of the least variance.

    References
    ----------
    Geng and Viswanath (2014); Ghazi et al. (2023), Definition 24, with b = e^{−ε}.
    """

    traits = numeric_traits("discrete-staircase", "discrete staircase noise", STEPS, "range")
    settings = ("clipped", "width")

    width: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        n = self.labels.steps
        stated = optimal_width(n, self.epsilon) if self.width is None else self.width
        width = check_finite("width", stated)
        if width != int(width) or not 1 <= width <= n:
            raise InputError(
                f"The 'width' parameter r must be a whole number from 1 to {n}, the labels' steps."
            )
        object.__setattr__(self, "width", int(width))

    @property
    def description(self) -> str:
        """Its parameters."""
        clip = "clipped to the labels' grid" if self.clipped else "not clipped"
        return (
            f"discrete staircase noise with r = {self.width} of {self.labels.steps} steps, {clip}: "
            f"ε = {self.epsilon:.6g} nats"
        )

    @cached_property
    def law(self) -> BlockLaw:
        """The law of X, in steps."""
        assert self.width is not None
        return _step_law(self.labels.steps, self.epsilon, self.width)

    @cached_property
    def total_variation(self) -> float:
        """TV of the extreme labels."""
        return self.law.total_variation()


def _step_law(n: int, epsilon: float, width: int) -> BlockLaw:
    block = np.where(np.arange(n) < width, 1.0, math.exp(-epsilon))
    return BlockLaw(block, epsilon)


_EVERY_WIDTH: Final = 2048


def optimal_width(n: int, epsilon: float) -> int:
    """Return the r in 1 … n of least variance: among all, or near the continuous optimum."""
    centre = optimal_gamma(epsilon) * n
    near = range(max(1, int(centre) - 64), min(n, int(centre) + 64) + 1)
    candidates = range(1, n + 1) if n <= _EVERY_WIDTH else near
    return min(candidates, key=lambda r: _step_law(n, epsilon, r).variance())
