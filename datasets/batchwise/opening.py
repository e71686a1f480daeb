"""Which tables are read batch by batch, where their blocks lie, and whether memory is enough."""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, Protocol, cast

import numpy as np
import pyarrow as pa

from ldpaudit.columns import ColumnSurvey
from ldpaudit.datasets.batchwise.features import encode_batches
from ldpaudit.datasets.batchwise.labels import coded_columns
from ldpaudit.datasets.beside.companions import Companion, Tables, encode_together
from ldpaudit.datasets.beside.truth import LARGE
from ldpaudit.datasets.column_survey import survey_left_out, surveyed, with_arrays
from ldpaudit.datasets.features import EncodedFeatures
from ldpaudit.datasets.formats.batches import ParquetBatches
from ldpaudit.datasets.formats.locations import Located
from ldpaudit.datasets.formats.opening import FileBatches, open_table
from ldpaudit.datasets.formats.tabular import MemoryTable, TableSource
from ldpaudit.datasets.roles import Roles
from ldpaudit.datasets.sparse.svmlight import is_svmlight
from ldpaudit.datasets.sparse.table import FEATURES, SparseTable, as_sparse, open_svmlight
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FeatureTable
from ldpaudit.running.memory import allowance, most_rows, shown
from ldpaudit.running.scratch import Scratch

_ROWS, _CELLS = LARGE, 1 << 22
"""A Parquet file with fewer is read whole."""
_BYTES, _COLUMNS = 1 << 26, 1000
"""A smaller CSV file, or one with more columns, is read whole."""
_IN_MEMORY: Final = 0.25
"""Share of the memory that features may take; larger ones go to the scratch folder."""
_BASE: Final = 450 << 20
"""Bytes of Python and the libraries."""
_BYTES_PER_ROW: Final = 24
"""What an audit needs of each row besides features: labels, halves, and one pass over them."""
_WORKING, _PER_COLUMN, _PER_CLASS = 220, 12, 40
"""Bytes of each row that audits look at: in all, for each column, and for each class."""

Encoded = tuple[EncodedFeatures, Tables, tuple[ColumnSurvey, ...]]
"""Features, the tables beside them, and what each column is like."""


def open_source(
    source: Any, projection: int | None = None, files: FileOptions = AS_FOUND
) -> TableSource:
    """Open a path, a URL, a table in memory, or a sparse matrix with labels.

    What has been opened already is returned as it is.
    A file can be read in batches, too; ``projection``: the columns that sparse features become;
    ``files``: how text files are written.
    """
    if isinstance(source, Located | MemoryTable | SparseTable):
        return cast(TableSource, source)
    path = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if path is not None and is_svmlight(path):
        return open_svmlight(path, projection)
    sparse = as_sparse(source, projection)
    if sparse is not None:
        return sparse
    if projection is not None:
        raise InputError("--projection is for sparse releases: svmlight files, SciPy matrices.")
    return open_table(source, files)


def is_large(table: TableSource) -> bool:
    """Return whether a table is read batch by batch."""
    if isinstance(table, ParquetBatches):
        return table.row_count >= _ROWS and table.row_count * len(table.names) >= _CELLS
    if not isinstance(table, FileBatches):
        return False
    return table.location.size() >= _BYTES and len(table.names) <= _COLUMNS


@dataclass
class Space:
    """Where the blocks of a table go.

    Attributes
    ----------
    memory : int or None
        The bytes that the audit may use; None: half of the machine's.
    scratch : Scratch
        Holds what is larger than a quarter of that.
    """

    memory: int | None = None
    scratch: Scratch = field(default_factory=Scratch)

    def check(self, rows: int, columns: int, classes: int) -> None:
        """Refuse an amount of memory in which a table cannot be audited.

        Raises
        ------
        InputError
            It says the least that is enough.
        """
        looked_at = min(rows, most_rows(columns, classes))
        of_each = _WORKING + _PER_COLUMN * columns + _PER_CLASS * classes
        least = _BASE + rows * _BYTES_PER_ROW + looked_at * of_each
        if self.memory is not None and self.memory < least:
            raise InputError(
                f"--memory is {shown(self.memory)}; {rows:,} rows with {columns:,} columns and "
                f"{classes:,} classes need at least {shown(least)}."
            )

    def placing(self, rows: int, width: int) -> Callable[[tuple[int, ...], Any], Any]:
        """Return what gives the arrays for a table of so many rows and columns."""
        if rows * width * 4 <= allowance(self.memory) * _IN_MEMORY:
            return np.zeros
        return self.scratch.array


