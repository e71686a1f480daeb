"""Feature columns as arrays: numbers, codes of categories, lists laid out flat, what texts hold."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.arrays import HalfArray
from ldpaudit.datasets.formats.tables import (
    BYTES,
    LISTS,
    NUMBERS,
    TEXTS,
    decoded,
    distinct_values,
    is_any,
    plain_values,
    stored,
    value_type,
    without_long_texts,
)
from ldpaudit.datasets.names import ColumnError, of_column
from ldpaudit.release import FeatureTable, Float32Array, FloatArray, IntArray
from ldpaudit.work.memory import MANY_ROWS, give_back

_UNITS_PER_DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_FAR_FROM_ZERO = 256.0
# Every integer up to this one is a float32 of its own.
_LARGEST_INTEGER = 1 << 24
# Columns with a spread beyond these are scaled: squares of distances must fit in float32.
_WIDEST, _NARROWEST = 1e15, 1e-15
# A free text has a space or more on average, and differs in half of the rows that are looked at.
_FEWEST_TEXTS, _TEXTS_LOOKED_AT = 100, 1_000
# Numbers of a text: as many as fit into 25 MB, within these.
_ENTRIES, _FEWEST_NUMBERS, _MOST_NUMBERS = 6_400_000, 8, 128


@dataclass
class EncodedFeatures:
    """Encoded feature columns of ``rows`` rows, with the column that each came from.

    ``numeric`` holds float32 arrays (n, width) and ``categorical`` int32 arrays (n,) with their
    cardinalities; ``numeric_places`` and ``categorical_places`` are the numbers of their feature
    columns, from 0, of which there are ``columns``. ``extra`` is what is read out of free texts
    and dates, float32 (n, e); ``marks``: what the arrays lose, each with whether its column is
    categorical, its place in that block, and what it says. ``expected``: how many numeric columns
    there may be, whose arrays are then parts of one table from the start.
    """

    rows: int
    expected: int = 0
    numeric: list[Float32Array] = field(default_factory=list)
    categorical: list[IntArray] = field(default_factory=list)
    cardinalities: list[int] = field(default_factory=list)
    numeric_places: list[int] = field(default_factory=list)
    categorical_places: list[int] = field(default_factory=list)
    columns: int = 0
    extra: list[Float32Array] = field(default_factory=list)
    marks: list[tuple[bool, int, str, Float32Array]] = field(default_factory=list)
    # Of the numeric arrays; a sum for each new column would take time by the square of columns.
    _width: int = 0
    _together: Float32Array | None = None

    def add(self, column: pa.ChunkedArray) -> None:
        """Encode one more column (ColumnError)."""
        column = plain_values(column)
        self.extra += read_out(column)
        categorical = is_categorical(column.type)
        place = len(self.categorical) if categorical else self._width
        self.marks += [(categorical, place, *mark) for mark in lost_in_arrays(column)]
        if categorical:
            codes, cardinality = encode_categories(sortable(column))
            self.categorical.append(codes)
            self.cardinalities.append(cardinality)
            self.categorical_places.append(self.columns)
        else:
            self.numeric.append(self._placed(encode_numbers(column)))
            self._width += self.numeric[-1].shape[1]
            self.numeric_places.append(self.columns)
        self.columns += 1

    def _placed(self, block: Float32Array) -> Float32Array:
        """Return numbers as a part of the table of all numeric columns, while there is room."""
        stop = self._width + block.shape[1]
        if self.expected < 2 or stop > self.expected or len(block) != self.rows:
            return block
        if self._together is None:
            self._together = np.empty((self.rows, self.expected), dtype=np.float32)
        part = self._together[:, self._width : stop]
        part[:] = block
        return part

    def columns_of_arrays(self) -> list[int]:
        """Return the column, by its number, that each array comes from, numeric ones first."""
        widths = [block.shape[1] for block in self.numeric]
        numeric = zip(self.numeric_places, widths, strict=True)
        return [place for place, width in numeric for _ in range(width)] + self.categorical_places

    def part(self, start: int, stop: int) -> "EncodedFeatures":
        """Return some rows that follow each other."""
        return replace(
            self,
            rows=stop - start,
            numeric=[block[start:stop] for block in self.numeric],
            categorical=[codes[start:stop] for codes in self.categorical],
            extra=[block[start:stop] for block in self.extra],
            marks=[(*mark[:3], mark[3][start:stop]) for mark in self.marks],
            _together=None if self._together is None else self._together[start:stop],
        )

    def table(self) -> FeatureTable:
        """Return the columns as one table."""
        self.categorical = [codes.reshape(self.rows, 1) for codes in self.categorical]
        categorical = _side_by_side(self.categorical, self.rows, np.int32)
        self.categorical = [codes[:, 0] for codes in self.categorical]
        numeric = self._together if self._width == self.expected else None
        if numeric is None:
            numeric = _side_by_side(self.numeric, self.rows, np.float32)
        extra = marks = None
        if self.extra:
            extra = _side_by_side(self.extra, self.rows, np.float32)
        if self.marks:
            marks = np.stack([mark[3] for mark in self.marks], axis=1)
        first = (0, numeric.shape[1])
        return FeatureTable(
            numeric=numeric,
            categorical=categorical,
            cardinalities=tuple(self.cardinalities),
            columns=self.columns,
            extra=extra,
            marks=marks,
            mark_sources=tuple((first[c] + place, kind) for c, place, kind, _ in self.marks),
        )


def encode_features(
    columns: Iterable[tuple[str, pa.ChunkedArray]],
    rows: int,
    names: Sequence[str],
    expected: int = 0,
) -> EncodedFeatures:
    """Encode feature columns in turn, so that few are in memory at a time.

    ``names``: all columns of the file, among which a message gives the place of one;
    ``expected``: how many columns hold numbers, as far as is known before they are read.
    """
    encoded = EncodedFeatures(rows, expected)
    for name, column in columns:
        with of_column(name, names):
            encoded.add(column)
        del column  # Else two are in memory while the next one is read.
        if rows >= MANY_ROWS:
            give_back()
    return encoded


def is_categorical(kind: pa.DataType) -> bool:
    """Return whether a column of this type is one of categories: text, bytes or a dictionary."""
    return is_any(kind, *TEXTS, *BYTES, "dictionary", "fixed_size_binary")


def encode_categories(column: pa.ChunkedArray) -> tuple[IntArray, int]:
    """Return the codes of a text column, int32 (n,), and how many different values it has."""
    # Codes are positions among the sorted values, so they do not depend on the order of the rows;
    # -1 where the value is missing.
    values, codes = distinct_values(column)
    order = pc.array_sort_indices(values).to_numpy()
    ranks = np.empty(len(order) + 1, dtype=np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    ranks[-1] = -1
    return ranks[codes], len(order)


def encode_numbers(column: pa.ChunkedArray) -> Float32Array:
    """Return a column of numbers, booleans, dates or lists of them, float32 (n, width)."""
    # Dates, times and durations are given in days; a list becomes as many numbers side by side; NaN
    # where missing. See :func:`narrowed` for the zero and the unit of a column.
    if pa.types.is_integer(column.type) and column.type.bit_width == 64:
        low, high = pc.min_max(column).as_py().values()
        # Integers of which float64 would make some equal are counted from the least of them,
        # unless they are further apart than integers can say.
        if low is not None and max(-low, high) > 1 << 53:
            with suppress(pa.ArrowInvalid):
                column = pc.subtract_checked(column, pa.scalar(low, column.type))
    return narrowed(_raw_numbers(column))


def narrowed(values: FloatArray | Float32Array) -> Float32Array:
    """Return numbers as float32 without losing the differences between rows."""
    # A column that lies far from zero compared with its spread, or holds integers beyond 2**24, is
    # counted from its minimum; one whose spread is above 1e15 or below 1e-15 is scaled to [0, 1].
    # Neither changes which of two rows is nearer in that column.
    if values.size == 0:
        return values.astype(np.float32, copy=False)
    low, high = float(np.fmin.reduce(values, None)), float(np.fmax.reduce(values, None))
    if np.isinf([low, high]).any():
        raise ColumnError(
            f"must be finite; infinite values: {int(np.isinf(values).sum()):,} "
            "(--missing-values Inf reads them as missing)."
        )
    half_spread, farthest = high / 2 - low / 2, max(abs(low), abs(high))
    if half_spread > 0 and not _NARROWEST < half_spread < _WIDEST:
        scaled = (values / 2 - low / 2) / half_spread
        return scaled.astype(np.float32)
    if values.dtype == np.float64 and (
        farthest > _LARGEST_INTEGER or farthest > _FAR_FROM_ZERO * half_spread
    ):
        values = values - low
    return values.astype(np.float32, copy=False)


def _raw_numbers(column: pa.ChunkedArray) -> FloatArray | Float32Array:
    """Return a column of numbers or lists, float32 or float64 of shape (n, width), not narrowed."""
    kind = column.type
    if is_any(kind, *LISTS, "list_view", "large_list_view"):
        return _flat(column)
    days = _units_per_day(kind)
    try:
        if days is not None:
            whole = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
            return np.asarray(whole.cast(pa.float64(), safe=False).to_numpy() / days)[:, None]
        if _is_number(kind):
            small = is_any(kind, "boolean", "null") or (
                is_any(kind, "integer", "floating")
                and kind.bit_width <= (16 if pa.types.is_integer(kind) else 32)
            )
            target = pa.float32() if small else pa.float64()
            return np.asarray(column.cast(target, safe=False).to_numpy())[:, None]
    except pa.ArrowException:
        raise ColumnError("cannot be read as numbers.") from None
    raise ColumnError(
        "holds nested objects; a feature must be a number, a text, a boolean, a date or a list of "
        "numbers. Leave the column out with --drop."
    )


def _flat(column: pa.ChunkedArray) -> FloatArray | Float32Array:
    bounds = pc.min_max(pc.list_value_length(column)).as_py()
    if bounds["min"] != bounds["max"]:
        raise ColumnError("must hold lists of one length; leave it out with --drop.")
    width, present = bounds["min"] or 0, np.asarray(column.is_valid().to_numpy())
    inner = stored(pc.list_flatten(column))
    if is_categorical(inner.type):
        raise ColumnError(
            "must hold lists of numbers; make columns of the texts, or leave it out with --drop."
        )
    entries = _raw_numbers(inner)
    per_row = width * entries.shape[1]
    entries = entries.reshape(int(present.sum()), per_row)
    if present.all():
        return entries
    block = np.full((len(column), per_row), np.nan, dtype=entries.dtype)
    block[present] = entries
    return block


def _is_number(kind: pa.DataType) -> bool:
    return is_any(kind, *NUMBERS, "boolean", "null")


def _units_per_day(kind: pa.DataType) -> int | None:
    if pa.types.is_date32(kind):
        return 1
    if pa.types.is_date64(kind):
        return _UNITS_PER_DAY["ms"]
    return _UNITS_PER_DAY[kind.unit] if is_any(kind, "timestamp", "time", "duration") else None


def sortable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a text column in a form that can be sorted and grows beyond 2 GiB."""
    kind = value_type(column.type)
    dated = _units_per_day(kind) is not None
    if not (dated or _is_number(kind) or is_categorical(kind)) or pa.types.is_dictionary(kind):
        raise ColumnError("holds categories that are nested objects.")
    if pa.types.is_dictionary(column.type):  # A long text may stand in every row.
        return column
    try:
        if is_any(kind, "string", "string_view"):
            return column.cast(pa.large_string())
        return column.cast(pa.large_binary()) if pa.types.is_binary(kind) else column
    except pa.ArrowException:
        raise ColumnError("holds categories that cannot be read.") from None


