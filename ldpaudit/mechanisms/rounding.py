"""Rounding numbers to the labels of a grid, before a mechanism on the grid releases them."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.exact_sampling import Randomness, bit_source
from ldpaudit.mechanisms.parameters import check_numeric_classes
from ldpaudit.release import FloatArray, IntArray, Label

RoundingMethod = Literal["unbiased", "nearest"]


@dataclass(frozen=True)
class Rounding:
    """Round y to a neighbour on the grid; alone it protects nothing.

    Between neighbours a < y < b, ``"unbiased"`` takes b with probability (y − a)/(b − a), else a,
    so that the mean is y; ``"nearest"`` takes the nearer one, at the middle a. A mechanism with
    exact ε on the grid, applied after it, has that same ε on every label between the ends: its
    channel's rows are mixtures of the grid's rows.

    References
    ----------
    Badanidiyuru et al. (2023), section 3.1 (URR).
    """

    grid: tuple[Label, ...]
    method: RoundingMethod = "unbiased"

    def __post_init__(self) -> None:
        object.__setattr__(self, "grid", check_numeric_classes(self.grid))
        if self.method not in get_args(RoundingMethod):
            raise InputError("Labels must be rounded 'unbiased' or to the 'nearest' label.")

    @cached_property
    def points(self) -> FloatArray:
        """The grid, float64 of shape (k,)."""
        return np.asarray(self.grid, dtype=np.float64)

    def inside(self, labels: FloatArray) -> npt.NDArray[np.bool_]:
        """Return which labels lie between the ends of the grid; a missing one does not."""
        return np.asarray((labels >= self.points[0]) & (labels <= self.points[-1]))

    def neighbours(self, labels: npt.ArrayLike) -> tuple[IntArray, FloatArray]:
        """Return the lower neighbour's position and the probability of the upper one."""
        # Both of shape (n,), for labels between the ends of the grid.
        values, points = np.asarray(labels, dtype=np.float64), self.points
        outside = int((~self.inside(values)).sum())
        if outside:
            raise InputError(
                f"The labels must lie in the declared range; rows outside: {outside:,}."
            )
        lower = np.clip(np.searchsorted(points, values, side="right") - 1, 0, len(points) - 2)
        up = (values - points[lower]) / (points[lower + 1] - points[lower])
        if self.method == "nearest":
            up = (up > 0.5).astype(np.float64)
        return lower.astype(np.int32), up

    def sample(self, labels: npt.ArrayLike, rng: Randomness = None) -> IntArray:
        """Round label values to grid positions, int32 of shape (n,)."""
        lower, up = self.neighbours(labels)
        words = bit_source(rng).words(len(lower)) >> np.uint64(1)
        # ldexp is exact, and a probability of 1 gives 2⁶³, above every word.
        return lower + (words < np.ldexp(up, 63).astype(np.uint64)).astype(np.int32)

    def mean(self, table: FloatArray, labels: npt.ArrayLike) -> FloatArray:
        """Return the mean over the rounding of what a table holds for each grid point."""
        # For a channel's matrix (k, m), the channel (n, m) of "round, then release" for n labels.
        lower, up = self.neighbours(labels)
        share = up.reshape(-1, *(1,) * (table.ndim - 1))
        return np.asarray((1 - share) * table[lower] + share * table[lower + 1])
