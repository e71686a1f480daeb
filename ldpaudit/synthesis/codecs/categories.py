"""Columns of texts, booleans and other categories as codes, and back."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.names import ColumnError
from ldpaudit.release import FloatArray, IntArray

_MOST_LEVELS = 100
"""Rarer levels than these share one code and are drawn by their shares."""


@dataclass(frozen=True)
class CategoryColumn:
    """The values of one column, the most frequent first, "missing" included.

    Attributes
    ----------
    kind : pyarrow.DataType
        The column's type.
    levels : pyarrow.Array of v values
        Every value that occurs, by falling frequency; a null is "missing".
    shares : float64 array of shape (v,)
        Their shares of the rows.
    """

    kind: pa.DataType
    levels: pa.Array
    shares: FloatArray

    @property
    def cardinality(self) -> int:
        """The number of codes: at most 101, where the last one holds all rarer values."""
        return min(len(self.levels), _MOST_LEVELS + 1)

    @classmethod
    def fit(cls, column: pa.ChunkedArray) -> "CategoryColumn":
        """Learn a column's values.

        Raises
        ------
        InputError
            If they are of a type that cannot be told apart, such as nested objects.
        """
        plain = _plain(column)
        try:
            counted = pc.value_counts(plain)
        except pa.ArrowException:
            raise ColumnError(
                "cannot be generated: it must hold numbers, texts, booleans, dates or lists of "
                "numbers (leave it out)."
            ) from None
        counts = np.asarray(counted.field("counts").to_numpy(), dtype=np.float64)
        # Equal counts keep the order in which the values first occur.
        order = np.argsort(-counts, kind="stable")
        levels = counted.field("values").take(pa.array(order))
        return cls(column.type, levels, counts[order] / counts.sum())

    def encode(self, column: pa.ChunkedArray) -> IntArray:
        """Return codes in 0 … cardinality − 1, int32 of shape (n,)."""
        places = pc.index_in(_plain(column), self.levels, skip_nulls=False)
        codes = np.asarray(places.to_numpy(), dtype=np.int32)
        return np.minimum(codes, np.int32(self.cardinality - 1))

    def decode(self, codes: IntArray, rng: np.random.Generator) -> pa.Array:
        """Return values of the column's type; the shared code is drawn among the rare values."""
        chosen = codes.astype(np.int64)
        last = self.cardinality - 1
        if len(self.levels) > self.cardinality:
            rare = np.flatnonzero(chosen == last)
            weights = self.shares[last:] / self.shares[last:].sum()
            chosen[rare] = last + rng.choice(len(weights), len(rare), p=weights)
        return _typed(self.levels.take(pa.array(chosen)), self.kind)


def _plain(column: pa.ChunkedArray) -> Any:
    if not pa.types.is_dictionary(column.type):
        return column
    try:
        return column.cast(column.type.value_type)
    except pa.ArrowException:
        raise ColumnError("holds categories that cannot be read.") from None


def _typed(values: pa.Array, kind: pa.DataType) -> pa.Array:
    if not pa.types.is_dictionary(kind):
        return values.cast(kind)
    encoded = values.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        encoded.indices.cast(kind.index_type), encoded.dictionary, ordered=kind.ordered
    )
