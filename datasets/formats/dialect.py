"""How a text file writes its table: what is stated, and what the first 64 kB show."""

import codecs
import csv
import io
import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from ldpaudit.datasets.formats.number_style import PLAIN, NumberStyle, looked_at
from ldpaudit.datasets.names import quoted
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions

LOOKED_AT: Final = 1 << 16
"""Bytes at the start of a file from which its dialect is found."""
SEPARATORS: Final = (",", ";", "\t", "|")
_NAMES: Final = {"\t": "tabs", ",": "commas", " ": "spaces"}
_UTF8: Final = "utf-8"
_MARKS: Final = (
    (codecs.BOM_UTF8, _UTF8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_WESTERN: Final = "cp1252"
_MOST_NEIGHBOURS: Final = 0.5
"""Letters with accents stand alone in Western European text; in other encodings they do not."""
_HINT: Final = re.compile(r'"?sep=(.)"?\r?\n', re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """How the table is written.

    Attributes
    ----------
    separator : str
    encoding : str
        As Python names it.
    numbers : NumberStyle
        How numbers are written.
    skipped : int
        Lines before the header: a spreadsheet's ``sep=;``.
    remark : str
        What was found out and is not usual, in words; empty where nothing is.
    """

    separator: str = ","
    encoding: str = _UTF8
    numbers: NumberStyle = PLAIN
    skipped: int = 0
    remark: str = ""


def find_dialect(
    sample: bytes, usual: str, *, whole: bool, stated: FileOptions, name: str
) -> Dialect:
    """Find how a text file writes its table.

    Parameters
    ----------
    sample : bytes
        The start of the file.
    usual : str
        The separator that files of this name have.
    whole : bool
        Whether it is all of it.
    stated : FileOptions
        What is known; the rest is found out.
    name : str
        The file's base name, for messages.

    Raises
    ------
    InputError
        If it is not clear; the message names the option that settles it, and no cell.
    """
    encoding, text = _decoded(sample, stated.encoding, whole=whole, name=name)
    hint = _HINT.match(text)
    if hint is not None:
        text = text[hint.end() :]
    separator = stated.separator or (hint and hint[1]) or _separator(text, usual, whole, name)
    rows = _records(text, separator, whole) or []
    numbers = looked_at(rows, separator, stated.decimal, name, known=separator == usual)
    found = []
    if stated.separator is None and separator != usual:
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
    for encoding in [stated] if stated else [marked] if marked else [_UTF8, _WESTERN]:
        assert encoding is not None
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(sample, final=whole)
        except ValueError:
            continue
        if encoding != _WESTERN or stated or _is_western(sample):
            if "\0" in text:
                break
            return encoding, text.removeprefix("\ufeff")
    raise not_encoded(name, stated or marked)


def not_encoded(name: str, encoding: str | None) -> InputError:
    """Return the error for a text file in another encoding than the one stated or found."""
    known = f"is not all in the encoding {encoding}"
    unknown = "is neither UTF-8 nor Western European text"
    return InputError(
        f"The file {quoted(name)} {known if encoding else unknown}; say its encoding with "
        "--encoding, such as utf-8, cp1252 (Windows), utf-16-le or cp1251."
    )


def _is_western(sample: bytes) -> bool:
    high = [byte > 0x7F for byte in sample]
    neighbours = sum(a and b for a, b in pairwise(high))
    return neighbours < _MOST_NEIGHBOURS * sum(high)


def _separator(text: str, usual: str, whole: bool, name: str) -> str:
    """Return the mark that splits all rows of the start into as many fields as the header has."""
    line = text.split("\n", 1)[0]
    marks = (usual, *(mark for mark in SEPARATORS if mark != usual and mark in line))
    records = {mark: _records(text, mark, whole) or [[]] for mark in marks}
    width = {mark: len(records[mark][0]) for mark in marks}
    fitting = [m for m in marks if width[m] > 1 and {*map(len, records[m])} == {width[m]}]
    if len(fitting) > 1 and max(map(len, records.values())) > 1:
        raise InputError(
            f"It is not clear which mark separates the fields of {quoted(name)}; say it with "
            "--separator."
        )
    if not fitting:
        return max(marks, key=width.__getitem__)
    return fitting[0]


def _records(text: str, separator: str, whole: bool) -> list[list[str]] | None:
    """Return the whole records of the start, the header first; None where quotes do not fit."""
    lines = text if whole else text[: max(text.rfind("\n"), text.rfind("\r")) + 1] or text
    reader = csv.reader(io.StringIO(lines, newline=""), delimiter=separator, strict=True)
    rows: list[list[str]] = []
    try:
        rows.extend(row for row in reader if row)
    except csv.Error as error:
        if whole or "unexpected end" not in str(error):
            return None
    return rows
