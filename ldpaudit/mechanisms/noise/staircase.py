"""The staircase mechanism, on any number of a range and on a grid."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import numeric_traits
from ldpaudit.mechanisms.noise.block_law import BlockLaw
from ldpaudit.mechanisms.noise.continuous import FINE_STEPS, ContinuousMechanism
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.noise.ranged import SymmetricNoise
from ldpaudit.mechanisms.noise.step_loss import StepLoss
from ldpaudit.mechanisms.options import NOISE, STEPS
from ldpaudit.mechanisms.parameters import check_finite, check_number


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
        return _FineStaircase(self.fine, self.epsilon, self.clipped, width)

    @cached_property
    def total_variation(self) -> float:
        """TV of the extreme labels: P(|X| ≤ Δ/2), as unimodal laws Δ apart cross halfway.

        With its edges between steps the noise has this TV exactly; the steps themselves lose some.
        """
        middle = np.array([FINE_STEPS // 2])
        law = self.inner.law
        return 1 - 2 * float(law.tail(middle + 1)[0]) - float(law.pmf(middle)[0])


@dataclass(frozen=True)
class DiscreteStaircase(DiscreteNoise):
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

    width: float | None = None

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


@dataclass(frozen=True)
class _FineStaircase(DiscreteStaircase):
    """The same with a width that need not be whole: a step on the edge has a weight between."""

    def __post_init__(self) -> None:
        SymmetricNoise.__post_init__(self)


def _step_law(n: int, epsilon: float, width: float) -> BlockLaw:
    low = math.exp(-epsilon)
    return BlockLaw(low + (1 - low) * np.clip(width - np.arange(n), 0, 1), epsilon)


_EVERY_WIDTH: Final = 2048


def optimal_width(n: int, epsilon: float) -> int:
    """Return the r in 1 … n of least variance: among all, or near the continuous optimum."""
    centre = optimal_gamma(epsilon) * n
    near = range(max(1, int(centre) - 64), min(n, int(centre) + 64) + 1)
    candidates = range(1, n + 1) if n <= _EVERY_WIDTH else near
    return min(candidates, key=lambda r: _step_law(n, epsilon, r).variance())


def optimal_gamma(epsilon: float, loss: str = "squared") -> float:
    """Return the γ of the staircase with the least expected loss at ε in nats.

    Parameters
    ----------
    epsilon : float
        ε > 0.
    loss : {"squared", "absolute"}
        The power of the noise to minimise.

    References
    ----------
    Geng and Viswanath (2014), Theorems 4 and 5: γ = 1/(1 + e^{ε/2}) for the absolute value, and
    −b/(1−b) + ((b − 2b² + 2b⁴ − b⁵)/2)^{1/3}/(1−b)² with b = e^{−ε} for the square.
    """
    b = math.exp(-epsilon)
    if loss == "absolute":
        return 1 / (1 + math.exp(epsilon / 2))
    # b − 2b² + 2b⁴ − b⁵ = b(1−b)³(1+b): in this form nothing cancels at small ε.
    return (math.cbrt(b * (1 + b) / 2) - b) / -math.expm1(-epsilon)
