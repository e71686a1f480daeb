"""Label columns of a mechanism on numbers: values as they are, and their codes."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.labels import most_classes
from ldpaudit.errors import InputError
from ldpaudit.numeric_labels import NumericCoding, NumericLabels, NumericView
from ldpaudit.release import FloatArray, IntArray

_LEAST_GROUP = 20
_LEAST_SHARE = 0.002


@dataclass(frozen=True)
class EncodedNumbers:
    """Numeric labels and their codes: ``released`` into the outputs, ``truth`` into the classes."""

    labels: NumericLabels
    released: IntArray
    truth: IntArray | None


def read_numbers(column: pa.ChunkedArray, role: str) -> FloatArray:
    """Read a column of numeric labels, float64 of shape (n,).

    Parameters
    ----------
    column : pyarrow.ChunkedArray of n numbers, or texts that write numbers
    role : {"released", "true"}
        For the messages.

    Raises
    ------
    InputError
        If a label is missing, infinite or no number.
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    try:
        if pa.types.is_boolean(column.type) or pa.types.is_temporal(column.type):
            raise pa.ArrowInvalid
        numbers = column.cast(pa.float64())
    except pa.ArrowException:
        raise InputError(
            f"The declared mechanism is one on numbers, so every {role} label must be a number."
        ) from None
    missing = numbers.null_count + (pc.sum(pc.is_nan(numbers)).as_py() or 0)
    if missing:
        raise InputError(
            f"Every row must have a {role} label; {missing} of {len(numbers)} are missing."
        )
    values = np.asarray(numbers.to_numpy(), dtype=np.float64)
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise InputError(f"A {role} label must be finite; {infinite} are infinite.")
    return values


def encode_numbers(
    view: NumericView, released: FloatArray, truth: FloatArray | None
) -> EncodedNumbers:
    """Code numeric labels as a mechanism's view has them.

    Groups of true labels that hold few people are merged with their neighbours: true labels may
    have a say in how they are grouped, released ones may not.

    Raises
    ------
    InputError
        If a label lies outside of what is declared; the rows are counted.
    """
    released_codes = view.outputs.codes(released)
    _check_inside(released_codes, "released", "outputs")
    if truth is None:
        return EncodedNumbers(NumericLabels(view, released), released_codes, None)
    codes = view.classes.codes(truth)
    _check_inside(codes, "true", "labels")
    if view.classes.grouped:
        view = NumericView(_merged(view.classes, codes), view.outputs)
        codes = view.classes.codes(truth)
    return EncodedNumbers(NumericLabels(view, released, truth), released_codes, codes)


def _merged(classes: NumericCoding, codes: IntArray) -> NumericCoding:
    least = max(_LEAST_GROUP, int(_LEAST_SHARE * len(codes)))
    if len(codes) < 2 * least:
        raise InputError(
            f"{len(codes)} rows can support at most {most_classes(len(codes))} labels, too few "
            f"for a numeric mechanism; at least {2 * least} rows are needed."
        )
    return classes.merged(np.bincount(codes, minlength=len(classes)).astype(np.int64), least)


def _check_inside(codes: IntArray, role: str, key: str) -> None:
    outside = int((codes < 0).sum())
    if outside:
        raise InputError(
            f"Every {role} label must be one of the declared {key}; {outside} of {len(codes)} "
            f"rows hold another value."
        )
