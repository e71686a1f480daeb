"""Columns of numbers, dates and lists of numbers as standard normal coordinates, and back."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from ldpaudit.datasets.names import ColumnError
from ldpaudit.release import Float32Array, FloatArray, IntArray
from ldpaudit.synthesis.codecs.arrow_numbers import (
    arrow_of,
    flattened,
    missing_codes,
    numbers_of,
    present_values,
    whole_range,
)

_QUANTILES = 1001
_MOST_VALUES = 256
"""A column of at most this many different values is given only values that occur."""
_TAIL = 1e-5


@dataclass(frozen=True)
class NumberColumn:
    """Quantiles of one column, through which its numbers become standard normal and back.

    Equal values are spread over the whole share of rows that they hold, so a column with a heavy
    value (0 for most people, say) has the same law as any other, and comes back with that value at
    its share. scikit-learn's QuantileTransformer gives all of them one place instead.

    Attributes
    ----------
    kind : pyarrow.DataType
        The column's type.
    quantiles : float64 array of shape (q, width)
        At equally spaced levels from 0 to 1; a scalar column has width 1.
    seen : float64 array of shape (v,)
        The values that occur, where there are few; else empty.
    offset, span : int
        The smallest of whole numbers and dates, which is subtracted so that float64 holds them
        exactly, and how far the largest lies above it.
    """

    kind: pa.DataType
    quantiles: FloatArray
    seen: FloatArray
    offset: int = 0
    span: int = 0

    @property
    def width(self) -> int:
        """How many coordinates a row of the column has."""
        return int(self.quantiles.shape[1])

    @classmethod
    def fit(cls, column: pa.ChunkedArray) -> "NumberColumn":
        """Learn a column's quantiles from the rows that are present.

        Raises
        ------
        InputError
            If a value is infinite, or the lists have missing entries or differing lengths.
        """
        present = present_values(column)
        offset, span = whole_range(flattened(present))
        values = numbers_of(present, offset)
        if np.isinf(values).any():
            raise ColumnError("must be finite to be generated.")
        if len(values) == 0:
            return cls(column.type, np.zeros((2, values.shape[1])), np.zeros(0))
        levels = np.linspace(0.0, 1.0, min(_QUANTILES, max(len(values), 2)))
        quantiles = np.quantile(values, levels, axis=0)
        return cls(column.type, quantiles, seen_values(values), offset, span)

    def encode(self, column: pa.ChunkedArray, rng: np.random.Generator) -> Float32Array:
        """Return the coordinates, float32 of shape (n, width); a missing row gets random ones."""
        present = missing_codes(column) == 0
        out = rng.standard_normal((len(column), self.width)).astype(np.float32)
        values = numbers_of(present_values(column), self.offset)
        levels = np.linspace(0.0, 1.0, len(self.quantiles))
        where = np.flatnonzero(present)
        for j in range(self.width):
            below, upto = _shares(values[:, j], self.quantiles[:, j], levels)
            share = below + (upto - below) * rng.random(len(values))
            out[where, j] = ndtri(np.clip(share, _TAIL, 1 - _TAIL))
        return out

    def decode(self, numbers: Float32Array, missing: IntArray) -> pa.Array:
        """Return rows of the column's type from coordinates of shape (m, width).

        ``missing`` is 0 where a value is present, 1 where it is null and 2 where it is NaN, int32
        of shape (m,).
        """
        shares = ndtr(numbers.astype(np.float64))
        levels = np.linspace(0.0, 1.0, len(self.quantiles))
        values = np.empty_like(shares)
        for j in range(self.width):
            values[:, j] = np.interp(shares[:, j], levels, self.quantiles[:, j])
        if len(self.seen):
            values = nearest_seen(values, self.seen)
        return arrow_of(values, self.kind, missing, self.offset, self.span)


def seen_values(values: FloatArray) -> FloatArray:
    """Return the different values where they are few, else none; float64 of shape (v,)."""
    distinct = np.unique(values)
    few = len(distinct) <= min(_MOST_VALUES, max(values.size // 2, 1))
    return distinct if few else np.zeros(0)


def _shares(
    values: FloatArray, quantiles: FloatArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the share of rows below each value, and that of rows up to it."""
    upto = np.interp(values, quantiles, levels)
    below = 1.0 - np.interp(-values, -quantiles[::-1], 1.0 - levels[::-1])
    first, last = quantiles[0], quantiles[-1]
    # At the ends of a range without ties the two would otherwise meet at 0 or 1.
    below = np.where(values <= first, 0.0, below)
    return np.minimum(below, upto), np.where(values >= last, 1.0, upto)


def nearest_seen(values: FloatArray, seen: FloatArray) -> FloatArray:
    """Return for each value the nearest one of ``seen``, which is sorted."""
    middles = (seen[1:] + seen[:-1]) / 2
    return np.asarray(seen[np.searchsorted(middles, values)])
