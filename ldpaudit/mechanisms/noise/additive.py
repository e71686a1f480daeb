"""The base of mechanisms that add continuous noise to a numeric label."""

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.noise.continuous_release import REASON, simulation_generator
from ldpaudit.mechanisms.noise.noise_laws import NoiseLaw
from ldpaudit.mechanisms.noise.ranged import SymmetricNoise
from ldpaudit.mechanisms.parameters import check_prior
from ldpaudit.release import FloatArray

_ROUNDING: Final = 1e-6
"""How near an end of the range an output counts as clipped, as a share of the range."""


class AdditiveNoise(SymmetricNoise):
    """y + X with continuous noise X."""

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The law of the noise."""

    @property
    def channel(self) -> None:
        """None: the outputs are real numbers; :meth:`binned` gives a channel."""
        return None

    @classmethod
    def applied_range(cls, labels: LabelRange) -> LabelRange:
        """Return the range unchanged: any number in it is a label."""
        return labels

    def _distances(self, labels: FloatArray | None) -> tuple[FloatArray, FloatArray]:
        values = self._values(labels)
        return values - self.labels.low, self.labels.high - values

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        """Return E[ŷ | y] − y of the labels (default: the grid's), float64 of shape (k,)."""
        below, above = self._distances(labels)
        if not self.clipped:
            return np.zeros_like(below)
        return self.law.tail_moment(1, below) - self.law.tail_moment(1, above)

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        """Return Var[ŷ | y], as :meth:`bias`."""
        return 2 * self._squared(labels) - self.bias(labels) ** 2

    def _squared(self, labels: FloatArray | None) -> FloatArray:
        below, above = self._distances(labels)
        return self._half_square(below) + self._half_square(above)

    def _half_square(self, room: FloatArray) -> FloatArray:
        """Return ½E[min(X₊, room)²]; without clipping ½E[X₊²]."""
        whole = self.law.tail_moment(2, np.zeros_like(room))
        if not self.clipped:
            return whole
        tail = self.law.tail_moment
        # X² = min(X, r)² + 2r(X − r)₊ + (X − r)₊² for X ≥ 0.
        return np.asarray(whole - tail(2, room) - room * tail(1, room))

    def _absolute(self, labels: FloatArray | None) -> FloatArray:
        below, above = self._distances(labels)
        whole = 2 * self.law.tail_moment(1, np.zeros_like(below))
        if not self.clipped:
            return whole
        return whole - self.law.tail_moment(1, below) - self.law.tail_moment(1, above)

    def expected_loss(
        self,
        prior: Sequence[float] | FloatArray,
        name: Loss = "squared",
        labels: FloatArray | None = None,
    ) -> float:
        """Return E[ℓ(ŷ, y)] for y drawn from a prior.

        Parameters
        ----------
        prior : float64 array of shape (k,)
            The probabilities of the labels, summing to 1.
        name : {"squared", "absolute", "poisson"}
            The loss; squared is ½(ŷ − y)². The Poisson loss is ∞ where an output at or below 0
            is possible (for a label of 0, at least below 0).
        labels : float64 array of shape (k,), optional
            Label values; default: all labels of the grid.
        """
        values = self._values(labels)
        weights = check_prior(prior, len(values))
        used = weights > 0
        return float(weights[used] @ self._losses(name, values[used]))

    def _losses(self, name: Loss, values: FloatArray) -> FloatArray:
        if name == "squared":
            return self._squared(values)
        if name == "absolute":
            return self._absolute(values)
        if name != "poisson":
            raise InputError(f"The loss must be squared, absolute or poisson. Got {name!r}.")
        return np.array([self._poisson(float(y)) for y in values])

    def _poisson(self, y: float) -> float:
        if y < 0:
            raise InputError("The Poisson log loss must be used with labels that are not negative.")
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
        slack = _ROUNDING * self.labels.width
        atoms = self.atoms(labels)
        result[released <= self.labels.low + slack] = atoms[:, 0]
        result[released >= self.labels.high - slack] = atoms[:, 1]
        return result

    def density(self, outputs: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the density of outputs of shape (m,) under labels of shape (k,), shape (k, m).

        With clipping the density is 0 outside the range, and the ends are atoms.
        """
        values = self.labels.check(labels)
        density = self.law.density(np.asarray(outputs)[None, :] - values[:, None])
        if not self.clipped:
            return density
        inside = (outputs > self.labels.low) & (outputs < self.labels.high)
        return np.where(inside[None, :], density, 0.0)

    def atoms(self, labels: FloatArray) -> FloatArray:
        """Return P(ŷ = low) and P(ŷ = high), float64 of shape (k, 2); zeros without clipping."""
        below, above = self._distances(labels)
        if not self.clipped:
            return np.zeros((len(below), 2))
        return np.column_stack([self.law.tail_moment(0, below), self.law.tail_moment(0, above)])

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

    def release(
        self, labels: npt.ArrayLike, rng: Randomness = None, *, simulation: bool = False
    ) -> FloatArray:
        """Release label values.

        Parameters
        ----------
        labels : array of shape (n,)
            True labels inside the range.
        rng : numpy.random.Generator
            Needed for a simulation.
        simulation : bool
            Whether floating-point noise is acceptable because nothing will be released.

        Returns
        -------
        float64 array of shape (n,)

        Raises
        ------
        InputError, MissingDependencyError
            Without ``simulation``, if there is no exact sampler for this noise.
        """
        values = self.labels.check(labels)
        if simulation:
            noisy = values + self.law.draw(len(values), simulation_generator(rng))
        else:
            noisy = self._exact_release(values)
        return np.clip(noisy, self.labels.low, self.labels.high) if self.clipped else noisy

    def _exact_release(self, values: FloatArray) -> FloatArray:  # noqa: ARG002
        raise InputError(REASON)


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
