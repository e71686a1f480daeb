"""Columns of numbers, dates and lists of numbers as standard normal coordinates, and back."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtr, ndtri

from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.release import Float32Array, FloatArray, IntArray

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
    def fit(cls, column: pa.ChunkedArray, name: str) -> "NumberColumn":
        """Learn a column's quantiles from the rows that are present.

        Raises
        ------
        InputError
            If a value is infinite, or the lists have missing entries or differing lengths.
        """
        present = _present(column)
        offset, span = _range(_flattened(present, name))
        values = _numbers(present, name, offset)
        if np.isinf(values).any():
            raise InputError(f"The column {quoted(name)} must be finite to be generated.")
        if len(values) == 0:
            return cls(column.type, np.zeros((2, values.shape[1])), np.zeros(0))
        levels = np.linspace(0.0, 1.0, min(_QUANTILES, max(len(values), 2)))
        quantiles = np.quantile(values, levels, axis=0)
        return cls(column.type, quantiles, seen_values(values), offset, span)

    def encode(self, column: pa.ChunkedArray, name: str, rng: np.random.Generator) -> Float32Array:
        """Return the coordinates, float32 of shape (n, width); a missing row gets random ones."""
        present = np.asarray(_is_present(column))
        out = rng.standard_normal((len(column), self.width)).astype(np.float32)
        values = _numbers(_present(column), name, self.offset)
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
        return _as_arrow(values, self.kind, missing, self.offset, self.span)


def missing_codes(column: pa.ChunkedArray) -> IntArray:
    """Return 0 where a value is present, 1 where it is null, 2 where it is NaN; int32 (n,)."""
    codes = (~np.asarray(column.is_valid().to_numpy())).astype(np.int32)
    if pa.types.is_floating(column.type):
        codes[np.asarray(pc.is_nan(column).fill_null(False).to_numpy())] = 2
    return codes


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists."""
    tests = ("list", "large_list", "fixed_size_list")
    return any(bool(getattr(pa.types, f"is_{test}")(kind)) for test in tests)


def can_be_numbers(kind: pa.DataType) -> bool:
    """Return whether a column of this type is one of numbers, dates or lists of numbers."""
    if is_list(kind):
        inner = kind.value_type
        return bool(pa.types.is_integer(inner) or pa.types.is_floating(inner))
    tests = ("integer", "floating", "decimal", "temporal")
    return any(bool(getattr(pa.types, f"is_{test}")(kind)) for test in tests) and not (
        pa.types.is_interval(kind)
    )


def _is_present(column: pa.ChunkedArray) -> Any:
    return missing_codes(column) == 0


