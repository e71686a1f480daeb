"""CSV files of any dialect, also compressed: the header, the types of columns, then the rows."""

import contextlib
import csv
import io
import os
import re
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ldpaudit.datasets.formats.contents import by_its_name
from ldpaudit.datasets.formats.dialect import LOOKED_AT, SEPARATORS, find_dialect, not_encoded
from ldpaudit.datasets.formats.locations import (
    CSV,
    Location,
    check_width,
    locate,
    unreadable,
)
from ldpaudit.datasets.formats.quotes import QuotedCells, RowShape, holds_break, rows_in_cell
from ldpaudit.datasets.formats.tables import TableSource, is_any
from ldpaudit.datasets.names import Header, check_unique, header_of, quoted
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.work.limits import HEADER_BYTES, ROW_BYTES

# Rows and columns by which a first line that is none of names is known.
_FEW, _SOME = 50, 200
# Cells that are tried before a whole block is.
_GLANCE: Final = 64
_QUOTE, _QUOTES_LOOKED_AT = ord('"'), 16 << 20
# Of a block for each column of a table of more than 8,192, or it falls into many pieces.
_WIDE, _BYTES_PER_FIELD = 1 << 13, 1 << 10
_ROW_LENGTH: Final = re.compile(
    r"CSV parse error: (?:Row #\d+: )?Expected (\d+) columns, got (\d+):"
)
_TEXT: Final = pa.large_string()
_NULLS: Final = pyarrow.csv.ConvertOptions().null_values
# Types of labels of which more than the value counts: 250.0 and 250.00 may be two codes.
_SPELT: Final = ("floating", "date", "timestamp")
_TIMES: Final = (pa.timestamp("s"), pa.timestamp("us"))
# The types to try when a block does not fit; each also fits all earlier blocks.
_WIDER: Final[dict[pa.DataType, tuple[pa.DataType, ...]]] = {
    pa.null(): (pa.int64(), pa.float64(), pa.bool_(), pa.date32(), *_TIMES, _TEXT),
    pa.int64(): (pa.int64(), pa.float64(), _TEXT),
    pa.float64(): (pa.float64(), _TEXT),
    pa.bool_(): (pa.bool_(), _TEXT),
    pa.date32(): (pa.date32(), *_TIMES, _TEXT),
    _TIMES[0]: (*_TIMES, _TEXT),
    _TIMES[1]: (_TIMES[1], _TEXT),
    _TEXT: (_TEXT,),
}
# 007 and numbers of 19 digits and more are codes: as numbers they would lose something.
_CODE: Final = {
    "integer": r"^\s*[+-]?0[0-9]",
    "floating": r"^\s*[+-]?(0[0-9]|[0-9]{19,}\s*$)",
}


