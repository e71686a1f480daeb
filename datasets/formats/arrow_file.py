"""Feather files, and Arrow's own: batches as they were written."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc

from ldpaudit.datasets.formats.locations import Located, Location, unreadable
from ldpaudit.datasets.formats.tabular import DECLARATION_KEY, bare_schema
from ldpaudit.datasets.formats.width import check_width
from ldpaudit.datasets.names import check_unique, quoted
from ldpaudit.errors import InputError

SUFFIXES: Final = (".feather", ".arrow", ".ipc")
_FILE: Final = b"ARROW1"
_FIRST_VERSION: Final = b"FEA1"


class ArrowFile(Located):
    """A Feather file of version 2 (Arrow's file format), or an Arrow stream."""

    text = False
    remark = ""

    def __init__(self, location: Location) -> None:
        self.location, self.name = location, location.name
        with self._reading() as file:
            start = bytes(file.read(len(_FILE)))
        if not start:
            raise InputError(f"The file {quoted(self.name)} is empty.")
        if start.startswith(_FIRST_VERSION):
            raise InputError(
                f"The file {quoted(self.name)} is of Feather's first version; write Parquet."
            )
        self.is_stream = start != _FILE
        with self._opened() as reader:
            metadata, self.schema = reader.schema.metadata, bare_schema(reader.schema)
        self.declaration: bytes | None = (metadata or {}).get(DECLARATION_KEY)
        self.names = tuple(self.schema.names)
        check_width(len(self.names), self.name)
        check_unique(self.names)
        self.row_count = sum(len(batch) for batch in self.batches([]))

    def batches(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),  # noqa: ARG002 - values have types of their own
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""
        with self._opened() as reader:
            for batch in self._all(reader):
                chosen = batch if columns is None else batch.select(list(columns))
                with unreadable(self.name):
                    chosen.validate(full=True)  # Arrow itself trusts what a file says.
                yield chosen.replace_schema_metadata(None)

    def columns(
        self, names: Sequence[str], as_text: Collection[str] = ()
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order."""
        found = [batch.columns for batch in self.batches(names, as_text)]
        for place, name in enumerate(names):
            kind = self.schema.field(name).type
            yield name, pa.chunked_array([columns[place] for columns in found], kind)

    def _all(self, reader: Any) -> Iterator[pa.RecordBatch]:
        with unreadable(self.name):
            if self.is_stream:
                yield from reader
            else:
                yield from map(reader.get_batch, range(reader.num_record_batches))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with ExitStack() as stack, unreadable(self.name):
            file = stack.enter_context(self._reading())
            open_ = pyarrow.ipc.open_stream if self.is_stream else pyarrow.ipc.open_file
            yield stack.enter_context(open_(file))

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        path, files = self.location.paths[0], self.location.filesystem
        with unreadable(self.name), files.open_input_file(path) as file:
            yield file
