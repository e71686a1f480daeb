"""The base of mechanisms that add whole steps of noise to a label on a grid."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.losses import Loss, loss
from ldpaudit.mechanisms.noise.additive import binned_channel, check_edges
from ldpaudit.mechanisms.noise.block_law import BlockLaw, Int64Array
from ldpaudit.mechanisms.parameters import check_epsilon, check_prior
from ldpaudit.release import FloatArray, IntArray

_LARGEST_MATRIX: Final = 4096


@dataclass(frozen=True)
class DiscreteNoise(ABC):
    """y + step · X with an integer X, symmetric about 0; clipped to the labels' grid or not.

    Parameters
    ----------
    labels : LabelRange
        The labels low, low + step, …, high; n = (high − low)/step is the sensitivity in steps.
    epsilon : float
        The exact ε > 0 in nats, reached by the lowest and the highest label.
    clipped : bool
        Whether outputs are clipped to the labels' grid; the privacy is the same either way (see
        :class:`ldpaudit.mechanisms.noise.additive.AdditiveNoise`).
    """

    labels: LabelRange
    epsilon: float
    clipped: bool = False

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        if not isinstance(self.clipped, bool):
            raise InputError("The 'clipped' parameter must be true or false.")
        _ = self.labels.spacing

    @property
    @abstractmethod
    def law(self) -> BlockLaw:
        """The law of X, in steps, with blocks of n."""

    @abstractmethod
    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""

    @abstractmethod
    def rdp(self, alpha: float) -> float:
        """Return its Rényi label-DP parameter at order α > 0, in nats."""

    def declaration(self) -> Mapping[str, Any]:
        """Return the parameters of the declaration."""
        return self.labels.declaration() | {"epsilon": self.epsilon, "clipped": self.clipped}

    @cached_property
    def channel(self) -> Channel | None:
        """The k × k channel with clipping; None without, or beyond 4,096 labels."""
        k = self.labels.steps + 1
        if not self.clipped or k > _LARGEST_MATRIX:
            return None
        places = np.arange(k)
        matrix = self.law.pmf(places[None, :] - places[:, None])
        matrix[:, 0] = self.law.tail(places)
        matrix[:, -1] = self.law.tail(places[::-1])
        return Channel(matrix, self.labels.classes, self.labels.classes)

    def _finite(self) -> ExplicitChannel:
        if self.channel is None:
            raise InputError(f"Clipped noise is analysed for at most {_LARGEST_MATRIX} labels.")
        return ExplicitChannel(self.channel)

    def bias(self) -> FloatArray:
        """Return E[ŷ | y] − y for each label, float64 of shape (k,)."""
        return self._finite().bias() if self.clipped else np.zeros(self.labels.steps + 1)

    def variance(self) -> FloatArray:
        """Return Var[ŷ | y] for each label, float64 of shape (k,)."""
        if self.clipped:
            return self._finite().variance()
        return np.full(self.labels.steps + 1, self.labels.spacing**2 * self.law.variance())

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior of shape (k,).

        Squared is ½(ŷ − y)². The Poisson loss is ∞ without clipping: outputs below 0 are possible.
        """
        if self.clipped:
            return self._finite().expected_loss(prior, name)
        check_prior(prior, self.labels.steps + 1)
        loss(name, self.labels.values, self.labels.values)  # Refuses what it cannot be used with.
        if name == "poisson":
            return math.inf
        if name == "absolute":
            return self.labels.spacing * self.law.mean_absolute()
        return 0.5 * self.labels.spacing**2 * self.law.variance()

    def sample(self, labels: IntArray, rng: Randomness = None) -> Int64Array:
        """Release labels given as codes.

        Parameters
        ----------
        labels : int32 array of shape (n,)
            Grid positions 0 … k − 1 of the true labels.
        rng : numpy.random.Generator or BitSource, optional
            The source of randomness; default: the operating system.

        Returns
        -------
        int64 array of shape (n,)
            Grid positions of the outputs; outside 0 … k − 1 only without clipping.
        """
        codes = check_codes(labels, self.labels.steps + 1)
        noisy = codes + self.law.draw(len(codes), rng)
        return np.clip(noisy, 0, self.labels.steps) if self.clipped else noisy

    def release(self, labels: npt.ArrayLike, rng: Randomness = None) -> FloatArray:
        """Release label values, each on the labels' grid; float64 of shape (n,)."""
        return self.labels.at(self.sample(self.labels.codes(labels), rng))

    def binned(self, edges: Sequence[float]) -> Channel:
        """Return the channel from labels to bins of the output: post-processing, never above ε.

        Parameters
        ----------
        edges : sequence of float, increasing
            m − 1 bounds of m bins: up to and with the first, …, above the last.

        Returns
        -------
        Channel
            With outputs 0 … m − 1.
        """
        last = np.floor((check_edges(edges) - self.labels.low) / self.labels.spacing + 1e-9)
        offset = last[None, :].astype(np.int64) - np.arange(self.labels.steps + 1)[:, None]
        below = self._up_to(offset)
        above = self._up_to(-1 - offset)
        if self.clipped:
            ends, starts = last >= self.labels.steps, last < 0
            below, above = np.where(ends, 1.0, below), np.where(ends, 0.0, above)
            below, above = np.where(starts, 0.0, below), np.where(starts, 1.0, above)
        return binned_channel(below, above, tuple(self.labels.values.tolist()))

    def _up_to(self, x: Int64Array) -> FloatArray:
        """Return P(X ≤ x)."""
        low = self.law.tail(np.maximum(-x, 0))
        return np.where(x < 0, low, 1 - self.law.tail(np.maximum(x + 1, 0)))
