"""The continuous Laplace mechanism."""

import math
from dataclasses import dataclass

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import numeric_traits
from ldpaudit.mechanisms.noise.additive import AdditiveNoise
from ldpaudit.mechanisms.noise.continuous_release import laplace_release
from ldpaudit.mechanisms.noise.noise_laws import LaplaceLaw
from ldpaudit.mechanisms.options import NOISE
from ldpaudit.release import FloatArray


@dataclass(frozen=True)
class Laplace(AdditiveNoise):
    """y + X with X of density e^{−|x|/b}/(2b) and scale b = (high − low)/ε.

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

    @property
    def law(self) -> LaplaceLaw:
        """The law of the noise."""
        return LaplaceLaw(self.scale)

    def delta(self, epsilon: float) -> float:
        """Return δ(ε') = 1 − e^{(ε' − ε)/2} below the mechanism's ε, else 0."""
        return max(-math.expm1((epsilon - self.epsilon) / 2), 0.0)

    def rdp(self, alpha: float) -> float:
        """Return the Rényi divergence of the two extreme labels at order α > 0, in nats.

        References
        ----------
        Mironov (2017), Table II, with λ = 1/ε.
        """
        return laplace_rdp(alpha, self.epsilon)

    def _exact_release(self, values: FloatArray) -> FloatArray:
        return self._clip(laplace_release(values, self.scale, self.labels.width))


def laplace_rdp(alpha: float, epsilon: float) -> float:
    """Return D_α of two Laplace laws whose centres are ε scales apart, in nats, α > 0."""
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
