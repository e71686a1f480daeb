"""Tables, wherever they come from: column names, the declaration's bytes, and columns in turn."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from ldpaudit.datasets.formats.csv_file import SUFFIXES as CSV_SUFFIXES
from ldpaudit.datasets.formats.locations import Located, Location, unreadable
from ldpaudit.datasets.formats.width import check_footer, check_width
from ldpaudit.datasets.names import check_unique, quoted
from ldpaudit.errors import InputError

DECLARATION_KEY = b"ldpaudit"
"""The key of the declaration in the schema metadata of a Parquet file or an Arrow table."""
CELLS_AT_ONCE = 1 << 24
"""Columns are read in groups of about this many cells, so a wide file is never whole in memory."""
_COLUMNS_AT_ONCE = 10_000
"""The time of one call grows with the square of its columns."""

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"


class TableSource(Protocol):
    """A table that has been opened; its cells have not been read yet."""

    @property
    def name(self) -> str:
        """The base name of the file; ``"release"`` for a table in memory."""

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, distinct, in order."""

    @property
    def text(self) -> bool:
        """Whether it comes from text, where numbers have no type of their own."""

    @property
    def remark(self) -> str:
        """How a file is read, in words, where that was found out and is not usual; else empty."""

    @property
    def declaration(self) -> bytes | None:
        """The declaration's JSON, or None."""

    def sha256(self) -> str | None:
        """Return the digest of the file; None for a table in memory."""

    def columns(
        self, names: Sequence[str], as_text: Collection[str] = ()
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order.

        A text file gives those in ``as_text`` as strings, letter for letter; other sources have
        types of their own and ignore it.
        """


class MemoryTable:
    """A pandas DataFrame, an Arrow table, or anything that exports an Arrow stream."""

    name = "release"
    text = False
    remark = ""

    def __init__(self, table: Any) -> None:
        self._frame: Any = table if is_frame(table) else None
        if self._frame is not None:
            self.names = tuple(str(name) for name in self._frame.columns)
            declared = self._frame.attrs.get(DECLARATION_KEY.decode())
            metadata = {DECLARATION_KEY: declared.encode()} if isinstance(declared, str) else {}
        else:
            with unreadable("release", "cannot be read as an Arrow table"):
                self._table = table if isinstance(table, pa.Table) else _exported(table)
            self.names = tuple(self._table.schema.names)
            metadata = self._table.schema.metadata
        check_width(len(self.names), self.name)
        check_unique(self.names)
        self._places = {name: place for place, name in enumerate(self.names)}
        self.declaration: bytes | None = (metadata or {}).get(DECLARATION_KEY)

    def sha256(self) -> str | None:
        """Return None: there is no file."""
        return None

    def columns(
        self,
        names: Sequence[str],
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order."""
        for name in names:
            if self._frame is None:
                yield name, self._table.column(name)
            else:
                place = self._places[name]
                yield name, _from_pandas(self._frame.iloc[:, place], place + 1)


class ParquetFiles(Located):
    """One Parquet file, or several with the same columns."""

    text = False
    remark = ""

    def __init__(self, location: Location) -> None:
        self.location = location
        self.name = location.name
        schemas, self._rows = [], 0
        for path in location.paths:
            _check_magic(location, path)
            with (
                unreadable(self.name, part=location.part(path)),
                pq.ParquetFile(path, filesystem=location.filesystem) as file,
            ):
                schemas.append(file.schema_arrow)
                names = list(file.schema_arrow.names)
                self._rows += file.metadata.num_rows
        check_width(len(names), self.name)
        check_unique(names)
        _check_same(schemas, self.name)
        self.declaration: bytes | None = (schemas[0].metadata or {}).get(DECLARATION_KEY)
        with unreadable(self.name):
            self._dataset = pyarrow.dataset.dataset(
                list(location.paths),
                filesystem=location.filesystem,
                format=_checked_parquet(),
                partitioning=None if location.folder is None else "hive",
                partition_base_dir=location.folder,
            )
        self.names: tuple[str, ...] = tuple(self._dataset.schema.names)
        check_unique(self.names)

    def columns(
        self,
        names: Sequence[str],
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order, read a group at a time."""
        at_once = min(max(1, CELLS_AT_ONCE // max(self._rows, 1)), _COLUMNS_AT_ONCE)
        for start in range(0, len(names), at_once):
            group = list(names[start : start + at_once])
            with unreadable(self.name):
                table = self._dataset.to_table(columns=group)
            for position, name in enumerate(group):
                yield name, table.column(position)


def bare_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema without the table's and the columns' metadata.

    Metadata may hold anything: a pandas index, another tool's statistics, an old declaration.
    """
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def open_memory(source: Any) -> TableSource:
    """Open a DataFrame, an Arrow table or an exporter of an Arrow stream (else: InputError)."""
    if is_frame(source) or hasattr(source, "__arrow_c_stream__"):
        return MemoryTable(source)
    raise _no_table(source)


def _exported(source: Any) -> pa.Table:
    try:
        return pa.table(source)
    except pa.ArrowInvalid:  # A single column.
        raise _no_table(source) from None


def _no_table(source: Any) -> InputError:
    return InputError(
        "A table must be a path, a pandas DataFrame or an Arrow table. "
        f"Got {type(source).__name__} instead."
    )


def is_frame(value: Any) -> bool:
    """Return whether a value is a pandas DataFrame, without importing pandas."""
    module = type(value).__module__
    return module.split(".", 1)[0] == "pandas" and type(value).__name__ == "DataFrame"


def _from_pandas(series: Any, place: int) -> pa.ChunkedArray:
    if "interval" in str(getattr(getattr(series, "cat", None), "categories", series).dtype):
        series = series.astype(object).map(str, na_action="ignore")  # Of pandas.cut.
    try:
        array = pa.Array.from_pandas(series)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InputError(
            f"Column {place} mixes types or holds objects; give every column one type."
        ) from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _check_magic(location: Location, path: str) -> None:
    """Check that a file is Parquet and complete, before pyarrow reads it."""
    shown = location.part(path)
    with unreadable(location.name, part=shown), location.filesystem.open_input_file(path) as file:
        size = file.size()
        if size == 0:
            raise InputError(f"{shown} is empty.")
        start = file.read(4)
        file.seek(max(0, size - 4))
        end = file.read(4)
        footer = _footer_start(file, size)
    if start == _ENCRYPTED:
        raise InputError(f"{shown} is encrypted.")
    if start != _MAGIC:
        raise InputError(
            f"{shown} is neither Parquet nor CSV (a CSV file's name must end in "
            f"{', '.join(CSV_SUFFIXES)}; other formats are known by their names, too)."
        )
    if end != _MAGIC:
        raise InputError(f"{shown} is truncated: a Parquet file ends with its footer.")
    check_footer(footer, location.name)


def _footer_start(file: Any, size: int) -> bytes:
    """Return the first bytes of a Parquet footer, none where it lies outside of the file."""
    file.seek(max(0, size - 8))
    start = size - 8 - int.from_bytes(file.read(4), "little")
    if start < 0:
        return b""
    file.seek(start)
    return bytes(file.read(16))


def _check_same(schemas: list[pa.Schema], name: str) -> None:
    first = schemas[0]
    if any(not schema.equals(first) for schema in schemas):
        raise InputError(f"The files of {quoted(name)} must have the same columns and types.")
    declared = {(schema.metadata or {}).get(DECLARATION_KEY) for schema in schemas}
    if len(declared) > 1:
        raise InputError(f"The files of {quoted(name)} must all carry the same declaration.")


def _checked_parquet() -> Any:
    """Return the format that verifies the pages' checksums where a file has them."""
    options = pyarrow.dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
    return pyarrow.dataset.ParquetFileFormat(default_fragment_scan_options=options)
