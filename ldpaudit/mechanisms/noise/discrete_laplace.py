"""The discrete Laplace mechanism (two-sided geometric noise)."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.design import numeric_traits
from ldpaudit.mechanisms.noise.block_law import BlockLaw
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.options import STEPS
from ldpaudit.release import FloatArray


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

    @cached_property
    def _inside(self) -> tuple[FloatArray, FloatArray]:
        """log P(X = x) and log P(X = x − n) for 0 < x < n."""
        x = np.arange(1.0, self.labels.steps)
        step = self.epsilon / self.labels.steps
        return self._log_peak - step * x, self._log_peak - step * x[::-1]

    @property
    def _log_peak(self) -> float:
        return math.log(math.tanh(self.epsilon / self.labels.steps / 2))

    @property
    def _outside(self) -> float:
        """P(X ≤ 0) = 1/(1 + q): there the two extreme labels differ by e^ε."""
        return 1 / (1 + math.exp(-self.epsilon / self.labels.steps))

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        log_p, log_q = self._inside
        outside = -math.expm1(min(epsilon - self.epsilon, 0)) * self._outside
        inside = np.exp(log_p) * -np.expm1(np.minimum(epsilon + log_q - log_p, 0))
        return float(outside + inside.sum())

    def rdp(self, alpha: float) -> float:
        """Return the Rényi divergence of the two extreme labels at order α > 0, in nats.

        The sum over the integers: two geometric tails in closed form, and n − 1 terms between.
        """
        if not alpha > 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        if math.isinf(alpha):
            return self.epsilon
        log_p, log_q = self._inside
        if alpha == 1:
            tails = self._outside * self.epsilon * -math.expm1(-self.epsilon)
            return float(tails + np.sum(np.exp(log_p) * (log_p - log_q)))
        side = math.log(self._outside)
        terms = np.concatenate(
            [
                alpha * log_p + (1 - alpha) * log_q,
                [side + (alpha - 1) * self.epsilon, side - alpha * self.epsilon],
            ]
        )
        top = float(terms.max())
        return max((top + math.log(np.exp(terms - top).sum())) / (alpha - 1), 0.0)
