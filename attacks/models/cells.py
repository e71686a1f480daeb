"""Rows with identical features share a cell; where cells are few, their counts are the best model.

Counts in a cell are shrunk towards a smoother model's probabilities, as a Dirichlet prior would.
"""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import GOLDEN, scrambled
from ldpaudit.release import FeatureTable, FloatArray, IndexArray, IntArray

Hashes = npt.NDArray[np.uint64]

_ROUNDS = 60
_SETTLED = 1e-7


def hash_rows(features: FeatureTable) -> Hashes:
    """Return a 64-bit hash of each row, uint64 of shape (n,); equal rows have equal hashes.

    Missing values equal each other and −0.0 equals 0.0. With a million distinct rows two of them
    collide with probability below 3e-8.
    """
    hashes = np.zeros(len(features), dtype=np.uint64)
    for column in features.categorical.T:
        hashes = _mix(hashes, column.astype(np.int64).view(np.uint64))
    for values in features.numeric.T:
        canonical = np.where(np.isnan(values), np.float32(np.nan), values + np.float32(0.0))
        hashes = _mix(hashes, canonical.astype(np.float32).view(np.uint32).astype(np.uint64))
    return hashes


def _mix(hashes: Hashes, values: Hashes) -> Hashes:
    return scrambled(hashes * GOLDEN + values + np.uint64(0x632BE59BD9B4E019))


@dataclass(frozen=True)
class Cells:
    """The distinct rows of a table.

    Attributes
    ----------
    keys : uint64 array of shape (c,)
        Sorted hashes of the distinct rows.
    representatives : int64 array of shape (c,)
        One row of each cell.
    members : int64 array of shape (n,)
        The cell of each row.
    """

    keys: Hashes
    representatives: IndexArray
    members: IndexArray

    @classmethod
    def fit(cls, features: FeatureTable) -> "Cells":
        """Group the rows of ``features``."""
        keys, first, members = np.unique(
            hash_rows(features), return_index=True, return_inverse=True
        )
        return cls(keys, first, members)

    def __len__(self) -> int:
        """Return the number of cells c."""
        return len(self.keys)

    def take(self, rows: IndexArray) -> "Cells":
        """Return the same cells with only the given rows as members."""
        return replace(self, members=self.members[rows])

    def counts(self, codes: IntArray, n_codes: int) -> FloatArray:
        """Return how often each code occurs in each cell, float64 of shape (c, n_codes)."""
        flat = self.members * n_codes + codes
        table = np.bincount(flat, minlength=len(self) * n_codes)
        return table.reshape(len(self), n_codes).astype(np.float64)

    def locate(self, features: FeatureTable) -> IndexArray:
        """Return the cell of each row of another table, −1 for a row not seen before."""
        hashes = hash_rows(features)
        spots = np.minimum(np.searchsorted(self.keys, hashes), len(self) - 1)
        return np.where(self.keys[spots] == hashes, spots, -1)


def shrunk_cell_posteriors(
    counts: FloatArray, transition: FloatArray, base: FloatArray, weight: float
) -> FloatArray:
    """Return P(y | cell), the counts of released labels shrunk towards ``base``.

    The maximiser of the likelihood of the counts, Σ_z n_z log Σ_y p_y T[y, z], plus
    weight · Σ_y base_y log p_y, found by expectation–maximisation; with the identity channel it is
    (n_y + weight · base_y)/(n + weight).

    Parameters
    ----------
    counts : float64 array of shape (c, m)
        Released labels in each cell.
    transition : float64 array of shape (k, m)
        The channel.
    base : float64 array of shape (c, k)
        A smoother model's probabilities for each cell, above 0.
    weight : float
        How many rows the base is worth, above 0.
    """
    total = counts.sum(axis=1, keepdims=True) + weight
    current = base
    for _ in range(_ROUNDS):
        evidence = np.maximum(current @ transition, 1e-300)
        expected = current * ((counts / evidence) @ transition.T)
        update = (expected + weight * base) / total
        moved = float(np.abs(update - current).max(initial=0.0))
        current = update
        if moved < _SETTLED:
            break
    return current
