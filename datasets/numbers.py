"""Label columns of a mechanism on numbers: values as they are, and their codes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import check_complete, decoded, is_any
from ldpaudit.datasets.labels import check_inside, most_classes
from ldpaudit.errors import InputError
from ldpaudit.numeric_labels import NumericCoding, NumericLabels, NumericView
from ldpaudit.release import FloatArray, IntArray

_LEAST_GROUP = 20
_LEAST_SHARE = 0.002


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
    column = decoded(column)
    try:
        if is_any(column.type, "boolean", "temporal"):
            raise pa.ArrowInvalid
        numbers = column.cast(pa.float64())
    except pa.ArrowException:
        raise InputError(
            f"The declared mechanism releases numbers, so every {role} label must be a number."
        ) from None
    missing = numbers.null_count + (pc.sum(pc.is_nan(numbers)).as_py() or 0)
    check_complete(missing, len(numbers), f"a {role} label")
    values = np.asarray(numbers.to_numpy(), dtype=np.float64)
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise InputError(f"A {role} label must be finite; {infinite} are infinite.")
    return values


def encode_numbers(
    view: NumericView, released: FloatArray, truth: FloatArray | None
) -> tuple[NumericLabels, IntArray, IntArray | None]:
    """Code numeric labels by a mechanism's view: released into outputs, true into classes.

    Groups of true labels that hold few people are merged with their neighbours: how labels are
    grouped may depend on the true ones, but not on the released ones.

    Raises
    ------
    InputError
        If a label lies outside of what is declared; the rows are counted.
    """
    outputs = view.outputs.codes(released)
    check_inside(outputs, "released label", "the declared outputs")
    if truth is None:
        return NumericLabels(view, released), outputs, None
    codes = view.classes.codes(truth)
    check_inside(codes, "true label", "the declared labels")
    if view.classes.grouped:
        view = NumericView(_merged(view.classes, codes), view.outputs)
        codes = view.classes.codes(truth)
    return NumericLabels(view, released, truth), outputs, codes


def _merged(classes: NumericCoding, codes: IntArray) -> NumericCoding:
    least = max(_LEAST_GROUP, int(_LEAST_SHARE * len(codes)))
    if len(codes) < 2 * least:
        raise InputError(
            f"{len(codes)} rows can support at most {most_classes(len(codes))} labels, too few "
            f"for a numeric mechanism; at least {2 * least} rows are needed."
        )
    return classes.merged(np.bincount(codes, minlength=len(classes)).astype(np.int64), least)
