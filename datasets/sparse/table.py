"""A sparse release as a table of two columns: its label, and the list of projected features."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.formats.locations import Located, Location, locate
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.roles import DEFAULT_LABEL
from ldpaudit.datasets.sparse.projection import (
    DIMENSIONS,
    FEWEST_DIMENSIONS,
    MOST_DIMENSIONS,
    Distortion,
    Projection,
)
from ldpaudit.datasets.sparse.svmlight import LARGEST_VALUE, count_lines, read_batches
from ldpaudit.errors import InputError
from ldpaudit.release import Float32Array, FloatArray, Sketch
from ldpaudit.running.scratch import resting

FEATURES: Final = "features"
_ROWS_AT_ONCE: Final = 1 << 14
_RESTED: Final = 1 << 26

Place = Callable[[tuple[int, ...], Any], Any]


class SparseTable:
    """Sparse rows with a label each, projected batch by batch when they are first asked for.

    Attributes
    ----------
    sketch : Sketch or None
        What the projection did; None until the features were read.
    """

    text = False
    remark = ""
    names: tuple[str, str] = (DEFAULT_LABEL, FEATURES)
    declaration: bytes | None = None

    def __init__(self, name: str, dimensions: int | None) -> None:
        self.name, self.dimensions = name, DIMENSIONS if dimensions is None else dimensions
        if not FEWEST_DIMENSIONS <= self.dimensions <= MOST_DIMENSIONS:
            raise InputError(
                f"--projection must be from {FEWEST_DIMENSIONS} to {MOST_DIMENSIONS} columns. "
                f"Got {self.dimensions} instead."
            )
        self.sketch: Sketch | None = None

    def call_label(self, name: str) -> None:
        """Name the label, which has no name of its own."""
        self.names = (name, FEATURES)

    def sha256(self) -> str | None:
        """Return the digest of the file; None for a matrix in memory."""
        return None

    def rows(self) -> int:
        """Return a number of rows that is at least that of the table."""
        raise NotImplementedError

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield CSR matrices and their rows' labels."""
        raise NotImplementedError

    def labels(self, values: Sequence[Any]) -> pa.ChunkedArray:
        """Return labels as a column."""
        return pa.chunked_array([pa.array(np.concatenate(values))])

    def read(self, place: Place = np.zeros) -> tuple[pa.ChunkedArray, Float32Array]:
        """Return the labels, n of them, and the features, float32 of shape (n, dimensions).

        ``place`` gives the array that is filled. Columns that nothing fell into are left out.
        """
        filling = _Filling(self.dimensions, self.rows(), place)
        labels = []
        for matrix, values in self.batches():
            labels.append(values)
            for start in range(0, len(values), _ROWS_AT_ONCE):
                filling.add(matrix[start : start + _ROWS_AT_ONCE])
        if not labels:
            raise InputError(f"The release {quoted(self.name)} has no rows.")
        block, self.sketch = filling.finished()
        return self.labels(labels), block

    def columns(
        self,
        names: Sequence[str],
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order."""
        if list(names) == [self.names[0]]:
            yield names[0], self.labels([values for _, values in self.batches()])
            return
        labels, block = self.read()
        values = pa.array(np.ascontiguousarray(block).ravel())
        lists = pa.FixedSizeListArray.from_arrays(values, block.shape[1])
        columns = {self.names[0]: labels, FEATURES: pa.chunked_array([lists])}
        for name in names:
            yield name, columns[name]


class _Filling:
    """The block of projected features, while it is being filled."""

    def __init__(self, dimensions: int, rows: int, place: Place) -> None:
        self._dimensions, self._rows, self._place = dimensions, rows, place
        self._block: Any = None
        self._projection: Projection | None = None
        self._distortion, self._rng = Distortion(), np.random.default_rng(0)  # Pairs to compare.
        self._done, self._fresh, self._features, self._shared = 0, 0, 0, False

    def add(self, matrix: Any) -> None:
        """Project the next rows; the first ones choose the features with columns of their own."""
        if self._projection is None:
            self._projection = Projection.fit(matrix, self._dimensions)
            self._block = self._place((self._rows, self._projection.dimensions), np.float32)
        projected = self._projection.transform(matrix)
        self._distortion.add(matrix, projected, self._rng)
        self._block[self._done : self._done + len(projected)] = projected
        self._shared |= bool(projected[:, len(self._projection.own) :].any())
        self._features = max(self._features, int(matrix.indices.max(initial=-1)) + 1)
        self._done, self._fresh = self._done + len(projected), self._fresh + projected.nbytes
        if self._fresh > _RESTED:
            resting(self._block)
            self._fresh = 0

    def finished(self) -> tuple[Float32Array, Sketch]:
        """Return the rows' features, without shared columns that nothing fell into."""
        assert self._projection is not None
        single = len(self._projection.own)
        shared = self._projection.buckets if self._shared else 0
        block = self._block[: self._done, : single + shared]
        return block, self._distortion.sketch(self._features, single, shared)


class SvmlightFile(Located, SparseTable):
    """An svmlight file: the number at the start of a line is the released label."""

    def __init__(self, location: Location, dimensions: int | None = None) -> None:
        super().__init__(location.name, dimensions)
        if len(location.paths) > 1:
            raise InputError("Several files at once must all be Parquet; give one svmlight file.")
        self.location = location
        self.declaration = location.beside()

    def rows(self) -> int:
        """Return the number of lines."""
        return count_lines(self.location)

    def batches(self) -> Iterator[tuple[Any, FloatArray]]:
        """Yield CSR matrices and their rows' labels."""
        return read_batches(self.location)

    def labels(self, values: Sequence[FloatArray]) -> pa.ChunkedArray:
        """Return the labels, as whole numbers where all are."""
        numbers = np.concatenate(values)
        whole = bool((numbers == np.floor(numbers)).all()) and bool((np.abs(numbers) < 2**53).all())
        return pa.chunked_array([pa.array(numbers.astype(np.int64) if whole else numbers)])


class SparsePair(SparseTable):
    """A SciPy sparse matrix of shape (n, d), and n labels."""

    def __init__(self, matrix: Any, labels: Any, dimensions: int | None = None) -> None:
        super().__init__("release", dimensions)
        self._matrix, self._labels = matrix.tocsr(), np.asarray(labels)
        if self._labels.shape != (self._matrix.shape[0],):
            raise InputError(
                f"A sparse release is a matrix and one label for each of its rows: "
                f"{self._matrix.shape[0]} rows, labels of shape {self._labels.shape}."
            )
        self._matrix.sum_duplicates()
        numbers = self._matrix.data if self._matrix.dtype.kind in "buif" else np.array([np.nan])
        if not (np.abs(numbers.astype(np.float64)) <= LARGEST_VALUE).all():
            raise InputError(f"A sparse matrix must hold numbers of at most {LARGEST_VALUE:g}.")

    def rows(self) -> int:
        """Return the number of rows."""
        return len(self._labels)

    def batches(self) -> Iterator[tuple[Any, Any]]:
        """Yield CSR matrices and their rows' labels."""
        for start in range(0, len(self._labels), _ROWS_AT_ONCE):
            rows = slice(start, start + _ROWS_AT_ONCE)
            yield self._matrix[rows], self._labels[rows]


def open_svmlight(path: str, dimensions: int | None = None) -> SvmlightFile:
    """Open an svmlight file.

    Raises
    ------
    InputError
        If it is not there.
    """
    return SvmlightFile(locate(path), dimensions)


def as_sparse(source: Any, dimensions: int | None = None) -> SparsePair | None:
    """Return a pair of a SciPy sparse matrix and labels as a table, None for anything else."""
    pair = isinstance(source, tuple) and len(source) == 2
    if not pair or not hasattr(source[0], "tocsr"):
        return None
    return SparsePair(source[0], source[1], dimensions)
