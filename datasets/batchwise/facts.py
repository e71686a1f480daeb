"""What all rows of a column tell about it, collected batch by batch."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.columns import ColumnSurvey
from ldpaudit.datasets.batchwise.categories import MOST, hashes
from ldpaudit.datasets.column_survey import kind_of, may_be_unique, plain, rises, survey_of
from ldpaudit.datasets.formats.columns import decoded, is_any

KEPT: Final = 1 << 22
"""Values whose hashes are compared to see whether all differ; of more rows those of a part."""


class SeenColumn:
    """The facts of a column that passes by in batches (:class:`..column_survey.Facts`).

    Parameters
    ----------
    name : str
    head : pyarrow.ChunkedArray
        Its first 10,000 rows, or all.
    rows : int
        How many rows there are.
    """

    def __init__(self, name: str, head: pa.ChunkedArray, rows: int) -> None:
        self.rows = rows
        self._name, self._head = name, head
        self._seen = 0
        self._first: Any = None
        self._last: Any = None
        looked_at = bool(rows) and plain(head.type)
        glance = decoded(head) if looked_at else head
        self._ordered = looked_at and rises(glance)
        self._unique = looked_at and _may_be_unique(glance)
        self._counts = self._unique and is_any(glance.type, "integer", "floating")
        self._hashes: list[npt.NDArray[np.uint64]] = []
        dictionary = looked_at and pa.types.is_dictionary(head.type)
        self._values: tuple[set[Any], set[Any]] | None = (set(), set()) if dictionary else None
        self._every = -(-rows // KEPT)

    @property
    def unused(self) -> int:
        """How many values of its dictionary no row has."""
        return 0 if self._values is None else len(self._values[0] - self._values[1])

    def add(self, column: pa.ChunkedArray) -> None:
        """Look at the next rows."""
        if not len(column):
            return
        if self._values is not None:
            self._look_up(column)
        if self._ordered or self._unique:
            values = decoded(column)
            self._ordered = self._ordered and self._goes_on(values)
            self._counts = self._counts and self._counts_on(values)
            if self._unique:
                self._hashes.append(self._some_hashes(values))
        self._seen += len(column)

    def is_unique(self) -> bool:
        """Return whether every row has a value of its own."""
        every = np.concatenate(self._hashes) if self._hashes else np.empty(0)
        return self._unique and len(np.unique(every)) == len(every)

    def counts_rows(self) -> bool:
        """Return whether the column counts 0, 1, 2 … or 1, 2, 3 … from row to row."""
        return self._counts

    def is_ordered(self) -> bool:
        """Return whether the rows are sorted by it, and it is not the same everywhere."""
        return self._ordered and self._first != self._last

    def survey(self) -> ColumnSurvey:
        """Return what the column is like."""
        return survey_of(self._name, self._head, self)

    def _goes_on(self, values: pa.ChunkedArray) -> bool:
        if values.null_count:
            return False
        first, before = values[0], self._last
        if before is None:
            self._first = first
        self._last = values[-1]
        try:
            steps = pc.all(pc.less_equal(values.slice(0, len(values) - 1), values.slice(1))).as_py()
            return steps is not False and (
                before is None or bool(pc.less_equal(before, first).as_py())
            )
        except pa.ArrowException:
            return False

    def _counts_on(self, values: pa.ChunkedArray) -> bool:
        if values.null_count:
            return False
        numbers = values.to_numpy()
        start = numbers[0] - self._seen
        return bool(start in (0, 1) and (np.diff(numbers) == 1).all())

    def _some_hashes(self, values: pa.ChunkedArray) -> npt.NDArray[np.uint64]:
        if not is_any(values.type, "integer", "floating"):
            values = values.cast(
                pa.large_binary() if is_any(values.type, "binary") else pa.string()
            )
        found = hashes(values.to_numpy())
        return found if self._every <= 1 else found[found % np.uint64(self._every) == 0]

    def _look_up(self, column: pa.ChunkedArray) -> None:
        assert self._values is not None
        every, used = self._values
        for chunk in column.chunks:
            if len(every) > MOST:
                return
            every.update(chunk.dictionary.to_pylist())
            used.update(chunk.dictionary.take(chunk.indices.drop_null().unique()).to_pylist())


def _may_be_unique(glance: pa.ChunkedArray) -> bool:
    share = pc.count_distinct(glance).as_py() / max(len(glance), 1)
    return may_be_unique(glance, kind_of(glance, share), share)
