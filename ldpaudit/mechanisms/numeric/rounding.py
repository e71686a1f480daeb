"""Unbiased randomized rounding: a continuous label to one of its two neighbours on a grid."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.exact_sampling import Randomness, bit_source
from ldpaudit.mechanisms.finite import FiniteMechanism
from ldpaudit.mechanisms.parameters import check_numeric_classes
from ldpaudit.release import FloatArray, IntArray, Label


@dataclass(frozen=True)
class UnbiasedRounding:
    """Round y to a neighbour on the grid so that the mean is y; alone it protects nothing.

    Between neighbours a < y < b it returns b with probability (y − a)/(b − a), else a.

    Parameters
    ----------
    grid : tuple
        The k ≥ 2 grid points, increasing: the labels of the mechanism that follows.

    Notes
    -----
    A mechanism with exact ε on the grid, applied after it, has that same ε on every label between
    the ends: its channel's rows are mixtures of the grid's rows.

    References
    ----------
    Badanidiyuru et al. (2023), section 3.1 (URR).
    """

    grid: tuple[Label, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_numeric_classes(self.grid))

    @cached_property
    def _points(self) -> FloatArray:
        return np.asarray(self.grid, dtype=np.float64)

    def neighbours(self, labels: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
        """Return the lower neighbour's position and the probability of the upper one.

        Parameters
        ----------
        labels : array of shape (n,)
            Numbers between the ends of the grid.

        Returns
        -------
        int32 array of shape (n,), float64 array of shape (n,)
        """
        values, points = np.asarray(labels, dtype=np.float64), self._points
        inside = (values >= points[0]) & (values <= points[-1])
        if not inside.all():
            raise InputError(
                f"The labels must lie in the declared range; {int((~inside).sum())} row(s) do not."
            )
        lower = np.clip(np.searchsorted(points, values, side="right") - 1, 0, len(points) - 2)
        up = (values - points[lower]) / (points[lower + 1] - points[lower])
        return lower.astype(np.int32), up

    def sample(self, labels: npt.ArrayLike, rng: Randomness = None) -> IntArray:
        """Round label values to grid positions, int32 of shape (n,)."""
        lower, up = self.neighbours(labels)
        words = bit_source(rng).words(len(lower)) >> np.uint64(1)
        # ldexp is exact, and a probability of 1 gives 2⁶³, above every word.
        return lower + (words < np.ldexp(up, 63).astype(np.uint64)).astype(np.int32)

    def variance(self, labels: npt.ArrayLike) -> FloatArray:
        """Return the variance (y − a)(b − y) that rounding adds to each label, float64 (n,)."""
        lower, up = self.neighbours(labels)
        gap = self._points[lower + 1] - self._points[lower]
        return np.asarray(up * (1 - up) * gap**2)

    def before(
        self, mechanism: FiniteMechanism, labels: Sequence[float] | FloatArray
    ) -> FloatArray:
        """Return the rows of the channel "round, then release" for given labels.

        Parameters
        ----------
        mechanism : FiniteMechanism
            With the grid as its labels.
        labels : float64 array of shape (n,)
            Numbers between the ends of the grid.

        Returns
        -------
        float64 array of shape (n, m)
        """
        if tuple(mechanism.channel.classes) != self.grid:
            raise InputError("The mechanism after rounding must have the grid as its labels.")
        lower, up = self.neighbours(labels)
        matrix = mechanism.channel.matrix
        return np.asarray((1 - up)[:, None] * matrix[lower] + up[:, None] * matrix[lower + 1])

    def release(
        self, labels: npt.ArrayLike, mechanism: FiniteMechanism, rng: Randomness = None
    ) -> FloatArray:
        """Round and release label values, float64 of shape (n,)."""
        if tuple(mechanism.channel.classes) != self.grid:
            raise InputError("The mechanism after rounding must have the grid as its labels.")
        return mechanism.output_values[mechanism.sample(self.sample(labels, rng), rng)]
