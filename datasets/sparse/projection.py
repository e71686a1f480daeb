"""Sparse rows as a few numbers: the most frequent features alone, all others summed with signs.

No label takes part. Each feature without a column of its own is hashed to one of b columns with a
random sign (count sketch). The squared length of a row, and so the squared distance of two rows,
keeps its mean; the relative variance is at most 2/b.

References
----------
Charikar, Chen, Farach-Colton (2002), "Finding frequent items in data streams"; Weinberger et al.
(2009), "Feature hashing for large scale multitask learning", Lemma 2 (mean and variance).
"""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.arrays import GOLDEN, scrambled
from ldpaudit.release import Float32Array, FloatArray, IndexArray, Sketch

DIMENSIONS: Final = 256
"""Columns after projection, unless asked for otherwise."""
FEWEST_DIMENSIONS, MOST_DIMENSIONS = 16, 4096
_OWN_SHARE: Final = 0.5
"""Of the columns, those of single features: the most frequent ones of the first rows."""
_LEAST: Final = 16
"""Shared columns that are kept for features that come later."""
_KEY: Final = np.uint64(0x6C64_7061_7564_6974)
_PAIRS_AT_ONCE, _MOST_PAIRS = 64, 4096
_SHARE: Final = 0.95


@dataclass(frozen=True)
class Projection:
    """A linear map of sparse rows.

    Attributes
    ----------
    own : int64 array
        Sorted indices of the features that keep a column of their own.
    buckets : int
        Columns that the other features share.
    """

    own: IndexArray
    buckets: int

    @classmethod
    def fit(cls, matrix: Any, dimensions: int) -> "Projection":
        """Choose the features with columns of their own by how many rows have them.

        Parameters
        ----------
        matrix : scipy.sparse.csr_matrix of shape (n, indices)
            The first rows.
        dimensions : int
            Columns in all.
        """
        present, counts = np.unique(matrix.indices, return_counts=True)
        order = np.argsort(-counts, kind="stable")[: int(_OWN_SHARE * dimensions)]
        own = np.sort(present[order]).astype(np.int64)
        rest = dimensions - len(own)
        return cls(own, rest if len(present) > len(own) else min(rest, max(len(own), _LEAST)))

    @property
    def dimensions(self) -> int:
        """The number of columns."""
        return len(self.own) + self.buckets

    def transform(self, matrix: Any) -> Float32Array:
        """Return the rows of a CSR matrix, float32 of shape (n, dimensions)."""
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        columns, signs = self._places(matrix.indices)
        size = matrix.shape[0] * self.dimensions
        cells = np.bincount(
            rows * self.dimensions + columns, weights=matrix.data * signs, minlength=size
        )
        return cells.reshape(matrix.shape[0], self.dimensions).astype(np.float32)

    def _places(self, indices: npt.NDArray[Any]) -> tuple[IndexArray, FloatArray]:
        """Return the column and the sign of each index."""
        hashed = _hashed(indices.astype(np.uint64))
        columns = len(self.own) + (hashed % np.uint64(self.buckets)).astype(np.int64)
        signs = 1.0 - 2.0 * (hashed >> np.uint64(63)).astype(np.float64)
        if len(self.own):
            spots = np.minimum(np.searchsorted(self.own, indices), len(self.own) - 1)
            single = self.own[spots] == indices
            columns, signs = np.where(single, spots, columns), np.where(single, 1.0, signs)
        return columns, signs


def _hashed(indices: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return scrambled((indices + _KEY) * GOLDEN)


@dataclass
class Distortion:
    """Compares distances of sampled pairs of rows before and after a projection."""

    errors: list[FloatArray] = field(default_factory=list)
    pairs: int = 0

    def add(self, matrix: Any, projected: Float32Array, rng: np.random.Generator) -> None:
        """Sample pairs among the rows of a batch."""
        amount = min(_PAIRS_AT_ONCE, _MOST_PAIRS - self.pairs)
        if matrix.shape[0] < 2 or amount < 1:
            return
        one, other = rng.integers(0, matrix.shape[0], size=(2, amount))
        between = matrix[one] - matrix[other]
        before = np.asarray(between.multiply(between).sum(axis=1)).ravel()
        after = ((projected[one].astype(np.float64) - projected[other]) ** 2).sum(axis=1)
        apart = before > 0
        self.errors.append(np.abs(after[apart] / before[apart] - 1))
        self.pairs += int(apart.sum())

    def sketch(self, features: int, single: int, shared: int) -> Sketch:
        """Return what a projection on so many columns made of the features."""
        errors = np.concatenate(self.errors) if self.errors else np.zeros(0)
        return Sketch(
            features=features,
            single=single,
            shared=shared,
            share=_SHARE,
            error=float(np.quantile(errors, _SHARE)) if len(errors) else None,
            pairs=len(errors),
        )
