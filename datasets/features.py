"""Feature columns as arrays: numbers, codes of categories, and lists laid out flat."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import (
    BYTES,
    LISTS,
    NUMBERS,
    TEXTS,
    decoded,
    is_any,
    stored,
)
from ldpaudit.datasets.names import ColumnError, of_column
from ldpaudit.datasets.texts import read_out
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IntArray

_UNITS_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_FAR_FROM_ZERO = 256.0
_LARGEST_INTEGER = float(1 << 24)
"""Every integer up to this one is a float32 of its own."""
_WIDEST, _NARROWEST = 1e15, 1e-15
"""Columns with a spread beyond these are scaled: squares of distances must fit in float32."""


@dataclass
class EncodedFeatures:
    """Encoded feature columns, with the column that each came from.

    Attributes
    ----------
    rows : int
    numeric : list of float32 arrays of shape (n, width)
    categorical : list of int32 arrays of shape (n,)
    cardinalities : list of int
    numeric_places, categorical_places : list of int
        The number of the feature column (from 0) behind each entry of the two lists.
    columns : int
        How many feature columns there are.
    extra : list of float32 arrays of shape (n, e)
        What is read out of free texts and dates.
    whole : FeatureTable or None
        The table, where its arrays are views of it.
    """

    rows: int
    numeric: list[Float32Array] = field(default_factory=list)
    categorical: list[IntArray] = field(default_factory=list)
    cardinalities: list[int] = field(default_factory=list)
    numeric_places: list[int] = field(default_factory=list)
    categorical_places: list[int] = field(default_factory=list)
    columns: int = 0
    extra: list[Float32Array] = field(default_factory=list)
    whole: FeatureTable | None = None

    def add(self, column: pa.ChunkedArray) -> None:
        """Encode one more column (ColumnError)."""
        column = stored(column)
        self.extra += read_out(column)
        if is_categorical(column.type):
            codes, cardinality = encode_categories(sortable(column))
            self.categorical.append(codes)
            self.cardinalities.append(cardinality)
            self.categorical_places.append(self.columns)
        else:
            self.numeric.append(encode_numbers(column))
            self.numeric_places.append(self.columns)
        self.columns += 1

    def table(self) -> FeatureTable:
        """Return the columns as one table."""
        if self.whole is not None:
            return self.whole
        return FeatureTable(
            numeric=_side_by_side(self.numeric, self.rows, np.float32),
            categorical=_side_by_side(
                [codes[:, None] for codes in self.categorical], self.rows, np.int32
            ),
            cardinalities=tuple(self.cardinalities),
            columns=self.columns,
            extra=_side_by_side(self.extra, self.rows, np.float32) if self.extra else None,
        )


def encode_features(
    columns: Iterable[tuple[str, pa.ChunkedArray]], rows: int, names: Sequence[str]
) -> EncodedFeatures:
    """Encode feature columns one after the other, so that few are in memory at once.

    Parameters
    ----------
    columns : iterable of (name, column of n values)
    rows : int
        n.
    names : sequence of str
        All columns of the file; a message tells the place of one among them.

    Raises
    ------
    InputError
        If a column holds nested objects, lists of differing lengths, or infinite values.
    """
    encoded = EncodedFeatures(rows)
    for name, column in columns:
        with of_column(name, names):
            encoded.add(column)
    return encoded


def is_categorical(kind: pa.DataType) -> bool:
    """Return whether a column of this type is one of categories: text, bytes or a dictionary."""
    return is_any(kind, *TEXTS, *BYTES, "dictionary", "fixed_size_binary")


def encode_categories(column: pa.ChunkedArray) -> tuple[IntArray, int]:
    """Return the codes of a text column, and how many different values it has.

    Codes are positions among the sorted values, so they do not depend on the order of the rows;
    -1 where the value is missing.

    Returns
    -------
    codes : int32 array of shape (n,)
    cardinality : int
    """
    encoded = column.dictionary_encode().combine_chunks()
    order = pc.array_sort_indices(encoded.dictionary).to_numpy()
    ranks = np.empty(len(order) + 1, dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    ranks[-1] = -1
    return ranks[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)], len(order)


def encode_numbers(column: pa.ChunkedArray) -> Float32Array:
    """Return a column of numbers, booleans, dates or lists of them.

    Dates, times and durations are given in days. A list becomes as many numbers side by side.

    Returns
    -------
    float32 array of shape (n, width)
        NaN where missing; see :func:`narrowed` for the zero and the unit of a column.
    """
    return narrowed(raw_numbers(_from_least(column)))


def _from_least(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return integers of which float64 would make some equal, counted from the least of them."""
    if not (pa.types.is_integer(column.type) and column.type.bit_width == 64):
        return column
    bounds = pc.min_max(column).as_py()
    if bounds["min"] is None or max(-bounds["min"], bounds["max"]) <= 1 << 53:
        return column
    try:
        return pc.subtract_checked(column, pa.scalar(bounds["min"], column.type))
    except pa.ArrowInvalid:  # They are further apart than integers can say.
        return column


def raw_numbers(column: pa.ChunkedArray) -> FloatArray | Float32Array:
    """Return a column of numbers or lists, float32 or float64 of shape (n, width), not narrowed."""
    if is_any(column.type, *LISTS, "list_view", "large_list_view"):
        return _flat(column)
    return _numbers(column)[:, None]


