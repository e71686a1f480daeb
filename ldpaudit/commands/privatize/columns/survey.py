"""Everything that is looked for while a table is released."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.columns.exact import DecidingColumns
from ldpaudit.commands.privatize.columns.order import RowOrder
from ldpaudit.commands.privatize.columns.sampled import ColumnSample
from ldpaudit.commands.privatize.columns.warnings import (
    order_warning,
    pair_warnings,
    scan_warnings,
    survey_warnings,
)
from ldpaudit.datasets.formats.columns import computed_type
from ldpaudit.datasets.names import quoted
from ldpaudit.release import IntArray


class ReleasedColumns:
    """Watches the rows as they are released.

    Parameters
    ----------
    columns : sequence of str
        The feature columns that are released unchanged.
    kept : collection of str
        Those that the owner releases whatever they tell.
    rows : int
        How many rows there will be.
    private : sequence of str
        The private columns; each is looked at.
    names : sequence of str
        All columns of the file.
    """

    def __init__(
        self,
        columns: Sequence[str],
        kept: Collection[str],
        rows: int,
        private: Sequence[str],
        names: Sequence[str],
    ) -> None:
        others = [name for name in columns if name not in kept]
        self._private, self._names = list(private), names
        alone = len(self._private) == 1
        told = ["the true label" if alone else f"the true {quoted(name)}" for name in private]
        self._deciding = [DecidingColumns(others, told=what, names=names) for what in told]
        self._pairs = [DecidingColumns(self._private[i + 1 :]) for i in range(len(told) - 1)]
        self._sample = ColumnSample(others, rows)
        self._orders = [RowOrder() for _ in told]

    def watch(
        self, features: pa.RecordBatch, labels: Sequence[pa.Array], codes: Sequence[IntArray]
    ) -> None:
        """Add a batch: features, and of each private column true labels, and these as codes."""
        for deciding, label in zip(self._deciding, labels, strict=True):
            deciding.watch(features, label)
        if self._pairs:
            private = pa.RecordBatch.from_arrays(list(labels), names=self._private)
            for pair, label in zip(self._pairs, labels, strict=False):
                pair.watch(private, label)
        self._sample.watch(features, labels)
        for order, own in zip(self._orders, codes, strict=True):
            order.watch(own)

    def check(self) -> tuple[str, ...]:
        """Refuse columns that give a label away in every row (InputError); return warnings."""
        for deciding in self._deciding:
            deciding.check()
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        for place, name in enumerate(self._private):
            about = "" if len(self._private) == 1 else f"Private column {quoted(name)}: "
            scanned = self._sample.scan(place)
            if scanned is not None:
                yield from (about + text for text in scan_warnings(*scanned, self._names))
            if place == len(self._private) - 1:
                yield from survey_warnings(self._sample.survey(self._names), self._names)
            yield from (about + text for text in order_warning(self._orders[place].strongest()))
        for pair, name in zip(self._pairs, self._private, strict=False):
            yield from pair_warnings(name, pair.found())


def without_unused(column: pa.Array) -> pa.Array:
    """Return a dictionary column whose dictionary holds only values that some row has.

    A category that no row has any more, such as one of rows that were filtered out, would stay in
    the file's bytes.
    """
    kind = column.type
    if pa.types.is_nested(kind) and _holds_dictionary(kind):
        return pa.array(column.to_pylist(), kind)  # Slow, and rare.
    if not pa.types.is_dictionary(kind):
        return column
    indices = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    used = np.zeros(len(column.dictionary), dtype=bool)
    used[indices[column.indices.is_valid().to_numpy(zero_copy_only=False)]] = True
    if used.all():
        return column
    places = np.cumsum(used) - 1
    new = pa.array(places[indices] if used.any() else np.zeros(len(column), np.int64))
    new = pa.compute.if_else(column.indices.is_valid(), new, None).cast(kind.index_type)
    values = column.dictionary.cast(computed_type(kind.value_type))
    dictionary = values.filter(pa.array(used)).cast(kind.value_type)
    return pa.DictionaryArray.from_arrays(new, dictionary, ordered=kind.ordered)


def _holds_dictionary(kind: pa.DataType) -> bool:
    """Return whether a type is that of a dictionary, or has one inside."""
    fields = (kind.field(i) for i in range(kind.num_fields))
    return pa.types.is_dictionary(kind) or any(_holds_dictionary(field.type) for field in fields)
