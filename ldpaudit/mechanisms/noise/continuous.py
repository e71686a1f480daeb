"""The base of mechanisms on a range whose outputs are real numbers."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.exact_sampling import Randomness
from ldpaudit.mechanisms.losses import Loss
from ldpaudit.mechanisms.noise.continuous_release import REASON, simulation_generator
from ldpaudit.mechanisms.noise.ranged import RangedMechanism
from ldpaudit.mechanisms.parameters import check_prior
from ldpaudit.release import FloatArray


class ContinuousMechanism(RangedMechanism):
    """A mechanism with real outputs; labels are by default all labels of the grid."""

    @property
    def channel(self) -> None:
        """None: the outputs are real numbers; :meth:`binned` gives a channel."""
        return None

    @abstractmethod
    def density(self, outputs: FloatArray, labels: FloatArray) -> FloatArray:
        """Return the density of outputs of shape (m,) under labels of shape (k,), shape (k, m).

        With clipping the density is 0 outside the range, and the ends are atoms.
        """

    @abstractmethod
    def _deviations(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return E(ŷ − y), E|ŷ − y| and ½E(ŷ − y)² of labels, each float64 of shape (k,)."""

    @abstractmethod
    def _poisson(self, y: float) -> float:
        """Return the expected Poisson log loss of a label."""

    @abstractmethod
    def _simulated(self, values: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return released numbers drawn in floating point."""

    def bias(self, labels: FloatArray | None = None) -> FloatArray:
        """Return E[ŷ | y] − y, float64 of shape (k,)."""
        return self._deviations(self._values(labels))[0]

    def variance(self, labels: FloatArray | None = None) -> FloatArray:
        """Return Var[ŷ | y], float64 of shape (k,)."""
        mean, _, half_square = self._deviations(self._values(labels))
        return np.asarray(2 * half_square - mean**2)

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
        weights = check_prior(prior, len(values))
        used = weights > 0
        return float(weights[used] @ self._losses(name, values[used]))

    def _losses(self, name: Loss, values: FloatArray) -> FloatArray:
        if name == "squared":
            return self._deviations(values)[2]
        if name == "absolute":
            return self._deviations(values)[1]
        if name != "poisson":
            raise InputError(f"The loss must be squared, absolute or poisson. Got {name!r}.")
        if values.min(initial=0) < 0:
            raise InputError("The Poisson log loss must be used with labels that are not negative.")
        return np.array([self._poisson(float(y)) for y in values])

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
            return self._simulated(values, simulation_generator(rng))
        return self._exact_release(values)

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
