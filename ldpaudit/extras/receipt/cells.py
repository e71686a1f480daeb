"""Features as a matrix of numbers, as models of a release's mechanism see them."""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.features import is_categorical
from ldpaudit.datasets.names import ColumnError, of_column, shown_type
from ldpaudit.doors import FloatArray

_OF_FEATURES: Final = " of the features"


def growing_cells(features: pa.RecordBatch, known: dict[str, pa.Array | None]) -> FloatArray:
    """Return features as numbers, new texts after those of earlier batches, which ``known`` has."""
    for name in features.schema.names:
        texts, before = distinct_texts(pa.chunked_array([features.column(name)])), known.get(name)
        if texts is not None and before is not None:
            new = texts.filter(pc.invert(pc.is_in(texts, value_set=before)))
            texts = pa.concat_arrays([before, new])
        known[name] = texts
    return cells_as_numbers(features, known)


def distinct_texts(column: pa.ChunkedArray) -> pa.Array | None:
    """Return the distinct texts of a column, sorted; None for numbers."""
    if not is_categorical(column.type):
        return None
    distinct = pc.unique(column.drop_null())
    return distinct.take(pc.array_sort_indices(distinct))


def cells_as_numbers(features: Any, known: dict[str, pa.Array | None]) -> FloatArray:
    """Return features as numbers: text by its position among the public table's values."""
    names, columns = features.schema.names, []
    for name in names:
        column, values = features.column(name), known.get(name)
        with of_column(name, names, _OF_FEATURES):
            if values is not None:
                plain = column.cast(values.type) if column.type != values.type else column
                columns.append(floats(pc.index_in(plain, value_set=values)))
                continue
            try:
                if pa.types.is_temporal(column.type):
                    column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
                columns.append(floats(column))
            except (pa.ArrowException, TypeError):
                raise ColumnError(
                    f"is of type {shown_type(column.type)}, from which no model can be fitted; "
                    "leave it out with --drop."
                ) from None
    return np.column_stack(columns) if columns else np.zeros((features.num_rows, 1))


def floats(cells: Any) -> FloatArray:
    """Return numbers as float64, NaN where one is missing; booleans count as 0 and 1."""
    if pa.types.is_boolean(cells.type):
        cells = cells.cast(pa.int8())
    values = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return np.asarray(values, dtype=np.float64)
