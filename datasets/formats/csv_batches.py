"""CSV files in batches: first the types of the columns from all rows, then the rows."""

import contextlib
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ldpaudit.datasets.formats.columns import is_any
from ldpaudit.datasets.formats.csv_file import CsvFile
from ldpaudit.datasets.formats.dialect import not_encoded
from ldpaudit.files.limits import ROW_BYTES

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

_CODE = r"^\s*[+-]?0[0-9]"
_CODE_OR_LONG = r"^\s*[+-]?(0[0-9]|[0-9]{19,}\s*$)"
"""007 and numbers of 19 digits and more are codes: as numbers they would lose something."""


class CsvBatches(CsvFile):
    """A CSV file with a header, in batches.

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

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns and their types; finding them reads the whole file once."""
        kinds: list[pa.DataType] = [pa.null()] * len(self.names)
        self.row_count = 0
        for block in self._text_blocks(list(self.names)):
            self.row_count += len(block)
            kinds = [self._widened(k, c) for k, c in zip(kinds, block.columns, strict=True)]
            for name, kind, cells in zip(self.names, kinds, block.columns, strict=True):
                self._see(name, kind, cells)
        return pa.schema(list(zip(self.names, kinds, strict=True)))

    def _see(self, name: str, kind: pa.DataType, cells: pa.Array) -> None:
        numbers = self.dialect.numbers
        if kind == _TEXT:
            numbers.check(cells, name, self.name)
        if is_any(kind, "integer", "floating") and cells.null_count < len(cells):
            bounds = pc.min_max(numbers.cast(cells, kind)).as_py()
            low, high = self.bounds.get(name, (bounds["min"], bounds["max"]))
            self.bounds[name] = (min(low, bounds["min"]), max(high, bounds["max"]))

    def columns(
        self, names: Sequence[str], as_text: Collection[str] = ()
    ) -> Iterator[tuple[str, pa.ChunkedArray]]:
        """Yield the columns in the given order; those in ``as_text`` as strings."""
        if self.dialect.numbers.plain:
            yield from super().columns(names, as_text)
            return
        found = [batch.columns for batch in self.batches(names, as_text)]
        for place, (name, kind) in enumerate(zip(names, self._kinds(names, as_text), strict=True)):
            yield name, pa.chunked_array([columns[place] for columns in found], kind)

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
        names = list(self.names if columns is None else columns)
        kinds = self._kinds(names, as_text)
        for block in self._text_blocks(names):
            with self._reading():
                cells = [
                    self._letters(name, cells) if name in as_text else self._typed(cells, kind)
                    for name, cells, kind in zip(names, block.columns, kinds, strict=True)
                ]
            yield pa.RecordBatch.from_arrays(cells, names=names), block

    def _kinds(self, names: Sequence[str], as_text: Collection[str]) -> list[pa.DataType]:
        return [_TEXT if name in as_text else self.schema.field(name).type for name in names]

    def _letters(self, name: str, cells: pa.Array) -> pa.Array:
        numbers = self.dialect.numbers
        return cells if numbers.plain else numbers.letters(cells, self.schema.field(name).type)

    def _typed(self, cells: pa.Array, kind: pa.DataType) -> pa.Array:
        if pa.types.is_null(kind):
            return pa.nulls(len(cells))
        return self.dialect.numbers.cast(cells, kind)

    def _text_blocks(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        with self._reading(), self._open() as stream, contextlib.ExitStack() as opened:
            try:
                reader = opened.enter_context(
                    pyarrow.csv.open_csv(
                        stream,
                        read_options=self._blocks(ROW_BYTES, threads=False),
                        parse_options=self._fields(),
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
        try:
            columns = [column.cast(_TEXT) for column in block.columns]
        except pa.ArrowInvalid:
            raise not_encoded(self.name, self.dialect.encoding) from None
        return pa.RecordBatch.from_arrays(columns, names=block.schema.names)

    def _widened(self, kind: pa.DataType, column: pa.Array) -> pa.DataType:
        """Return the first type, from ``kind`` on, that the block fits as well."""
        if column.null_count == len(column):
            return kind
        return next(wider for wider in _WIDER[kind] if self._fits(column, wider))

    def _fits(self, column: pa.Array, kind: pa.DataType) -> bool:
        if kind == _TEXT:
            return True
        if pa.types.is_null(kind):
            return False
        try:
            self.dialect.numbers.cast(column, kind)
        except pa.ArrowInvalid:
            return False
        if not is_any(kind, "integer", "floating"):
            return True
        code = _CODE if pa.types.is_integer(kind) else _CODE_OR_LONG
        return not pc.any(pc.match_substring_regex(column, code)).as_py()
