"""Columns of text that hold numbers or dates but for some cells: how they are read.

A mark for a missing value (``*``, ``.``, ``?``) in a column of numbers would make every number a
category, which hides from an audit what the numbers reveal. Whatever the format, such columns are
read as numbers here; a cell that is neither a number nor a known mark is counted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.dialect import MARKS, NUMERIC_SHARE, NumberStyle
from ldpaudit.datasets.formats.tables import (
    BYTES,
    TEXTS,
    TableSource,
    decoded,
    is_any,
    plain_values,
    value_type,
)
from ldpaudit.datasets.labels import CONTINUOUS_FROM
from ldpaudit.datasets.names import ColumnError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FloatArray
from ldpaudit.release.features import Reading

_TEXT: Final = pa.large_string()
# The styles that are tried where a file has types of its own, so no style was found in it.
_STYLES: Final = (NumberStyle(), NumberStyle(",", grouped=True), NumberStyle(".", grouped=True))
# Codes, in which a zero in front or the last digit means something.
_CODE: Final = r"^[+-]?(0[0-9]+|[0-9]{19,})$"
_WHOLE: Final = r"^[+-]?[0-9]+$"
_AMBIGUOUS: Final = r"^[+-]?[1-9][0-9]{0,2}[.,][0-9]{3}$"
_NUMERIC: Final = r"^\s*(?i:[+-]?[0-9.,]|[+-]?inf)"
_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?)?$"
_MAY_BE: Final = 0.5
_NOTHING: Final = Reading()


@dataclass(frozen=True)
class ColumnReader:
    """Reads the feature columns of one table, as its options and its style of numbers say."""

    files: FileOptions = AS_FOUND
    style: NumberStyle | None = None

    @classmethod
    def of(cls, table: TableSource, files: FileOptions) -> "ColumnReader":
        """Return the reader of an opened table."""
        dialect = getattr(table, "dialect", None)
        return cls(files, None if dialect is None else dialect.numbers)

    def __call__(self, name: str, column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, Reading]:
        """Return a column in the type in which it is audited, and what that type does not hold."""
        column = plain_values(column)
        kind = value_type(column.type)
        if name in self.files.text:
            plain = is_any(kind, *TEXTS, *BYTES) or pa.types.is_nested(kind)
            return (column if plain else decoded(column).cast(_TEXT)), _NOTHING
        if not is_any(kind, *TEXTS) or not _may_be(column):
            return self._without_stated(column, kind), _NOTHING
        cells = _cells(column, frozenset(self.files.missing_values))
        return cells.read((self.style,) if self.style is not None else _STYLES) or (
            column,
            _NOTHING,
        )

    def numbers(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return a column of text as the numbers that another table has there (ColumnError)."""
        cells = _cells(plain_values(column), frozenset(self.files.missing_values))
        for style in (self.style,) if self.style is not None else _STYLES:
            read = cells.as_numbers(style) if cells.are_numbers(style) else None
            if read is not None:
                return read[0]
        raise ColumnError(
            "must hold the same kind of values in the release and in its companion tables."
        )

    def _without_stated(self, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
        """Return a column of numbers without the values that stand for missing ones."""
        stated = [float(mark) for mark in self.files.missing_values if _is_number(mark)]
        if not stated or not is_any(kind, "integer", "floating"):
            return column
        column = decoded(column)
        gone = pc.is_in(column.cast(pa.float64(), safe=False), pa.array(stated, pa.float64()))
        return pc.if_else(gone, pa.scalar(None, column.type), column)


def _is_number(mark: str) -> bool:
    try:
        return bool(np.isfinite(float(mark))) or True
    except ValueError:
        return False


def _may_be(column: pa.ChunkedArray) -> bool:
    """Return whether half of the filled cells may begin a number or a date: a quick look."""
    if pa.types.is_dictionary(column.type):
        return True
    begins = pc.sum(pc.match_substring_regex(column, _NUMERIC)).as_py() or 0
    if not begins:
        return False
    marks = pc.sum(pc.is_in(column, pa.array([*MARKS], column.type))).as_py() or 0
    return bool(begins >= _MAY_BE * (len(column) - column.null_count - marks))


def _cells(column: pa.ChunkedArray, stated: frozenset[str]) -> "_Cells":
    encoded = column.combine_chunks() if pa.types.is_dictionary(column.type) else None
    if encoded is None:
        encoded = column.dictionary_encode().combine_chunks()
    elif isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = pa.concat_arrays(encoded.chunks) if encoded.num_chunks else encoded
    codes = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    values = pc.utf8_trim_whitespace(encoded.dictionary.cast(_TEXT)).fill_null("")
    counts = np.bincount(codes[codes >= 0], minlength=len(values))
    marks = pa.array([*(MARKS | stated)], _TEXT)
    marked = pc.is_in(values, marks).to_numpy(zero_copy_only=False)
    return _Cells(values, codes, counts, marked)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The different texts of a column, how often each occurs, and which mark a missing value."""

    values: pa.Array
    codes: Any
    counts: Any
    marked: Any

    def read(self, styles: Sequence[NumberStyle]) -> tuple[pa.ChunkedArray, Reading] | None:
        """Return the column as numbers or dates; None where it is one of text."""
        filled = int(self.counts[~self.marked].sum())
        if not filled:
            return None
        for style in styles:
            if self.are_numbers(style):
                found = self.as_numbers(style)
                if found is None or found[1]:  # Codes; numbers of another meaning; a type.
                    return None
                others = filled - int(self.counts[self._numbers(style)].sum())
                return found[0], self._reading("number", others)
        best = max(int(self.counts[self._numbers(style)].sum()) for style in styles)
        dated = self._matching(_DATE)
        if self.counts[dated].sum() >= NUMERIC_SHARE * filled:
            return self._dates(dated, filled)
        different = int((self._numbers(styles[0]) & (self.counts > 0)).sum())
        if best >= _MAY_BE * filled and different > CONTINUOUS_FROM and not self._codes().any():
            return self._text(), Reading("text", 0, filled - best)
        return None

    def are_numbers(self, style: NumberStyle) -> bool:
        """Return whether so many of the filled cells are numbers that the column is one of them."""
        filled = int(self.counts[~self.marked].sum())
        return bool(self.counts[self._numbers(style)].sum() >= NUMERIC_SHARE * filled > 0)

    def as_numbers(self, style: NumberStyle) -> tuple[pa.ChunkedArray, bool] | None:
        """Return the column as numbers, and whether nothing asks for that: its text is a type.

        None where the texts are codes, or it is not known what their marks mean.
        """
        number = self._numbers(style)
        texts = style.letters(self.values.filter(pa.array(number)), pa.float64())
        whole = pc.match_substring_regex(texts, _WHOLE).to_numpy(zero_copy_only=False)
        if self._codes().any() and whole.all():
            return None
        pure = bool((number | (self.counts == 0)).all())
        # A file with types of its own that has no other cell there means text by it.
        typed = pure and (bool(whole.all()) or len(whole) <= CONTINUOUS_FROM)
        marked = self.values.filter(pa.array(number))
        if not style.plain and len(marked):
            unclear = pc.match_substring_regex(marked, _AMBIGUOUS)
            decimal = pc.match_substring_regex(marked, r"[.,]")
            if pc.all(pc.or_(unclear, pc.invert(decimal))).as_py() and pc.any(unclear).as_py():
                return None
        values: FloatArray = np.full(len(self.values) + 1, np.nan)
        values[:-1][number] = texts.cast(pa.float64()).to_numpy(zero_copy_only=False)
        cells, gone = values[self.codes], ~np.append(number, False)[self.codes]
        column = pa.array(cells, pa.float64(), mask=gone)
        if whole.all() and np.abs(values[:-1][number]).max(initial=0) < 1 << 53:
            column = column.cast(pa.int64())
        return pa.chunked_array([column]), typed

    def _dates(self, dated: Any, filled: int) -> tuple[pa.ChunkedArray, Reading] | None:
        """Return the column as days or times; None where nothing asks for that."""
        pure = bool((dated | (self.counts == 0)).all())
        if pure and int(dated.sum()) <= CONTINUOUS_FROM:
            return None
        texts = self.values.filter(pa.array(dated)).to_pandas()
        times = pd.to_datetime(texts, format="ISO8601", errors="coerce").to_numpy("datetime64[us]")
        values = np.full(len(self.values) + 1, np.datetime64("NaT"), dtype="datetime64[us]")
        values[:-1][dated] = times
        valid = ~np.isnat(values[:-1])
        column = pa.chunked_array([pa.array(values[self.codes], from_pandas=True)])
        return column, self._reading("date", filled - int(self.counts[valid].sum()))

    def _text(self) -> pa.ChunkedArray:
        index = pa.array(self.codes, mask=self.codes < 0)
        return pa.chunked_array([self.values.take(index)])

    def _reading(self, kind: Literal["number", "date"], others: int) -> Reading:
        return Reading(kind, int(self.counts[self.marked & (self._filled())].sum()), others)

    def _filled(self) -> Any:
        return pc.not_equal(self.values, "").to_numpy(zero_copy_only=False)

    def _numbers(self, style: NumberStyle) -> Any:
        return self._matching(f"^({style.pattern})$") & ~self.marked

    def _codes(self) -> Any:
        return self._matching(_CODE) & ~self.marked

    def _matching(self, pattern: str) -> Any:
        return pc.match_substring_regex(self.values, pattern).to_numpy(zero_copy_only=False)


def said_of(place: int, reading: Reading) -> str:
    """Return the sentence about a column that was not read as it stands; empty where it was."""
    marks, others, what = reading.marks, reading.others, f"{reading.kind}s"
    if reading.kind == "text":
        return (
            f"Column {place} holds numbers but for {_cells_of(others)}; it is read as text, so the "
            "audit cannot see what the numbers reveal."
        )
    if others:
        more = f", as are {_cells_of(marks)} with a mark for that" if marks else ""
        return (
            f"Column {place} holds {what} but for {_cells_of(others)}, which "
            f"{'is' if others == 1 else 'are'} read as missing{more}."
        )
    if marks:
        one = marks == 1
        return (
            f"Column {place} holds {what}; {_cells_of(marks)} with a mark such as * or ? "
            f"{'is' if one else 'are'} read as missing."
        )
    return ""


def _cells_of(count: int) -> str:
    return f"{count:,} cell{'s' if count != 1 else ''}"
