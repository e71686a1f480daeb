"""Label columns of any type: distinct values and codes, and matching them across files."""

# A label is written in many ways: a CSV file holds the text ``1``, a Parquet file the integer 1 or
# the float 1.0, a JSON declaration 1 or ``"1"``. Labels are therefore matched by a canonical form
# (:func:`canonical`). Within one collection (the released values, the true values, the declared
# classes) two labels of the same canonical form are an error, so different labels are never merged.

import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.tables import (
    BYTES,
    TEXTS,
    check_complete,
    decoded,
    is_any,
    stored,
    unified,
    usual_column,
)
from ldpaudit.errors import InputError
from ldpaudit.release import IntArray, Label
from ldpaudit.work.limits import CLASSES, DIGITS, LABEL_CHARACTERS

_DECIMAL: Final = re.compile(r"[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE: Final = re.compile(r"-?[0-9]+")
_TIME: Final = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ T]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]+))?)?(Z|[+-].+)?)?"
)
# What sdcMicro adds to the name of a column when it releases it.
RELEASED: Final = "_pram"
MOST_CLASSES = 1000
ROWS_PER_CLASS = 10
# An undeclared label with more distinct values than this, not all whole numbers, is no class.
CONTINUOUS_FROM = 50


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels."""

    values: tuple[Label, ...]
    """The distinct labels, in the order in which they occur; integral floats as ints."""
    codes: IntArray
    """Int32 array of shape (n,): positions in ``values``."""

    def coded(self, domain: Sequence[Label], which: str, among: str) -> IntArray:
        """Return codes into ``domain``, int32 of shape (n,); the two texts are for the message."""
        place = positions(self.values, domain)
        as_they_are = np.array_equal(place, np.arange(len(place)))
        codes = self.codes if as_they_are else place[self.codes]
        check_inside(codes, which, among, spelt_otherwise(self, domain))
        return codes


def check_inside(codes: IntArray, which: str, among: str, why: str = "") -> None:
    """Check that no code is negative; ``why`` says in what the others differ, if that is known."""
    outside = int((codes < 0).sum())
    if outside:
        more = f": {why}. Write them in one way." if why else "."
        raise InputError(
            f"Every {which} must be one of {among}; {outside:,} of {len(codes):,} rows "
            f"{'holds' if outside == 1 else 'hold'} another value{more}"
        )


# In what two spellings of a label may differ, and what removes that; the last one removes all.
_SPELLINGS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("have a space at an end that the others lack, or the other way round", str.strip),
    ("differ from others in spaces alone", lambda text: " ".join(text.split())),
    ("differ from others in upper and lower case alone", str.casefold),
    (
        "differ from others in how accents are composed (Unicode NFC and NFD)",
        lambda text: unicodedata.normalize("NFC", text),
    ),
    (
        "differ from others in spelling alone (spaces, case, accents)",
        lambda text: " ".join(unicodedata.normalize("NFC", text).casefold().split()),
    ),
)


def spelt_otherwise(labels: LabelColumn, domain: Sequence[Label]) -> str:
    """Return how many labels are none of ``domain`` for their spelling alone, and in what it is.

    Empty where none is, or labels differ in more than that.
    """
    others = positions(labels.values, domain) < 0
    texts = {value: place for place, value in enumerate(labels.values) if others[place]}
    known = [label for label in domain if isinstance(label, str)]
    for words, bare in _SPELLINGS:
        same = {bare(label) for label in known}
        alike = [p for v, p in texts.items() if isinstance(v, str) and bare(v) in same]
        if alike:
            rows = int(np.isin(labels.codes, alike).sum())
            return f"{rows:,} {words}"
    return ""


def most_classes(rows: int) -> int:
    """Return how many different labels ``rows`` rows can support: one per ten rows, 2 … 1000."""
    return max(2, min(MOST_CLASSES, rows // ROWS_PER_CLASS))


def read_labels(column: pa.ChunkedArray, role: str, *, from_text: bool = False) -> LabelColumn:
    """Read a column of n labels: strings, numbers, booleans, dates, or a dictionary of them.

    ``role`` says which they are, for the messages: ``"released"`` or ``"true"``; ``from_text``
    whether the strings come from a text file, where 1 is written as ``1``: they become ints,
    floats or booleans where all of them are written as such.
    """
    rows = len(column)
    distinct, found = _encoded(column, role)
    if pa.types.is_null(distinct.type):
        check_complete(max(rows, 1), rows, f"a {role} label")
    check_complete(int((found < 0).sum()), rows, f"a {role} label")
    if len(distinct) > most_classes(rows):
        raise too_many(role, len(distinct), rows)
    values = _values(distinct, from_text=from_text)
    forms(values, f"{role} labels")
    return LabelColumn(values, found)


def label_forms(
    column: pa.ChunkedArray, role: str, *, from_text: bool = False, letter_for_letter: bool = False
) -> tuple[tuple[str, ...], IntArray]:
    """Return the canonical forms of the distinct labels, however many, and each row's place."""
    # In the order in which they occur; −1 where a label is missing. Texts of one number are as they
    # are spelt; so are all others where it is asked for: nothing then is merged.
    distinct, found = _encoded(column, role)
    values = _values(distinct, from_text=from_text)
    often = Counter(map(_by_value, values))
    every = [
        label
        if isinstance(label, str)
        and often[_by_value(label)] > 1
        and (letter_for_letter or _is_numeric(label))
        else canonical(label)
        for label in values
    ]
    spelt = tuple(dict.fromkeys(every))
    if len(spelt) < len(every):  # Of one label spelt in several ways.
        place = {form: position for position, form in enumerate(spelt)}
        found = np.array([*map(place.__getitem__, every), -1], dtype=np.int32)[found]
    return spelt, found