def _side_by_side(blocks: list[Any], rows: int, kind: Any) -> Any:
    """Return blocks as one; each becomes a view of it, so that memory holds none of them twice."""
    if len(blocks) == 1:
        return np.ascontiguousarray(blocks[0])
    table, place = np.empty((rows, sum(block.shape[1] for block in blocks)), dtype=kind), 0
    for number, block in enumerate(blocks):
        own = slice(place, place + block.shape[1])
        table[:, own] = block
        blocks[number], place = table[:, own], own.stop
    return table


def read_out(column: pa.ChunkedArray) -> list[Float32Array]:
    """Return what can be read out of a column, float32 arrays of shape (n, e); empty for others."""
    # A free text (two words or more, different in at least half of the rows) gives counts of its
    # words, hashed into 8 to 128 numbers of unit length; a date its month, day and weekday, a time
    # of day also its hour. Whole numbers beyond 2**24 give their last bits, which float32 would
    # drop, and a column with zeros below zero, or with NaN beside missing values, says which they
    # are. Each depends on the row's own value alone.
    try:
        text = is_any(value_type(column.type), *TEXTS)
        plain = column if text else decoded(column)
        if is_any(plain.type, "date", "timestamp"):
            parts: list[Any] = [pc.month(plain), pc.day(plain), pc.day_of_week(plain)]
            parts += [pc.hour(plain)] if is_any(plain.type, "timestamp") else []
            numbers = [np.asarray(p.cast(pa.float32()).to_numpy(), dtype=np.float32) for p in parts]
            return [np.stack(numbers, axis=1)]
        if text:
            some = without_long_texts(column.slice(0, _TEXTS_LOOKED_AT))
            some = some.drop_null().cast(pa.large_string())
            enough, spaces = len(some) >= _FEWEST_TEXTS, pc.count_substring(some, pattern=" ")
            free = enough and pc.count_distinct(some).as_py() >= len(some) / 2
            if free and pc.mean(spaces).as_py() >= 1.0:
                from sklearn.feature_extraction.text import HashingVectorizer

                width = np.clip(_ENTRIES // max(len(plain), 1), _FEWEST_NUMBERS, _MOST_NUMBERS)
                hashing = HashingVectorizer(n_features=int(width), dtype=np.float32)
                values, codes = distinct_values(column)
                words = hashing.transform(value.as_py() or "" for value in values)
                counted: Float32Array = np.zeros((len(values) + 1, int(width)), dtype=np.float32)
                counted[:-1] = words.toarray()
                return [counted[codes]]
        if is_any(column.type, "integer", "floating"):
            return _hidden_in_numbers(plain)
        if is_any(column.type, "list", "large_list", "fixed_size_list"):
            return _hidden_in_lists(plain)
    except pa.ArrowException:  # What cannot be read here is a category all the same, or refused.
        pass
    return []


def lost_in_arrays(column: pa.ChunkedArray) -> list[tuple[str, Float32Array]]:
    """Return what arrays do not keep of each value, float32 (n,), with what it says."""
    # Of float64 whether it is a float32 as well, and its decimals, 9 for more than eight; of texts
    # their length; of times, which are days in an array, minutes and seconds. What is the same in
    # every row is left out.
    found: list[tuple[str, Any]] = []
    try:
        if pa.types.is_float64(column.type):
            short, places = list[Any](), list[Any]()
            for piece in _pieces(column):
                values = np.asarray(piece.to_numpy())
                with np.errstate(over="ignore"):
                    short.append(values.astype(np.float32).astype(np.float64) == values)
                places.append(decimals(values).astype(np.int8))
            found = [
                ("whether it is a float32", np.concatenate(short)),
                ("number of decimals", np.concatenate(places)),
            ]
        elif is_any(value_type(column.type), *TEXTS):
            values, codes = distinct_values(column)
            length = pc.utf8_length(values.cast(pa.large_string())).to_numpy()
            found = [("length of the text", np.append(length, -1)[codes])]
        elif is_any(column.type, "timestamp", "time"):
            parts = {"minute": pc.minute, "second": pc.second, "part of a second": pc.subsecond}
            found = [
                (name, part(column).cast(pa.float64()).to_numpy()) for name, part in parts.items()
            ]
    except pa.ArrowException:
        return []
    return [
        (kind, np.asarray(mark, dtype=np.float32))
        for kind, mark in found
        if len(mark) and (mark != mark[0]).any()
    ]


def decimals(values: FloatArray) -> IntArray:
    """Return the fewest decimals that write each number exactly, 9 for more than eight, int32."""
    found = np.full(len(values), 9, dtype=np.int32)
    left = np.arange(len(values))
    for places in range(9):
        scale = 10.0**places
        with np.errstate(over="ignore", invalid="ignore"):
            exact = np.rint(values[left] * scale) / scale == values[left]
        found[left[exact]] = places
        left = left[~exact]
    return found


def _hidden_in_lists(column: pa.ChunkedArray) -> list[Float32Array]:
    """Return which lists hold NaN that is no missing value, 2 or else 0, if any do."""
    if not pa.types.is_floating(column.type.value_type):
        return []
    kinds, start = np.zeros((len(column), 1), dtype=np.float32), 0
    for lists in column.chunks:
        gaps = pc.fill_null(pc.is_nan(pc.list_flatten(lists)), False)
        if pc.any(gaps).as_py():
            rows = pc.list_parent_indices(lists).filter(gaps).to_numpy()
            kinds[start + np.unique(rows)] = 2
        start += len(lists)
    return [kinds] if kinds.any() else []


def _hidden_in_numbers(column: pa.ChunkedArray) -> list[Float32Array]:
    """Return the last 24 bits of long codes, or which values are odd zeros and gaps, if any are."""
    # The latter is 1 for a zero below zero, 2 and 3 for NaN that is no missing value, else 0.
    pieces = [*_pieces(column)]
    if pa.types.is_floating(column.type) and any(_kinds_of_zeros(p).any() for p in pieces):
        kinds = np.concatenate([_kinds_of_zeros(piece) for piece in pieces])
        return [kinds.astype(np.float32)[:, None]]
    if not _holds_long_codes(pieces):
        return []
    return [np.concatenate([_last_bits(piece) for piece in pieces])[:, None]]


# Values of a column that are looked at together: as a whole they would be in memory several times.
_PIECE = 1 << 20


def _pieces(column: pa.ChunkedArray) -> Iterator[pa.ChunkedArray]:
    """Yield a column in pieces, at least one."""
    for start in range(0, max(len(column), 1), _PIECE):
        yield column.slice(start, _PIECE)


def _as_doubles(column: pa.ChunkedArray) -> FloatArray:
    """Return numbers as float64 of shape (n,), NaN where one is missing."""
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())