@dataclass(frozen=True)
class Extent:
    """The least and the largest value of a column of numbers; NaN where it has none."""

    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray | Float32Array) -> "Extent":
        """Return the extent of an array."""
        if values.size == 0:
            return cls(np.nan, np.nan)
        return cls(float(np.fmin.reduce(values, None)), float(np.fmax.reduce(values, None)))

    def joined(self, other: "Extent") -> "Extent":
        """Return the extent of the values of both."""
        low, high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        return Extent(float(low), float(high))

    def is_of(self, met: "Extent") -> bool:
        """Return whether values were met that have this extent."""
        return np.array_equal([self.low, self.high], [met.low, met.high], equal_nan=True)

    def narrowed(self, values: FloatArray | Float32Array) -> Float32Array:
        """Return values within the extent as :func:`narrowed` describes."""
        low, half_spread = self.low, self.high / 2 - self.low / 2
        farthest = max(abs(self.low), abs(self.high))
        if half_spread > 0 and not _NARROWEST < half_spread < _WIDEST:
            scaled = (values / 2 - low / 2) / half_spread
            return scaled.astype(np.float32)
        if values.dtype == np.float64 and (
            farthest > _LARGEST_INTEGER or farthest > _FAR_FROM_ZERO * half_spread
        ):
            values = values - low
        return values.astype(np.float32, copy=False)


def narrowed(values: FloatArray | Float32Array) -> Float32Array:
    """Return numbers as float32 without losing the differences between rows.

    A column that lies far from zero compared with its spread, or holds integers beyond 2**24, is
    counted from its minimum; one whose spread is above 1e15 or below 1e-15 is scaled to [0, 1].
    Neither changes which of two rows is nearer in that column.

    Raises
    ------
    ColumnError
        If a value is infinite.
    """
    extent = Extent.of(values)
    if np.isinf([extent.low, extent.high]).any():
        count = int(np.isinf(values).sum())
        raise ColumnError(f"must be finite; {count:,} values are infinite.")
    return extent.narrowed(values)


def _numbers(column: pa.ChunkedArray) -> FloatArray | Float32Array:
    kind = column.type
    days = _units_per_day(kind)
    try:
        if days is not None:
            whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
            return np.asarray(whole.cast(pa.float64(), safe=False).to_numpy() / days)
        if _is_number(kind):
            target = pa.float32() if _fits_float32(kind) else pa.float64()
            return np.asarray(column.cast(target, safe=False).to_numpy())
    except pa.ArrowException:
        raise ColumnError("cannot be read as numbers.") from None
    raise ColumnError(
        "holds nested objects; a feature must be a number, a text, a boolean, a date or a list of "
        "numbers (leave the column out with drop)."
    )


def _is_number(kind: pa.DataType) -> bool:
    return is_any(kind, *NUMBERS, "boolean", "null")


def _fits_float32(kind: pa.DataType) -> bool:
    if is_any(kind, "integer", "floating"):
        return bool(kind.bit_width <= (16 if pa.types.is_integer(kind) else 32))
    return is_any(kind, "boolean", "null")


def _units_per_day(kind: pa.DataType) -> int | None:
    if pa.types.is_date32(kind):
        return 1
    if pa.types.is_date64(kind):
        return _UNITS_PER_DAY["ms"]
    if is_any(kind, "timestamp", "time", "duration"):
        return _UNITS_PER_DAY[kind.unit]
    return None


def _flat(column: pa.ChunkedArray) -> FloatArray | Float32Array:
    lengths = pc.list_value_length(column)
    bounds = pc.min_max(lengths).as_py()
    if bounds["min"] != bounds["max"]:
        raise ColumnError("must hold lists of one length.")
    width, present = bounds["min"] or 0, np.asarray(column.is_valid().to_numpy())
    inner = stored(pc.list_flatten(column))
    if is_categorical(inner.type):
        raise ColumnError("must hold lists of numbers.")
    entries = raw_numbers(inner)
    per_row = width * entries.shape[1]
    entries = entries.reshape(int(present.sum()), per_row)
    if present.all():
        return entries
    block = np.full((len(column), per_row), np.nan, dtype=entries.dtype)
    block[present] = entries
    return block


def sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a text column in a form that can be sorted and grows beyond 2 GiB."""
    try:
        column = decoded(column)
        if is_any(column.type, "string", "string_view"):
            return column.cast(pa.large_string())
        if pa.types.is_binary(column.type):
            return column.cast(pa.large_binary())
    except pa.ArrowException:
        raise ColumnError("holds categories that cannot be read.") from None
    dated = _units_per_day(column.type) is not None
    if not (dated or _is_number(column.type) or is_categorical(column.type)):
        raise ColumnError("holds categories that are nested objects.")
    return column


def _side_by_side(blocks: list[Any], rows: int, kind: Any) -> Any:
    if len(blocks) == 1:
        return np.ascontiguousarray(blocks[0])
    table = np.empty((rows, sum(block.shape[1] for block in blocks)), dtype=kind)
    return np.concatenate([table[:, :0], *blocks], axis=1, out=table)
