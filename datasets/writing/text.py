"""Rows as text: CSV in any dialect, and JSON lines."""

import codecs
import json
import math
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import BYTES, LISTS, TEXTS, decoded, is_any, value_type
from ldpaudit.datasets.formats.dialect import Dialect
from ldpaudit.datasets.formats.number_style import MISSING
from ldpaudit.datasets.names import shown_type
from ldpaudit.errors import OutputError

_TEXT: Final = pa.large_string()


class CsvText:
    """A CSV file: texts are quoted where they must be, missing values are empty fields.

    Numbers, booleans and dates have the shortest form that is read back as the same value.
    """

    def __init__(
        self, stream: Any, schema: pa.Schema, dialect: Dialect, *, tabs: bool = False
    ) -> None:
        self._stream = stream
        self._mark = "\t" if tabs else "," if dialect.separator == "\t" else dialect.separator
        self._decimal = dialect.numbers.decimal
        self._quoted = rf'["\r\n{self._escaped()}]|^\s|\s$|^$'
        self._encoder = codecs.getincrementalencoder(dialect.encoding)()
        header = self._cells(pa.array(schema.names, _TEXT)).to_pylist()
        self._put(self._mark.join(header) + "\n")

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        if not len(batch):
            return
        columns = [self._cells(column) for column in batch.columns]
        join = pc.JoinOptions("replace", "")
        rows = pc.binary_join_element_wise(*columns, pa.scalar(self._mark, _TEXT), options=join)
        whole = pa.LargeListArray.from_arrays(pa.array([0, len(rows)], pa.int64()), rows)
        self._put(pc.binary_join(whole, pa.scalar("\n", _TEXT))[0].as_py() + "\n")

    def close(self) -> None:
        """Write the end, of which there is none."""

    def _put(self, text: str) -> None:
        self._stream.write(self._encoder.encode(text))

    def _escaped(self) -> str:
        return rf"\x{ord(self._mark):02x}"

    def _cells(self, column: pa.Array) -> pa.Array:
        column = decoded(pa.chunked_array([column])).combine_chunks()
        texts = column.cast(_TEXT)
        if pa.types.is_decimal(column.type) and column.type.scale > 0:
            texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
        if is_any(column.type, "floating", "decimal") and self._decimal == ",":
            texts = pc.replace_substring(texts, ".", ",")
        if not is_any(column.type, *TEXTS) and self._decimal != self._mark:
            return texts
        must = pc.match_substring_regex(texts, self._quoted)
        must = pc.or_(must, pc.is_in(texts, pa.array([*MISSING], _TEXT)))
        if not pc.any(must).as_py():
            return texts
        inner = pc.replace_substring(texts, '"', '""')
        mark, none = pa.scalar('"', _TEXT), pa.scalar("", _TEXT)
        return pc.if_else(must, pc.binary_join_element_wise(mark, inner, mark, none), texts)


class JsonText:
    """JSON lines: an object a row; what is no number in JSON is null."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write_batch(self, batch: pa.RecordBatch) -> None:
        """Append rows."""
        columns = [_in_json(column) for column in batch.columns]
        table = pa.RecordBatch.from_arrays(columns, batch.schema.names)
        rows = (_plain(row) for row in table.to_pylist())
        lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
        self._stream.write("".join(f"{line}\n" for line in lines).encode())

    def close(self) -> None:
        """Write the end, of which there is none."""


def check_kinds(schema: pa.Schema, *, lists: bool) -> None:
    """Refuse columns that text cannot hold; with ``lists`` it is JSON, which holds lists, too.

    Raises
    ------
    OutputError
    """
    for place, field in enumerate(schema, start=1):
        kind = value_type(field.type)
        held = lists and is_any(kind, *LISTS)
        if is_any(kind, *BYTES, "fixed_size_binary") or (pa.types.is_nested(kind) and not held):
            raise OutputError(
                f"Column {place} is of type {shown_type(field.type)}, which "
                f"{'JSON' if lists else 'CSV'} cannot hold; give the file a name that ends in "
                ".parquet."
            )


def _in_json(column: pa.Array) -> pa.Array:
    """Return numbers as the shortest that are read back as the same: so labels are declared."""
    kind = value_type(column.type)
    if pa.types.is_float32(kind) or (pa.types.is_decimal(kind) and kind.scale > 0):
        return column.cast(_TEXT).cast(pa.float64())
    return column


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
