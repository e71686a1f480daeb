"""CSV files in batches: first the types of the columns from all rows, then the rows."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ldpaudit.datasets.formats.columns import is_any
from ldpaudit.datasets.formats.csv_file import CsvFile
from ldpaudit.datasets.formats.locations import Location
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError

_BLOCK = 1 << 22
_TEXT = pa.large_string()
_TIMES = (pa.timestamp("s"), pa.timestamp("us"))
_WIDER: dict[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.null(): (pa.null(), pa.int64(), pa.float64(), pa.bool_(), pa.date32(), *_TIMES, _TEXT),
    pa.int64(): (pa.int64(), pa.float64(), _TEXT),
    pa.float64(): (pa.float64(), _TEXT),
    pa.bool_(): (pa.bool_(), _TEXT),
    pa.date32(): (pa.date32(), *_TIMES, _TEXT),
    _TIMES[0]: (*_TIMES, _TEXT),
    _TIMES[1]: (_TIMES[1], _TEXT),
    _TEXT: (_TEXT,),
}
"""The types to try when a block does not fit; each also fits all earlier blocks."""

_CODE = r"^[+-]?0[0-9]"
_CODE_OR_LONG = r"^[+-]?(0[0-9]|[0-9]{19,}$)"
"""007 and numbers of 19 digits and more are codes: as numbers they would lose something."""


class CsvBatches(CsvFile):
    """A CSV file in UTF-8 with a header, in batches.

    A column's type is the narrowest that fits all of its rows: int64, float64, boolean, date,
    timestamp or text. Empty unquoted fields (and NA, null, NaN …) are missing.

    Attributes
    ----------
    row_count : int or None
        The number of rows, None until the types of the columns are known.
    """

    row_count: int | None = None

    @cached_property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """The least and the largest value of each column of numbers, once types are known."""
        return {}

    @property
    def location(self) -> Location:
        """Where the file lies."""
        return self._location

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types; finding them reads the whole file once."""
        kinds: list[pa.DataType] = [pa.null()] * len(self.names)
        self.row_count = 0
        for block in self._text_blocks(list(self.names)):
            self.row_count += len(block)
            kinds = [_widened(k, c) for k, c in zip(kinds, block.columns, strict=True)]
            for name, kind, cells in zip(self.names, kinds, block.columns, strict=True):
                self._see(name, kind, cells)
        return pa.schema(list(zip(self.names, kinds, strict=True)))

    def _see(self, name: str, kind: pa.DataType, cells: pa.Array) -> None:
        if is_any(kind, "integer", "floating") and cells.null_count < len(cells):
            bounds = pc.min_max(cells.cast(kind)).as_py()
            low, high = self.bounds.get(name, (bounds["min"], bounds["max"]))
            self.bounds[name] = (min(low, bounds["min"]), max(high, bounds["max"]))

    def batches(
        self, columns: Sequence[str] | None = None, as_text: Collection[str] = ()
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with the named columns in the given order (None: all).

        Those in ``as_text`` are strings, letter for letter.
        """
        names = list(self.names if columns is None else columns)
        kinds = [_TEXT if name in as_text else self.schema.field(name).type for name in names]
        for block in self._text_blocks(names):
            with self._reading():
                cells = [_typed(c, k) for c, k in zip(block.columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(cells, names=names)

    def _text_blocks(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        with self._reading(), self._open() as stream, contextlib.ExitStack() as opened:
            try:
                reader = opened.enter_context(
                    pyarrow.csv.open_csv(
                        stream,
                        read_options=pyarrow.csv.ReadOptions(
                            block_size=self._block(_BLOCK), use_threads=False
                        ),
                        parse_options=pyarrow.csv.ParseOptions(
                            delimiter=self._separator, newlines_in_values=True
                        ),
                        convert_options=pyarrow.csv.ConvertOptions(
                            include_columns=names,
                            column_types=dict.fromkeys(names, pa.large_binary()),
                            strings_can_be_null=True,
                            quoted_strings_can_be_null=False,
                        ),
                    )
                )
                for block in reader:
                    yield self._as_text(block)
            except pa.ArrowInvalid as error:
                raise self._explained(error) from None

    def _as_text(self, block: pa.RecordBatch) -> pa.RecordBatch:
        columns = []
        for name, column in zip(block.schema.names, block.columns, strict=True):
            try:
                columns.append(column.cast(_TEXT))
            except pa.ArrowInvalid:
                raise InputError(f"The column {quoted(name)} must be text in UTF-8.") from None
        return pa.RecordBatch.from_arrays(columns, names=block.schema.names)


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return pa.nulls(len(column)) if pa.types.is_null(kind) else column.cast(kind)


def _widened(kind: pa.DataType, column: pa.Array) -> pa.DataType:
    """Return the first type, from ``kind`` on, that the block fits as well."""
    if column.null_count == len(column):
        return kind
    return next(wider for wider in _WIDER[kind] if _fits(column, wider))


def _fits(column: pa.Array, kind: pa.DataType) -> bool:
    if kind == _TEXT:
        return True
    if pa.types.is_null(kind):
        return False
    try:
        column.cast(kind)
    except pa.ArrowInvalid:
        return False
    if not is_any(kind, "integer", "floating"):
        return True
    code = _CODE if pa.types.is_integer(kind) else _CODE_OR_LONG
    return not pc.any(pc.match_substring_regex(column, code)).as_py()
