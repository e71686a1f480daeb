"""Columns of labels of a large file as dictionaries: each different value once."""

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import decoded, stored
from ldpaudit.datasets.formats.opening import FileBatches

_FEW: Final = 1 << 15
"""Different values whose codes fit into 16 bits."""


def coded_columns(source: FileBatches, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Return columns of few different values as dictionaries with small indices, in row order.

    Values are in the order in which they occur; missing ones stay missing.
    """
    found = {name: _Coded() for name in names}
    for batch in source.batches(names, as_text=names):
        for name, column in zip(names, batch.columns, strict=True):
            found[name].add(column)
    return {name: coded.column() for name, coded in found.items()}


class _Coded:
    """One column."""

    def __init__(self) -> None:
        self._values: pa.Array | None = None
        self._codes: list[pa.Array] = []

    def add(self, column: pa.Array) -> None:
        plain = decoded(stored(pa.chunked_array([column])))
        encoded = plain.dictionary_encode().combine_chunks()
        if self._values is None:
            self._values = encoded.dictionary
        places = pc.index_in(encoded.dictionary, value_set=self._values)
        new = encoded.dictionary.filter(places.is_null())
        if len(new):
            self._values = pa.concat_arrays([self._values, new])
            places = pc.index_in(encoded.dictionary, value_set=self._values)
        few = len(self._values) <= _FEW
        self._codes.append(pc.take(places, encoded.indices).cast(pa.int16() if few else pa.int32()))

    def column(self) -> pa.ChunkedArray:
        if self._values is None:
            return pa.chunked_array([], pa.dictionary(pa.int32(), pa.null()))
        kind = self._codes[-1].type
        codes = [codes.cast(kind) for codes in self._codes]
        chunks = [pa.DictionaryArray.from_arrays(some, self._values) for some in codes]
        return pa.chunked_array(chunks)
