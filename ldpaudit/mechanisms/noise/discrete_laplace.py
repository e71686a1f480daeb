"""The discrete Laplace mechanism (two-sided geometric noise)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpaudit.mechanisms.design import numeric_traits
from ldpaudit.mechanisms.noise.block_law import BlockLaw
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.options import STEPS


@dataclass(frozen=True)
class DiscreteLaplace(DiscreteNoise):
    """y + step · X with P(X = x) ∝ e^{−|x| step/b} and scale b = (high − low)/ε.

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
    Ghosh et al. (2009); Ghazi et al. (2023), Definition 22.

    Examples
    --------
    >>> from ldpaudit.mechanisms import DiscreteLaplace, LabelRange
    >>> DiscreteLaplace(LabelRange(0, 10, 1), epsilon=2.0).scale
    5.0
    """

    traits = numeric_traits("discrete-laplace", "discrete Laplace noise", STEPS, "range")
    settings = ("scale", "clipped")

    @property
    def scale(self) -> float:
        """The scale b of the noise, in units of the label."""
        return self.labels.width / self.epsilon

    @property
    def description(self) -> str:
        """Both parametrisations."""
        clip = "clipped to the labels' grid" if self.clipped else "not clipped"
        return (
            f"discrete Laplace noise of scale {self.scale:.6g} on {self.labels.steps + 1} labels, "
            f"{clip}: ε = {self.epsilon:.6g} nats"
        )

    @cached_property
    def law(self) -> BlockLaw:
        """The law of X, in steps."""
        n = self.labels.steps
        return BlockLaw(np.exp(-self.epsilon / n * np.arange(n)), self.epsilon)
