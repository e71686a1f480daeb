"""A sample of the rows: columns that nearly give the label away, or may lead back to a person."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.columns import ColumnSurvey
from ldpaudit.commands.privatize.columns.leaves import Path, leaves
from ldpaudit.commands.privatize.columns.together import told_together
from ldpaudit.commands.privatize.labels.domains import bare_labels
from ldpaudit.datasets.column_survey import surveyed
from ldpaudit.datasets.features import encode_categories, is_categorical
from ldpaudit.datasets.formats.columns import TEXTS, is_any
from ldpaudit.estimators.columns.scan import Scan, scan
from ldpaudit.estimators.columns.telling import label_weights
from ldpaudit.release import IntArray

_MOST_ROWS: Final = 50_000
_FEWEST_ROWS: Final = 1_000
_MOST_CELLS: Final = 5_000_000
_MOST_CLASSES: Final = 20
"""More labels, if they are numbers, are put into so many groups of equally many rows."""
_MANY_TEXTS: Final = 512
_DIGITS: Final = r"\d+"


class ColumnSample:
    """Keeps runs of neighbouring rows from every batch: all rows of a small table.

    Parameters
    ----------
    columns : sequence of str
        The feature columns that will be released unchanged.
    rows : int
        How many rows there will be.
    """

    def __init__(self, columns: Sequence[str], rows: int) -> None:
        self._columns = list(columns)
        most = min(_MOST_ROWS, max(_FEWEST_ROWS, _MOST_CELLS // max(len(columns), 1)))
        self._share = min(1.0, most / max(rows, 1))
        self._kept: list[pa.RecordBatch] = []
        self._labels: list[list[pa.Array]] = []

    def watch(self, features: pa.RecordBatch, labels: Sequence[pa.Array]) -> None:
        """Add a batch of features and the true labels of each private column of the same rows."""
        if self._columns and len(features):
            # A slice would keep the whole batch in memory.
            few = max(1, round(self._share * len(features)))
            self._kept.append(_first(features.select(self._columns), few))
            self._labels.append([bare_labels(_first(label, few)) for label in labels])

    def survey(self, names: Sequence[str]) -> list[ColumnSurvey]:
        """Return what each column is like in these rows; ``names``: all columns of the file."""
        if not self._kept:
            return []
        table = pa.Table.from_batches(self._kept)
        found: list[ColumnSurvey] = []
        for _ in surveyed(((name, table.column(name)) for name in self._columns), found, names):
            pass
        return found

    def scan(self, column: int = 0) -> tuple[list[Path], Scan, float | None] | None:
        """Return the plain arrays that columns consist of, by path, and what each of them tells.

        Also what all tell together, where none decides by itself; None where there is nothing to
        look at. ``column`` is the place of the private column that they tell of.
        """
        if not self._kept:
            return None
        labels, classes = _groups(
            pa.chunked_array([batch[column] for batch in self._labels]).combine_chunks()
        )
        named = list(self._arrays(labels, classes))
        n = len(labels)
        rows = np.random.default_rng(0).permutation(n)  # Which rows, no more than that.
        known = labels[rows]
        arrays = [array for _, array in named]
        found = scan(arrays, rows, label_weights(known, len(classes)), n, known)
        nothing_yet = not (found.deciding or found.flags)
        together = told_together(arrays, labels) if nothing_yet else None
        return [path for path, _ in named], found, together

    def _arrays(self, labels: IntArray, classes: list[str]) -> Iterator[tuple[Path, Any]]:
        table = pa.Table.from_batches(self._kept)
        for name in self._columns:
            whole = table.column(name).combine_chunks()
            for path, column in leaves(name, _one(whole)):
                yield from _numbers(path, column, classes, len(labels))


def _one(column: Any) -> pa.Array:
    """Return a combined column as one array."""
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.unify_dictionaries().chunks)
    return column


def _numbers(
    path: Path, column: pa.Array, classes: list[str], n: int
) -> Iterator[tuple[Path, Any]]:
    """Yield numbers or codes of a plain array, and of what its texts hold."""
    if len(column) != n:
        return
    try:
        plain = bare_labels(column)
        if not is_categorical(plain.type):
            yield path, pc.cast(plain, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            return
        codes, cardinality = encode_categories(pa.chunked_array([plain]))
    except (pa.ArrowException, TypeError, AttributeError):
        return
    yield path, codes
    if cardinality > _MANY_TEXTS and is_any(plain.type, *TEXTS):
        bare = pc.replace_substring_regex(plain, _DIGITS, "")
        yield path, encode_categories(pa.chunked_array([bare]))[0]
        yield path, _named(plain, classes)


def _named(texts: pa.Array, classes: list[str]) -> npt.NDArray[np.int64]:
    """Return, for each text, which labels stand in it, as a number."""
    which = np.zeros(len(texts), dtype=np.int64)
    for place, name in enumerate(classes[:_MOST_CLASSES]):
        if len(name) > 1:
            holds = pc.match_substring(texts, name, ignore_case=True)
            holds = pc.fill_null(holds, pa.scalar(value=False))
            which |= holds.to_numpy(zero_copy_only=False).astype(np.int64) << place
    return which


def _groups(labels: pa.Array) -> tuple[IntArray, list[str]]:
    """Return labels as codes, many numbers in groups, and the classes' texts."""
    encoded = labels.dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    names = encoded.dictionary
    if len(names) <= _MOST_CLASSES or not is_any(names.type, "integer", "floating", "decimal"):
        return codes, [str(value) for value in names.to_pylist()]
    values = names.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)[codes]
    ends = np.unique(np.quantile(values, np.arange(1, 10) / 10))
    groups = np.searchsorted(ends, values, side="right").astype(np.int32)
    return groups, [""] * (len(ends) + 1)


def _first(values: Any, few: int) -> Any:
    """Return a copy of the first rows of a batch or a column."""
    try:
        return values.take(pa.array(np.arange(few)))
    except pa.ArrowNotImplementedError:  # Not of every type, such as views of texts.
        return values.slice(0, few)
