"""Sparse features, from svmlight files or SciPy matrices, as a few dense columns.

The most frequent features are kept alone, all others are summed with signs; no label takes part.
Each feature without a column of its own is hashed to one of b columns with a random sign (count
sketch). The squared length of a row, and so the squared distance of two rows, keeps its mean; the
relative variance is at most 2/b.

References
----------
Charikar, Chen, Farach-Colton (2002), "Finding frequent items in data streams"; Weinberger et al.
(2009), "Feature hashing for large scale multitask learning", Lemma 2 (mean and variance).
"""

import io
import os
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.arrays import GOLDEN, scrambled
from ldpaudit.datasets.formats.locations import Location, locate
from ldpaudit.datasets.formats.tables import TableSource, check_fits
from ldpaudit.datasets.names import DEFAULT_LABEL, quoted
from ldpaudit.doors import FloatArray, IndexArray, InputError
from ldpaudit.release import Float32Array, Sketch

FEATURES: Final = "features"
# Columns after projection: the fewest, the most, and unless asked for otherwise.
_FEWEST_DIMENSIONS, _MOST_DIMENSIONS, _DIMENSIONS = 16, 4096, 256
# Of the columns, those of single features: the most frequent ones of the first rows.
_OWN_SHARE: Final = 0.5
# Shared columns that are kept for features that come later.
_LEAST: Final = 16
_KEY: Final = np.uint64(0x6C64_7061_7564_6974)
# Pairs of rows whose distances are compared before and after.
_PAIRS_AT_ONCE, _MOST_PAIRS = 64, 4096
_SHARE: Final = 0.95
_ROWS_AT_ONCE: Final = 1 << 14
_LARGEST_INDEX: Final = (1 << 31) - 2
# Squares of sums of such numbers fit in float32.
_LARGEST_VALUE: Final = 1e18
_NUMBER: Final = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_LINE: Final = re.compile(
    rf"\s*({_NUMBER})(?:\s+qid:\d+)?((?:\s+\d+:{_NUMBER})*)\s*(?:#.*)?".encode(), re.DOTALL
)


@dataclass(frozen=True)
class Projection:
    """A linear map of sparse rows.

    ``own`` are the sorted indices of the features that keep a column of their own; the others
    share ``buckets`` columns.
    """

    own: IndexArray
    buckets: int

    @classmethod
    def fit(cls, matrix: Any, dimensions: int) -> "Projection":
        """Choose the features with columns of their own by how many of the first rows have them."""
        present, counts = np.unique(matrix.indices, return_counts=True)
        order = np.argsort(-counts, kind="stable")[: int(_OWN_SHARE * dimensions)]
        own = np.sort(present[order]).astype(np.int64)
        rest = dimensions - len(own)
        return cls(own, rest if len(present) > len(own) else min(rest, max(len(own), _LEAST)))

    def transform(self, matrix: Any) -> Float32Array:
        """Return the rows of a CSR matrix, float32 of shape (n, dimensions)."""
        (n, _), indices, width = matrix.shape, matrix.indices, len(self.own) + self.buckets
        hashed = scrambled((indices.astype(np.uint64) + _KEY) * GOLDEN)
        columns = len(self.own) + (hashed % np.uint64(self.buckets)).astype(np.int64)
        signs = 1.0 - 2.0 * (hashed >> np.uint64(63)).astype(np.float64)
        if len(self.own):
            spots = np.minimum(np.searchsorted(self.own, indices), len(self.own) - 1)
            single = self.own[spots] == indices
            columns, signs = np.where(single, spots, columns), np.where(single, 1.0, signs)
        places = np.repeat(np.arange(n), np.diff(matrix.indptr)) * width + columns
        cells = np.bincount(places, weights=matrix.data * signs, minlength=n * width)
        return cells.reshape(n, width).astype(np.float32)


