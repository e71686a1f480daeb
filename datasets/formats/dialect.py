"""How a text file writes its table and numbers: what is stated, and what the first 64 kB show."""

import codecs
import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.tables import is_any
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions

# Bytes at the start of a file from which its dialect is found.
LOOKED_AT: Final = 1 << 16
SEPARATORS: Final = (",", ";", "\t", "|")
MISSING: Final = frozenset(
    ("", "#N/A", "N/A", "NA", "NULL", "NaN", "n/a", "nan", "null", "#NA", "-NaN", "-nan")
)
# What people write into a column of numbers where one is missing, or must not be shown.
ERRORS: Final = frozenset(
    ("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#SPILL!", "#CALC!")
)
MARKS: Final = (
    MISSING
    | ERRORS
    | frozenset(
        ("*", "**", "***", ".", "..", "...", "…", "?", "-", "--", "---", "–", "—", ":", "/", "x")
    )
    | frozenset(("<NA>", "None", "none", "NONE", "nil", "(null)", "\\N", "NaT", "missing"))
    | frozenset(("unknown", "k.A.", "k. A.", "n.a.", "N.A.", "n. a.", "n/v", "nd", "ND", "n.d."))
)
_NAMES: Final = {"\t": "tabs", ",": "commas", " ": "spaces"}
_UTF8, _WESTERN = "utf-8", "cp1252"
_WORD: Final = re.compile(rb"[A-Za-z\x80-\xff]+")
_PAIR: Final = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_MARKS: Final = (
    (codecs.BOM_UTF8, _UTF8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HINT: Final = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)

_OTHER: Final = {".": ",", ",": "."}
_EXPONENT: Final = r"([eE][+-]?[0-9]+)?"
_SPACE: Final = "[ \u00a0\u202f]"


_POINT: Final = {mark: re.escape(mark) for mark in ".,"}
# Numbers with a decimal mark, or without one.
_DECIMAL: Final = {
    mark: rf"[+-]?([0-9]+{point}?[0-9]*|{point}[0-9]+){_EXPONENT}" for mark, point in _POINT.items()
}


def _grouped(between: str, point: str, least: int = 1, decimals: str = "[0-9]*)?") -> str:
    """Return the pattern of a number with something between its thousands, ``least`` times."""
    return rf"[+-]?[1-9][0-9]{{0,2}}({between}[0-9]{{3}}){{{least},}}({point}{decimals}"


_THOUSANDS: Final = {mark: _grouped(_POINT[mark], _POINT[_OTHER[mark]]) for mark in ".,"}
_SPACED: Final = {mark: _grouped(_SPACE, mark) for mark in ("\\.", ",", "[.,]")}
# A column of which this share of the filled cells are numbers is one of numbers.
NUMERIC_SHARE: Final = 0.9
INFINITE: Final = r"[+-]?(?i:inf|infinity)"
_ANY: Final = "|".join(
    (INFINITE, *_DECIMAL.values(), _THOUSANDS["."], _THOUSANDS[","], _SPACED["[.,]"])
)
# Numbers in which a mark can only separate thousands: two of them, or one and decimals.
_CLOSED: Final = {
    mark: "|".join(
        _grouped(_POINT[mark], _POINT[_OTHER[mark]], *more) for more in ((2,), (1, "[0-9]+)"))
    )
    for mark in ".,"
}


@dataclass(frozen=True)
class NumberStyle:
    """How numbers are written: the decimal mark, and what may be between thousands.

    ``grouped``: the other mark; ``spaced``: spaces. ``watched`` are columns that hold nothing but
    numbers, or nothing, at the start of the file: a number that is written in another way further
    down contradicts what was found.
    """

    decimal: str = "."
    grouped: bool = False
    spaced: bool = False
    watched: frozenset[str] = frozenset()

    @property
    def plain(self) -> bool:
        """Whether numbers are written as Arrow reads them."""
        return self.decimal == "." and not self.grouped and not self.spaced

    @property
    def pattern(self) -> str:
        """The pattern of a number of this style."""
        written = [INFINITE, _DECIMAL[self.decimal]]
        written += [_THOUSANDS[_OTHER[self.decimal]]] if self.grouped else []
        return "|".join(written + ([_SPACED[_POINT[self.decimal]]] if self.spaced else []))

    def words(self) -> str:
        """Return the style in a few words."""
        decimal = "decimal comma" if self.decimal == "," else "decimal point"
        thousands = "points" if self.decimal == "," else "commas"
        between = [thousands] * self.grouped + ["spaces"] * self.spaced
        return decimal + (f" and {' and '.join(between)} between thousands" if between else "")

    def cast(self, column: pa.Array, kind: pa.DataType) -> pa.Array:
        """Return text as values of a type (ArrowInvalid if some cell is none)."""
        column, number = self.letters(column, kind), is_any(kind, "integer", "floating")
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
        column = pc.utf8_trim_whitespace(column)
        marks = [(_SPACED[_POINT[self.decimal]], _SPACE)] if self.spaced else []
        marks += [(_THOUSANDS[_OTHER[self.decimal]], f"[{_OTHER[self.decimal]}]")] * self.grouped
        for pattern, mark in marks:
            own = pc.match_substring_regex(column, f"^{pattern}$")
            column = pc.if_else(own, pc.replace_substring_regex(column, mark, ""), column)
        written = f"^({_DECIMAL[self.decimal]}|{INFINITE})$"
        fits = pc.all(pc.match_substring_regex(column, written)).as_py()
        if fits is False:
            raise pa.ArrowInvalid("no numbers of this style")
        return pc.replace_substring(column, ",", ".")

    def cell(self, text: str) -> str:
        """Return one cell: a number with a decimal point, other text as it is."""
        if self.plain or not re.fullmatch(self.pattern, text.strip()):
            return text
        return str(self.letters(pa.array([text]), pa.float64())[0])

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


@dataclass(frozen=True)
class Dialect:
    """How the table is written.

    ``skipped`` lines come before the header: a spreadsheet's ``sep=;``. ``remark`` says what was
    found out and is not usual.
    """

    separator: str = ","
    encoding: str = _UTF8
    numbers: NumberStyle = NumberStyle()
    skipped: int = 0
    remark: str = ""


def find_dialect(
    sample: bytes, usual: str, *, whole: bool, stated: FileOptions, name: str
) -> Dialect:
    """Find how a text file writes its table, by the start of it, or all of it (``whole``).

    ``usual``: the separator that files of this name have; ``stated``: what is known.
    """
    encoding, text = _decoded(sample, stated.encoding, whole=whole, name=name)
    hint = _HINT.match(text)
    if hint is not None:
        text = text[hint.end() :]
    separator = stated.separator or (hint and hint[1]) or _separator(text, usual, whole, name)
    rows, known = _records(text, separator, whole), separator == usual
    numbers = _numbers(rows, separator, stated.decimal, name, known=known)
    found = []
    if stated.separator is None and not known:
        found.append(f"{_NAMES.get(separator, repr(separator))} between its fields")
    if stated.decimal is None and not numbers.plain:
        found.append(numbers.words())
    if stated.encoding is None and encoding != _UTF8:
        found.append(f"the encoding {encoding}")
    remark = f"CSV with {', '.join(found)}" if found else ""
    return Dialect(separator, encoding, numbers, int(hint is not None), remark)


def _decoded(sample: bytes, stated: str | None, *, whole: bool, name: str) -> tuple[str, str]:
    """Return the encoding and the text of a file's start, without a mark of byte order."""
    marked = next((encoding for mark, encoding in _MARKS if sample.startswith(mark)), None)
    for encoding in filter(None, [stated] if stated else [marked] if marked else [_UTF8, _WESTERN]):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(sample, final=whole)
        except ValueError:
            continue
        if encoding == _WESTERN and not stated and not _is_western(sample):
            continue
        if "\0" in text:
            raise _not_text(name, sample)
        return encoding, text.removeprefix("\ufeff")
    raise not_encoded(name, stated or marked)


def _is_western(sample: bytes) -> bool:
    """Return whether letters beyond ASCII stand among those of ASCII, as in Western words.

    A word of another alphabet, read as Western European text, is one of such letters. Text in
    UTF-8 that is damaged somewhere has pairs that mean one letter there.
    """
    high = 0
    foreign = sum(map(len, _PAIR.findall(sample)))
    for word in _WORD.findall(sample):
        own = sum(byte > 0x7F for byte in word)
        high += own
        foreign += own if own > 1 and 2 * own > len(word) else 0
    return 2 * foreign < high or not high


def _not_text(name: str, sample: bytes) -> InputError:
    """Return the error for a file with NUL bytes: UTF-16 without its mark, or no text."""
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if 4 * max(even, odd) > len(sample):
        encoding = "utf-16-le" if odd > even else "utf-16-be"
        return InputError(
            f"The file {quoted(name)} looks like UTF-16 without a mark at its start; say so with "
            f"--encoding {encoding}."
        )
    return InputError(
        f"The file {quoted(name)} has NUL bytes in it, which no text has; export it again."
    )


def not_encoded(name: str, encoding: str | None) -> InputError:
    """Return the error for a text file in another encoding than the one stated or found."""
    known = f"is not all in the encoding {encoding}"
    unknown = "is neither UTF-8 nor Western European text"
    return InputError(
        f"The file {quoted(name)} {known if encoding else unknown}; say its encoding with "
        "--encoding, such as utf-8, cp1252 (Windows), utf-16-le or cp1251."
    )


def _separator(text: str, usual: str, whole: bool, name: str) -> str:
    """Return the mark that splits all rows of the start into as many fields as the header has."""
    line = text.split("\n", 1)[0]
    marks = (usual, *(mark for mark in SEPARATORS if mark != usual and mark in line))
    records = {mark: _records(text, mark, whole) or [[]] for mark in marks}
    width = {mark: len(records[mark][0]) for mark in marks}
    fitting = [m for m in marks if width[m] > 1 and {*map(len, records[m])} == {width[m]}]
    if max(width.values()) == 1 and {*map(len, records[usual])} != {1}:
        _check_title(text, whole, name)
        # One column, whose cells hold the usual mark: 0,5.
        alone = (m for m in SEPARATORS if {*map(len, _records(text, m, whole))} == {1})
        return next(alone, usual)
    if len(fitting) > 1 and max(map(len, records.values())) > 1:
        raise InputError(
            f"It is not clear which mark separates the fields of {quoted(name)}; say it with "
            "--separator."
        )
    return fitting[0] if fitting else max(marks, key=width.__getitem__)


def _check_title(text: str, whole: bool, name: str) -> None:
    """Refuse a file whose names stand below a title or a comment (InputError)."""
    _, _, below = text.partition("\n")
    for mark in SEPARATORS:
        rows = _records(below, mark, whole)
        if len(rows) < 2 or len(rows[0]) < 2 or {*map(len, rows)} != {len(rows[0])}:
            continue
        if not any(re.fullmatch(_ANY, cell.strip()) for cell in rows[0]):
            raise InputError(
                f"The first line of {quoted(name)} must name the columns, and is one field where "
                f"the others have {len(rows[0])}: delete titles and comments above the names."
            )


def _records(text: str, separator: str, whole: bool) -> list[list[str]]:
    """Return the whole records of the start, the header first; none where quotes do not fit."""
    lines = text if whole else text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in reader if row)
    except csv.Error as error:
        if whole or "unexpected end" not in str(error):
            return []
    return rows


