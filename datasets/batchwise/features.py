"""Feature columns of a large file, batch by batch, straight into the blocks of a feature table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.columns import ColumnSurvey
from ldpaudit.datasets.batchwise.categories import MOST, Categories
from ldpaudit.datasets.batchwise.extents import as_columns, extents_of
from ldpaudit.datasets.batchwise.facts import SeenColumn
from ldpaudit.datasets.column_survey import GLANCE
from ldpaudit.datasets.features import (
    EncodedFeatures,
    Extent,
    is_categorical,
    raw_numbers,
    sortable,
)
from ldpaudit.datasets.formats.opening import FileBatches
from ldpaudit.datasets.names import ColumnError, of_column
from ldpaudit.datasets.texts import Reader, reader_of
from ldpaudit.errors import InputError
from ldpaudit.release import FeatureTable, Float32Array, FloatArray
from ldpaudit.running.scratch import resting

RESTED: Final = 1 << 26
"""Bytes that are written to a mapped block before its pages are let go."""

Place = Callable[[tuple[int, ...], Any], Any]
"""Gives an array of a shape and dtype, in memory or on the disk."""


@dataclass
class Filling:
    """A feature table that is being filled.

    Attributes
    ----------
    whole : FeatureTable
        Its blocks.
    numbers : mapping
        For each column of numbers its extent, and its first and its last place in the block.
    categories : mapping
        For each column of categories what codes it.
    readers : mapping
        For each text or date what reads it out, and its first and its last place.
    seen : mapping
        What all rows tell of each column, those that are no features among them.
    names : sequence of str
        All columns of the file.
    """

    whole: FeatureTable
    numbers: Mapping[str, tuple[Extent, int, int]]
    categories: Mapping[str, Categories]
    readers: Mapping[str, tuple[Reader, int, int]]
    seen: Mapping[str, SeenColumn]
    names: Sequence[str]
    done: int = 0
    _met: dict[str, Extent] = field(default_factory=dict, repr=False)
    """The extents of the values, which need not be what the file states."""
    _fresh: int = field(default=0, repr=False)

    def add(self, batch: pa.RecordBatch) -> None:
        """Fill in the next rows."""
        rows = slice(self.done, self.done + len(batch))
        if rows.stop > len(self.whole):
            raise InputError("The file changed while it was being read.")
        for name, column in as_columns(batch).items():
            with of_column(name, self.names):
                self._add(name, column, rows)
        self.done = rows.stop
        self._fresh += len(batch) * max(self.whole.width, 1) * 4
        if self._fresh > RESTED:
            self.rest()

    def _add(self, name: str, column: pa.ChunkedArray, rows: slice) -> None:
        self.seen[name].add(column)
        if name in self.readers:
            reader, first, last = self.readers[name]
            assert self.whole.extra is not None
            self.whole.extra[rows, first:last] = reader(column)
        if name in self.categories:
            self.categories[name].add(sortable(column))
        elif name in self.numbers:
            extent, first, last = self.numbers[name]
            values = _numbers(column, last - first)
            met = Extent.of(values)
            self._met[name] = met.joined(self._met.get(name, met))
            self.whole.numeric[rows, first:last] = extent.narrowed(values)

    def finish(self) -> FeatureTable:
        """Put final codes in the place of provisional ones."""
        if self.done != len(self.whole):
            raise InputError("The file changed while it was being read.")
        for name, met in self._met.items():
            with of_column(name, self.names):
                if not self.numbers[name][0].is_of(met):
                    raise ColumnError("has other values than its file's statistics say.")
        ranks = [categories.ranks() for categories in self.categories.values()]
        for start in range(0, self.done, MOST):
            for place, table in enumerate(ranks):
                if table is not None:
                    codes = self.whole.categorical[start : start + MOST, place]
                    codes[:] = table[codes]
            resting(self.whole.categorical)
        self.rest()
        return self.whole

    def rest(self) -> None:
        """Let the blocks' pages go."""
        self._fresh = 0
        for block in (self.whole.numeric, self.whole.categorical, self.whole.extra):
            resting(block)