class SparseTable(TableSource):
    """Sparse rows with a label each: of an svmlight file, or a SciPy matrix (n, d) and n labels.

    They are projected batch by batch when they are first asked for. ``sketch`` says what the
    projection did; None until the features were read.
    """

    sketch: Sketch | None = None
    sparse = True

    def __init__(self, place: Location | None, pair: Any, dimensions: int | None = None) -> None:
        self.location, self.names = place, (DEFAULT_LABEL, FEATURES)
        self.dimensions = _DIMENSIONS if dimensions is None else dimensions
        if not _FEWEST_DIMENSIONS <= self.dimensions <= _MOST_DIMENSIONS:
            raise InputError(
                f"--projection must be from {_FEWEST_DIMENSIONS} to {_MOST_DIMENSIONS} columns. "
                f"Got {self.dimensions} instead."
            )
        if place is not None:
            if len(place.paths) > 1:
                raise InputError(
                    "Several files at once must all be Parquet; give one svmlight file."
                )
            return
        self._matrix, self._labels = pair[0].tocsr(), np.asarray(pair[1])
        if self._labels.shape != (self._matrix.shape[0],):
            raise InputError(
                f"A sparse release is a matrix and one label for each of its rows: "
                f"{self._matrix.shape[0]:,} rows, labels of shape {self._labels.shape}."
            )
        self._matrix.sum_duplicates()
        data = self._matrix.data if self._matrix.data.dtype.kind in "buif" else np.array([np.nan])
        if not (np.abs(data.astype(np.float64)) <= _LARGEST_VALUE).all():
            raise InputError(f"A sparse matrix must hold numbers of at most {_LARGEST_VALUE:g}.")

    def read_like(self, other: TableSource) -> None:
        """Project features to as many columns as those of another sparse table."""
        if isinstance(other, SparseTable):
            self.dimensions = other.dimensions

    @property
    def row_count(self) -> int:  # type: ignore[override]
        """A number of rows that is at least that of the table."""
        if self.location is None:
            return len(self._labels)
        return sum(text.count(b"\n") for text in self.location.line_blocks("svmlight"))

    def width(self, names: Sequence[str]) -> float:  # noqa: ARG002
        """Return how many values a row has after projection."""
        return self.dimensions

    def _matrices(self) -> Iterator[tuple[Any, Any]]:
        """Yield CSR matrices and their rows' labels; of a file some 16 MiB of text at a time."""
        if self.location is None:
            yield self._matrix, self._labels
            return
        from sklearn.datasets import load_svmlight_file

        first = 1
        for text in self.location.line_blocks("svmlight"):
            try:
                matrix, labels = load_svmlight_file(io.BytesIO(text), zero_based=True)
            except (ValueError, OverflowError):
                raise _explained(text, self.name, first) from None
            if not (np.isfinite(labels).all() and (np.abs(matrix.data) <= _LARGEST_VALUE).all()):
                raise _explained(text, self.name, first)
            first += text.count(b"\n")
            yield matrix, labels

    def read(self, looked_at: IndexArray | None = None) -> tuple[pa.ChunkedArray, Float32Array]:
        """Return the labels, n of them, and the features, float32 of shape (n, dimensions).

        The first rows choose the features with columns of their own. Columns that nothing fell
        into are left out. ``looked_at``: the rows to read, in order; None for all.
        """
        projection: Projection | None = None
        labels, blocks, errors = [], [], [np.zeros(0)]
        rng, pairs, features, size, done = np.random.default_rng(0), 0, 0, 0, 0
        for rows, values in self._matrices():
            own = np.arange(len(values))
            if looked_at is not None:
                first, last = np.searchsorted(looked_at, (done, done + len(values)))
                own, done = looked_at[first:last] - done, done + len(values)
            labels.append(values[own])
            for start in range(0, len(own), _ROWS_AT_ONCE):
                matrix = rows[own[start : start + _ROWS_AT_ONCE]]
                projection = projection or Projection.fit(matrix, self.dimensions)
                blocks.append(projection.transform(matrix))
                size += 2 * blocks[-1].nbytes
                check_fits(size, f"The release {quoted(self.name)}")
                features = max(features, int(matrix.indices.max(initial=-1)) + 1)
                amount = min(_PAIRS_AT_ONCE, _MOST_PAIRS - pairs)
                if matrix.shape[0] > 1 and amount > 0:
                    errors.append(_distortion(matrix, blocks[-1], rng, amount))
                    pairs += len(errors[-1])
        if projection is None:
            raise InputError(f"The release {quoted(self.name)} has no rows.")
        single, error = len(projection.own), np.concatenate(errors)
        shared = projection.buckets if any(block[:, single:].any() for block in blocks) else 0
        most = float(np.quantile(error, _SHARE)) if len(error) else None
        self.sketch = Sketch(features, single, shared, _SHARE, most, len(error))
        return _label_column(labels), np.concatenate(blocks)[:, : max(single + shared, 1)]

    def columns(
        self,
        names: Sequence[str],
        as_text: Collection[str] = (),  # noqa: ARG002
        rows: IndexArray | None = None,
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order."""
        if list(names) == [self.names[0]] and rows is None:
            yield names[0], _label_column([values for _, values in self._matrices()])
            return
        labels, block = self.read(rows)
        values = pa.array(np.ascontiguousarray(block).ravel())
        lists = pa.FixedSizeListArray.from_arrays(values, block.shape[1])
        for name in names:
            yield name, pa.chunked_array([lists]) if name == FEATURES else labels


def _label_column(values: Sequence[Any]) -> pa.ChunkedArray:
    """Return labels as a column, as whole numbers where all are."""
    labels = np.concatenate(values) if values else np.zeros(0)
    if labels.dtype.kind == "f" and (labels == np.floor(labels)).all():
        labels = labels.astype(np.int64) if (np.abs(labels) < 2**53).all() else labels
    return pa.chunked_array([pa.array(labels)])


def _distortion(
    matrix: Any, projected: Float32Array, rng: np.random.Generator, amount: int
) -> FloatArray:
    """Return how much the projection changes the squared distances of some pairs of rows."""
    one, other = rng.integers(0, matrix.shape[0], size=(2, amount))
    between = matrix[one] - matrix[other]
    before = np.asarray(between.multiply(between).sum(axis=1)).ravel()
    after = ((projected[one].astype(np.float64) - projected[other]) ** 2).sum(axis=1)
    return np.asarray(np.abs(after[before > 0] / before[before > 0] - 1))


def _explained(text: bytes, name: str, first: int) -> InputError:
    """Return the error for the first line that is wrong; it holds a line number alone."""
    for number, line in enumerate(text.splitlines(), start=first):
        found = _LINE.fullmatch(line)
        if found is not None:
            pairs = [pair.split(b":") for pair in found[2].split()]
            indices, cells = [int(i) for i, _ in pairs], [found[1], *(cell for _, cell in pairs)]
            rising = all(a < b for a, b in pairwise([*indices, _LARGEST_INDEX + 1]))
            if rising and all(abs(float(cell)) <= _LARGEST_VALUE for cell in cells):
                continue
        if line.split(b"#", 1)[0].strip():
            return InputError(
                f"Line {number} of {quoted(name)} must be a number for the label, then "
                f"index:value pairs: indices from 0 to {_LARGEST_INDEX}, each index once and in "
                f"increasing order, and finite values of at most {_LARGEST_VALUE:g}."
            )
    return InputError(
        f"The file {quoted(name)} must be in the svmlight format; a line from {first} on is not."
    )


def open_sparse(source: Any, dimensions: int | None = None) -> SparseTable | None:
    """Open an svmlight file, or a pair of a SciPy sparse matrix and labels; None for all else."""
    if isinstance(source, str | os.PathLike):
        return SparseTable(locate(source), (), dimensions)
    pair = isinstance(source, tuple) and len(source) == 2 and hasattr(source[0], "tocsr")
    return SparseTable(None, source, dimensions) if pair else None
