"""ORC files, read by Arrow: few rows at a time, since no file says how long its texts are."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset
import pyarrow.orc

from ldpaudit.datasets.formats.locations import Location, check_width, unreadable
from ldpaudit.datasets.formats.tables import (
    BYTES,
    NUMBERS,
    TableSource,
    allowed,
    bare_schema,
    check_fits,
    is_any,
    usual_batch,
)
from ldpaudit.datasets.names import (
    ColumnError,
    Header,
    check_unique,
    of_column,
    quoted,
    shown_type,
)
from ldpaudit.doors import InputError, OutputError

# Rows that are unpacked at once: of numbers, of texts, and of texts in a file of so few rows.
_NUMBERS_AT_ONCE, _TEXTS_AT_ONCE, _FEW_AT_ONCE, _FEW = 1 << 16, 1 << 6, 1 << 3, 20_000
# Bytes that are handed on at once.
_BYTES_AT_ONCE: Final = 1 << 25
_START: Final = b"ORC"
_WRITTEN: Final = {"compression": "zstd"}


class OrcFile(TableSource):
    """An ORC file; its columns hold single values."""

    location: Location
    row_count: int

    def __init__(self, location: Location) -> None:
        self.location = location
        with self._reading() as file:
            size, start = file.size(), bytes(file.read(len(_START)))
        if not size:
            raise InputError(f"The file {quoted(self.name)} is empty.")
        if start != _START:
            raise InputError(f"The file {quoted(self.name)} is not ORC, which its name says it is.")
        with self._reading() as file:
            opened = pyarrow.orc.ORCFile(file)
            schema, self.row_count = opened.schema, opened.nrows
        check_width(len(schema.names), self.name)
        check_unique(schema.names)
        self.schema, self.names = bare_schema(schema), Header(schema.names)

    def batches(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""
        names = list(self.names if columns is None else columns)
        for name in names:
            with of_column(name, self.names):
                if pa.types.is_nested(self.schema.field(name).type):
                    raise ColumnError(
                        "holds lists or objects, which are not read from ORC; write Parquet."
                    )
        parts, rows, size = list[pa.RecordBatch](), 0, 0
        for batch in self._pieces(names):
            parts.append(batch)
            rows, size = rows + len(batch), size + batch.nbytes
            check_fits(2 * size, f"The file {quoted(self.name)}")
            if rows >= _NUMBERS_AT_ONCE or size >= min(_BYTES_AT_ONCE, allowed() // 8):
                yield _one(parts)
                parts, rows, size = [], 0, 0
        if parts:
            yield _one(parts)

    def _pieces(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows as they are unpacked."""
        kinds = [self.schema.field(name).type for name in names]
        fixed = all(is_any(k, *NUMBERS, "boolean", "date", "timestamp", "null") for k in kinds)
        at_once = _FEW_AT_ONCE if self.row_count <= _FEW else _TEXTS_AT_ONCE
        at_once = max(_NUMBERS_AT_ONCE // max(len(names), 1), 1) if fixed else at_once
        with self._reading():
            table: Any = pyarrow.dataset.dataset(
                self.location.paths[0], filesystem=self.location.filesystem, format="orc"
            )
            # Nothing is unpacked ahead of what is asked for.
            options = {"use_threads": False, "batch_readahead": 0, "fragment_readahead": 1}
            scanner = table.scanner(columns=names, batch_size=at_once, **options)
            seen = 0
            for batch in scanner.to_reader():
                batch.validate(full=True)  # Arrow itself trusts what a file says.
                seen += len(batch)
                yield usual_batch(batch)
            if names and seen != self.row_count:
                raise pa.ArrowInvalid("other rows than it says")

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        path, files = self.location.paths[0], self.location.filesystem
        with unreadable(self.name), files.open_input_file(path) as file:
            try:
                yield file
            except pa.ArrowInvalid as error:
                if "out of range for nanosecond" in str(error):
                    raise InputError(
                        f"The file {quoted(self.name)} holds times before 1678 or after 2261, "
                        "which are not read from ORC; write Parquet."
                    ) from None
                raise


def _one(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(parts) == 1:
        return parts[0]
    columns = [pa.concat_arrays(arrays) for arrays in zip(*(p.columns for p in parts), strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=parts[0].schema)


def writable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows in types that ORC has; its numbers are signed (ArrowInvalid where one is not)."""
    columns = [column.cast(writable_type(column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def writable_type(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a column is written; what ORC does not have comes back as it is."""
    if pa.types.is_dictionary(kind):
        return writable_type(kind.value_type)
    if pa.types.is_unsigned_integer(kind):
        return {8: pa.int16(), 16: pa.int32()}.get(kind.bit_width, pa.int64())
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_null(kind) or is_any(kind, "string", "large_string", "string_view"):
        return pa.string()
    if pa.types.is_decimal(kind) and kind.bit_width < 128:
        return pa.decimal128(kind.precision, kind.scale)
    return kind


def holds(kind: pa.DataType) -> bool:
    """Return whether a column of a type can be written, and read again as it was."""
    own = writable_type(kind)
    if pa.types.is_decimal(own):
        return bool(own.bit_width == 128)
    known = ("boolean", "integer", "floating", "string", "date", "timestamp", *BYTES)
    return is_any(own, *known)


def check_columns(schema: pa.Schema) -> None:
    """Refuse columns that ORC cannot hold (OutputError)."""
    for place, field in enumerate(schema, start=1):
        if not holds(field.type):
            raise OutputError(
                f"Column {place} is of type {shown_type(field.type)}, which is not written to ORC; "
                "give the file a name that ends in .parquet."
            )


class OrcWriter:
    """Writes rows to an ORC file."""

    def __init__(self, stream: Any) -> None:
        self._writer: Any = pyarrow.orc.ORCWriter(pa.PythonFile(stream, mode="w"), **_WRITTEN)
        self.close = self._writer.close

    def write(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        self._writer.write(pa.Table.from_batches([writable(batch)]))
