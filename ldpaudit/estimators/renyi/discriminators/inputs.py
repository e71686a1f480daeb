"""Rows of a discriminator for models that take numbers only."""

from dataclasses import dataclass

import numpy as np

from ldpaudit.modelling.encoding import DesignMatrix, LevelsByColumn, Limits
from ldpaudit.release import BoolArray, FeatureTable, Float32Array

_LIMITS = Limits(LevelsByColumn(40), constants_marked=False)


@dataclass(frozen=True)
class Inputs:
    """A design matrix, learnt on fitting rows.

    Attributes
    ----------
    categorical : bool array of shape (d,)
        The columns that hold codes.
    design : DesignMatrix
    """

    categorical: BoolArray
    design: DesignMatrix

    @classmethod
    def fit(cls, rows: Float32Array, categorical: BoolArray) -> "Inputs":
        """Learn means, scales and frequent codes."""
        return cls(categorical, DesignMatrix.fit(_table(rows, categorical), _LIMITS))

    def transform(self, rows: Float32Array) -> Float32Array:
        """Return the matrix, float32 of shape (n, width)."""
        return self.design.transform(_table(rows, self.categorical))


def _table(rows: Float32Array, categorical: BoolArray) -> FeatureTable:
    codes = np.nan_to_num(rows[:, categorical], nan=-1).astype(np.int32)
    sizes = tuple((codes.max(axis=0, initial=-1) + 1).tolist())
    # Columns of codes become constants, so that numeric columns keep their places.
    numeric = np.where(categorical, np.float32(0), rows)
    return FeatureTable(numeric, codes, sizes, rows.shape[1])
