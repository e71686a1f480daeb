"""Laplace noise on any number of a range, and the curves of the Laplace law itself."""

import math
from dataclasses import dataclass
from functools import cached_property

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import numeric_traits
from ldpaudit.mechanisms.noise.continuous import ContinuousMechanism
from ldpaudit.mechanisms.noise.discrete_laplace import DiscreteLaplace
from ldpaudit.mechanisms.noise.ranged import SymmetricNoise
from ldpaudit.mechanisms.options import NOISE


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