def _encoded(column: pa.ChunkedArray, role: str) -> tuple[pa.Array, IntArray]:
    """Return the distinct labels in the order in which they occur, and each row's place, or −1."""
    column, codes = _used(usual_column(stored(column)))
    plain = _plain(column, role)
    if pa.types.is_null(plain.type):
        return pa.nulls(0), np.full(len(column), -1, dtype=np.int32)
    encoded = plain.dictionary_encode().unify_dictionaries()
    values = encoded.chunk(0) if encoded.num_chunks else encoded.combine_chunks()
    found, start = np.empty(len(column), dtype=np.int32), 0
    for chunk in encoded.chunks:  # Column and codes as a whole would be in memory several times.
        found[start : start + len(chunk)] = chunk.indices.fill_null(-1).to_numpy()
        start += len(chunk)
    if codes is not None:
        found = np.append(found, np.int32(-1))[codes]
    return values.dictionary, found


def _values(distinct: pa.Array, *, from_text: bool) -> tuple[Label, ...]:
    values = distinct.to_pylist()
    if pa.types.is_float32(distinct.type):
        values = [float(str(np.float32(value))) for value in values]
    if any(isinstance(value, float | Decimal) for value in values):
        whole = all(value == int(value) for value in values)
        values = [int(value) if whole else float(value) for value in values]
    if from_text:
        return tuple(labels_of_text([str(value) for value in values]))
    return tuple(values)


