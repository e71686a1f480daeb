"""The base of mechanisms that add continuous noise to a numeric label."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np

from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.noise.continuous import ContinuousMechanism, binned_channel, check_edges
from ldpaudit.mechanisms.noise.noise_laws import NoiseLaw
from ldpaudit.mechanisms.noise.ranged import SymmetricNoise
from ldpaudit.release import FloatArray

_ROUNDING: Final = 1e-6
"""How near an end of the range an output counts as clipped, as a share of the range."""


class AdditiveNoise(SymmetricNoise, ContinuousMechanism):
    """y + X with continuous noise X."""

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The law of the noise."""

    @classmethod
    def applied_range(cls, labels: LabelRange) -> LabelRange:
        """Return the range unchanged: any number in it is a label."""
        return labels

    def _deviations(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        below, above = values - self.labels.low, self.labels.high - values
        tail = self.law.tail_moment
        mean, absolute = np.zeros_like(below), 2 * tail(1, np.zeros_like(below))
        if self.clipped:
            mean = tail(1, below) - tail(1, above)
            absolute = absolute - tail(1, below) - tail(1, above)
        return mean, absolute, self._half_square(below) + self._half_square(above)

    def _half_square(self, room: FloatArray) -> FloatArray:
        """Return ½E[min(X₊, room)²]; without clipping ½E[X₊²]."""
        tail = self.law.tail_moment
        whole = tail(2, np.zeros_like(room))
        if not self.clipped:
            return whole
        # X² = min(X, r)² + 2r(X − r)₊ + (X − r)₊² for X ≥ 0.
        return np.asarray(whole - tail(2, room) - room * tail(1, room))

    def _poisson(self, y: float) -> float:
        low, high = self.labels.low, self.labels.high
        if not self.clipped or low < 0 or (low == 0 and y > 0):
            return math.inf
        mean = y + float(self.bias(np.array([y]))[0])
        if y == 0:
            return mean
        from scipy.integrate import quad

        # E log ŷ = log high − ∫ P(ŷ ≤ x)/x dx, integrated to 1e-10 between the law's knees.
        knees = [x for knee in self._knees for x in (y - knee, y + knee) if low < x < high]
        below, _ = quad(
            lambda x: float(self._cdf(np.array([x - y]))[0]) / x,
            low,
            high,
            points=knees or None,
            epsabs=1e-12,
            epsrel=1e-10,
            limit=200,
        )
        return mean - y * (math.log(high) - below)

    @property
    def _knees(self) -> tuple[float, ...]:
        return (0.0,)

    def _cdf(self, x: FloatArray) -> FloatArray:
        tail = self.law.tail_moment(0, np.abs(x))
        return np.where(x < 0, tail, 1 - tail)

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        """Return densities, or probabilities at the ends of a clipped range, of shape (n, g)."""
        result = np.array(self.density(released, labels).T)
        if not self.clipped:
            return result
        slack, tail = _ROUNDING * self.labels.width, self.law.tail_moment
        result[released <= self.labels.low + slack] = tail(0, labels - self.labels.low)
        result[released >= self.labels.high - slack] = tail(0, self.labels.high - labels)
        return result

    def density(self, outputs: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the density of outputs under labels, shape (k, m), without the atoms."""
        values = self.labels.check(labels)
        density = self.law.density(np.asarray(outputs)[None, :] - values[:, None])
        if not self.clipped:
            return density
        inside = (outputs > self.labels.low) & (outputs < self.labels.high)
        return np.where(inside[None, :], density, 0.0)

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        """Return the channel from labels to bins, as :meth:`NumericMechanism.binned`."""
        cuts, values = check_edges(edges), self._values(labels)
        offset = cuts[None, :] - values[:, None]
        upper = self.law.tail_moment(0, np.abs(offset))
        below, above = (
            np.where(offset < 0, upper, 1 - upper),
            np.where(offset < 0, 1 - upper, upper),
        )
        if self.clipped:
            ends, starts = cuts >= self.labels.high, cuts < self.labels.low
            below, above = np.where(ends, 1.0, below), np.where(ends, 0.0, above)
            below, above = np.where(starts, 0.0, below), np.where(starts, 1.0, above)
        return binned_channel(below, above, tuple(values.tolist()))

    def _simulated(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        return self._clip(values + self.law.draw(len(values), rng))

    def _clip(self, noisy: FloatArray) -> FloatArray:
        return np.clip(noisy, self.labels.low, self.labels.high) if self.clipped else noisy
