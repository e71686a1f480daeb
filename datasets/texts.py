"""What models of the label read out of free texts, dates and long numbers, as numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import TEXTS, decoded, is_any
from ldpaudit.release import Float32Array, FloatArray

_FEWEST_TEXTS = 100
_DIFFERENT = 0.5
_LOOKED_AT = 1_000
_LEAST_SPACES = 1.0
_ENTRIES = 6_400_000
_BITS = 1 << 24
"""Every integer up to this one is a float32 of its own."""
_NARROWEST, _WIDEST = 8, 128
"""Numbers of a text: as many as fit into 25 MB, within these."""


Reader = Callable[[pa.ChunkedArray], Float32Array]


def read_out(column: pa.ChunkedArray) -> list[Float32Array]:
    """Return what can be read out of a column, float32 arrays of shape (n, e); empty for others.

    A free text (two words or more, different in at least half of the rows) gives counts of its
    words, hashed into 8 to 128 numbers of unit length; a date its month, day and weekday, a time
    of day also its hour. Whole numbers beyond 2**24 give their last bits, which float32 would drop,
    and a column with zeros below zero, or with NaN beside missing values, says which they are.
    Each depends on the row's own value alone.
    """
    reader = reader_of(column, len(column))
    try:
        return [] if reader is None else [reader(column)]
    except pa.ArrowException:  # What cannot be read here is a category all the same, or refused.
        return []


def reader_of(head: pa.ChunkedArray, rows: int) -> Reader | None:
    """Return what reads texts or dates of a column of ``rows`` rows, by its first rows.

    None where there is nothing to read out.
    """
    try:
        column = decoded(head)
        if is_any(column.type, "date", "timestamp"):
            return _date_parts
        if is_any(column.type, *TEXTS) and _is_free(column):
            width = int(np.clip(_ENTRIES // max(rows, 1), _NARROWEST, _WIDEST))
            return partial(_hashed_words, width=width)
        if is_any(head.type, "integer", "floating"):
            return _reader_of_numbers(column)
    except pa.ArrowException:
        return None
    return None


def _reader_of_numbers(column: pa.ChunkedArray) -> Reader | None:
    if pa.types.is_floating(column.type) and _zeros_and_gaps(column).any():
        return _zeros_and_gaps
    values = np.abs(_float64(column))
    whole = values[np.isfinite(values)]
    if len(whole) and whole.max() > _BITS and (whole == np.rint(whole)).all():
        return _last_bits
    return None


def _is_free(column: pa.ChunkedArray) -> bool:
    some = column.slice(0, _LOOKED_AT)
    texts = some.drop_null().cast(pa.large_string())
    if len(texts) < _FEWEST_TEXTS or pc.count_distinct(texts).as_py() < _DIFFERENT * len(texts):
        return False
    spaces = pc.mean(pc.count_substring(texts, pattern=" ")).as_py()
    return bool(spaces >= _LEAST_SPACES)


def _hashed_words(column: pa.ChunkedArray, *, width: int) -> Float32Array:
    from sklearn.feature_extraction.text import HashingVectorizer

    hashing = HashingVectorizer(n_features=width, dtype=np.float32)
    texts = (value.as_py() or "" for value in decoded(column))
    return np.asarray(hashing.transform(texts).toarray(), dtype=np.float32)


def _date_parts(column: pa.ChunkedArray) -> Float32Array:
    column = decoded(column)
    parts: list[Any] = [pc.month(column), pc.day(column), pc.day_of_week(column)]
    if is_any(column.type, "timestamp"):
        parts.append(pc.hour(column))
    numbers = (part.cast(pa.float32()).to_numpy() for part in parts)
    return np.stack([np.asarray(values, dtype=np.float32) for values in numbers], axis=1)


def _float64(column: pa.ChunkedArray) -> FloatArray:
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())


def _last_bits(column: pa.ChunkedArray) -> Float32Array:
    """Return the last 24 bits of whole numbers, which long codes differ in."""
    if pa.types.is_integer(column.type):
        whole = np.asarray(pc.fill_null(column, 0).to_numpy())
    else:
        values = _float64(column)
        whole = np.where(np.abs(values) < 1 << 62, values, 0).astype(np.int64)
    return (whole & (_BITS - 1)).astype(np.float32)[:, None]


def _zeros_and_gaps(column: pa.ChunkedArray) -> Float32Array:
    """Return 1 for a zero below zero, 2 and 3 for NaN that is no missing value, else 0."""
    values, present = _float64(column), column.is_valid().to_numpy()
    negative, gap = np.signbit(values), np.isnan(values) & present
    kinds = np.where(gap, 2 + negative, negative & (values == 0))
    return np.asarray(kinds, dtype=np.float32)[:, None]
