"""Outcomes of rows that depend on a random number, if there is one to be guessed."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.arrays import FloatArray, IndexArray


@dataclass(frozen=True)
class Target:
    """Outcomes of n rows in their order.

    Attributes
    ----------
    values : float64 array of shape (n,)
        In [0, 1]. Without a seed those of one stratum are independent and alike.
    strata : int64 array of shape (n,)
        Codes of rows that are alike, from 0.
    folds : int64 array of shape (n,) or None
        Codes of rows that are tested apart, where values of different folds depend on each other.
    """

    values: FloatArray
    strata: IndexArray
    folds: IndexArray | None = None

    def first(self, rows: int) -> "Target":
        """Return the outcomes of the first rows."""
        folds = None if self.folds is None else self.folds[:rows]
        return Target(self.values[:rows], self.strata[:rows], folds)

    @property
    def centred(self) -> FloatArray:
        """The values less the mean of their stratum."""
        result: FloatArray = centred(self.values[None], self.strata)[0]
        return result

    @property
    def variance(self) -> float:
        """The mean variance within strata."""
        return float(np.mean(self.centred**2))

    @property
    def parts(self) -> list[IndexArray]:
        """The rows of each fold."""
        if self.folds is None:
            return [np.arange(len(self.values))]
        return [np.flatnonzero(self.folds == fold) for fold in np.unique(self.folds)]


def centred(numbers: FloatArray, strata: IndexArray) -> FloatArray:
    """Return numbers of shape (s, n) less their means over the rows of each stratum."""
    _, codes = np.unique(strata, return_inverse=True)
    sizes = np.bincount(codes)
    means = np.stack([np.bincount(codes, row) for row in numbers]) / sizes
    result: FloatArray = numbers - means[:, codes]
    return result
