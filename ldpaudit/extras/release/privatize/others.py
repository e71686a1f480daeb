"""Whether a table that goes along with the data holds other rows than the private ones."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ldpaudit.datasets.formats.tables import TableSource, is_any
from ldpaudit.doors import InputError, IntArray

Hashes = npt.NDArray[np.uint64]

# Of more different private rows a part is looked at, chosen by their hashes.
_MOST_KEPT: Final = 1 << 20
# Fewer rows prove nothing; so many in one order, or so many different ones, do.
_FEWEST: Final = 20
_FEWEST_DIFFERENT: Final = 8
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)


def check_not_the_same_file(data: Any, other: Any, role: str) -> None:
    """Refuse the private table itself as a table that goes along with it (InputError)."""
    if not (isinstance(data, str | os.PathLike) and isinstance(other, str | os.PathLike)):
        return
    one, beside = Path(data), Path(other)
    if one.exists() and beside.exists() and one.samefile(beside):
        raise _copy(role)


def check_other_rows(source: TableSource, table: pa.Table, role: str) -> None:
    """Refuse a table that is a copy of the private one, or most rows of which are private rows.

    ``table``: its features, with the names of the data's, in their plain types. Only rows that
    occur once in the private table count: those of few categories equal others by chance.
    """
    if not table.num_columns:
        return
    own = np.concatenate([*_hashes(table.to_batches(), table.schema), np.empty(0, np.uint64)])
    rows, in_order, private = 0, True, _Counts()
    different, often = np.unique(own, return_counts=True)
    met = np.zeros(len(different), dtype=np.int64)
    for hashes in _hashes(source.batches(table.column_names), table.schema):
        in_order = in_order and np.array_equal(own[rows : rows + len(hashes)], hashes)
        rows += len(hashes)
        place = np.minimum(np.searchsorted(different, hashes), max(len(different) - 1, 0))
        if len(different):
            np.add.at(met, place[different[place] == hashes], 1)
        private.add(hashes)
    if len(own) < _FEWEST:
        return
    same_rows = len(own) == rows and np.array_equal(often, met)
    if same_rows and (in_order or len(different) >= _FEWEST_DIFFERENT):
        raise _copy(role)
    once, twice = private.once_and_twice()
    equal = int(often[met == 1].sum())
    # The chance that a new row equals one that occurred once: Good (1953), the population
    # frequencies of species, Eq. (2).
    by_chance = min(2 * twice / max(rows, 1), 1.0)
    as_a_copy = once / max(rows, 1)
    if equal < _FEWEST or as_a_copy <= by_chance:
        return
    if equal / len(own) > (as_a_copy + by_chance) / 2:
        raise InputError(
            f"The {role} table must hold other rows than the private table: the features of "
            f"{equal:,} of its {len(own):,} rows are those of one person there, far more than by "
            "chance, and the guarantee of the mechanism assumes rows that do not come from it."
        )


class _Counts:
    """How many different rows occur once, and twice, in a table that is read once."""

    def __init__(self) -> None:
        self._below, self._kept = _ALL, np.empty(0, dtype=np.uint64)
        self._often: IntArray = np.empty(0, dtype=np.int32)

    def add(self, hashes: Hashes) -> None:
        every = np.concatenate([self._kept, hashes[hashes <= self._below]])
        weights = np.append(self._often, np.ones(len(every) - len(self._kept), dtype=np.int32))
        self._kept, place = np.unique(every, return_inverse=True)
        self._often = np.bincount(place, weights).astype(np.int32)
        while len(self._kept) > _MOST_KEPT:
            self._below //= np.uint64(2)
            some = self._kept <= self._below
            self._kept, self._often = self._kept[some], self._often[some]

    def once_and_twice(self) -> tuple[float, float]:
        """Return how many different rows occur once, and how many twice (of a part: about)."""
        part = (float(self._below) + 1) / (float(_ALL) + 1)
        once, twice = (float((self._often == n).sum()) / part for n in (1, 2))
        return once, twice


def _hashes(batches: Any, schema: pa.Schema) -> Iterator[Hashes]:
    """Yield a number for each row of the batches, equal for equal rows."""
    for batch in batches:
        mixed = np.zeros(len(batch), dtype=np.uint64)
        for name, kind in zip(schema.names, schema.types, strict=True):
            mixed = (mixed ^ _column(batch.column(name).cast(kind))) * _MIX
            mixed ^= mixed >> np.uint64(29)
        yield mixed


def _column(cells: pa.Array) -> Hashes:
    """Return a number for each cell of a column, equal for equal cells."""
    if is_any(cells.type, "temporal"):
        cells = cells.view(pa.int32() if cells.type.bit_width == 32 else pa.int64())
    if is_any(cells.type, "integer", "floating", "boolean"):
        values = cells.cast(pa.float64(), safe=False).fill_null(np.nan)
        found = values.to_numpy(zero_copy_only=False) + 0.0  # −0 is 0.
        found[np.isnan(found)] = np.nan  # One of many.
        return np.asarray(pd.util.hash_array(found))
    if pa.types.is_nested(cells.type):
        return _texts([str(value) for value in cells.to_pylist()])
    encoded = cells.dictionary_encode()
    places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    every = _texts([*map(str, encoded.dictionary.to_pylist()), "\0"])
    return np.asarray(every[places])


def _texts(values: list[str]) -> Hashes:
    return np.asarray(pd.util.hash_array(np.array(values, dtype=object), categorize=False))


def _copy(role: str) -> InputError:
    return InputError(
        f"The {role} table is the private table itself, or a copy of it; the guarantee of the "
        "mechanism assumes rows that do not come from it."
    )
