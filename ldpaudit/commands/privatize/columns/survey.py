"""Everything that is looked for while a table is released."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pyarrow as pa

from ldpaudit.commands.privatize.columns.exact import DecidingColumns
from ldpaudit.commands.privatize.columns.order import RowOrder
from ldpaudit.commands.privatize.columns.sampled import ColumnSample
from ldpaudit.commands.privatize.columns.warnings import (
    order_warning,
    scan_warnings,
    survey_warnings,
)
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
    """

    def __init__(self, columns: Sequence[str], kept: Collection[str], rows: int) -> None:
        others = [name for name in columns if name not in kept]
        self._deciding = DecidingColumns(others)
        self._sample = ColumnSample(others, rows)
        self._order = RowOrder()

    def watch(self, features: pa.RecordBatch, label: pa.Array, codes: IntArray) -> None:
        """Add a batch: features, true labels, and these as codes."""
        self._deciding.watch(features, label)
        self._sample.watch(features, label)
        self._order.watch(codes)

    def check(self) -> tuple[str, ...]:
        """Refuse columns that give the label away in every row (InputError); return warnings."""
        self._deciding.check()
        return tuple(self._warnings())

    def _warnings(self) -> Iterator[str]:
        scanned = self._sample.scan()
        if scanned is not None:
            yield from scan_warnings(*scanned)
        yield from survey_warnings(self._sample.survey())
        yield from order_warning(self._order.strongest())


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
    dictionary = column.dictionary.filter(pa.array(used))
    return pa.DictionaryArray.from_arrays(new, dictionary, ordered=kind.ordered)


def _holds_dictionary(kind: pa.DataType) -> bool:
    """Return whether a type is that of a dictionary, or has one inside."""
    fields = (kind.field(i) for i in range(kind.num_fields))
    return pa.types.is_dictionary(kind) or any(_holds_dictionary(field.type) for field in fields)
