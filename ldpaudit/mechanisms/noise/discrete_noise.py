"""The base of mechanisms that add whole steps of noise to a label on a grid."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.explicit import ExplicitChannel
from ldpaudit.mechanisms.finite import check_codes
from ldpaudit.mechanisms.interface import NumericMechanism
from ldpaudit.mechanisms.label_range import between
from ldpaudit.mechanisms.losses import Loss, loss
from ldpaudit.mechanisms.noise.block_law import BlockLaw, Int64Array
from ldpaudit.mechanisms.noise.ranged import SymmetricNoise
from ldpaudit.mechanisms.parameters import check_prior
from ldpaudit.release import FloatArray, IntArray

_LARGEST_MATRIX: Final = 4096


class DiscreteNoise(SymmetricNoise):
    """y + step · X with an integer X, on a grid of n + 1 labels."""

    default_step = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.labels.spacing

    @property
    @abstractmethod
    def law(self) -> BlockLaw:
        """The law of X, in steps, with blocks of n."""

    @property
    def output_step(self) -> float:
        """The step of the labels."""
        return self.labels.spacing

    @cached_property
    def _between(self) -> tuple[FloatArray, FloatArray]:
        """log P(X = x), log P(X = x − n) for 0 < x < n: else the extreme labels differ by e^ε."""
        logs = np.log(self.law.pmf(np.arange(1, self.labels.steps)))
        return logs, logs[::-1]

    @cached_property
    def _outside(self) -> float:
        return float(self.law.tail(np.zeros(1, dtype=np.int64))[0])

    def delta(self, epsilon: float) -> float:
        """Return the smallest δ for which it is (ε, δ)-label-DP, ε ≥ 0 in nats."""
        log_p, log_q = self._between
        outside = -math.expm1(min(epsilon - self.epsilon, 0)) * self._outside
        inside = np.exp(log_p) * -np.expm1(np.minimum(epsilon + log_q - log_p, 0))
        return float(outside + inside.sum())

    def rdp(self, alpha: float) -> float:
        """Return the Rényi divergence of the two extreme labels at order α > 0, in nats.

        The sum over the integers: two tails in closed form, and n − 1 terms between.
        """
        if not alpha > 0:
            raise InputError(f"The order alpha must be above 0, got {alpha}.")
        if math.isinf(alpha):
            return self.epsilon
        log_p, log_q = self._between
        if alpha == 1:
            tails = self._outside * self.epsilon * -math.expm1(-self.epsilon)
            return float(tails + np.sum(np.exp(log_p) * (log_p - log_q)))
        side = math.log(self._outside)
        ends = [side + (alpha - 1) * self.epsilon, side - alpha * self.epsilon]
        terms = np.concatenate([alpha * log_p + (1 - alpha) * log_q, ends])
        top = float(terms.max())
        return max((top + math.log(np.exp(terms - top).sum())) / (alpha - 1), 0.0)

    @property
    def output_values(self) -> FloatArray | None:
        """The grid with clipping; None without, where any step may occur."""
        return self.labels.values if self.clipped else None

    def bin_edges(self, bins: int) -> FloatArray:
        """Return bounds halfway between steps, with a bin beyond each end of the grid."""
        if self.clipped:
            return NumericMechanism.bin_edges(self, bins)
        grid = self.labels
        steps = grid.at(np.arange(-1, grid.steps + 2))
        half = grid.spacing / 2
        return between(steps, np.linspace(grid.low + half, grid.high - half, bins - 1))

    @cached_property
    def channel(self) -> Channel | None:
        """The k × k channel with clipping; None without, or for more than 4,096 labels."""
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

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        """Return E[ŷ | y] − y for all labels, or the given ones, float64 of shape (k,)."""
        k = self.labels.steps + 1 if labels is None else len(labels)
        return self._finite().bias(labels) if self.clipped else np.zeros(k)

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        """Return Var[ŷ | y] for all labels, or the given ones, float64 of shape (k,)."""
        if self.clipped:
            return self._finite().variance(labels)
        k = self.labels.steps + 1 if labels is None else len(labels)
        return np.full(k, self.labels.spacing**2 * self.law.variance())

    def expected_loss(self, prior: Sequence[float] | FloatArray, name: Loss = "squared") -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior of shape (k,).

        Squared is ½(ŷ − y)². The Poisson loss is ∞ without clipping, as outputs can be below 0.
        """
        if self.clipped:
            return self._finite().expected_loss(prior, name)
        check_prior(prior, self.labels.steps + 1)
        loss(name, self.labels.values, self.labels.values)  # Checks the labels.
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

    def likelihood(self, released: FloatArray, labels: FloatArray) -> FloatArray:
        """Return P(released | label) at the nearest step, float64 of shape (n, g)."""
        grid, law = self.labels, self.law
        places = np.rint((released - grid.low) / grid.spacing).astype(np.int64)
        truth = np.rint((labels - grid.low) / grid.spacing).astype(np.int64)
        result = law.pmf(places[:, None] - truth[None, :])
        if self.clipped:
            result[places <= 0] = law.tail(truth)
            result[places >= grid.steps] = law.tail(grid.steps - truth)
        return np.asarray(result)

    def binned(self, edges: Sequence[float], labels: FloatArray | None = None) -> Channel:
        """Return the channel from labels to bins, as :meth:`NumericMechanism.binned`."""
        last = np.floor((check_edges(edges) - self.labels.low) / self.labels.spacing + 1e-9)
        values = self.labels.values if labels is None else labels
        places = np.rint((values - self.labels.low) / self.labels.spacing).astype(np.int64)
        offset = last[None, :].astype(np.int64) - places[:, None]
        below = self._up_to(offset)
        above = self._up_to(-1 - offset)
        if self.clipped:
            ends, starts = last >= self.labels.steps, last < 0
            below, above = np.where(ends, 1.0, below), np.where(ends, 0.0, above)
            below, above = np.where(starts, 0.0, below), np.where(starts, 1.0, above)
        return binned_channel(below, above, tuple(values.tolist()))

    def _up_to(self, x: Int64Array) -> FloatArray:
        """Return P(X ≤ x)."""
        low = self.law.tail(np.maximum(-x, 0))
        return np.where(x < 0, low, 1 - self.law.tail(np.maximum(x + 1, 0)))


def check_edges(edges: Sequence[float]) -> FloatArray:
    """Return the bounds of bins: finite and increasing, at least one."""
    cuts = np.asarray(edges, dtype=np.float64)
    if cuts.ndim != 1 or not len(cuts) or not np.isfinite(cuts).all() or (np.diff(cuts) <= 0).any():
        raise InputError("The bins' bounds must be finite numbers in increasing order.")
    return cuts


def binned_channel(below: FloatArray, above: FloatArray, labels: tuple[float, ...]) -> Channel:
    """Build a channel from P(ŷ ≤ edge) and P(ŷ > edge), both of shape (k, m − 1).

    Each bin's probability is a difference of the smaller of the two, so far tails keep their
    relative precision.
    """
    left = np.diff(below, axis=1)
    right = -np.diff(above, axis=1)
    inner = np.where(below[:, 1:] <= 0.5, left, right)
    matrix = np.column_stack([below[:, :1], inner, above[:, -1:]])
    return Channel(np.clip(matrix, 0.0, None), labels, tuple(range(matrix.shape[1])))