def encode_batches(
    source: FileBatches, features: Sequence[str], others: Sequence[str], place: Place
) -> tuple[EncodedFeatures, list[ColumnSurvey]]:
    """Encode the features of a file without ever holding more than one batch beside the blocks.

    Parameters
    ----------
    source : ParquetBatches or CsvBatches
        n rows.
    features : sequence of str
        The columns to encode.
    others : sequence of str
        Columns that are only surveyed.
    place : callable
        Gives the arrays of the blocks.

    Returns
    -------
    encoded : EncodedFeatures
        The same numbers and codes as from columns read whole; of a column with more than 2**20
        different values, codes that values share.
    surveys : list of ColumnSurvey
        Of the features, then of the others.

    Raises
    ------
    InputError
        If a column cannot be a feature, or the file changes meanwhile.
    """
    names = [*features, *others]
    kinds = {name: column.type for name, column in _head(source, names, 1).items()}
    texts = [name for name in features if is_categorical(kinds[name])]
    numeric = {name: kinds[name] for name in features if name not in texts}
    extents, widths = extents_of(source, numeric)
    assert source.row_count is not None
    n = source.row_count
    head = _head(source, names, GLANCE)
    readers = {name: reader_of(head[name], n) for name in features}
    read = {name: reader for name, reader in readers.items() if reader is not None}
    read_widths = {name: reader(head[name]).shape[1] for name, reader in read.items()}
    spans, extra = _spans(widths), _spans(read_widths)
    whole = FeatureTable(
        numeric=place((n, sum(widths.values())), np.float32),
        categorical=place((n, len(texts)), np.int32),
        cardinalities=(0,) * len(texts),
        columns=len(features),
        extra=place((n, sum(read_widths.values())), np.float32) if read else None,
    )
    filling = Filling(
        whole,
        numbers={name: (extents[name], *spans[name]) for name in numeric},
        categories={name: Categories(whole.categorical[:, j]) for j, name in enumerate(texts)},
        readers={name: (reader, *extra[name]) for name, reader in read.items()},
        seen={name: SeenColumn(name, head[name], n) for name in names},
        names=source.schema.names,
    )
    for batch in source.batches(names):
        filling.add(batch)
    return _encoded(filling, features), [filling.seen[name].survey() for name in names]


def _encoded(filling: Filling, features: Sequence[str]) -> EncodedFeatures:
    table = filling.finish()
    places = {name: place for place, name in enumerate(features)}
    cardinalities = [categories.cardinality for categories in filling.categories.values()]
    whole = FeatureTable(
        table.numeric, table.categorical, tuple(cardinalities), table.columns, table.extra
    )
    return EncodedFeatures(
        len(whole),
        numeric=[table.numeric[:, first:last] for _, first, last in filling.numbers.values()],
        categorical=[table.categorical[:, j] for j in range(len(filling.categories))],
        cardinalities=cardinalities,
        numeric_places=[places[name] for name in filling.numbers],
        categorical_places=[places[name] for name in filling.categories],
        columns=len(features),
        whole=whole,
    )


def _head(source: FileBatches, names: Sequence[str], rows: int) -> dict[str, pa.ChunkedArray]:
    """Return the first rows of each column."""
    found, count = [], 0
    for batch in source.batches(names):
        found.append(as_columns(batch.slice(0, rows - count)))
        count += len(batch)
        if count >= rows:
            break
    return {
        name: pa.chunked_array([chunk for part in found for chunk in part[name].chunks])
        for name in names
    }


def _spans(widths: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Return the first and the last place of each column in a block."""
    ends = np.cumsum([0, *widths.values()]).tolist()
    return {name: (ends[i], ends[i + 1]) for i, name in enumerate(widths)}


def _numbers(column: pa.ChunkedArray, width: int) -> FloatArray | Float32Array:
    if column.null_count == len(column):
        return np.full((len(column), width), np.nan, dtype=np.float32)
    values = raw_numbers(column)
    if np.isinf(values).any():
        raise ColumnError("must be finite; some values are infinite.")
    if values.shape[1] != width:
        raise ColumnError("must hold lists of one length.")
    return values
