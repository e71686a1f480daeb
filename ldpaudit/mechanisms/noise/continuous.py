"""Noise on any number of a range: labels are rounded to 1,024 steps, and noise is drawn in steps.

Drawn in floating point, continuous noise reveals labels through its last bits (Mironov 2012). Here
labels are rounded at random, without bias, and the discrete form of the noise is exact. Variance,
δ(ε) and Rényi divergences are within 2e-4 of those of continuous noise, and ε is the same.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.label_range import LabelRange, between
from ldpaudit.mechanisms.losses import Loss, loss
from ldpaudit.mechanisms.noise.discrete_noise import DiscreteNoise
from ldpaudit.mechanisms.noise.ranged import RangedMechanism
from ldpaudit.mechanisms.numeric.rounded_labels import Rounded
from ldpaudit.mechanisms.parameters import check_prior
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
