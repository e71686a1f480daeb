"""Tables read from front to back in batches, so that memory does not grow with their rows."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from ldpaudit.datasets.formats.columns import value_type
from ldpaudit.datasets.formats.locations import Location, unreadable
from ldpaudit.datasets.formats.tabular import ParquetFiles, bare_schema
from ldpaudit.datasets.names import ColumnError, of_column

_BYTES_AT_ONCE = 1 << 25
_MOST_ROWS, _LEAST_ROWS = 1 << 16, 1 << 6
_BUFFER = 1 << 20


class BatchSource(Protocol):
    """A table that can be read in batches, as often as needed, always in the same row order."""

    @property
    def name(self) -> str:
        """The base name of the file."""

    @property
    def schema(self) -> pa.Schema:
        """The columns and their types, without any metadata."""

    @property
    def location(self) -> Location | None:
        """Where the file or files lie; None for a table in memory."""

    @property
    def row_count(self) -> int | None:
        """The number of rows, None where it is known only after reading everything."""

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""


class ParquetBatches(ParquetFiles):
    """One Parquet file, or several with the same columns, in batches."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.schema = bare_schema(self._dataset.schema)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._rows

    def metadata(self) -> Iterator[Any]:
        """Yield what each file states of its row groups."""
        for path in self.location.paths:
            with (
                unreadable(self.name, part=self.location.part(path)),
                pq.ParquetFile(path, filesystem=self.location.filesystem) as file,
            ):
                yield file.metadata

    def batches(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""
        names = list(self.names if columns is None else columns)
        for fragment in self._dataset.get_fragments():
            with unreadable(self.name, part=self.location.part(fragment.path)):
                constants = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
                for batch in self._file_batches(fragment.path, names, constants):
                    _check(batch, self.names)
                    yield _as_asked(batch, names, constants, self.schema)

    def _file_batches(
        self, path: str, names: list[str], constants: dict[str, Any]
    ) -> Iterator[pa.RecordBatch]:
        # Unbuffered, pyarrow would hold whole column chunks: a file may be one single row group.
        with pq.ParquetFile(
            path,
            filesystem=self.location.filesystem,
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
        ) as file:
            stored = [name for name in names if name not in constants]
            at_once = _rows_at_once(file.metadata)
            yield from file.iter_batches(at_once, columns=stored, use_threads=False)


def _rows_at_once(metadata: Any) -> int:
    """Return how many rows make about 32 MiB, 64 to 65,536."""
    sizes = (metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
    width = max(sum(sizes) / max(metadata.num_rows, 1), 1.0)
    return int(min(max(_BYTES_AT_ONCE / width, _LEAST_ROWS), _MOST_ROWS))


def _check(batch: pa.RecordBatch, names: Sequence[str]) -> None:
    """Check the cells: Arrow itself trusts what a file says (InputError)."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        with of_column(name, names):
            try:
                column.validate(full=True)
            except pa.ArrowInvalid:
                raise ColumnError("is damaged, or holds text that is not in UTF-8.") from None


def _as_asked(
    batch: pa.RecordBatch, names: list[str], constants: dict[str, Any], schema: pa.Schema
) -> pa.RecordBatch:
    """Return the columns by name, including those that the folders' names hold."""
    columns = [
        pa.repeat(pa.scalar(constants[name]).cast(value_type(schema.field(name).type)), len(batch))
        if name in constants
        else batch.column(batch.schema.get_field_index(name))
        for name in names
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def read_whole(source: BatchSource) -> pa.Table:
    """Return all rows as one table: for small tables."""
    return pa.Table.from_batches(list(source.batches()), source.schema)
