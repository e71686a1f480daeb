"""Wide tables are screened before a model learns: the columns that go with its labels are kept.

A screen sees the rows that its model is fitted on, and their labels, and no other rows: what is
scored later is as new to it as it is to the model.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ldpaudit.modelling.association import association, strongest
from ldpaudit.modelling.encoding import BoostingMatrix, DesignMatrix
from ldpaudit.modelling.values import projected
from ldpaudit.release import BoolArray, FeatureTable, Float32Array

MOST_COLUMNS: Final = 2_048
"""Columns that any model learns from: beyond, those that go most clearly with its labels."""
TREE_COLUMNS: Final = 256
"""Columns that boosting learns from: its time grows with them, and so do its chance finds."""
_NARROW: Final = 64


@dataclass(frozen=True)
class Screen:
    """The columns that a model learns from.

    Attributes
    ----------
    columns : tuple of int, or None
        Array columns, the numeric ones first, in order; None: all.
    """

    columns: tuple[int, ...] | None = None

    @classmethod
    def fit(cls, features: FeatureTable, codes: npt.NDArray[Any], most: int) -> "Screen":
        """Keep the ``most`` columns that go most clearly with the codes of the same rows."""
        if features.width <= most:
            return cls()
        return cls(tuple(strongest(association(features, codes), most).tolist()))

    def transform(self, features: FeatureTable) -> FeatureTable:
        """Return the table of the kept columns."""
        return features if self.columns is None else projected(features, self.columns)


@dataclass(frozen=True)
class ScreenedDesign:
    """A design on the kept columns, as a design on the whole table."""

    screen: Screen
    design: Any

    @property
    def width(self) -> int:
        """The number of columns of the matrix."""
        return int(self.design.width)

    def categorical(self) -> BoolArray:
        """Return which columns of the matrix are categorical, where the design is for boosting."""
        return np.asarray(self.design.categorical())

    def transform(self, features: FeatureTable) -> Any:
        """Return the matrix of the rows."""
        return self.design.transform(self.screen.transform(features))


def screened(
    kind: type[DesignMatrix] | type[BoostingMatrix],
    features: FeatureTable,
    codes: npt.NDArray[Any],
    most: int,
) -> Any:
    """Return a design of the columns that go most clearly with the codes, all if they are few."""
    screen = Screen.fit(features, codes, most)
    design = kind.fit(screen.transform(features))
    return design if screen.columns is None else ScreenedDesign(screen, design)


def most_bins(width: int, categorical: Any = None) -> int:
    """Return how many bins boosting cuts each number into: fewer for wide tables of numbers.

    ``categorical``: which columns are, bool of shape (width,), or None; each level needs a bin.
    """
    return 255 if width <= _NARROW or (categorical is not None and np.any(categorical)) else 63


def strongest_of(
    matrix: Float32Array, codes: npt.NDArray[Any], allowed: BoolArray, most: int = TREE_COLUMNS
) -> BoolArray:
    """Return which of the allowed columns of a matrix to learn from, bool of shape (d,)."""
    if allowed.sum() <= most:
        return allowed
    places = np.flatnonzero(allowed)
    none = np.empty((len(matrix), 0), dtype=np.int32)
    table = FeatureTable(np.asarray(matrix[:, places], dtype=np.float32), none, (), len(places))
    kept = np.zeros_like(allowed)
    kept[places[strongest(association(table, codes), most)]] = True
    return kept
