"""Label columns of any type: distinct values and codes, and matching them across files."""

# A label is written in many ways: a CSV file holds the text ``1``, a Parquet file the integer 1 or
# the float 1.0, a JSON declaration 1 or ``"1"``. Labels are therefore matched by a canonical form
# (:func:`canonical`). Within one collection (the released values, the true values, the declared
# classes) two labels of the same canonical form are an error, so different labels are never merged.

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

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
)
from ldpaudit.errors import InputError
from ldpaudit.release import IntArray, Label
from ldpaudit.work.limits import DIGITS

MOST_CLASSES = 1000
ROWS_PER_CLASS = 10
# An undeclared label with more distinct values than this, not all whole numbers, is no class.
CONTINUOUS_FROM = 50


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels."""

    # ``values``: the distinct labels, in the order in which they occur; integral floats as ints.
    # ``codes``, int32 array of shape (n,): positions in ``values``.

    values: tuple[Label, ...]
    codes: IntArray

    def coded(self, domain: Sequence[Label], which: str, among: str) -> IntArray:
        """Return codes into ``domain``, int32 of shape (n,); the two texts are for the message."""
        codes = positions(self.values, domain)[self.codes]
        check_inside(codes, which, among)
        return codes


def check_inside(codes: IntArray, which: str, among: str) -> None:
    """Check that no code is negative."""
    outside = int((codes < 0).sum())
    if outside:
        raise InputError(
            f"Every {which} must be one of {among}; {outside:,} of {len(codes)} rows hold "
            "another value."
        )


def most_classes(rows: int) -> int:
    """Return how many different labels ``rows`` rows can support: one per ten rows, 2 … 1000."""
    return max(2, min(MOST_CLASSES, rows // ROWS_PER_CLASS))


def read_labels(column: pa.ChunkedArray, role: str, *, from_text: bool = False) -> LabelColumn:
    """Read a column of n labels: strings, numbers, booleans, dates, or a dictionary of them."""
    # ``role`` says which they are, for the messages: ``"released"`` or ``"true"``; ``from_text``
    # whether the strings come from a text file, where 1 is written as ``1``: they become ints,
    # floats or booleans where all of them are written as such.
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
    column: pa.ChunkedArray, role: str, *, from_text: bool = False
) -> tuple[tuple[str, ...], IntArray]:
    """Return the canonical forms of the distinct labels, however many, and each row's place."""
    # In the order in which they occur; −1 where a label is missing.
    distinct, found = _encoded(column, role)
    every = [canonical(value) for value in _values(distinct, from_text=from_text)]
    spelt = tuple(dict.fromkeys(every))
    if len(spelt) < len(every):  # Of one label spelt in several ways.
        place = {form: position for position, form in enumerate(spelt)}
        found = np.array([*map(place.__getitem__, every), -1], dtype=np.int32)[found]
    return spelt, found


def _encoded(column: pa.ChunkedArray, role: str) -> tuple[pa.Array, IntArray]:
    """Return the distinct labels in the order in which they occur, and each row's place, or −1."""
    column, codes = _used(stored(column))
    encoded = _plain(column, role).dictionary_encode().combine_chunks()
    if pa.types.is_null(encoded.type):
        return encoded, np.full(len(column), -1, dtype=np.int32)
    found = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    if codes is not None:
        found = np.append(found, np.int32(-1))[codes]
    return encoded.dictionary, found


def _values(distinct: pa.Array, *, from_text: bool) -> tuple[Label, ...]:
    values = distinct.to_pylist()
    if pa.types.is_float32(distinct.type):
        values = [float(str(np.float32(value))) for value in values]
    if any(isinstance(value, float | Decimal) for value in values):
        whole = all(value == int(value) for value in values)
        values = [int(value) if whole else float(value) for value in values]
    return read_texts([str(value) for value in values]) if from_text else tuple(values)


def _used(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, IntArray | None]:
    """Return the values of a dictionary as a short column, and the place of each row's in it."""
    # Values are in the order in which they occur, and −1 is the place of a missing one. None where
    # the column is no dictionary.
    if not pa.types.is_dictionary(column.type) or not column.num_chunks:
        return column, None
    column = column.unify_dictionaries()
    indices = pa.chunked_array([chunk.indices for chunk in column.chunks])
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
            raise InputError(f"A {role} label must be finite; {infinite} are infinite.")
        column = pc.if_else(pc.is_nan(column), None, column)
        column = pc.add(column, pa.scalar(0, column.type))  # turns -0.0 into 0.0
    elif not is_any(column.type, "boolean", "integer", "decimal", "null"):
        raise InputError(f"The {role} label must be text, a number or a boolean, no nested object.")
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
    fractional = any(isinstance(value, float) for value in labels.values)
    if fractional and len(labels.values) > CONTINUOUS_FROM:
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


def forms(labels: Sequence[Label], what: str) -> tuple[str, ...]:
    """Return the canonical forms of distinct labels."""
    spelt = tuple(canonical(label) for label in labels)
    if len(set(spelt)) < len(spelt):
        raise InputError(
            f"The {what} must differ in more than spelling or type; only {len(set(spelt))} of "
            f"{len(spelt)} can be told apart."
        )
    return spelt


def positions(labels: Sequence[Label], domain: Sequence[Label]) -> IntArray:
    """Return the position of each label in ``domain``, int32 of shape (len(labels),); -1 if absent.

    Labels match by their canonical form. Booleans match 0 and 1 where one side has booleans only
    and the other only 0 and 1.
    """
    spelt, targets = [canonical(label) for label in labels], [canonical(label) for label in domain]
    place = {form: position for position, form in enumerate(targets)}
    words, digits = {"true": "1", "false": "0"}, {"1": "true", "0": "false"}
    for ours, theirs in ((words, digits), (digits, words)):
        if set(spelt) <= set(ours) and set(targets) <= set(theirs):
            spelt = [ours[form] for form in spelt]
            break
    return np.array([place.get(form, -1) for form in spelt], dtype=np.int32)


def in_order(labels: Sequence[Label]) -> tuple[Label, ...]:
    """Sort labels: booleans and numbers by value, then text."""
    return tuple(sorted(labels, key=lambda v: (1, 0, v) if isinstance(v, str) else (0, v, "")))


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
