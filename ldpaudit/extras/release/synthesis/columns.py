"""Feature tables as numbers and codes for a generator, and back: the same schema and types."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import ndtr, ndtri

from ldpaudit.datasets.formats.tables import LISTS, NUMBERS, is_any
from ldpaudit.datasets.names import ColumnError, check_unique, of_column
from ldpaudit.doors import FloatArray, InputError, IntArray
from ldpaudit.release import Float32Array

_QUANTILES: Final = 1001
# A column of at most this many different numbers is given only numbers that occur.
_MOST_VALUES: Final = 256
# Rarer categories than these share one code and are drawn by their shares.
_MOST_LEVELS: Final = 100
_TAIL: Final = 1e-5


class Encoded(NamedTuple):
    """Rows in a form without units, names or missing values."""

    numbers: Float32Array
    """Float32 array of shape (n, d): each coordinate standard normal over the training rows."""
    codes: IntArray
    """Int32 array of shape (n, c): one column for each category and each missing-or-not."""
    sizes: Sequence[int]
    """Sequence of int, length c: the number of codes of each."""

    def flat(self) -> Float32Array:
        """Return numbers and one 0/1 coordinate for each code, float32 (n, d + Σ sizes)."""
        hot = [np.eye(k, dtype=np.float32)[self.codes[:, j]] for j, k in enumerate(self.sizes)]
        return np.hstack([self.numbers, *hot])

    def take(self, rows: npt.NDArray[np.integer]) -> "Encoded":
        """Return the given rows."""
        return Encoded(self.numbers[rows], self.codes[rows], self.sizes)


@dataclass(frozen=True)
class Columns:
    """How each column of a table is encoded.

    Numbers go through scikit-learn's QuantileTransformer. Equal values are spread at random over
    the share of rows that they hold, so a column with a heavy value (0 for most people, say) has
    the same law as any other, and comes back with that value at its share.
    ``schema``, pyarrow.Schema: that of the fitted table, metadata left out. ``quantiles``,
    float64 array of shape (q, d): of each coordinate, at equally spaced levels. ``widths``, list
    of int: the coordinates of each column of numbers; 1, but for a list column. ``seen``, list of
    float64 arrays: the numbers that occur in each column of numbers, where there are few; else
    empty. ``states``, list of lists of int: for each column of numbers the states that occur: 0
    present, 1 null, 2 NaN. A synthetic row must not be recognised by a null where true rows have
    a NaN. ``levels``, list of pyarrow.Array: the values of each other column by falling
    frequency, a null among them. ``shares``, list of float64 arrays: their shares of the rows.
    """

    schema: pa.Schema
    quantiles: FloatArray
    widths: list[int]
    seen: list[FloatArray]
    states: list[list[int]]
    levels: list[pa.Array]
    shares: list[FloatArray]

    @classmethod
    def fit(cls, table: pa.Table) -> "Columns":
        """Learn the columns of a table of n ≥ 1 rows."""
        names = table.schema.names
        check_unique(names)
        blocks, states, levels, shares = [], [], [], []
        for field, column in zip(table.schema, table.columns, strict=True):
            with of_column(field.name, names, " of the features"):
                if is_number(field.type):
                    blocks.append(numbers_of(column))
                    states.append(np.unique(_state(column)).tolist())
                    continue
                counts, values = _counted(column)
                levels.append(values)
                shares.append(counts / counts.sum())
        joined = np.hstack([np.zeros((len(table), 0)), *blocks])
        quantiles = np.zeros((2, 0))
        if joined.shape[1]:
            from sklearn.preprocessing import QuantileTransformer

            joined[:, np.isnan(joined).all(axis=0)] = 0.0
            scaler = QuantileTransformer(
                n_quantiles=min(_QUANTILES, len(joined)), subsample=None
            ).fit(joined)
            quantiles = scaler.quantiles_
        return cls(
            table.schema.remove_metadata(),
            quantiles,
            [block.shape[1] for block in blocks],
            [seen_values(block) for block in blocks],
            states,
            levels,
            shares,
        )

    @property
    def sizes(self) -> list[int]:
        """The number of codes of each category, then of each column with some missing numbers."""
        known = [min(len(values), _MOST_LEVELS + 1) for values in self.levels]
        return known + [len(some) for some in self.states if len(some) > 1]

    def encode(self, table: pa.Table, rng: np.random.Generator) -> Encoded:
        """Return the rows of the fitted table; a missing number is a random one."""
        blocks = [np.zeros((len(table), 0))]
        codes: list[IntArray] = []
        holes: list[npt.NDArray[np.int64]] = []
        for column in table.columns:
            if not is_number(column.type):
                places = pc.index_in(_plain(column), self.levels[len(codes)], skip_nulls=False)
                last = min(len(self.levels[len(codes)]) - 1, _MOST_LEVELS)
                codes.append(np.minimum(np.asarray(places.to_numpy()), last))
                continue
            states = self.states[len(blocks) - 1]
            if len(states) > 1:
                holes.append(np.searchsorted(states, _state(column)))
            blocks.append(numbers_of(column))
        share = np.hstack(blocks)
        if share.shape[1]:
            # Just below and just above a value: the two ends of the rows that have it.
            below, upto = (
                self._scaler().transform(np.nextafter(share, end)) for end in (-np.inf, np.inf)
            )
            share = below + (upto - below) * rng.random(share.shape)
        share = np.where(np.isnan(share), rng.random(share.shape), share)
        numbers = ndtri(np.clip(share, _TAIL, 1 - _TAIL)).astype(np.float32)
        empty = np.zeros((len(table), 0))
        cells = np.column_stack([empty, *codes, *holes]).astype(np.int32)
        return Encoded(numbers, cells, self.sizes)

    def decode(self, rows: Encoded, rng: np.random.Generator) -> pa.Table:
        """Return a table of the fitted schema."""
        values = ndtr(rows.numbers.astype(np.float64))
        if values.size:
            values = self._scaler().inverse_transform(values)
        arrays, number, code, start, hole = [], 0, 0, 0, len(self.levels)
        for field in self.schema:
            if not is_number(field.type):
                arrays.append(self._drawn(code, rows.codes[:, code], field.type, rng))
                code += 1
                continue
            stop, states = start + self.widths[number], np.asarray(self.states[number])
            state = np.repeat(states[:1], len(values))
            if len(states) > 1:
                state, hole = states[rows.codes[:, hole]], hole + 1
            block = nearest_seen(values[:, start:stop], self.seen[number])
            arrays.append(arrow_of(block, field.type, state))
            number, start = number + 1, stop
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def _scaler(self) -> Any:
        from sklearn.preprocessing import QuantileTransformer

        scaler = QuantileTransformer()
        scaler.quantiles_ = self.quantiles
        scaler.references_ = np.linspace(0.0, 1.0, len(self.quantiles))
        scaler.n_features_in_ = self.quantiles.shape[1]
        return scaler

    def _drawn(
        self, place: int, codes: IntArray, kind: pa.DataType, rng: np.random.Generator
    ) -> pa.Array:
        """Return values of the column's type; the shared code is drawn among the rare values."""
        chosen, shares = codes.astype(np.int64), self.shares[place]
        if len(shares) > _MOST_LEVELS + 1:
            rare, weights = np.flatnonzero(chosen == _MOST_LEVELS), shares[_MOST_LEVELS:]
            chosen[rare] += rng.choice(len(weights), len(rare), p=weights / weights.sum())
        return self.levels[place].take(pa.array(chosen)).cast(kind)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of this type is one of numbers, dates or lists of numbers."""
    if is_any(kind, *LISTS):
        return is_any(kind.value_type, "integer", "floating")
    return is_any(kind, *NUMBERS, "temporal") and not pa.types.is_interval(kind)


def numbers_of(column: pa.ChunkedArray) -> FloatArray:
    """Return numbers, dates or lists as float64 of shape (n, width), NaN where missing."""
    if not is_any(column.type, *LISTS):
        block = _floats(column)[:, None]
    else:
        present = column.drop_null()
        if pc.count_distinct(pc.list_value_length(present)).as_py() > 1:
            raise ColumnError("must hold lists of one length.")
        entries = _floats(pc.list_flatten(present))
        if np.isnan(entries).any():
            raise ColumnError("must hold lists without missing entries.")
        fixed = pa.types.is_fixed_size_list(column.type)
        width = column.type.list_size if fixed else len(entries) // max(len(present), 1)
        block = np.full((len(column), width), np.nan)
        block[np.asarray(column.is_valid().to_numpy())] = entries.reshape(len(present), width)
    if np.isinf(block).any():
        raise ColumnError("must be finite to be generated.")
    return block


def arrow_of(block: FloatArray, kind: pa.DataType, state: npt.NDArray[Any]) -> pa.Array:
    """Return rows of a type from numbers of shape (m, width) and their states, see Columns."""
    mask = pa.array(state == 1)
    if not is_any(kind, *LISTS):
        flat = np.where(state == 2, np.nan, block[:, 0])
        return pc.if_else(mask, pa.scalar(None, kind), _scalars(flat, kind))
    entries = _scalars(block.ravel(), kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(entries, type=kind, mask=mask)
    large = pa.types.is_large_list(kind)
    maker, whole = (pa.LargeListArray, np.int64) if large else (pa.ListArray, np.int32)
    offsets = (np.arange(len(block) + 1) * block.shape[1]).astype(whole)
    return maker.from_arrays(pa.array(offsets), entries, type=kind, mask=mask)


def seen_values(values: FloatArray) -> FloatArray:
    """Return the different values where they are few, else none; float64 of shape (v,)."""
    distinct = np.unique(values[~np.isnan(values)])
    few = len(distinct) <= min(_MOST_VALUES, max(values.size // 2, 1))
    return distinct if few else np.zeros(0)


def nearest_seen(values: FloatArray, seen: FloatArray) -> FloatArray:
    """Return for each value the nearest one of ``seen``, which is sorted; all if it is empty."""
    middles = (seen[1:] + seen[:-1]) / 2
    return np.asarray(seen[np.searchsorted(middles, values)]) if len(seen) else values


def _integer(kind: pa.DataType) -> pa.DataType | None:
    """Return the integer type behind whole numbers and dates, None for other numbers."""
    if pa.types.is_temporal(kind):
        return pa.int32() if kind.bit_width == 32 else pa.int64()
    return kind if pa.types.is_integer(kind) else None


def _floats(values: Any) -> FloatArray:
    whole = _integer(values.type)
    plain = values if whole is None else values.cast(whole)
    return np.array(plain.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _scalars(flat: FloatArray, kind: pa.DataType) -> pa.Array:
    whole = _integer(kind)
    if whole is not None:
        limits = np.iinfo(whole.to_pandas_dtype())
        # float64 may round the largest number up, beyond what the type holds.
        held = np.clip(flat, float(limits.min), np.nextafter(float(limits.max), 0.0))
        return pa.array(np.rint(held).astype(limits.dtype)).cast(kind)
    if pa.types.is_decimal(kind):
        flat = np.round(flat, max(kind.scale, 0))
    return pa.array(flat).cast(kind, safe=False)


def _state(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    state = (~np.asarray(column.is_valid().to_numpy())).astype(np.int64)
    if pa.types.is_floating(column.type):
        state[np.asarray(pc.is_nan(column).fill_null(False).to_numpy())] = 2
    return state


def _plain(column: pa.ChunkedArray) -> Any:
    dictionary = pa.types.is_dictionary(column.type)
    return column.cast(column.type.value_type) if dictionary else column


def _counted(column: pa.ChunkedArray) -> tuple[FloatArray, pa.Array]:
    """Return counts and values by falling frequency, equal counts as they first occur."""
    try:
        counted = pc.value_counts(_plain(column))
    except pa.ArrowException:
        raise ColumnError(
            "cannot be generated: it must hold numbers, texts, booleans, dates or lists of "
            "numbers (leave it out)."
        ) from None
    counts = np.asarray(counted.field("counts").to_numpy(), dtype=np.float64)
    order = np.argsort(-counts, kind="stable")
    return counts[order], counted.field("values").take(pa.array(order))


@dataclass(frozen=True)
class Images:
    """The range of the pixels of one list column, and where each class is ever lit."""

    schema: pa.Schema
    side: int
    low: float
    high: float
    seen: FloatArray
    lit: IntArray
    black: FloatArray
    cut: FloatArray

    @classmethod
    def fit(cls, table: pa.Table, labels: IntArray, classes: int) -> "Images":
        """Learn the range of a table of images (InputError where it is none)."""
        side = image_side(table)
        if side is None:
            raise InputError(
                "A convolutional generator must have one column of lists of s² numbers, s ≥ 8, and "
                "no other feature column."
            )
        pixels = numbers_of(table.column(0))
        low, high = float(pixels.min()), float(pixels.max())
        bright = [pixels[labels == y] > low for y in range(classes)]
        lit = np.stack([some.any(axis=0) for some in bright])
        black = np.array([1 - some.mean() for some in bright])
        schema = table.schema.remove_metadata()
        return cls(
            schema,
            side,
            low,
            high,
            seen_values(pixels),
            lit.astype(np.int32),
            black,
            np.full(classes, -1.0),
        )

    def cut_off(self, made: Float32Array) -> "Images":
        """Return the same with cuts that make each class's images as black as its training images.

        A network's background is nearly black and nowhere exactly black. ``made`` has generated
        pixels of each class, of shape (k, m).
        """
        pairs = zip(made, self.black, strict=True)
        cut = [np.quantile(some, share) if share > 0 else -1.0 for some, share in pairs]
        return replace(self, cut=np.array(cut))

    def encode(self, table: pa.Table) -> Float32Array:
        """Return the fitted table's pixels, float32 of shape (n, s²)."""
        spread = max(self.high - self.low, np.finfo(np.float64).tiny)
        return (2 * (numbers_of(table.column(0)) - self.low) / spread - 1).astype(np.float32)

    def decode(self, pixels: Float32Array, labels: IntArray) -> pa.Table:
        """Return a table of the fitted schema from pixels of shape (m, s²)."""
        bright = (self.lit[labels] == 1) & (pixels > self.cut[labels][:, None])
        share = np.where(bright, (np.clip(pixels, -1, 1) + 1) / 2, 0.0)
        values = nearest_seen(self.low + share * (self.high - self.low), self.seen)
        present = np.zeros(len(values), dtype=np.int64)
        return pa.Table.from_arrays(
            [arrow_of(values, self.schema.field(0).type, present)], schema=self.schema
        )


def image_side(table: pa.Table) -> int | None:
    """Return s where the table is one full column of lists of s² numbers, s ≥ 8; else None."""
    kind = table.schema.field(0).type if table.num_columns == 1 else pa.null()
    column = table.column(0)
    if not (is_any(kind, *LISTS) and is_number(kind)) or not len(table) or column.null_count:
        return None
    try:
        width = numbers_of(column).shape[1]
    except InputError:
        return None
    side = math.isqrt(width)
    return side if side * side == width and side >= 8 else None
