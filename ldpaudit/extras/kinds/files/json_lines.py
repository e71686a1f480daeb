"""JSON lines: one object a line, also compressed, in batches."""

import codecs
import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.json

from ldpaudit.datasets.formats.locations import Location, check_width, unreadable
from ldpaudit.datasets.formats.tables import TEXTS, TableSource, is_any
from ldpaudit.datasets.names import Header, check_unique, quoted
from ldpaudit.doors import InputError
from ldpaudit.work.limits import COLUMNS, NESTING

_STRING: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_STEPS: Final = np.zeros(256, dtype=np.int8)
_STEPS[[*b"[{"]], _STEPS[[*b"]}"]] = 1, -1
_OBJECT: Final = re.compile(rb"\s*\{")
# A whole number that the reader might take for a float, which merges neighbours.
_LONG: Final = re.compile(rb"[:\[,]\s*(-?[0-9]{19,})(?=\s*[,\]}])")
_KEY: Final = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')
# Bytes that are parsed at once, and cells that they may become; cells of a whole file, in all or
# for each of its bytes.
_PIECE, _CELLS, _FREE_CELLS, _CELLS_PER_BYTE = 1 << 20, 1 << 22, 10_000_000, 20
_ONE_A_LINE: Final = "must hold one JSON object a line"


