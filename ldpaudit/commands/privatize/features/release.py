"""Released features: unchanged, replaced by synthetic ones, withheld, or with Gaussian noise."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.commands.privatize.features.generated_rows import RowSource
from ldpaudit.commands.privatize.features.synthetic_rows import plain_schema
from ldpaudit.datasets.formats.columns import LISTS, NUMBERS, is_any
from ldpaudit.datasets.names import ColumnError, of_column, shown_type
from ldpaudit.mechanisms.capabilities import NoisyFeatures
from ldpaudit.mechanisms.exact_sampling import bit_source, uniform_below
from ldpaudit.release import FloatArray, IndexArray

_OF_FEATURES: Final = " of the features"


class AsTheyAre:
    """Features are released unchanged."""

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the features' columns and types."""
        return features

    def release(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the features."""
        return batch


@dataclass(frozen=True, eq=False)
class Withheld:
    """Every feature is missing, or comes from a synthetic row drawn independently of the data.

    References
    ----------
    Busa-Fekete et al. (2023), Mechanism 3.
    """

    synthetic: RowSource | None
    rng: np.random.Generator | None

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the features' columns and types, dictionaries unordered."""
        return unordered(features)

    def release(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return as many rows, independent of the batch."""
        if self.synthetic is None:
            kinds = unordered(batch.schema).types
            nothing = [pa.nulls(len(batch), kind) for kind in kinds]
            return pa.RecordBatch.from_arrays(nothing, names=batch.schema.names)
        drawn = uniform_below(len(self.synthetic), len(batch), bit_source(self.rng))
        return as_batch(self.synthetic.take(drawn.astype(np.int64)), batch.schema)


def replaced(batch: pa.RecordBatch, synthetic: RowSource, rows: IndexArray) -> pa.RecordBatch:
    """Return the batch with some rows replaced by synthetic ones.

    Parameters
    ----------
    batch : pyarrow.RecordBatch of n rows of features
    synthetic : RowSource
    rows : int64 array of shape (n,)
        The synthetic row to put there, −1 for the true one.

    Returns
    -------
    pyarrow.RecordBatch
        Its dictionaries hold released values only.
    """
    new = np.flatnonzero(rows >= 0)
    schema = plain_schema(batch.schema)
    true = pa.Table.from_batches([batch]).cast(schema)
    both = pa.concat_tables([true, synthetic.take(rows[new]).cast(schema)])
    order = np.arange(len(batch))
    order[new] = len(batch) + np.arange(len(new))
    return as_batch(both.take(pa.array(order)), batch.schema)


def as_batch(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return a table as one batch of a schema, with new dictionaries of the values it holds."""
    columns = [_one_array(table.column(name)) for name in schema.names]
    typed = [
        _encoded(column, kind) if pa.types.is_dictionary(kind) else column
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(typed, names=schema.names)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _encoded(column: pa.Array, kind: pa.DataType) -> pa.Array:
    encoded = column.dictionary_encode()
    return pa.DictionaryArray.from_arrays(encoded.indices.cast(kind.index_type), encoded.dictionary)


def unordered(schema: pa.Schema) -> pa.Schema:
    """Return the schema with unordered dictionaries: the order of a new one means nothing."""
    kinds = [
        pa.dictionary(kind.index_type, kind.value_type) if pa.types.is_dictionary(kind) else kind
        for kind in schema.types
    ]
    return pa.schema(list(map(pa.field, schema.names, kinds)))


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Numeric features with Gaussian noise; a list of numbers counts as that many features.

    Parameters
    ----------
    mechanism : NoisyFeatures
    project : bool
        Whether rows longer than the radius are shortened; else they are refused.
    rng : numpy.random.Generator or None
        A generator for an experiment, None for OpenDP.
    """

    mechanism: NoisyFeatures
    project: bool
    rng: np.random.Generator | None

    def schema(self, features: pa.Schema) -> pa.Schema:
        """Return the features' columns, all float64 or lists of it."""
        fields = []
        for field in features:
            with of_column(field.name, features.names, _OF_FEATURES):
                fields.append(pa.field(field.name, _noisy_type(field)))
        return pa.schema(fields)

    def release(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the noisy features."""
        names, blocks = batch.schema.names, []
        for name, cells in zip(names, batch.columns, strict=True):
            with of_column(name, names, _OF_FEATURES):
                blocks.append(_matrix(cells))
        widths = np.cumsum([block.shape[1] for block in blocks])
        true = np.column_stack(blocks) if blocks else np.empty((len(batch), 0))
        if self.project:
            true = self.mechanism.project(true)
        simulation = self.rng is not None
        noisy = self.mechanism.release_features(true, self.rng, simulation=simulation)
        parts = np.split(noisy, widths[:-1], axis=1) if blocks else []
        kinds = self.schema(batch.schema).types
        columns = [_column(part, kind) for part, kind in zip(parts, kinds, strict=True)]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def check(self) -> None:
        """Check, before anything is read, that exact noise can be drawn (OpenDP is installed)."""
        self.mechanism.release_features(np.zeros((1, 1)), self.rng, simulation=self.rng is not None)


FeatureRelease = AsTheyAre | Withheld | GaussianNoise
"""Turns a batch of true features into released ones, of the same number of rows."""


def _is_number(kind: pa.DataType) -> bool:
    return is_any(kind, *NUMBERS, "boolean")


def _noisy_type(field: pa.Field) -> pa.DataType:
    if _is_number(field.type):
        return pa.float64()
    if is_any(field.type, *LISTS) and _is_number(field.type.value_type):
        return pa.list_(pa.float64())
    raise ColumnError(
        f"is of type {shown_type(field.type)}, and Gaussian noise needs numbers. Leave it out with "
        "--drop, or turn it into numbers."
    )


def _matrix(column: pa.Array) -> FloatArray:
    """Return a feature as float64 of shape (n, width), all of it finite."""
    width, cells = 1, column
    if is_any(column.type, *LISTS):
        lengths = pc.unique(pc.list_value_length(column))
        if len(lengths) != 1 or lengths.null_count:
            raise ColumnError("must hold lists of one length.")
        width, cells = lengths[0].as_py(), pc.list_flatten(column)
    if pa.types.is_boolean(cells.type):
        cells = cells.cast(pa.int8())
    values = np.asarray(cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    bad = int((~np.isfinite(values)).sum())
    if bad:
        raise ColumnError(
            f"has {bad} values that are missing or infinite; Gaussian noise needs complete, finite "
            "features."
        )
    return values.reshape(len(column), width)


def _column(part: npt.NDArray[np.float64], kind: pa.DataType) -> pa.Array:
    cells = pa.array(np.ascontiguousarray(part).reshape(-1))
    if not is_any(kind, *LISTS):
        return cells
    offsets = np.arange(len(part) + 1, dtype=np.int32) * part.shape[1]
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), cells)