def _kinds_of_zeros(column: pa.ChunkedArray) -> HalfArray:
    """Return 1 for a zero below zero, 2 and 3 for NaN that is no missing value, int8 (n,)."""
    values = _as_doubles(column)
    negative, gap = np.signbit(values), np.isnan(values) & column.is_valid().to_numpy()
    return np.where(gap, 2 + negative, negative & (values == 0)).astype(np.int8)


def _holds_long_codes(pieces: Sequence[pa.ChunkedArray]) -> bool:
    """Return whether all numbers are whole, and one is beyond those of float32."""
    largest = -1.0
    for piece in pieces:
        sizes = np.abs(_as_doubles(piece))
        sizes = sizes[np.isfinite(sizes)]
        if (sizes != np.rint(sizes)).any():
            return False
        largest = max(largest, float(sizes.max(initial=-1.0)))
    return largest > _LARGEST_INTEGER


def _last_bits(column: pa.ChunkedArray) -> Float32Array:
    """Return the last 24 bits of whole numbers, float32 (n,)."""
    if pa.types.is_integer(column.type):
        codes = np.asarray(pc.fill_null(column, 0).to_numpy())
    else:
        values = _as_doubles(column)
        codes = np.where(np.abs(values) < 1 << 62, values, 0).astype(np.int64)
    return (codes & (_LARGEST_INTEGER - 1)).astype(np.float32)
