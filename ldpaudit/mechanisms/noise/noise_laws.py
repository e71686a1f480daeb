"""Laws of continuous additive noise: tails and moments in closed form.

Every law is symmetric about 0 with a density that falls with |x|. Its upper tail moments
m0(x) = P(X > x), m1(x) = E(X − x)₊ and m2(x) = ½E(X − x)₊² for x ≥ 0 give every moment of the
noise after clipping.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from ldpaudit.release import FloatArray


class NoiseLaw(Protocol):
    """A symmetric law of additive noise."""

    def density(self, x: FloatArray) -> FloatArray:
        """Return the density at x."""

    def tail_moment(self, order: int, x: FloatArray) -> FloatArray:
        """Return m0, m1 or m2 at x ≥ 0."""

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n values in floating point: for simulations only."""


@dataclass(frozen=True)
class LaplaceLaw:
    """The Laplace law of a scale b: density e^{−|x|/b}/(2b)."""

    scale: float

    def density(self, x: FloatArray) -> FloatArray:
        """Return the density at x."""
        return np.asarray(np.exp(-np.abs(x) / self.scale) / (2 * self.scale))

    def tail_moment(self, order: int, x: FloatArray) -> FloatArray:
        """Return m0, m1 or m2 at x ≥ 0: b^order e^{−x/b}/2."""
        return np.asarray(0.5 * self.scale**order * np.exp(-x / self.scale))

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n values in floating point."""
        return rng.laplace(scale=self.scale, size=n)


@dataclass(frozen=True)
class StaircaseLaw:
    """The staircase law of a width Δ, ε and γ in (0, 1).

    The density is a(γ) on [0, γΔ), e^{−ε}a(γ) on [γΔ, Δ), and falls by e^{−ε} with each Δ.

    References
    ----------
    Geng and Viswanath (2014); Ghazi et al. (2023), Definition 25 (its a(γ) lacks a bracket).
    """

    width: float
    epsilon: float
    gamma: float

    @cached_property
    def _decay(self) -> float:
        return math.exp(-self.epsilon)

    @cached_property
    def _height(self) -> float:
        # Badanidiyuru et al. (2023), Definition 20: a(γ).
        inner = self.gamma + self._decay * (1 - self.gamma)
        return -math.expm1(-self.epsilon) / (2 * self.width * inner)

    def density(self, x: FloatArray) -> FloatArray:
        """Return the density at x."""
        steps = np.floor(np.abs(x) / self.width + (1 - self.gamma))
        return np.asarray(self._height * self._decay**steps)

    def tail_moment(self, order: int, x: FloatArray) -> FloatArray:
        """Return m0, m1 or m2 at x ≥ 0.

        Beyond whole periods the law repeats itself, e^{−ε} times as heavy each time.
        """
        periods = np.floor(x / self.width)
        rest = x - periods * self.width
        inner = self._within(order, rest) + self._decay * self._beyond(order, self.width - rest)
        return np.asarray(self._decay**periods * inner)

    def _within(self, order: int, start: FloatArray) -> FloatArray:
        """Return ∫ from start to Δ of (t − start)^order/order! times the density."""
        knee = self.gamma * self.width
        low = _power_integral(order, np.maximum(knee - start, 0), self._height)
        whole = _power_integral(order, self.width - start, 1.0)
        upper = whole - _power_integral(order, np.maximum(knee - start, 0), 1.0)
        return np.asarray(low + self._height * self._decay * upper)

    def _beyond(self, order: int, distance: FloatArray) -> FloatArray:
        """Return the moment of a one-sided law that starts anew ``distance`` further on."""
        zero, one, two = self._origin
        if order == 0:
            return np.full_like(distance, zero)
        if order == 1:
            return np.asarray(distance * zero + one)
        return np.asarray(0.5 * distance**2 * zero + distance * one + two)

    @cached_property
    def _origin(self) -> tuple[float, float, float]:
        """m0, m1, m2 at 0, each from m(0) = within + e^{−ε} · moments of a law one Δ on."""
        b, width, fall = self._decay, self.width, -math.expm1(-self.epsilon)
        start = np.zeros(1)
        zero = 0.5
        one = (float(self._within(1, start)[0]) + b * width * zero) / fall
        within = float(self._within(2, start)[0])
        return zero, one, (within + b * (0.5 * width**2 * zero + width * one)) / fall

    def draw(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Draw n values in floating point: sign, period, step and place in the step."""
        sign = rng.choice([-1.0, 1.0], size=n)
        period = rng.geometric(-math.expm1(-self.epsilon), size=n) - 1
        inner = self.gamma / (self.gamma + self._decay * (1 - self.gamma))
        high = rng.random(n) < inner
        place = rng.random(n)
        offset = np.where(high, self.gamma * place, self.gamma + (1 - self.gamma) * place)
        return np.asarray(sign * self.width * (period + offset))


def _power_integral(order: int, length: FloatArray, height: float) -> FloatArray:
    """Return height · ∫ from 0 to length of t^order/order! dt."""
    return np.asarray(height * length ** (order + 1) / math.factorial(order + 1))


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
