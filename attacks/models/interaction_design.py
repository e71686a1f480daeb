"""The design of a linear model on columns of few values and on pairs of such columns."""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from ldpaudit.release import BoolArray, FeatureTable, IndexArray

_MOST_LEVELS = 200
_MOST_COLUMNS = 16


@dataclass(frozen=True)
class CrossDesign:
    """Indicators of the values of columns and pairs, and standardised numbers, of some rows.

    Built by :meth:`fit`.

    Attributes
    ----------
    levels : tuple of float64 arrays
        The sorted distinct values of each column, numeric columns first; a missing value is NaN in
        numeric columns, −1 in categorical ones.
    effects : tuple of tuples of int
        The columns of each block of indicators: one, or a pair.
    keys : tuple of int64 arrays
        The sorted combinations of levels that each block has an indicator for.
    numbers : int64 array
        The numeric columns that also have a linear effect.
    means, scales : float64 arrays, as long as ``numbers``
    """

    levels: tuple[npt.NDArray[np.float64], ...]
    effects: tuple[tuple[int, ...], ...]
    keys: tuple[IndexArray, ...]
    numbers: IndexArray
    means: npt.NDArray[np.float64]
    scales: npt.NDArray[np.float64]

    @classmethod
    def fit(cls, features: FeatureTable) -> "CrossDesign | None":
        """Learn values and combinations of the columns that vary.

        None with fewer than 2 or more than 16 of them, or more than 200 values in a column.
        """
        columns = _columns(features)
        levels = tuple(np.unique(column) for column in columns)
        varying = [j for j, values in enumerate(levels) if len(values) > 1]
        if not 2 <= len(varying) <= _MOST_COLUMNS or max(map(len, levels)) > _MOST_LEVELS:
            return None
        codes = _codes(columns, levels)
        effects = tuple((j,) for j in varying) + tuple(combinations(varying, 2))
        keys = tuple(np.unique(_combined(codes, levels, effect)) for effect in effects)
        numbers = np.array([j for j in varying if j < features.numeric.shape[1]], dtype=np.int64)
        values = features.numeric[:, numbers].astype(np.float64)
        # A column of missing values alone does not vary, so no mean is empty.
        means, scales = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
        return cls(levels, effects, keys, numbers, means, np.where(scales > 0, scales, 1.0))

    @property
    def width(self) -> int:
        """The number of columns w of the matrix."""
        return sum(len(keys) for keys in self.keys) + len(self.numbers)

    @property
    def crosses(self) -> int:
        """How many columns and pairs have indicators."""
        return len(self.effects)

    @property
    def pairs(self) -> BoolArray:
        """Which columns of the matrix belong to a pair, bool of shape (w,)."""
        sizes = [len(keys) for keys in self.keys]
        paired = np.repeat([len(effect) == 2 for effect in self.effects], sizes)
        return np.concatenate([paired, np.zeros(len(self.numbers), dtype=bool)])

    def transform(self, features: FeatureTable) -> Any:
        """Return the matrix of the given rows, sparse (CSR) float64 of shape (n, w).

        A value or pair that was not seen has no indicator: the other effects remain.
        """
        n, rows, places, start = len(features), [], [], 0
        codes = _codes(_columns(features), self.levels)
        for effect, keys in zip(self.effects, self.keys, strict=True):
            combined = _combined(codes, self.levels, effect)
            spots = np.minimum(np.searchsorted(keys, combined), len(keys) - 1)
            known = np.flatnonzero((combined >= 0) & (keys[spots] == combined))
            rows.append(known)
            places.append(start + spots[known])
            start += len(keys)
        at, to = np.concatenate(rows), np.concatenate(places)
        indicators = sparse.csr_matrix((np.ones(len(at)), (at, to)), shape=(n, start))
        scaled = (features.numeric[:, self.numbers] - self.means) / self.scales
        linear = sparse.csr_matrix(np.nan_to_num(scaled, nan=0.0))
        return sparse.hstack([indicators, linear], format="csr")


def _columns(features: FeatureTable) -> list[npt.NDArray[np.float64]]:
    # −0.0 and 0.0 are one value, as in the hashes of rows.
    blocks = (features.numeric + np.float32(0.0), features.categorical)
    return [column.astype(np.float64) for block in blocks for column in block.T]


def _codes(
    columns: list[npt.NDArray[np.float64]], levels: tuple[npt.NDArray[np.float64], ...]
) -> IndexArray:
    """Return the position of each value among its column's levels, −1 for an unknown value."""
    codes = np.empty((len(columns[0]), len(columns)), dtype=np.int64)
    for j, (column, values) in enumerate(zip(columns, levels, strict=True)):
        # NaN sorts last, also for searchsorted.
        spots = np.minimum(np.searchsorted(values, column), len(values) - 1)
        same = (values[spots] == column) | (np.isnan(values[spots]) & np.isnan(column))
        codes[:, j] = np.where(same, spots, -1)
    return codes


def _combined(
    codes: IndexArray, levels: tuple[npt.NDArray[np.float64], ...], effect: tuple[int, ...]
) -> IndexArray:
    """Return one number for each combination of levels of the columns, −1 where one is unknown."""
    combined = np.zeros(len(codes), dtype=np.int64)
    unknown = np.zeros(len(codes), dtype=bool)
    for j in effect:
        combined = combined * len(levels[j]) + codes[:, j]
        unknown |= codes[:, j] < 0
    return np.where(unknown, -1, combined)