def _used(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, IntArray | None]:
    """Return the values of a dictionary as a short column, and the place of each row's in it."""
    # Values are in the order in which they occur, and −1 is the place of a missing one. None where
    # the column is no dictionary.
    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        return column, None
    column = unified(column)
    # Unsigned ones cannot hold −1: of Polars' categories, DuckDB's ENUM.
    indices = pa.chunked_array([chunk.indices.cast(pa.int64()) for chunk in column.chunks])
    order = pc.unique(indices.drop_null())
    place = np.full(len(column.chunk(0).dictionary) + 1, -1, dtype=np.int32)
    place[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    codes = [place[c.fill_null(-1).to_numpy(zero_copy_only=False)] for c in indices.chunks]
    return pa.chunked_array([column.chunk(0).dictionary.take(order)]), np.concatenate(codes)


def _plain(column: pa.ChunkedArray, role: str) -> pa.ChunkedArray:
    """Return the column without dictionary, NaN as missing; texts are in UTF-8."""
    column = decoded(column)
    if is_any(column.type, *TEXTS, *BYTES, "date", "timestamp"):
        try:
            column = column.cast(pa.large_string())
            column.validate(full=True)
        except pa.ArrowException:
            raise InputError(f"The {role} label must be text in UTF-8.") from None
    elif pa.types.is_floating(column.type):
        if pa.types.is_float16(column.type):
            column = column.cast(pa.float32())
        infinite = pc.sum(pc.is_inf(column)).as_py() or 0
        if infinite:
            raise InputError(
                f"A {role} label must be finite; it is infinite in {infinite:,} of {len(column):,}."
            )
        column = pc.if_else(pc.is_nan(column), None, column)
        column = pc.add(column, pa.scalar(0, column.type))  # turns -0.0 into 0.0
    elif not is_any(column.type, "boolean", "integer", "decimal", "null"):
        raise InputError(
            f"The {role} label must be text, a number, a date or a boolean, no nested object."
        )
    return column


def too_many(role: str, values: int, rows: int) -> InputError:
    """Return the error for a label with more different values than rows allow."""
    return InputError(
        f"The {role} label has {values} different values in {rows} rows, and at most "
        f"{most_classes(rows)} can be audited; put a numeric label into bins and use the bins as "
        f"the label."
    )


def check_not_continuous(labels: LabelColumn, role: str) -> None:
    """Check that undeclared labels are classes and not measurements."""
    if fractional(labels.values) and len(labels.values) > CONTINUOUS_FROM:
        raise InputError(
            f"The {role} label looks continuous ({len(labels.values)} different numbers, not all "
            f"whole); put it into bins, or declare a channel with these outputs."
        )


def canonical(label: Label) -> str:
    """Return the form by which labels of different types are matched."""
    # Numbers by value (1, 1.0, ``"1"`` and ``"1.0"`` are one label), booleans as ``"true"`` and
    # ``"false"`` in any case, other text letter for letter (``"01"`` is not 1, ``"a "`` not
    # ``"a"``).
    if isinstance(label, bool):
        return "true" if label else "false"
    if isinstance(label, str):
        if label.lower() in ("true", "false"):
            return label.lower()
        number = _number(label)
        return label if number is None else canonical(number)
    whole = isinstance(label, int) or float(label).is_integer()
    return str(int(label)) if whole else repr(float(label))


def fractional(labels: Sequence[Label]) -> bool:
    """Return whether labels are numbers, or texts that all write some, and not all are whole."""
    values = [label if not isinstance(label, str) else _value(label) for label in labels]
    numbers = [float(value) for value in values if value is not None]
    return len(numbers) == len(values) and not all(value.is_integer() for value in numbers)


def _is_numeric(label: Label) -> bool:
    return isinstance(label, str) and _value(label) is not None


def forms(labels: Sequence[Label], what: str) -> tuple[str, ...]:
    """Return the canonical forms of distinct labels; texts of one number are as they are spelt."""
    check_short(labels, what)
    spelt = [canonical(label) for label in labels]
    count = Counter(spelt)
    spelt = [
        label if isinstance(label, str) and count[form] > 1 and _is_numeric(label) else form
        for label, form in zip(labels, spelt, strict=True)
    ]
    if len(set(spelt)) < len(spelt):
        raise InputError(
            f"The {what} must differ in more than spelling or type; only {len(set(spelt))} of "
            f"{len(spelt)} can be told apart."
        )
    return tuple(spelt)


def check_short(labels: Sequence[Label], what: str) -> None:
    """Check that no label is a long text, or one of several lines (InputError)."""
    long = sum(
        len(label) > LABEL_CHARACTERS or label.splitlines() not in ([], [label])
        for label in labels
        if isinstance(label, str)
    )
    if long:
        raise InputError(
            f"The {what} must each be one line of at most {LABEL_CHARACTERS:,} characters; {long} "
            f"of {len(labels)} {'is' if long == 1 else 'are'} not. A stray quote in the file can "
            "make such a label."
        )


def nearly_alike(labels: Sequence[Label]) -> Iterator[str]:
    """Yield how many labels differ from another in spelling alone, and in what, in words."""
    texts, bare = [label for label in labels if isinstance(label, str)], _SPELLINGS[-1][1]
    for alike, words in (
        (
            len(labels) - len({_by_value(label) for label in labels}),
            "how a number is written, such as zeros at the end",
        ),
        (
            len(texts) - len({bare(text) for text in texts}),
            "spaces, in upper and lower case or in how accents are composed",
        ),
    ):
        if alike:
            differ = "differs" if alike == 1 else "differ"
            yield f"{alike} of the {len(labels)} labels {differ} from another only in {words}"


def positions(labels: Sequence[Label], domain: Sequence[Label]) -> IntArray:
    """Return the position of each label in ``domain``, int32 of shape (len(labels),); -1 if absent.

    Labels match letter for letter, else by their canonical form, or the number or the time
    that they write; never where two labels of one side would become one. Booleans match 0 and 1
    where one side has booleans only and the other only 0 and 1.
    """
    place = np.full(len(labels), -1, dtype=np.int32)
    for form in (_letters, _by_value):
        ours, theirs = [form(label) for label in labels], [form(label) for label in domain]
        often, once = Counter(ours), Counter(theirs)
        target = {key: at for at, key in enumerate(theirs) if once[key] == 1}
        free = {*range(len(domain))} - {*place.tolist()}
        for at in np.flatnonzero(place < 0):
            found = target.get(ours[at], -1)
            if found in free and often[ours[at]] == 1:
                place[at] = found
        if (place >= 0).all():
            return place
    if (place < 0).all():
        ours, theirs = [canonical(label) for label in labels], [canonical(v) for v in domain]
        words, digits = {"true": "1", "false": "0"}, {"1": "true", "0": "false"}
        for one, other in ((words, digits), (digits, words)):
            if set(ours) <= set(one) and set(theirs) <= set(other):
                at_once = {form: at for at, form in enumerate(theirs)}
                return np.array([at_once.get(one[form], -1) for form in ours], dtype=np.int32)
    return place


def _letters(label: Label) -> str:
    return label if isinstance(label, str) else canonical(label)


def _by_value(label: Label) -> str:
    """Return a number by its value, a time by what it says, and other labels by their form."""
    if not isinstance(label, str):
        return canonical(label)
    value = _value(label)
    if value is not None:
        return canonical(value)
    time = _TIME.fullmatch(label)
    if time is None:
        return canonical(label)
    day, hour, seconds, fraction, zone = time.groups()
    rest = f"{hour or '00:00'}:{seconds or '00'}.{(fraction or '').rstrip('0')}"
    return f"{day} {rest}{zone or ''}"


def _value(text: str) -> int | float | None:
    """Return the number that a text writes in any way: 1.50, 1e+05; none where a zero leads."""
    if not _DECIMAL.fullmatch(text) or len(text) > DIGITS:
        return None
    value = float(text)
    if not np.isfinite(value):
        return None
    return int(value) if value.is_integer() else value


def in_order(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Sort labels: booleans and numbers by value, then text; text of numbers alone by value."""
    texts = [label for label in labels if isinstance(label, str)]
    values = {text: _value(text) for text in texts}
    counted = all(value is not None for value in values.values())

    def place(label: Label) -> tuple[int, float, str]:
        if not isinstance(label, str):
            return 0, label, ""
        value = values[label] if counted else None
        return 1, value or 0, label

    return tuple(sorted(labels, key=place))


def labels_of_text(values: Sequence[str]) -> tuple[Label, ...]:
    """Return the labels of a text file: ints or booleans where all are such, else as they are."""
    # Two texts are never one label: 250.0 and 250.00 may be a group and a diagnosis.
    whole = [_number(value.strip()) for value in values]
    plain = all(
        isinstance(n, int) and _WHOLE.fullmatch(v.strip())
        for n, v in zip(whole, values, strict=True)
    )
    booleans = all(value.lower() in ("true", "false") for value in values)
    read = read_texts(values) if plain or booleans else tuple(values)
    return read if len({*read}) == len({*values}) else tuple(values)


def read_texts(values: Sequence[str]) -> tuple[Label, ...]:
    """Return text as ints, floats or booleans where every value is written as such."""
    numbers = [_number(value.strip()) for value in values]
    if all(number is not None for number in numbers):
        return tuple(number for number in numbers if number is not None)
    if all(value.lower() in ("true", "false") for value in values):
        return tuple(value.lower() == "true" for value in values)
    return tuple(values)


def _number(text: str) -> int | float | None:
    """Return the number that ``text`` writes in the usual way, whole floats as ints; else None."""
    if len(text) > DIGITS:
        return None  # Beyond all floats.
    try:
        if str(int(text)) == text or text == "-0":  # So Arrow writes a zero below zero.
            return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return None
    if not np.isfinite(value) or repr(value) != text:
        return None
    return int(value) if value.is_integer() else value


def split_labels(text: str) -> tuple[Label, ...]:
    """Read labels from ``A,B,…``, numbers where all are; one with a comma stands in quotes."""
    try:
        (parts,) = csv.reader([text], skipinitialspace=True)
    except (csv.Error, ValueError):
        raise InputError("Labels must be written A,B,… on one line.") from None
    if len(parts) > CLASSES:
        raise InputError(f"There must be at most {CLASSES:,} labels. Got {len(parts):,}.")
    return read_texts([part.strip() for part in parts])
