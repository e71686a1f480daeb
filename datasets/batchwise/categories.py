"""The codes of one column of categories, whose values are known only at the end."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.release import IntArray

MOST: Final = 1 << 20
"""Different values that get a code each; with more, values share this many codes."""


class Categories:
    """Collects the values of a column and writes codes, provisional ones at first.

    Parameters
    ----------
    out : int32 array of shape (n,)
        Where the codes go; a view of a block.
    """

    def __init__(self, out: IntArray) -> None:
        self._out = out
        self._done = 0
        self._kind: pa.DataType | None = None
        self._places: dict[Any, int] = {}
        self._shared: IntArray | None = None
        """The codes of the values that came before codes were shared."""

    def add(self, column: pa.ChunkedArray) -> None:
        """Write the codes of the next rows."""
        encoded = column.dictionary_encode().combine_chunks()
        codes = np.append(self._codes(encoded.dictionary), np.int32(-1))
        indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        self._out[self._done : self._done + len(indices)] = codes[indices]
        self._done += len(indices)

    def _codes(self, dictionary: pa.Array) -> IntArray:
        self._kind = dictionary.type
        values = [v if v == v else None for v in dictionary.to_pylist()]
        if self._shared is not None:
            return _hashed(values)
        places = self._places
        codes = [places.setdefault(value, len(places)) for value in values]
        if len(places) <= MOST:
            return np.array(codes, dtype=np.int32)
        self._share()
        return _hashed(values)

    def _share(self) -> None:
        """Let values share codes from here on: those of earlier rows are exchanged at once."""
        shared = np.append(_hashed(list(self._places)), np.int32(-1))
        exchange(self._out[: self._done], shared)
        self._shared, self._places = shared, {}

    @property
    def cardinality(self) -> int:
        """How many codes there are."""
        return MOST if self._shared is not None else len(self._places)

    def ranks(self) -> IntArray | None:
        """Return the final code of each provisional one and, last, that of a missing value.

        Final codes are positions among the sorted values. None: the codes are final already.
        """
        if self._shared is not None or not self._places:
            return None
        order = pc.array_sort_indices(pa.array(list(self._places), self._kind)).to_numpy()
        ranks = np.full(len(order) + 1, -1, dtype=np.int32)
        ranks[order] = np.arange(len(order), dtype=np.int32)
        return ranks


def exchange(codes: IntArray, table: IntArray) -> None:
    """Exchange codes for those of a table, in place; its last entry is for −1."""
    for start in range(0, len(codes), MOST):
        part = codes[start : start + MOST]
        part[:] = table[part]


def _hashed(values: Sequence[Any]) -> IntArray:
    """Return codes below 2**20 that depend on each value alone, int32 of shape (len(values),)."""
    texts: npt.NDArray[np.object_] = np.array(
        [value if isinstance(value, bytes) else str(value) for value in values], dtype=object
    )
    return (hashes(texts) % np.uint64(MOST)).astype(np.int32)


def hashes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return a hash of each value, uint64 of the same shape, the same on every machine."""
    import pandas as pd

    return np.asarray(pd.util.hash_array(values, categorize=False))