class CsvFile(TableSource):
    """A CSV file with a header; what is not given of its dialect is detected."""

    # In batches a column's type is the narrowest that fits all of its rows: int64, float64,
    # boolean, date, timestamp or text. Empty unquoted fields (and NA, null, NaN …) are missing.

    location: Location
    text = parsed = True

    def __init__(
        self, location: Location, stated: FileOptions = AS_FOUND, *, named: bool = True
    ) -> None:
        self.location = location
        self.tabs = any(end in location.paths[0].lower()[-8:] for end in (".tsv", ".tab"))
        with self._reading("utf-8"), self.location.unpacked() as stream:
            sample = bytes(stream.read(LOOKED_AT))
            whole = not stream.read(1)
        usual = "\t" if self.tabs else ","
        self._texts, self._stated = {*stated.text}, {*stated.missing_values}
        self._labels: frozenset[str] = frozenset()
        self.dialect = find_dialect(sample, usual, whole=whole, stated=stated, name=self.name)
        self.remark = self.dialect.remark
        self.names = tuple(next(iter(self.rows()), ()))
        check_width(len(self.names), self.name)
        if not self.names:
            some = f"The first line of {quoted(self.name)} must name the columns; it is empty."
            raise InputError(some if sample.strip() else f"The file {quoted(self.name)} is empty.")
        if named and not stated.header:
            rows: list[list[str]] = []
            with contextlib.suppress(InputError):  # A row that cannot be read: its reader says why.
                for row in islice(self.rows(), 1, _FEW if len(self.names) > _WIDE else _SOME):
                    rows += [row[:_FEW]] if row else []
            self.names = header_of(self.names, [*zip(*rows, strict=False)], self.name)
        elif named:
            self.names = Header(self.names)
        if named:
            check_unique(self.names)

    def rows(self) -> Iterator[list[str]]:
        """Yield the rows as text, the header first, which ends within 16 million characters."""
        with self._reading():
            yield from self._parsed()

    def _parsed(self) -> Iterator[list[str]]:
        with self._open() as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            for _ in range(self.dialect.skipped):
                text.readline(HEADER_BYTES)
            first = text.readline(HEADER_BYTES)
            if len(first) >= HEADER_BYTES:
                raise InputError(
                    f"The first line of {quoted(self.name)} must name the columns; it is longer "
                    f"than {HEADER_BYTES:,} characters."
                )
            lines = chain([first] if first else [], text)
            yield from csv.reader(lines, delimiter=self.dialect.separator, strict=True)

    def read_as_labels(self, names: Collection[str]) -> None:
        """Read columns from now on as labels: letter for letter, but whole numbers and booleans."""
        # Numbers keep their decimal point: 250,0 is 250.0, and 250,00 another label.
        self._labels = frozenset(names)
        self.__dict__.pop("schema", None)

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types; finding them reads the whole file once."""
        texts = {
            field.name
            for field in self._kinds
            if field.name in self._texts
            or (field.name in self._labels and is_any(field.type, *_SPELT))
        }
        return pa.schema([f.with_type(_TEXT) if f.name in texts else f for f in self._kinds])

    @cached_property
    def _kinds(self) -> pa.Schema:
        """The columns and the narrowest types that fit all of their rows."""
        kinds: list[pa.DataType] = [pa.null()] * len(self.names)
        self._rows, broken = 0, False
        for block in self._text_blocks(list(self.names)):
            self._rows += len(block)
            for place, cells in enumerate(block.columns):
                if cells.null_count < len(cells):
                    wider = _WIDER[kinds[place]]
                    kinds[place] = next(kind for kind in wider if self._fits(cells, kind))
                if kinds[place] == _TEXT:
                    self.dialect.numbers.check(cells, self.names[place], self.name)
            if any(map(holds_break, block.columns)):
                self._check_cells(block, kinds)
                broken = True
        if any("\n" in name or "\r" in name for name in self.names):
            self._check_names(kinds)
            broken = True
        if broken:
            self._check_quotes()
        return pa.schema(list(zip(self.names, kinds, strict=True)))

    def _row_shape(self, kinds: Sequence[pa.DataType]) -> RowShape:
        separator, numbers = self.dialect.separator, self.dialect.numbers
        return RowShape.of(kinds, separator, numbers, frozenset(self._stated))

    def _check_cells(self, block: pa.RecordBatch, kinds: Sequence[pa.DataType]) -> None:
        """Check that no cell holds rows of the table (InputError)."""
        shape = self._row_shape(kinds)
        for place, cells in enumerate(block.columns):
            if shape.in_column(cells, place):
                raise rows_in_cell(self.names, place, self.name)

    def _check_names(self, kinds: Sequence[pa.DataType]) -> None:
        """Check that no column's name holds rows of the table (InputError)."""
        shape = self._row_shape(kinds)
        for place, name in enumerate(self.names):
            if shape.in_cell(name, place):
                raise rows_in_cell(self.names, place, self.name)

    def _check_quotes(self) -> None:
        """Check that every quote is closed, and its cell ends there (InputError).

        Arrow reads a cell that never ends, and one with text after its last quote.
        """
        with self._reading():
            try:
                deque(self._parsed(), maxlen=0)
            except csv.Error as error:
                if "field larger" not in str(error):  # A cell may be long.
                    raise

    @property
    def row_count(self) -> int:  # type: ignore[override]
        """The number of rows, which is known when the types are."""
        _ = self._kinds
        return self._rows

    def _fits(self, column: pa.Array, kind: pa.DataType) -> bool:
        if kind == _TEXT:
            return True
        try:
            # Arrow writes a message for every cell that is no number: a text shows in the first.
            self.dialect.numbers.cast(column.slice(0, _GLANCE), kind)
            self.dialect.numbers.cast(column, kind)
        except pa.ArrowInvalid:
            return False
        code = next((pattern for test, pattern in _CODE.items() if is_any(kind, test)), None)
        return code is None or not pc.any(pc.match_substring_regex(column, code)).as_py()

    def batches(
        self, columns: Sequence[str] | None = None, as_text: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all).

        Those in ``as_text`` are strings, letter for letter; numbers have a decimal point.
        """
        for batch, _ in self.batches_as_written(columns, as_text):
            yield batch

    def batches_as_written(
        self, columns: Sequence[str] | None = None, as_text: Collection[str] = ()
    ) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
        """Yield the rows as :meth:`batches` does, and the same rows as they are in the file."""
        names, numbers = list(self.names if columns is None else columns), self.dialect.numbers
        kinds = [_TEXT if name in as_text else self.schema.field(name).type for name in names]
        for block in self._text_blocks(names):
            found = []
            with self._reading():
                for name, kind, cells in zip(names, kinds, block.columns, strict=True):
                    if name in as_text and not numbers.plain:
                        found.append(numbers.letters(cells, self._kinds.field(name).type))
                    elif name in as_text:
                        found.append(cells)
                    elif name in self._labels and kind == _TEXT:
                        found.append(numbers.letters(cells, self._kinds.field(name).type))
                    elif pa.types.is_null(kind):
                        found.append(pa.nulls(len(cells)))
                    else:
                        found.append(numbers.cast(cells, kind))
            yield pa.RecordBatch.from_arrays(found, names=names), block

    def written(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns as text, also where a text stands for a missing value."""
        yield from self._text_blocks(list(names), missing=())

    def quoted_cells(self) -> npt.NDArray[np.bool_] | None:
        """Return which cells of the first rows stand in quotes, bool (rows, columns)."""
        with self._reading(), self._open() as stream:
            lines = bytes(stream.read(_QUOTES_LOOKED_AT)).split(b"\n", self.dialect.skipped)
        text = np.frombuffer(lines[-1], dtype=np.uint8)
        if not (text == _QUOTE).any():
            return None
        outside = np.cumsum(text == _QUOTE) % 2 == 0
        ends = outside & ((text == ord(self.dialect.separator)) | (text == ord("\n")))
        places = np.flatnonzero(ends)
        starts = np.append(0, places[:-1] + 1)
        rows = len(places) // len(self.names)
        last = text[places[len(self.names) - 1 :: len(self.names)][:rows]]
        if rows < 2 or (last != ord("\n")).any():  # Lines without cells, say.
            return None
        cells = text[starts[: rows * len(self.names)]] == _QUOTE
        return np.asarray(cells.reshape(rows, -1)[1:])

    def quoted_cells_of(self, name: str) -> npt.NDArray[np.bool_] | None:
        """Return which rows' cells of a column stand in quotes.

        None if no cell does, or the file's lines are not its rows.
        """
        width, place = len(self.names), list(self.names).index(name)
        scan = QuotedCells(self.dialect.separator, width, place)
        skipped, rest = self.dialect.skipped, b""
        with self._reading(), self._open() as stream:
            while block := stream.read(_QUOTES_LOOKED_AT):
                *lines, text = (rest + block).split(b"\n", skipped)
                skipped -= len(lines)
                whole = text.rfind(b"\n") + 1
                rest = text[whole:]
                if len(rest) > _QUOTES_LOOKED_AT:  # Lines that end otherwise, or a line too long.
                    return None
                if whole and not scan.take(text[:whole]):
                    return None
        return scan.found() if not rest or scan.take(rest) else None

    def _text_blocks(
        self, names: list[str], missing: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        columns = len(self.names)
        size = ROW_BYTES if columns <= _WIDE else max(ROW_BYTES, _BYTES_PER_FIELD * columns)
        read = pyarrow.csv.ReadOptions(
            block_size=size, use_threads=False, skip_rows=self.dialect.skipped
        )
        parse = pyarrow.csv.ParseOptions(delimiter=self.dialect.separator, newlines_in_values=True)
        convert = pyarrow.csv.ConvertOptions(
            include_columns=names,
            column_types=dict.fromkeys(names, pa.large_binary()),
            null_values=[*_NULLS, *self._stated] if missing is None else list(missing),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        with self._reading(), self._open() as stream, contextlib.ExitStack() as opened:
            try:
                reader = pyarrow.csv.open_csv(stream, read, parse, convert)
                for block in opened.enter_context(reader):
                    try:
                        found = [column.cast(_TEXT) for column in block.columns]
                    except pa.ArrowInvalid:
                        raise not_encoded(self.name, self.dialect.encoding) from None
                    yield pa.RecordBatch.from_arrays(found, names=block.schema.names)
            except pa.ArrowInvalid as error:
                if "Empty CSV file" in str(error):  # A line of names without an end, and no row.
                    return
                raise self._explained(error) from None

    def _explained(self, error: pa.ArrowInvalid) -> Exception:
        """Return the error for a row of another length: two numbers of the reader's message."""
        lengths = _ROW_LENGTH.match(str(error))
        if "straddling" in str(error):
            most = max(ROW_BYTES, _BYTES_PER_FIELD * len(self.names)) >> 20
            return InputError(
                f"A row of {quoted(self.name)} is longer than {most} MiB, or a quote is not closed."
            )
        if lengths is None:
            unexplained: Exception = error
            return unexplained
        text = (
            f"Every row of {quoted(self.name)} must have {lengths[1]} fields; one has {lengths[2]}."
        )
        if not self.names[-1] and int(lengths[2]) == len(self.names) - 1:
            return InputError(
                f"{text} The line of names ends with a mark that the rows do not have: delete it."
            )
        other = len(self.names) == 1 and any(mark in self.names[0] for mark in SEPARATORS)
        return InputError(f"{text} Say what separates them: --separator." if other else text)

    def _open(self) -> Any:
        """Open the file as UTF-8, whatever its encoding."""
        if self.dialect.encoding == "utf-8":
            return self.location.unpacked()
        return pa.transcoding_input_stream(self.location.unpacked(), self.dialect.encoding, "utf-8")

    @contextlib.contextmanager
    def _reading(self, encoding: str = "") -> Iterator[None]:
        encoding = encoding or self.dialect.encoding
        with unreadable(self.name, f"is not a readable CSV file in {encoding.upper()}"):
            try:
                yield
            except UnicodeDecodeError:
                raise not_encoded(self.name, encoding) from None
            except csv.Error as error:
                if "field larger" in str(error):
                    raise InputError(
                        f"A cell of {quoted(self.name)} is longer than {csv.field_size_limit():,} "
                        "characters."
                    ) from None
                raise InputError(
                    f"The file {quoted(self.name)} is not a readable CSV file: its quotes do not "
                    "fit. Fix them, or say what separates its fields with --separator."
                ) from None


def small_csv(
    path: str | os.PathLike[str], what: str, stated: FileOptions = AS_FOUND, *, named: bool = True
) -> tuple[CsvFile, list[list[str]]]:
    """Return a CSV file and its rows without the header and empty lines; ``what`` begins an error.

    Numbers have a decimal point, whatever is in the file. ``named``: whether its first row names
    its columns, for sure (InputError if it is not one readable CSV file).
    """
    location = locate(path)
    if len(location.paths) > 1 or not location.paths[0].lower().endswith(CSV):
        raise InputError(f"{what} {quoted(location.name)} must be one CSV file.")
    with by_its_name(location):
        file = CsvFile(location, stated, named=named)
    cell = file.dialect.numbers.cell
    return file, [list(map(cell, row)) for row in file.rows() if row][1:]
