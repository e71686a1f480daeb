"""Parquet files, and Arrow's own (Feather): batches of rows, held to the memory that may be used.

A few bytes of either can stand for very many: of an equal value in a list, of a long text in a
dictionary, of whatever compresses well. So sizes are looked up before anything is unpacked.
"""

import base64
import re
import struct
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.ipc
import pyarrow.parquet as pq

from ldpaudit.datasets.formats.besides import bytes_besides
from ldpaudit.datasets.formats.locations import Location, check_width, unreadable
from ldpaudit.datasets.formats.tables import (
    DECLARATION_KEY,
    LISTS,
    NUMBERS,
    TEXTS,
    VALUES,
    TableSource,
    allowed,
    bare_schema,
    check_fits,
    is_any,
    usual,
    usual_batch,
    value_type,
)
from ldpaudit.datasets.names import (
    ColumnError,
    Header,
    called,
    check_unique,
    of_column,
    quoted,
    shown_type,
)
from ldpaudit.errors import InputError
from ldpaudit.work.limits import COLUMNS, RUN_ROWS

_BYTES_AT_ONCE, _BUFFER = 1 << 25, 1 << 20
_MOST_BATCH_ROWS, _LEAST_ROWS = 1 << 16, 1 << 6
# Bytes of texts, each of which may stand in many rows, that are unpacked at once.
_REPEATED_AT_ONCE: Final = 1 << 28
# Entries of a Parquet schema for one column of lists; a column of numbers has one.
_FIELDS_IN_LIST: Final = 3
# Bytes in memory of a value in a list, with its two levels.
_IN_LIST: Final = 12
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
# A file of Arrow's ends with the length of its footer and a mark; bytes of a block in a footer.
_END_FORM: Final = struct.Struct("<i6s")
_END: Final = b" " * _END_FORM.size
_BLOCK: Final = 24
# A folder whose value is a code, 01, and as a number would be another folder's.
_CODED: Final = re.compile(r"(?<=/)([^/=]+)=[+-]?0[0-9][^/]*(?=/)")