class ColumnReading(Protocol):
    """The columns of a release that is being read."""

    special: dict[str, pa.ChunkedArray]
    """The columns that are no features, by name."""

    def encoded(self, beside: Sequence[Companion]) -> Encoded:
        """Return the features, coded together with the tables beside them."""


def reading_of(
    table: TableSource,
    roles: Roles,
    rest: Sequence[str],
    coded: Callable[[int], Collection[str]],
    *,
    space: Space,
    alone: bool,
) -> ColumnReading:
    """Start to read the columns of a release.

    Parameters
    ----------
    table : TableSource
    roles : Roles
    rest : sequence of str
        Columns that have no role and are only surveyed.
    coded : callable
        Gives, for a number of rows, the special columns that hold few different values.
    space : Space
    alone : bool
        Whether there are no tables beside it; those are read whole, and the release with them.
    """
    if isinstance(table, SparseTable):
        return _Sparse(table, space, alone=alone)
    if alone and isinstance(table, FileBatches) and is_large(table):
        return _InBatches(table, roles, rest, coded, space)
    return _Whole(table, roles, rest)


class _Whole:
    """A table whose columns are read one after the other."""

    def __init__(self, table: TableSource, roles: Roles, rest: Sequence[str]) -> None:
        names = (*roles.special, *roles.features, *rest)
        self._cells: Iterator[tuple[str, pa.ChunkedArray]] = table.columns(names, roles.special)
        self._features, self._names = len(roles.features), table.names
        self.special = {name: next(self._cells)[1] for name in roles.special}
        self._rows = len(self.special[roles.label])

    def encoded(self, beside: Sequence[Companion]) -> Encoded:
        columns: list[ColumnSurvey] = []
        features_alone = surveyed(islice(self._cells, self._features), columns, self._names)
        encoded, tables = encode_together(features_alone, self._rows, beside, self._names)
        left_out = survey_left_out(self._cells, self._names)
        return encoded, tables, with_arrays(columns, encoded) + left_out


class _Sparse:
    """Sparse rows, which are projected as they are read."""

    def __init__(self, table: SparseTable, space: Space, *, alone: bool) -> None:
        if not alone:
            raise InputError(
                "A sparse release is audited with --truth alone: other tables (--original, "
                "--synthetic, --held-out, --test, --public) cannot be read beside it."
            )
        rows = table.rows()
        space.check(rows, table.dimensions, 2)
        labels, self._block = table.read(space.placing(rows, table.dimensions))
        self._table, self.special = table, {table.names[0]: labels}

    def encoded(self, beside: Sequence[Companion]) -> Encoded:  # noqa: ARG002 - there is none
        block, sketch = self._block, self._table.sketch
        assert sketch is not None
        none = np.empty((len(block), 0), dtype=np.int32)
        whole = FeatureTable(block, none, (), sketch.features)
        encoded = EncodedFeatures(
            len(block),
            numeric=[block],
            numeric_places=[0],
            columns=sketch.features,
            whole=whole,
        )
        survey = ColumnSurvey(FEATURES, "list", 0.0, arrays=tuple(range(block.shape[1])))
        return encoded, Tables(), (survey,)


class _InBatches:
    """A large file, read from front to back as often as needed."""

    def __init__(
        self,
        table: FileBatches,
        roles: Roles,
        rest: Sequence[str],
        coded: Callable[[int], Collection[str]],
        space: Space,
    ) -> None:
        self._table, self._features, self._rest, self._space = table, roles.features, rest, space
        _ = table.schema  # A CSV file's rows are counted by it.
        assert table.row_count is not None
        few = list(coded(table.row_count))
        whole = [name for name in roles.special if name not in few]
        self.special = coded_columns(table, few) if few else {}
        self.special |= dict(table.columns(whole, whole)) if whole else {}

    def encoded(self, beside: Sequence[Companion]) -> Encoded:  # noqa: ARG002 - there is none
        rows, width = self._table.row_count or 0, len(self._features)
        place = self._space.placing(rows, width)
        encoded, columns = encode_batches(self._table, self._features, self._rest, place)
        surveys = with_arrays(columns[:width], encoded) + tuple(columns[width:])
        return encoded, Tables(), surveys
