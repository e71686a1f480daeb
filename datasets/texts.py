"""What models of the label read out of free texts and dates, as numbers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import TEXTS, decoded, is_any
from ldpaudit.release import Float32Array

_FEWEST_TEXTS = 100
_DIFFERENT = 0.5
_LOOKED_AT = 1_000
_LEAST_SPACES = 1.0
_ENTRIES = 6_400_000
_NARROWEST, _WIDEST = 8, 128
"""Numbers of a text: as many as fit into 25 MB, within these."""


Reader = Callable[[pa.ChunkedArray], Float32Array]


def read_out(column: pa.ChunkedArray) -> list[Float32Array]:
    """Return what can be read out of a column, float32 arrays of shape (n, e); empty for others.

    A free text (two words or more, different in at least half of the rows) gives counts of its
    words, hashed into 8 to 128 numbers of unit length; a date its month, day and weekday, a time
    of day also its hour. Each depends on the row's own value alone.
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
    except pa.ArrowException:
        return None
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