def _numbers(
    rows: Sequence[Sequence[str]], separator: str, stated: str | None, name: str, *, known: bool
) -> NumberStyle:
    """Find how numbers are written, from the first rows, the header among them.

    ``stated``: the decimal mark where it is known; the other mark may then separate thousands.
    ``known``: whether the separator is the usual one.
    """
    numeric, pure, number = {}, set(), re.compile(_ANY)
    for column, *cells in zip(*(row for row in rows if len(row) == len(rows[0])), strict=True):
        filled = [cell.strip() for cell in cells if cell.strip() not in MISSING]
        written = [cell for cell in filled if number.fullmatch(cell)]
        # Marks of missing values among numbers, or a few texts, do not make them others.
        others = sum(cell not in MARKS for cell in filled) - len(written)
        if others <= (1 - NUMERIC_SHARE) * (len(written) + others):
            numeric[column] = written
            pure |= {column} if len(written) == len(filled) else set()
    if stated is not None:
        style = NumberStyle(stated, True, True)
        own = frozenset(n for n in pure if _all(style.pattern, numeric[n]))
        return replace(style, watched=own)
    # How a number is written matters, not how often.
    every = list(dict.fromkeys(cell for column in numeric.values() for cell in column))
    style = NumberStyle(".", False, _some(_SPACED["[.,]"], every), frozenset(pure))
    closed = (re.sub(_SPACE, "", cell) for cell in every)
    whole = re.compile(rf"[+-]?[0-9]+{_EXPONENT}|{INFINITE}")
    cells = [cell for cell in closed if not whole.fullmatch(cell)]
    # Every number could be one of thousands as well: 1.234.
    unclear = bool(cells) and _all(_THOUSANDS["."], cells)
    if _all(_DECIMAL["."], cells) and (known or not unclear):
        return style
    for mark, other in _OTHER.items():
        found = replace(style, decimal=mark, grouped=_some(_CLOSED[other], cells))
        sure = found.grouped or any(
            _all(_DECIMAL[mark], [c]) and not _all(_THOUSANDS[mark], [c]) for c in cells
        )
        if sure and _all(found.pattern, cells) and (mark == "." or separator != ","):
            return found
    raise InputError(
        f"It is not clear whether a comma or a point comes before the decimals of the numbers in "
        f"{quoted(name)}; say it with --decimal , or --decimal . (the other mark then separates "
        "thousands)."
    )


def _all(pattern: str, cells: Sequence[str]) -> bool:
    return all(map(re.compile(pattern).fullmatch, cells))


def _some(pattern: str, cells: Sequence[str]) -> bool:
    return any(map(re.compile(pattern).fullmatch, cells))