class JsonLines(TableSource):
    """A file of JSON objects, one a line; their keys are the columns, in order of appearance."""

    # A column's type is the narrowest that fits all of its rows; a key that an object lacks is
    # missing there.

    location: Location
    row_count: int
    parsed = True

    def __init__(self, location: Location) -> None:
        self.location, self.row_count = location, 0
        kinds: dict[str, pa.DataType] = {}
        for block in self._blocks(None):
            self.row_count += len(block)
            for field in block.schema:
                kinds[field.name] = _joined(kinds.get(field.name, pa.null()), field.type, self.name)
            check_width(len(kinds), self.name)
            self._check_filled(len(kinds))
        if not kinds:
            raise InputError(f"The file {quoted(self.name)} holds no objects.")
        check_unique(tuple(kinds))
        self.schema = pa.schema([(name, _readable(kind)) for name, kind in kinds.items()])
        self.names = Header(kinds)

    def batches(
        self, columns: Sequence[str] | None = None, as_text: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all)."""
        names = list(self.names if columns is None else columns)
        kinds = [(name, self.kind_of(name, as_text)) for name in self.names]
        for block in self._blocks(pa.schema(kinds)):
            yield from block.select(names).combine_chunks().to_batches()

    def spelt(self, name: str) -> pa.ChunkedArray | None:
        """Return the numbers of a column as the file writes them; None of other columns."""
        if not is_any(self.schema.field(name).type, "integer", "floating"):
            return None
        found = list[str | None]()
        for block in self._line_blocks():
            for line in filter(bytes.strip, block.split(b"\n")):
                value = json.loads(line, parse_int=str, parse_float=str).get(name)
                found.append(None if value is None else str(value))
        if len(found) != self.row_count:
            raise InputError("The file changed while it was being read.")
        return pa.chunked_array([pa.array(found, pa.string())])

    def read_as_labels(self, names: Collection[str]) -> None:
        """Read texts that write times from now on as they are."""
        for name in names:
            place = self.schema.get_field_index(name)
            self.schema = self.schema.set(place, pa.field(name, self.kind_of(name, (name,))))

    def kind_of(self, name: str, as_text: Collection[str]) -> pa.DataType:
        """Return the type of a column; text that is asked for stays so, though it writes times."""
        kind = self.schema.field(name).type
        return pa.string() if name in as_text and pa.types.is_timestamp(kind) else kind

    def _line_blocks(self) -> Iterator[bytes]:
        """Yield blocks of lines, the first without a mark of the byte order."""
        blocks = self.location.line_blocks("JSON lines")
        for first in blocks:
            yield first.removeprefix(codecs.BOM_UTF8)
            break
        yield from blocks

    def _check_filled(self, keys: int) -> None:
        """Refuse objects of which each has a few of very many keys: a table of them is empty."""
        cells = self.row_count * keys
        if cells > max(_FREE_CELLS, _CELLS_PER_BYTE * self._bytes):
            raise InputError(
                f"The objects of {quoted(self.name)} have {keys:,} different keys or more, of "
                "which nearly all are missing in each line; write sparse features as svmlight, or "
                "the same keys in every line."
            )

    def _blocks(self, schema: pa.Schema | None) -> Iterator[pa.Table]:
        parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="infer")
        known = 0 if schema is None else len(schema)
        self._bytes = 0
        for text in _pieces(self._line_blocks(), known):
            self._bytes += len(text)
            if not text.strip():
                continue
            read = pyarrow.json.ReadOptions(use_threads=False, block_size=len(text) + 1)
            _check_shape(text, self.name)
            with unreadable(self.name, _ONE_A_LINE):
                text.decode()  # The reader does not look at the letters of names.
                if not _OBJECT.match(text):  # The reader would end the process at null.
                    raise InputError(f"The file {quoted(self.name)} {_ONE_A_LINE}.")
                if schema is None and _LONG.search(text):
                    _check_whole_numbers(_STRING.sub(b"", text), self.name)
                try:
                    block = pyarrow.json.read_json(pa.BufferReader(text), read, parse)
                except pa.ArrowInvalid as error:
                    if "changed from" in str(error) and "Column()" not in str(error):
                        raise _mixed(self.name) from None
                    raise
            if schema is not None and set(block.schema.names) - set(schema.names):
                raise InputError("The file changed while it was being read.")
            yield block


def _pieces(blocks: Iterator[bytes], known: int) -> Iterator[bytes]:
    """Yield whole lines, few enough that their cells fit: lines times the keys of any of them.

    ``known``: how many keys every line gets, 0 where they are those that it has.
    """
    for block in blocks:
        start = 0
        while start < len(block):
            stop = block.rfind(b"\n", start, start + _PIECE) + 1
            stop = stop if stop > start else block.find(b"\n", start) + 1
            yield from _parts(block[start:stop], known)
            start = stop


def _parts(text: bytes, known: int) -> Iterator[bytes]:
    lines = text.count(b"\n")
    # No line has more keys than colons; only where that is not enough the keys are told apart.
    keys = known or text.count(b":")
    if not known and lines * keys > _CELLS and lines > 1:
        keys = len({*_KEY.findall(text)})
    if lines * keys <= _CELLS or lines <= 1:
        yield text
        return
    middle = text.rfind(b"\n", 0, len(text) // 2) + 1 or text.find(b"\n") + 1
    if middle >= len(text):
        yield text
        return
    yield from _parts(text[:middle], known)
    yield from _parts(text[middle:], known)


def _check_shape(text: bytes, name: str) -> None:
    """Refuse values too deep in each other, which would end the process, and too many keys."""
    if _depth(text) > NESTING and _depth(_STRING.sub(b"", text)) > NESTING:
        raise InputError(
            f"The values of {quoted(name)} are nested too deeply: at most {NESTING} lists and "
            "objects inside each other can be read."
        )
    if text.count(b":") > COLUMNS:
        for line in text.splitlines():
            if line.count(b":") > COLUMNS:
                check_width(_STRING.sub(b"", line).count(b":"), name)


def _check_whole_numbers(text: bytes, name: str) -> None:
    """Refuse whole numbers that are no int64, in a text without strings."""
    if any(not -(1 << 63) <= int(number) < 1 << 63 for number in _LONG.findall(text)):
        raise InputError(
            f"Whole numbers in {quoted(name)} must be below 2⁶³, which has 19 digits; write longer "
            "ones, such as ids, as texts."
        )


def _depth(text: bytes) -> int:
    """Return at least how deep brackets are inside each other, those in strings among them."""
    steps = _STEPS[np.frombuffer(text, dtype=np.uint8)]
    depths = np.cumsum(steps[steps != 0], dtype=np.int32)
    return int(depths.max(initial=0) - depths.min(initial=0))


def _joined(one: pa.DataType, other: pa.DataType, name: str) -> pa.DataType:
    """Return the type that fits the values of both."""
    if one == other or pa.types.is_null(other):
        return one
    if pa.types.is_null(one):
        return other
    kinds = (one, other)
    if all(is_any(kind, *TEXTS, "timestamp") for kind in kinds):
        return pa.string()
    if all(is_any(kind, "integer", "floating") for kind in kinds):
        return pa.float64()
    if all(is_any(kind, "list") for kind in kinds):
        return pa.list_(_joined(one.value_type, other.value_type, name))
    raise _mixed(name)


def _readable(kind: pa.DataType) -> pa.DataType:
    """Return lists of nothing as lists of numbers: Arrow's reader damages lists of nulls."""
    if not is_any(kind, "list"):
        return kind
    inner = _readable(kind.value_type)
    return pa.list_(pa.float64() if pa.types.is_null(inner) else inner)


def _mixed(name: str) -> InputError:
    return InputError(
        f"A column of {quoted(name)} mixes numbers, texts, booleans or objects; give all values "
        "of a column one kind."
    )
