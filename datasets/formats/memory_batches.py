"""A table in memory as a source of batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ldpaudit.datasets.formats.locations import Location
from ldpaudit.datasets.formats.tabular import bare_schema, open_memory

_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class MemoryBatches:
    """A table in memory; ``location`` is the file it was read from, None without one."""

    table: pa.Table
    location: Location | None = None

    @classmethod
    def of(cls, table: Any) -> "MemoryBatches":
        """Return the batches of a DataFrame, an Arrow table or an exporter of an Arrow stream.

        Raises
        ------
        InputError
            If it is none of these, or a column has no one type.
        """
        opened = open_memory(table)
        columns = pa.table(dict(opened.columns(opened.names)))
        return cls(columns.cast(bare_schema(columns.schema)).unify_dictionaries())

    @property
    def name(self) -> str:
        """The base name of the file."""
        return "release" if self.location is None else self.location.name

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types."""
        return self.table.schema

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return int(self.table.num_rows)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order."""
        chosen = self.table if columns is None else self.table.select(list(columns))
        yield from chosen.to_batches(_ROWS)
