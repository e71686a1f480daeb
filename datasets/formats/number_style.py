"""How a text file writes numbers: decimal mark, marks between thousands, spaces around them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import is_any
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError

_EXPONENT: Final = r"([eE][+-]?[0-9]+)?"
MISSING: Final = frozenset(
    ("", "#N/A", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "#NA", "-NaN", "-nan")
)
_OTHER: Final = {".": ",", ",": "."}


def _decimal(mark: str) -> str:
    """Return the pattern of a number with a decimal mark, or without one."""
    point = re.escape(mark)
    return rf"[+-]?([0-9]+{point}?[0-9]*|{point}[0-9]+){_EXPONENT}"


def _thousands(mark: str, least: int = 1, decimals: str = "*") -> str:
    """Return the pattern of a number whose thousands the mark separates."""
    point = re.escape(_OTHER[mark])
    group = rf"({re.escape(mark)}[0-9]{{3}}){{{least},}}"
    return rf"[+-]?[1-9][0-9]{{0,2}}{group}({point}[0-9]{decimals}){'' if decimals == '+' else '?'}"


_WHOLE: Final = re.compile(rf"[+-]?[0-9]+{_EXPONENT}")
_WRITTEN: Final = {mark: re.compile(_decimal(mark)) for mark in ".,"}
_OPEN: Final = {mark: re.compile(_thousands(mark, 1, "*")) for mark in ".,"}
_GROUPED: Final = {
    mark: re.compile(f"{_thousands(mark, 2)}|{_thousands(mark, 1, '+')}") for mark in ".,"
}
"""Numbers in which a mark can only separate thousands: two of them, or one and decimals."""
_SPACE: Final = "[ \u00a0\u202f]"


def _spaced(mark: str) -> str:
    """Return the pattern of a number whose thousands spaces separate."""
    return rf"[+-]?[1-9][0-9]{{0,2}}({_SPACE}[0-9]{{3}})+({mark}[0-9]*)?"


_SPACED: Final = re.compile(_spaced("[.,]"))
_ANY: Final = "|".join(
    (_decimal("."), _decimal(","), _thousands("."), _thousands(","), _spaced("[.,]"))
)
_NUMERIC: Final = re.compile(_ANY)


@dataclass(frozen=True)
class NumberStyle:
    """How numbers are written.

    Attributes
    ----------
    decimal : {".", ","}
    grouped : bool
        Whether the other mark separates thousands.
    spaced : bool
        Whether spaces do.
    watched : frozenset of str
        Columns that hold nothing but numbers, or nothing, at the start of the file: a number that
        is written in another way further down contradicts what was found.
    """

    decimal: str = "."
    grouped: bool = False
    spaced: bool = False
    watched: frozenset[str] = frozenset()

    @property
    def plain(self) -> bool:
        """Whether numbers are written as Arrow reads them."""
        return self.decimal == "." and not self.grouped and not self.spaced

    def words(self) -> str:
        """Return the style in a few words."""
        decimal = "decimal comma" if self.decimal == "," else "decimal point"
        thousands = "points" if self.decimal == "," else "commas"
        between = [thousands] * self.grouped + ["spaces"] * self.spaced
        return decimal + (f" and {' and '.join(between)} between thousands" if between else "")

    def cast(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return text as values of a type.

        Raises
        ------
        pyarrow.ArrowInvalid
            If some cell is none.
        """
        number = is_any(kind, "integer", "floating")
        if number and not self.plain:
            column = self._respelt(column)
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            if not number or not pc.any(pc.match_substring_regex(column, r"^\s|\s$")).as_py():
                raise
        return pc.utf8_trim_whitespace(column).cast(kind)

    def letters(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return the text of a column of a type: numbers with a decimal point, the rest as is."""
        if self.plain or not is_any(kind, "integer", "floating"):
            return column
        return self._respelt(column)

    def cell(self, text: str) -> str:
        """Return one cell: a number with a decimal point, other text as it is."""
        if self.plain or not re.fullmatch(self.pattern, text.strip()):
            return text
        return str(self._respelt(pa.array([text]))[0])

    def check(self, column: pa.Array, name: str, file: str) -> None:
        """Check that a watched column of text holds no number of another style (InputError)."""
        if name not in self.watched:
            return
        trimmed = pc.utf8_trim_whitespace(column)
        number, own = (pc.match_substring_regex(trimmed, f"^({p})$") for p in (_ANY, self.pattern))
        if pc.any(pc.and_not(number, own)).as_py():
            raise InputError(
                f"Numbers further down in {quoted(file)} are written in another way than those at "
                "its start: say with --decimal which mark comes before decimals, and write all "
                "numbers with that one."
            )

    @property
    def pattern(self) -> str:
        """The pattern of a number of this style."""
        written = [_decimal(self.decimal)]
        written += [_thousands(_OTHER[self.decimal])] if self.grouped else []
        return "|".join(written + ([_spaced(re.escape(self.decimal))] if self.spaced else []))

    def _respelt(self, column: pa.Array) -> pa.Array:
        """Return numbers without marks between thousands and with a decimal point.

        Raises
        ------
        pyarrow.ArrowInvalid
            If some cell is no number of this style.
        """
        trimmed, group = pc.utf8_trim_whitespace(column), _OTHER[self.decimal]
        if self.spaced:
            open_ = pc.match_substring_regex(trimmed, f"^{_spaced(re.escape(self.decimal))}$")
            closed = pc.replace_substring_regex(trimmed, _SPACE, "")
            trimmed = pc.if_else(open_, closed, trimmed)
        if self.grouped:
            open_ = pc.match_substring_regex(trimmed, f"^{_thousands(group)}$")
            trimmed = pc.if_else(open_, pc.replace_substring(trimmed, group, ""), trimmed)
        fits = pc.all(pc.match_substring_regex(trimmed, f"^{_decimal(self.decimal)}$")).as_py()
        if fits is False:
            raise pa.ArrowInvalid("no numbers of this style")
        return pc.replace_substring(trimmed, ",", ".")


PLAIN: Final = NumberStyle()
"""As Arrow reads them."""


def looked_at(
    rows: Sequence[Sequence[str]], separator: str, stated: str | None, name: str, *, known: bool
) -> NumberStyle:
    """Find how numbers are written, from the first rows, the header among them.

    Parameters
    ----------
    rows : sequence of records
    separator : str
    stated : str or None
        The decimal mark where it is known; the other mark may then separate thousands.
    name : str
        The file's base name.
    known : bool
        Whether the separator is the usual one.

    Raises
    ------
    InputError
        If it is not clear which mark is which; no cell is in the message.
    """
    if not rows:
        return NumberStyle(stated or ".", stated is not None, stated is not None)
    columns = {
        column: [cell.strip() for cell in cells if cell.strip() not in MISSING]
        for column, *cells in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True)
    }
    numeric = {n: cells for n, cells in columns.items() if all(map(_NUMERIC.fullmatch, cells))}
    watched = frozenset(numeric)
    if stated is not None:
        own = re.compile(NumberStyle(stated, True, True).pattern)
        return NumberStyle(
            *(stated, True, True),
            frozenset(n for n, c in numeric.items() if all(map(own.fullmatch, c))),
        )
    every = [cell for column in numeric.values() for cell in column]
    spaced = any(map(_SPACED.fullmatch, every))
    closed = (re.sub(_SPACE, "", cell) for cell in every)
    cells = [cell for cell in closed if not _WHOLE.fullmatch(cell)]
    if all(_WRITTEN["."].fullmatch(cell) for cell in cells) and (known or not _all_open(cells)):
        return NumberStyle(".", False, spaced, watched)
    style = _settled(cells, separator, name)
    return replace(style, spaced=spaced, watched=watched)


def _all_open(cells: list[str]) -> bool:
    """Return whether every number could be one of thousands as well: 1.234."""
    return bool(cells) and all(_OPEN["."].fullmatch(cell) for cell in cells)


def _settled(cells: list[str], separator: str, name: str) -> NumberStyle:
    grouped = {mark: any(map(_GROUPED[mark].fullmatch, cells)) for mark in ".,"}
    sure = {mark: grouped[_OTHER[mark]] or any(_is_sure(c, mark) for c in cells) for mark in ".,"}
    open_ = {mark: any(map(_OPEN[mark].fullmatch, cells)) for mark in ".,"}
    for mark, other in _OTHER.items():
        clear = sure[mark] and not sure[other] and (grouped[other] or not open_[other])
        if clear and (mark == "." or separator != ","):
            return NumberStyle(mark, grouped[other])
    raise InputError(
        f"It is not clear whether a comma or a point comes before the decimals of the numbers in "
        f"{quoted(name)}; say it with --decimal , or --decimal . (the other mark then separates "
        "thousands)."
    )


def _is_sure(cell: str, mark: str) -> bool:
    """Return whether the mark can only come before decimals."""
    return bool(_WRITTEN[mark].fullmatch(cell)) and not _OPEN[mark].fullmatch(cell)
