"""P̂(y | x) for model-based randomized response, fitted on a public table."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.commands.privatize.features.synthetic_rows import (
    label_codes,
    plain_schema,
    read_features,
)
from ldpaudit.datasets.features import is_categorical
from ldpaudit.datasets.names import ColumnError, of_column, shown_type
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FloatArray, Label

_MOST_CATEGORIES = 250


@dataclass(eq=False)
class PublicModel:
    """A fitted classifier of the features, used like one of scikit-learn.

    Attributes
    ----------
    classes_ : array of shape (k,)
        The labels, in the order of the probabilities' columns.
    """

    classes_: Any
    _columns: "_Columns"
    _classifier: Any

    def predict_proba(self, features: pa.RecordBatch, /) -> FloatArray:
        """Return P̂(y | x) of n rows, float64 of shape (n, k)."""
        values = self._classifier.predict_proba(self._columns.matrix(features))
        return np.asarray(values, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class _Columns:
    """How features become numbers: text by its position among the public table's values."""

    known: dict[str, pa.Array]

    def matrix(self, features: Any) -> FloatArray:
        names, columns = features.schema.names, []
        for name in names:
            with of_column(name, names, " of the features"):
                columns.append(_numbers(features.column(name), self.known.get(name)))
        return np.column_stack(columns) if columns else np.zeros((features.num_rows, 1))

    @property
    def categorical(self) -> list[int]:
        return [
            place
            for place, values in enumerate(self.known.values())
            if values is not None and len(values) <= _MOST_CATEGORIES
        ]


def fit_public_model(
    path: str,
    features: pa.Schema,
    label: str,
    classes: tuple[Label, ...],
    ignored: Collection[str] = (),
    files: FileOptions = AS_FOUND,
) -> PublicModel:
    """Fit gradient boosted trees on a public labelled table.

    Parameters
    ----------
    path : str
        Parquet or CSV with the features' columns and the label's; it must be public.
    features : pyarrow.Schema
        The data's features.
    label : str
    classes : tuple, length k
        Every one must occur.
    ignored : collection of str
        Other columns that the table may have.
    files : FileOptions
        How text files are written.

    Raises
    ------
    InputError
        If its columns, types or labels are not those of the data.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    table = read_features(path, plain_schema(features), "public", label, ignored, files)
    codes = label_codes(table.column(label), classes, "public")
    table = table.select(features.names)
    columns = _Columns({name: _values(table.column(name)) for name in features.names})
    # The model is public: its seed needs no secrecy, and one file gives one model.
    classifier = HistGradientBoostingClassifier(
        random_state=0, categorical_features=columns.categorical or None
    )
    classifier.fit(columns.matrix(table), codes)
    named = np.empty(len(classes), dtype=object)
    named[:] = classes
    return PublicModel(named[classifier.classes_], columns, classifier)


def _values(column: pa.ChunkedArray) -> pa.Array | None:
    """Return the distinct texts of a public column, sorted; None for numbers."""
    if not is_categorical(column.type):
        return None
    distinct = pc.unique(column.drop_null())
    return distinct.take(pc.array_sort_indices(distinct))


def _numbers(column: Any, known: pa.Array | None) -> FloatArray:
    if known is not None:
        plain = column.cast(known.type) if column.type != known.type else column
        place = pc.index_in(plain, value_set=known)
        return np.asarray(place.cast(pa.float64()).to_numpy(zero_copy_only=False))
    try:
        if pa.types.is_temporal(column.type):
            column = column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64())
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        values = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    except (pa.ArrowException, TypeError):
        raise ColumnError(
            f"is of type {shown_type(column.type)}, from which no model can be fitted; leave it "
            "out with --drop."
        ) from None
    return np.asarray(values, dtype=np.float64)