def _present(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.filter(pa.array(_is_present(column)))


def _flattened(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return a column of scalars: of a list column, all entries after each other."""
    if not is_list(column.type):
        return column
    if pc.count_distinct(pc.list_value_length(column)).as_py() > 1:
        raise InputError(f"The lists in the column {quoted(name)} must all have one length.")
    entries = pc.list_flatten(column)
    if (missing_codes(entries) != 0).any():
        raise InputError(f"The lists in the column {quoted(name)} must have no missing entries.")
    return entries


def _integer_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the integer type behind whole numbers and dates, None for other numbers."""
    if pa.types.is_integer(kind):
        return pa.uint64() if kind.equals(pa.uint64()) else pa.int64()
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return None


def _scalar_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if is_list(kind) else kind


def _whole(scalars: pa.ChunkedArray, target: pa.DataType) -> Any:
    return (
        scalars.cast(target)
        .to_numpy()
        .astype(np.uint64 if target.equals(pa.uint64()) else np.int64)
    )


def _range(scalars: pa.ChunkedArray) -> tuple[int, int]:
    """Return the smallest whole number, and how far the largest lies above it."""
    target = _integer_type(scalars.type)
    if target is None or len(scalars) == 0:
        return 0, 0
    whole = _whole(scalars, target)
    low, high = int(whole.min()), int(whole.max())
    return low, high - low


def _numbers(column: pa.ChunkedArray, name: str, offset: int) -> FloatArray:
    """Return present values as float64 of shape (n, width), whole numbers less the offset."""
    scalars = _flattened(column, name)
    target = _integer_type(scalars.type)
    if target is None:
        values = np.asarray(scalars.cast(pa.float64()).to_numpy(), dtype=np.float64)
    else:
        # Wraps around at 2**64, so that the widest range comes out right.
        base = np.uint64(offset % 2**64)
        values = (_whole(scalars, target).astype(np.uint64) - base).astype(np.float64)
    if len(column) == 0:
        return values.reshape(0, _list_size(column.type))
    return values.reshape(len(column), -1)


def _list_size(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size)
    return 0 if is_list(kind) else 1


def list_entries(column: pa.ChunkedArray, name: str) -> FloatArray:
    """Return the entries of a list column without missing rows, float64 of shape (n, width).

    Raises
    ------
    InputError
        If the lists have missing entries or differing lengths.
    """
    offset, _ = _range(_flattened(column, name))
    return _numbers(column, name, offset) + offset


def lists_of(values: FloatArray, kind: pa.DataType) -> pa.Array:
    """Return a list column of the given type from entries of shape (m, width)."""
    present = np.zeros(len(values), dtype=np.int32)
    if _integer_type(kind.value_type) is None:
        return _as_arrow(values, kind, present, 0, 0)
    low, high = (int(np.rint(end(values))) for end in (np.min, np.max))
    return _as_arrow(values - low, kind, present, low, high - low)


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
    # At the ends of a range without ties the two would meet at 0 or 1 all the same.
    below = np.where(values <= first, 0.0, below)
    return np.minimum(below, upto), np.where(values >= last, 1.0, upto)


def nearest_seen(values: FloatArray, seen: FloatArray) -> FloatArray:
    """Return for each value the nearest one of ``seen``, which is sorted."""
    middles = (seen[1:] + seen[:-1]) / 2
    return np.asarray(seen[np.searchsorted(middles, values)])


def _as_arrow(
    values: FloatArray, kind: pa.DataType, missing: IntArray, offset: int, span: int
) -> pa.Array:
    scalar = _scalar_type(kind)
    target = _integer_type(scalar)
    flat = values.ravel()
    if target is None:
        flat = np.where(np.repeat(missing == 2, values.shape[1]), np.nan, flat)
        entries = _inexact(flat, scalar)
    else:
        # float64 may round the largest step up, beyond what the type holds.
        steps = np.rint(np.clip(flat, 0.0, np.nextafter(2.0**64, 0.0))).astype(np.uint64)
        whole = np.minimum(steps, np.uint64(span)) + np.uint64(offset % 2**64)
        whole = whole if target.equals(pa.uint64()) else whole.astype(np.int64)
        entries = pa.array(whole).cast(target).cast(scalar)
    null = missing == 1
    if is_list(kind):
        return _lists(entries, kind, null)
    return pc.if_else(pa.array(null), pa.scalar(None, scalar), entries)


def _inexact(flat: FloatArray, scalar: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(scalar):
        return pa.array(np.round(flat, max(scalar.scale, 0))).cast(scalar, safe=False)
    return pa.array(flat).cast(scalar, safe=False)


def _lists(entries: pa.Array, kind: pa.DataType, null: Any) -> pa.Array:
    rows, width = len(null), len(entries) // max(len(null), 1)
    mask = pa.array(null)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(entries, type=kind, mask=mask)
    large = pa.types.is_large_list(kind)
    offsets = pa.array(np.arange(rows + 1) * width, pa.int64() if large else pa.int32())
    maker = pa.LargeListArray if large else pa.ListArray
    return maker.from_arrays(offsets, entries, type=kind, mask=mask)
