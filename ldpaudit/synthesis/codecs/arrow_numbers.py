"""Arrow columns of numbers, dates and lists of numbers as float64 arrays, and back."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import LISTS, NUMBERS, is_any
from ldpaudit.datasets.names import ColumnError
from ldpaudit.release import FloatArray, IntArray


def missing_codes(column: pa.ChunkedArray) -> IntArray:
    """Return 0 where a value is present, 1 where it is null, 2 where it is NaN; int32 (n,)."""
    codes = (~np.asarray(column.is_valid().to_numpy())).astype(np.int32)
    if pa.types.is_floating(column.type):
        codes[np.asarray(pc.is_nan(column).fill_null(False).to_numpy())] = 2
    return codes


def is_list(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists."""
    return is_any(kind, *LISTS)


def can_be_numbers(kind: pa.DataType) -> bool:
    """Return whether a column of this type is one of numbers, dates or lists of numbers."""
    if is_list(kind):
        return is_any(kind.value_type, "integer", "floating")
    return is_any(kind, *NUMBERS, "temporal") and not pa.types.is_interval(kind)


def present_values(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values that are neither null nor NaN."""
    return column.filter(pa.array(missing_codes(column) == 0))


def flattened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of scalars: of a list column, all entries after each other."""
    if not is_list(column.type):
        return column
    if pc.count_distinct(pc.list_value_length(column)).as_py() > 1:
        raise ColumnError("must hold lists of one length.")
    entries = pc.list_flatten(column)
    if (missing_codes(entries) != 0).any():
        raise ColumnError("must hold lists without missing entries.")
    return entries


def whole_range(scalars: pa.ChunkedArray) -> tuple[int, int]:
    """Return the smallest whole number, and how far the largest lies above it."""
    target = _integer_type(scalars.type)
    if target is None or len(scalars) == 0:
        return 0, 0
    whole = _whole(scalars, target)
    low, high = int(whole.min()), int(whole.max())
    return low, high - low


def numbers_of(column: pa.ChunkedArray, offset: int) -> FloatArray:
    """Return present values as float64 of shape (n, width), whole numbers less the offset."""
    scalars = flattened(column)
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


def arrow_of(
    values: FloatArray, kind: pa.DataType, missing: IntArray, offset: int, span: int
) -> pa.Array:
    """Return rows of type ``kind`` from float64 values of shape (m, width).

    ``missing`` is as in :func:`missing_codes`; whole numbers stay in offset … offset + span.
    """
    scalar = kind.value_type if is_list(kind) else kind
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


def list_entries(column: pa.ChunkedArray) -> FloatArray:
    """Return the entries of a list column without missing rows, float64 of shape (n, width).

    Raises
    ------
    InputError
        If the lists have missing entries or differing lengths.
    """
    offset, _ = whole_range(flattened(column))
    return numbers_of(column, offset) + offset


def lists_of(values: FloatArray, kind: pa.DataType) -> pa.Array:
    """Return a list column of the given type from entries of shape (m, width)."""
    present = np.zeros(len(values), dtype=np.int32)
    if _integer_type(kind.value_type) is None:
        return arrow_of(values, kind, present, 0, 0)
    low, high = (int(np.rint(end(values))) for end in (np.min, np.max))
    return arrow_of(values - low, kind, present, low, high - low)


def _integer_type(kind: pa.DataType) -> pa.DataType | None:
    """Return the integer type behind whole numbers and dates, None for other numbers."""
    if pa.types.is_integer(kind):
        return pa.uint64() if kind.equals(pa.uint64()) else pa.int64()
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return None


def _whole(scalars: pa.ChunkedArray, target: pa.DataType) -> Any:
    whole = np.uint64 if target.equals(pa.uint64()) else np.int64
    return scalars.cast(target).to_numpy().astype(whole)


def _list_size(kind: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size)
    return 0 if is_list(kind) else 1


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
