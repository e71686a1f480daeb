"""The extents of columns of numbers: from the file's own statistics, or from a pass over them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.features import Extent, raw_numbers
from ldpaudit.datasets.formats.batches import ParquetBatches
from ldpaudit.datasets.formats.columns import is_any, stored
from ldpaudit.datasets.formats.csv_batches import CsvBatches
from ldpaudit.datasets.formats.opening import FileBatches
from ldpaudit.datasets.names import ColumnError, of_column


def extents_of(
    source: FileBatches, kinds: Mapping[str, pa.DataType]
) -> tuple[dict[str, Extent], dict[str, int]]:
    """Return the extent of each column of numbers, and how many numbers a row of it holds.

    Parameters
    ----------
    source : FileBatches
    kinds : mapping from the name of a column to its type

    Raises
    ------
    InputError
        If the lists of a column have different lengths.
    """
    plain = [n for n, kind in kinds.items() if is_any(kind, "integer", "float32", "float64")]
    extents = _stated(source, plain)
    widths = dict.fromkeys(extents, 1)
    left = [name for name in kinds if name not in extents]
    for columns in _columns(source, left):
        for name, column in columns.items():
            with of_column(name, source.schema.names):
                values = raw_numbers(column)
                if len(column) > column.null_count:
                    _check_width(widths, name, values.shape[1])
            extent = Extent.of(values)
            before = extents.get(name)
            extents[name] = extent if before is None else before.joined(extent)
    return extents, {name: widths.get(name, 0) for name in kinds}


def _columns(source: FileBatches, names: Sequence[str]) -> Any:
    if names:
        for batch in source.batches(names):
            yield as_columns(batch)


def as_columns(batch: pa.RecordBatch) -> dict[str, pa.ChunkedArray]:
    """Return a batch's columns by name, without extension types."""
    pairs = zip(batch.schema.names, batch.columns, strict=True)
    return {name: stored(pa.chunked_array([column])) for name, column in pairs}


def _check_width(widths: dict[str, int], name: str, width: int) -> None:
    if widths.setdefault(name, width) != width:
        raise ColumnError("must hold lists of one length.")


def _stated(source: FileBatches, names: Sequence[str]) -> dict[str, Extent]:
    """Return the extents that the files state of their columns, for those of which all do."""
    if isinstance(source, CsvBatches):
        every = {name: Extent(*map(float, source.bounds[name])) for name in names}
        return {name: extent for name, extent in every.items() if _is_finite(extent)}
    if not isinstance(source, ParquetBatches):
        return {}
    found: dict[str, Extent] = {}
    missing: set[str] = set()
    for metadata in source.metadata():
        places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
        for group in range(metadata.num_row_groups):
            for name in set(names) - missing:
                place = places.get(name)
                extent = None if place is None else _extent(metadata.row_group(group), place)
                if extent is None:
                    missing.add(name)
                else:
                    found[name] = extent.joined(found.get(name, extent))
    return {name: extent for name, extent in found.items() if name not in missing}


def _extent(group: Any, place: int) -> Extent | None:
    statistics = group.column(place).statistics
    if statistics is None or not statistics.has_min_max:
        return None
    extent = Extent(float(statistics.min), float(statistics.max))
    return extent if _is_finite(extent) else None


def _is_finite(extent: Extent) -> bool:
    return bool(np.isfinite([extent.low, extent.high]).all())
