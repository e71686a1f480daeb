"""Columns that give the true label away, found while the rows are released."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ldpaudit.commands.privatize.labels.domains import bare_labels
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError

_GLANCE = 1 << 10
_MOST_VALUES = 1000
_ROWS_PER_VALUE = 2


class HiddenCopies:
    """Watches for columns that correspond one to one to the true label in every row.

    Parameters
    ----------
    columns : sequence of str
        The feature columns that will be released unchanged.
    """

    def __init__(self, columns: Sequence[str]) -> None:
        self._pairs: dict[str, dict[Any, Any]] = {name: {} for name in columns}
        self._rows = 0

    def watch(self, features: pa.RecordBatch, label: pa.Array) -> None:
        """Add a batch of features and the true labels of the same rows."""
        for part in (slice(0, _GLANCE), slice(_GLANCE, None)):
            truth = bare_labels(label)[part]
            if not self._pairs or not len(truth):
                break
            self._rows += len(truth)
            codes, values = _coded(truth)
            for name in tuple(self._pairs):
                if not self._goes_on(name, features.column(name)[part], codes, values):
                    del self._pairs[name]

    def _goes_on(
        self, name: str, column: pa.Array, codes: npt.NDArray[np.int64], values: list[Any]
    ) -> bool:
        """Add a batch of a column; return whether it is one to one so far."""
        try:
            cells, distinct = _coded(bare_labels(column))
        except (pa.ArrowException, TypeError, AttributeError):
            return False  # Nested columns cannot be compared.
        if len(distinct) != len(values) or len(values) > _MOST_VALUES:
            return False
        pairs = np.unique(cells * len(values) + codes)
        if len(pairs) != len(values):
            return False
        known = self._pairs[name]
        for pair in pairs.tolist():
            cell, label = distinct[pair // len(values)], values[pair % len(values)]
            if known.setdefault(cell, label) != label:
                return False
        return len(known) <= _MOST_VALUES and len(set(known.values())) == len(known)

    def check(self) -> None:
        """Refuse a column that gave the true label away in every row (InputError)."""
        for name, known in self._pairs.items():
            if len(known) > 1 and self._rows >= _ROWS_PER_VALUE * len(known):
                raise InputError(
                    f"The column {quoted(name)} tells the true label in every row, so it would "
                    f"give away what the mechanism hides; leave it out with --drop."
                )


def _coded(column: pa.Array) -> tuple[npt.NDArray[np.int64], list[Any]]:
    """Return codes by first occurrence, and the distinct values; a missing one is a value too."""
    encoded = column.dictionary_encode(null_encoding="encode")
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes, encoded.dictionary.to_pylist()
