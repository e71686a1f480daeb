"""What quotes do to a CSV file: stray ones hide whole rows in a cell; some cells stand in them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.dialect import MISSING, NumberStyle
from ldpaudit.datasets.formats.tables import is_any
from ldpaudit.datasets.names import called, quoted
from ldpaudit.errors import InputError

_BREAK: Final = re.compile(r"\r\n|\r|\n")
_BREAKS: Final = (b"\n", b"\r")
_TIME: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([ T].*)?")
_QUOTE, _LINE_END, _RETURN = b'"\n\r'
_EMPTY_LINES: Final = (b"\n\n", b"\n\r\n")
_BOOLEAN: Final = re.compile(r"(?i:true|false|0|1)")


def holds_break(column: pa.Array) -> bool:
    """Return whether some text of a column may hold a line break; quick where none does."""
    letters = column.buffers()[2]
    if letters is None:
        return False
    written = letters.to_pybytes()
    return any(mark in written for mark in _BREAKS)


@dataclass(frozen=True)
class RowShape:
    """What a line of the file must look like to be a row of it.

    ``patterns``: how the cells of columns that hold no text are written, by the column's place.
    """

    width: int
    separator: str
    patterns: Mapping[int, re.Pattern[str]]
    missing: frozenset[str]

    @classmethod
    def of(
        cls,
        kinds: Sequence[pa.DataType],
        separator: str,
        numbers: NumberStyle,
        missing: frozenset[str],
    ) -> "RowShape":
        """Return the shape of rows whose columns have these types."""
        number = re.compile(numbers.pattern)
        patterns = {}
        for place, kind in enumerate(kinds):
            if is_any(kind, "integer", "floating"):
                patterns[place] = number
            elif is_any(kind, "date", "timestamp"):
                patterns[place] = _TIME
            elif is_any(kind, "boolean"):
                patterns[place] = _BOOLEAN
        return cls(len(kinds), separator, patterns, MISSING | missing)

    def in_column(self, cells: pa.Array, place: int) -> bool:
        """Return whether some cell of a column holds rows."""
        if self.width < 2 or not holds_break(cells):
            return False
        broken = pc.match_substring_regex(cells, "[\r\n]")
        fields = pc.greater_equal(pc.count_substring(cells, self.separator), self.width - 1)
        candidates = cells.filter(pc.and_(broken, fields))
        return any(self.in_cell(text, place) for text in candidates.to_pylist())

    def in_cell(self, text: str, place: int) -> bool:
        """Return whether a cell of the column at ``place`` holds rows.

        Its first line would then be the end of a row, its last one the start of another, and those
        between are whole rows.
        """
        lines = _BREAK.split(text)
        if len(lines) < 2:
            return False
        between = [line for line in lines[1:-1] if line]
        if between:
            rows = [line for line in between if line.count(self.separator) == self.width - 1]
            fitting = sum(self._is_row(line.split(self.separator)) for line in rows)
            # Where numbers must stand at their places, one line is enough; text proves less.
            return fitting > 0 if self.patterns else fitting == len(between)
        head, tail = (lines[end].split(self.separator) for end in (0, -1))
        if len(head) != self.width - place or len(tail) != place + 1:
            return False
        # Of the column itself neither holds a cell as it was written.
        return self._is_row([*tail[:-1], "", *head[1:]])

    def _is_row(self, cells: Sequence[str]) -> bool:
        """Return whether the cells of a line are of their columns' types."""
        if not self.patterns:
            # In a sentence a space comes after a comma; in a row, hardly ever.
            return not any(cell.startswith((" ", "\t")) for cell in cells[1:])
        written = {place: cells[place].strip() for place in self.patterns}
        filled = {p: cell for p, cell in written.items() if cell not in self.missing}
        return bool(filled) and all(self.patterns[p].fullmatch(c) for p, c in filled.items())


def rows_in_cell(names: Sequence[str], place: int, file: str) -> InputError:
    """Return the error for a cell, or a name, of the column at ``place`` that holds rows."""
    which = called(names[place], names).capitalize()
    return InputError(
        f"{which} of {quoted(file)} has quoted text with lines in it that look like rows of the "
        "table: a quote is missing, or one too many. Fix it; if the text is meant to hold such "
        "lines, save the table as Parquet."
    )


@dataclass
class QuotedCells:
    """Finds which rows' cells of the column at ``place`` stand in quotes, block after block.

    Blocks are of whole lines; text in quotes may hold line breaks all the same.
    """

    separator: str
    width: int
    place: int
    _found: list[npt.NDArray[np.bool_]] = field(default_factory=list)
    _cells: int = 0
    """The cells of the row that the next block goes on with."""
    _inside: bool = False
    """Whether the next block begins inside of quotes."""

    def take(self, block: bytes) -> bool:
        """Read further lines; return False where the file's lines are not its rows."""
        between = self._inside or self._cells > 0
        empty = block.startswith((b"\n", b"\r\n")) or any(one in block for one in _EMPTY_LINES)
        if not between and not empty and b'"' not in block:
            rows = block.count(b"\n") + (not block.endswith(b"\n"))
            self._found.append(np.zeros(rows, dtype=np.bool_))
            return True
        return self._take_cells(np.frombuffer(block, dtype=np.uint8))

    def _take_cells(self, text: npt.NDArray[np.uint8]) -> bool:
        quotes = (text == _QUOTE).view(np.uint8)
        inside = np.bitwise_xor.accumulate(quotes) ^ np.uint8(self._inside)
        breaks = (text == ord(self.separator)) | (text == _LINE_END)
        ends = np.flatnonzero(breaks & (inside == 0))
        if text[-1] != _LINE_END and not inside[-1]:
            ends = np.append(ends, len(text))  # The file's last line.
        starts = np.append(0, ends[:-1] + 1)[: len(ends)]
        ends_line = np.append(text, np.uint8(_LINE_END))[ends] == _LINE_END
        is_cell = ~self._empty_lines(text, starts, ends, ends_line)
        numbers = self._cells + np.arange(int(is_cell.sum()))
        if (ends_line[is_cell] != (numbers % self.width == self.width - 1)).any():
            return False
        in_quotes = text[starts.clip(max=len(text) - 1)] == _QUOTE
        if self._inside and len(in_quotes):
            in_quotes[0] = True  # Quotes open only at the start of a cell.
        self._found.append(in_quotes[is_cell][numbers % self.width == self.place])
        self._cells = (self._cells + len(numbers)) % self.width
        self._inside = bool(inside[-1])
        return True

    def _empty_lines(
        self,
        text: npt.NDArray[np.uint8],
        starts: npt.NDArray[np.int64],
        ends: npt.NDArray[np.int64],
        ends_line: npt.NDArray[np.bool_],
    ) -> npt.NDArray[np.bool_]:
        """Return which cells are a whole line without anything in it: readers leave these out."""
        starts_row = self._cells == 0 and not self._inside
        starts_line = np.append(starts_row, ends_line[:-1])[: len(ends)]
        first = text[starts.clip(max=len(text) - 1)]
        nothing = (starts == ends) | ((starts + 1 == ends) & (first == _RETURN))
        return np.asarray(starts_line & ends_line & nothing)

    def found(self) -> npt.NDArray[np.bool_] | None:
        """Return which rows' cells stand in quotes, the header left out; None where none does."""
        every: npt.NDArray[np.bool_] = np.concatenate(self._found)[1:]
        return every if every.any() else None