class ParquetFiles(TableSource):
    """One Parquet file, or several with the same columns."""

    location: Location
    row_count: int

    def __init__(self, location: Location) -> None:
        self.location, schemas, self.part_rows = location, [], []
        self.remark = location.remark
        for path in location.paths:
            part = location.part(path)
            _check_magic(location, path)
            with unreadable(self.name, part=part), self._opened(path) as file:
                schemas.append(with_categories(file))
                self.part_rows.append(file.metadata.num_rows)
        self.row_count = sum(self.part_rows)
        check_width(len(schemas[0].names), self.name)
        check_unique(schemas[0].names)
        self._alike = all(schema.equals(schemas[0]) for schema in schemas)
        united = bare_schema(schemas[0]) if self._alike else self._united(schemas)
        declared = {(schema.metadata or {}).get(DECLARATION_KEY) for schema in schemas}
        if len(declared) > 1:
            raise InputError(
                f"The files of {quoted(self.name)} must all carry the same declaration."
            )
        self.embedded, self.besides = declared.pop(), max(map(bytes_besides, schemas))
        with unreadable(self.name):
            self._dataset = self._opened_as("hive" if location.folder else None)
            coded = {found[1] for path in location.paths for found in _CODED.finditer(path)}
            if location.folder and coded & {*self._dataset.schema.names}:
                fields = self._dataset.partitioning.schema
                texts = [f.with_type(pa.string()) if f.name in coded else f for f in fields]
                kinds = pa.schema(texts)
                self._dataset = self._opened_as(pyarrow.dataset.partitioning(kinds, flavor="hive"))
        own = set(united.names)
        of_folders = [f for f in self._dataset.schema if f.name not in own]
        self.schema = bare_schema(pa.schema([*united, *of_folders]))
        self._leaves_of: dict[str, dict[str, list[tuple[int, bool]]]] = {}
        self.names = Header(self.schema.names)
        check_unique(self.names)

    def _united(self, schemas: Sequence[pa.Schema]) -> pa.Schema:
        """Return one schema that holds the values of all parts; their columns may be in any order.

        InputError where a part lacks a column or holds another kind of values; it gives places.
        """
        first, parts = bare_schema(schemas[0]), [bare_schema(schema) for schema in schemas]
        for path, part in zip(self.location.paths, parts, strict=True):
            for one, other, lacks in ((first, part, "lacks"), (part, first, "has")):
                missing = [name for name in one.names if other.get_all_field_indices(name) == []]
                if missing or len(part.names) != len({*part.names}):
                    place = called(missing[0], one.names) if missing else "a column twice"
                    which = f"{place} of the first part" if lacks == "lacks" else f"a {place}"
                    which = (
                        f"{which} that the first part does not have" if lacks == "has" else which
                    )
                    raise InputError(
                        f"{self.location.part(path)} {lacks} {which}; all files must have the same "
                        "columns."
                    )
        fields = []
        for field in first:
            kind, own = pa.null(), first.get_field_index(field.name) + 1
            for path, part in zip(self.location.paths, parts, strict=True):
                other = part.field(field.name).type
                both = united_type(kind, other)
                if both is None:
                    raise InputError(
                        f"{self.location.part(path)} holds {shown_type(other)} in column {own}, "
                        f"and the parts before it {shown_type(kind)}; write it in one type in all "
                        "files."
                    )
                kind = both
            fields.append(pa.field(field.name, kind))
        return pa.schema(fields)

    def _opened_as(self, partitioning: Any) -> Any:
        return pyarrow.dataset.dataset(
            list(self.location.paths),
            filesystem=self.location.filesystem,
            format="parquet",
            partitioning=partitioning,
            partition_base_dir=self.location.folder,
        )

    def batches(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""
        names = list(self.names if columns is None else columns)
        fragments = {fragment.path: fragment for fragment in self._dataset.get_fragments()}
        for path in self.location.paths:  # The dataset has an order of its own.
            fragment = fragments[path]
            constants = pyarrow.dataset.get_partition_keys(fragment.partition_expression)
            stored = [name for name in names if name not in constants]
            for batch in self.part_batches(fragment.path, stored):
                yield self._as_asked(batch, names, constants)

    def part_batches(
        self, path: str, names: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one of the files, with the named columns that it holds (None: all)."""
        with unreadable(self.name, part=self.location.part(path)), self._opened(path) as file:
            stored = list(file.schema_arrow.names if names is None else names)
            at_once = self._rows_at_once(file, path, stored)
            yield from file.iter_batches(at_once, columns=stored)

    def _opened(self, path: str, **options: Any) -> Any:
        # Unbuffered, pyarrow would hold whole column chunks: a file may be one single row group.
        return pq.ParquetFile(
            path,
            filesystem=self.location.filesystem,
            pre_buffer=False,
            buffer_size=_BUFFER,
            page_checksum_verification=True,
            thrift_container_size_limit=_FIELDS_IN_LIST * COLUMNS,
            **options,
        )

    def _leaves(self, path: str) -> dict[str, list[tuple[int, bool]]]:
        """Return the places of each column's parts in a file, and whether they are of lists."""
        path = self.location.paths[0] if self._alike else path
        if path in self._leaves_of:
            return self._leaves_of[path]
        found: dict[str, list[tuple[int, bool]]] = {name: [] for name in self.names}
        with self._opened(path) as file:
            for place, leaf in enumerate(map(file.schema.column, range(len(file.schema)))):
                parts = leaf.path.split(".")  # A name may have dots itself.
                tops = (".".join(parts[:k]) for k in range(len(parts), 0, -1))
                top = next((name for name in tops if name in found), None)
                if top is not None:
                    found[top].append((place, leaf.max_repetition_level > 0))
        self._leaves_of[path] = found
        return found

    def width(self, names: Sequence[str]) -> float:
        """Return how many values a row has in some columns, by what the files say of themselves."""
        values = 0
        for path in self.location.paths:
            with self._opened(path) as file:
                for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
                    places = (leaf[0] for name in names for leaf in self._leaves(path)[name])
                    values += sum(group.column(place).num_values for place in places)
        return values / max(self.row_count, 1)

    def _rows_at_once(self, file: Any, path: str, names: Sequence[str]) -> int:
        """Return how many rows of a file make about 32 MiB, 64 to 65,536."""
        metadata, width, longest = file.metadata, 0, 1
        own = self._leaves(path)
        if any(name not in own for name in names):
            raise InputError("The file is damaged: its parts name other columns than it does.")
        leaves = [(name, *leaf) for name in names for leaf in own[name]]
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for name, place, repeated in leaves:
                chunk = group.column(place)
                values, size = chunk.num_values, 8 * chunk.num_values
                with of_column(name, self.names):
                    if repeated:  # All of them may be in one row.
                        check_fits(_IN_LIST * values)
                    if chunk.physical_type == "BYTE_ARRAY":
                        size = max(size, chunk.total_uncompressed_size)
                        check_fits(2 * size)
                        if values * chunk.total_uncompressed_size > _BYTES_AT_ONCE:
                            longest = max(longest, self._longest(path, number, chunk))
                            check_fits(longest)
                width += size
        rows = _BYTES_AT_ONCE * metadata.num_rows / max(width, 1)
        most = min(allowed() / 4, _REPEATED_AT_ONCE) / longest
        rows = min(max(rows, _LEAST_ROWS), most, _MOST_BATCH_ROWS)
        return max(int(rows), 1)

    def _longest(self, path: str, number: int, chunk: Any) -> int:
        """Return at most how long a text is that a chunk of a row group may repeat."""
        column = chunk.path_in_schema
        if not any("DICTIONARY" in encoding or "DELTA" in encoding for encoding in chunk.encodings):
            return 1
        if any("DELTA" in encoding for encoding in chunk.encodings):  # Not read as dictionaries.
            return int(chunk.total_uncompressed_size)
        with self._opened(path, read_dictionary=[column]) as file:
            for batch in file.iter_batches(_LEAST_ROWS, row_groups=[number], columns=[column]):
                values = batch.column(0)
                while pa.types.is_nested(values.type):
                    inner = values.flatten()
                    values = inner[0] if isinstance(inner, list) else inner
                if not pa.types.is_dictionary(values.type):
                    return int(chunk.total_uncompressed_size)
                if len(values.dictionary):
                    return int(pc.max(pc.binary_length(values.dictionary)).as_py())
        return 1

    def _as_asked(
        self, batch: pa.RecordBatch, names: list[str], constants: dict[str, Any]
    ) -> pa.RecordBatch:
        """Return checked columns by name, including those that the folders' names hold."""
        found = []
        for name in names:
            if name in constants:
                kind = value_type(self.schema.field(name).type)
                column = pa.repeat(pa.scalar(constants[name]).cast(kind), len(batch))
            else:
                column = batch.column(batch.schema.get_field_index(name))
                with of_column(name, self.names):
                    try:
                        column.validate(full=True)  # Arrow itself trusts what a file says.
                        column = as_categories(usual(column), self.schema.field(name).type)
                    except pa.ArrowInvalid:
                        raise ColumnError(
                            "is damaged, or holds text that is not in UTF-8."
                        ) from None
            found.append(column)
        return pa.RecordBatch.from_arrays(found, names=names)


def with_categories(file: Any) -> pa.Schema:
    """Return the schema of a Parquet file, with categories that are no texts as such.

    Parquet holds the values of these alone; Arrow's schema beside them says what they were.
    """
    schema, metadata = file.schema_arrow, file.metadata.metadata or {}
    try:
        content = base64.b64decode(metadata.get(b"ARROW:schema", b""), validate=True)
        own = pyarrow.ipc.read_schema(pa.py_buffer(content)) if content else schema
    except (ValueError, pa.ArrowException):  # Of another library; Arrow itself refuses such a file.
        own = schema
    if own.names != schema.names:
        return schema
    # The order of the categories is not kept, nor those that no row has.
    fields = [
        field.with_type(pa.dictionary(pa.int32(), field.type))
        if pa.types.is_dictionary(said.type) and is_any(field.type, *VALUES)
        else field
        for field, said in zip(schema, own, strict=True)
    ]
    return pa.schema(fields, metadata=schema.metadata)


def as_categories(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return a column in another type of its values, or as categories of them."""
    if column.type == kind:
        return column
    if not pa.types.is_dictionary(kind) or pa.types.is_dictionary(column.type):
        return column.cast(kind)
    encoded = column.cast(kind.value_type).dictionary_encode()
    indices = encoded.indices.cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, encoded.dictionary, ordered=kind.ordered)


def united_type(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return a type that holds the values of both, of one kind: numbers, texts, times; or None."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    one, other = value_type(one), value_type(other)
    if one == other:
        return one
    kinds = (one, other)
    if all(is_any(kind, *TEXTS) for kind in kinds):
        return pa.large_string()
    if all(is_any(kind, "integer", "floating") for kind in kinds):
        if any(pa.types.is_floating(kind) for kind in kinds):
            return pa.float64()
        return (
            pa.uint64()
            if {pa.types.is_unsigned_integer(k) for k in kinds} == {True}
            else pa.int64()
        )
    if all(is_any(kind, *NUMBERS, "date", "timestamp", "time", "duration") for kind in kinds):
        with suppress(pa.ArrowException):
            schemas = [pa.schema([("", kind)]) for kind in kinds]
            return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    if all(is_any(kind, *LISTS) for kind in kinds):
        inner = united_type(one.value_type, other.value_type)
        return None if inner is None else pa.large_list(inner)
    return None


def _check_magic(location: Location, path: str) -> None:
    """Check that a file is Parquet, complete and readable, before pyarrow reads it."""
    shown = location.part(path)
    with unreadable(location.name, part=shown), location.filesystem.open_input_file(path) as file:
        size = file.size()
        start = file.read(4)
        file.seek(max(0, size - 4))
        end = file.read(4)
    if not size:
        raise InputError(f"{shown} is empty.")
    if start == b"PARE":
        raise InputError(f"{shown} is encrypted.")
    if start != b"PAR1":
        raise InputError(
            f"{shown} is not Parquet. Files are known by their names: name it .csv, .tsv, .txt, "
            ".jsonl, .feather, .orc, .xlsx, .npz, .svm, .dta, .sav, .sas7bdat or .xpt if it is one "
            "of these."
        )
    if end != start or size < 2 * len(end):
        raise InputError(f"{shown} is truncated: a Parquet file ends with its footer.")


class ArrowFile(TableSource):
    """A Feather file of version 2 (Arrow's file format), or an Arrow stream."""

    location: Location
    row_count: int

    def __init__(self, location: Location) -> None:
        self.location = location
        with self._reading(0) as file:
            start = bytes(file.read(6))
        if not start:
            raise InputError(f"The file {quoted(self.name)} is empty.")
        if start.startswith(b"FEA1"):
            raise InputError(
                f"The file {quoted(self.name)} is of Feather's first version; write Parquet."
            )
        self.is_stream = start != b"ARROW1"
        with self._reading(0) as file:
            opened = pyarrow.ipc.open_stream if self.is_stream else pyarrow.ipc.open_file
            schema = opened(file).schema
        self.embedded = (schema.metadata or {}).get(DECLARATION_KEY)
        self.besides = bytes_besides(schema)
        self.schema, self.names = bare_schema(schema), Header(schema.names)
        check_width(len(self.names), self.name)
        check_unique(self.names)
        largest = {_RECORD_BATCH: [0], _DICTIONARY_BATCH: [0]}
        self.row_count = 0
        with self._reading(0) as file:
            for message in _messages(file, stream=self.is_stream):
                kind, rows, size = _size_of(message)
                largest.setdefault(kind, []).append(size)
                self.row_count += rows if kind == _RECORD_BATCH else 0
        if self.row_count > RUN_ROWS and any(map(_of_runs, schema.types)):
            raise InputError(
                f"The file {quoted(self.name)} has columns of runs, of which at most "
                f"{RUN_ROWS:,} rows are read; write Parquet."
            )
        self._largest = max(largest[_RECORD_BATCH]) + sum(largest[_DICTIONARY_BATCH])

    def batches(
        self,
        columns: Sequence[str] | None = None,
        as_text: Collection[str] = (),  # noqa: ARG002
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""
        with unreadable(self.name):
            check_fits(self._largest, f"A batch of {quoted(self.name)}")
        with self._reading(0) as file:
            for batch in _batches(file, stream=self.is_stream):
                chosen = batch if columns is None else batch.select(list(columns))
                chosen.validate(full=True)  # Arrow itself trusts what a file says.
                yield usual_batch(chosen)

    @contextmanager
    def _reading(self, start: int) -> Iterator[Any]:
        path, files = self.location.paths[0], self.location.filesystem
        with unreadable(self.name), files.open_input_file(path) as file:
            file.seek(start)
            yield file


def _of_runs(kind: pa.DataType) -> bool:
    """Return whether a type has runs in it, of which one can stand for any number of rows."""
    inner = [kind.field(place).type for place in range(kind.num_fields)]
    return pa.types.is_run_end_encoded(kind) or any(map(_of_runs, inner))


def _batches(file: Any, *, stream: bool) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a stream, or of a file in the order of its footer."""
    if stream:
        yield from pyarrow.ipc.open_stream(file)
        return
    opened = pyarrow.ipc.open_file(file)
    yield from map(opened.get_batch, range(opened.num_record_batches))


def _messages(file: Any, *, stream: bool) -> Iterator[Any]:
    """Yield the messages of a stream, or those that a file's footer lists: it may hold others."""
    if stream:
        yield from pyarrow.ipc.MessageReader.open_stream(file)
        return
    size = file.size()
    file.seek(size - len(_END))
    length, magic = _END_FORM.unpack(file.read(len(_END)))
    if magic != b"ARROW1" or not 0 < length <= size - len(_END):
        raise pa.ArrowInvalid("no footer")
    file.seek(size - len(_END) - length)
    footer = bytes(file.read(length))
    for place in _blocks(footer):
        if not 0 <= place < size:
            raise pa.ArrowInvalid("a block outside of the file")
        file.seek(place)
        yield pyarrow.ipc.read_message(file)


def _blocks(footer: bytes) -> Iterator[int]:
    """Yield where a file's dictionaries begin, and its batches: fields 2 and 3 of its footer."""
    root = struct.unpack_from("<I", footer, 0)[0]
    own = root - struct.unpack_from("<i", footer, root)[0]
    for field in (2, 3):
        if 4 + 2 * field >= struct.unpack_from("<H", footer, own)[0]:
            continue
        at = struct.unpack_from("<H", footer, own + 4 + 2 * field)[0]
        if not at:
            continue
        start = root + at + struct.unpack_from("<I", footer, root + at)[0]
        for place in range(struct.unpack_from("<I", footer, start)[0]):
            yield struct.unpack_from("<q", footer, start + 4 + _BLOCK * place)[0]


def _size_of(message: Any) -> tuple[int, int, int]:
    """Return the kind of a message of Arrow's, its rows, and its bytes when it is unpacked."""
    # A message is a table of Google's FlatBuffers: a field lies at an offset from the table's
    # start, which its other table gives. A compressed buffer begins with its size when it is
    # unpacked.
    head, body = message.metadata, message.body

    def number(form: str, place: int, content: Any = head) -> int:
        return int(struct.unpack_from(form, content, place)[0])

    def field(table: int, place: int) -> int:
        own = table - number("<i", table)
        return number("<H", own + 4 + 2 * place) if 4 + 2 * place < number("<H", own) else 0

    def inner(table: int, place: int) -> int:
        at = table + field(table, place)
        return at + number("<I", at)

    root = number("<I", 0)
    kind = number("<B", root + field(root, 1)) if field(root, 1) else 0
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return kind, 0, 0
    batch = inner(root, 2)
    batch = inner(batch, 1) if kind == _DICTIONARY_BATCH else batch
    rows = number("<q", batch + field(batch, 0)) if field(batch, 0) else 0
    buffers, size = inner(batch, 2), 0
    for place in range(number("<I", buffers)):
        start, length = struct.unpack_from("<qq", head, buffers + 4 + 16 * place)
        packed = length >= 8 and field(batch, 3)
        unpacked = number("<q", start, body) if packed else -1
        size += length if unpacked < 0 else unpacked
    return kind, rows, size
