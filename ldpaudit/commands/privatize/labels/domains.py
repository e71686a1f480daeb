"""The possible true labels, and their codes batch by batch."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.columns import NUMBERS, TEXTS, is_any
from ldpaudit.datasets.labels import positions
from ldpaudit.datasets.names import shown_type
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.numeric.rounded_labels import Rounding
from ldpaudit.release import FloatArray, IntArray, Label

_ON_GRID = 1e-6
"""As :class:`ldpaudit.mechanisms.label_range.LabelRange` has it."""


@dataclass(frozen=True, eq=False)
class ClassDomain:
    """Labels of any type, one by one.

    Parameters
    ----------
    classes : tuple, length k
        The labels.
    found : pyarrow.Array of f labels
        The distinct labels of the data, without dictionary, in the data's own type.
    found_values : tuple, length f
        The same as plain values.
    """

    classes: tuple[Label, ...]
    found: pa.Array
    found_values: tuple[Label, ...]

    @cached_property
    def _places(self) -> IntArray:
        """The code of each found label; the last entry is for any other."""
        return np.append(positions(self.found_values, self.classes), np.int32(-1))

    def codes(self, column: pa.Array) -> IntArray:
        """Return positions in ``classes``, int32 of shape (n,); −1 where a label is none."""
        place = pc.index_in(bare_labels(column), value_set=self.found)
        return np.asarray(self._places[place.fill_null(-1).to_numpy(zero_copy_only=False)])


@dataclass(frozen=True)
class GridDomain:
    """Numbers on a declared grid."""

    labels: LabelRange

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels on the grid."""
        return self.labels.classes

    def codes(self, column: pa.Array) -> IntArray:
        """Return positions on the grid, int32 of shape (n,); −1 off the grid."""
        place = (numbers(column) - self.labels.low) / self.labels.spacing
        with np.errstate(invalid="ignore"):
            nearest = np.rint(place)
            valid = (nearest >= 0) & (nearest <= self.labels.steps)
            valid &= np.abs(place - nearest) <= _ON_GRID
        return np.where(valid, nearest, -1).astype(np.int32)


@dataclass(frozen=True)
class RangeDomain:
    """Any number of a declared range."""

    labels: LabelRange

    @property
    def classes(self) -> tuple[Label, ...]:
        """No single labels."""
        return ()

    def codes(self, column: pa.Array) -> IntArray:
        """Return 0 for a label in the range, −1 for any other, int32 of shape (n,)."""
        values = numbers(column)
        inside = (values >= self.labels.low) & (values <= self.labels.high)
        return np.where(inside, 0, -1).astype(np.int32)


@dataclass(frozen=True, eq=False)
class RoundedDomain:
    """Any number between the ends of a grid, rounded to one of its points.

    Parameters
    ----------
    rounding : Rounding
    rng : numpy.random.Generator or None
        None: the operating system's randomness.
    """

    rounding: Rounding
    rng: np.random.Generator | None

    @property
    def classes(self) -> tuple[Label, ...]:
        """The points of the grid."""
        return self.rounding.grid

    def codes(self, column: pa.Array) -> IntArray:
        """Return positions on the grid, newly drawn, int32 of shape (n,); −1 beyond its ends."""
        values = numbers(column)
        inside = self.rounding.inside(values)
        codes = np.full(len(values), -1, dtype=np.int32)
        codes[inside] = self.rounding.sample(values[inside], self.rng)
        return codes


LabelDomain = ClassDomain | GridDomain | RangeDomain | RoundedDomain
"""The true labels that a mechanism takes; ``codes`` are positions in ``classes``, −1 for none."""


def bare_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the labels themselves: without extension, dictionary or half floats."""
    if isinstance(kind, pa.BaseExtensionType):
        return bare_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return bare_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.float32() if pa.types.is_float16(kind) else kind


def bare_labels(column: pa.Array) -> pa.Array:
    """Return labels without extension or dictionary, NaN as missing and −0.0 as 0.0."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    kind = bare_type(column.type)
    plain = column if column.type == kind else column.cast(kind)
    if not pa.types.is_floating(kind):
        return plain
    return pc.add(pc.if_else(pc.is_nan(plain), None, plain), pa.scalar(0, kind))


def check_label_type(kind: pa.DataType, *, numeric: bool) -> None:
    """Check that a column's type is one of labels.

    Raises
    ------
    InputError
        If it is nested, or not numeric where the mechanism needs numbers.
    """
    bare = bare_type(kind)
    shown = shown_type(bare)
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name == "pandas.period":
        raise InputError("A label must not be a period of pandas; write it as text: astype(str).")
    if pa.types.is_null(bare):
        raise InputError("Every row must have a label; the column has none, or the table no rows.")
    if numeric and not is_any(bare, *NUMBERS):
        raise InputError(f"The labels of a numeric mechanism must be numbers. Got {shown} instead.")
    if not is_any(bare, *NUMBERS, *TEXTS, "boolean", "date", "timestamp"):
        raise InputError(
            f"A label must be text, a number, a date or a boolean. Got {shown} instead."
        )


def numbers(column: pa.Array) -> FloatArray:
    """Return numeric labels as float64 of shape (n,), NaN where one is missing."""
    plain = bare_labels(column).cast(pa.float64(), safe=False)
    return np.asarray(plain.to_numpy(zero_copy_only=False), dtype=np.float64)


def label_values(found: pa.Array) -> tuple[Label, ...]:
    """Return distinct labels as plain values: dates as text, whole floats as ints.

    Parameters
    ----------
    found : pyarrow.Array of f labels
        As :func:`bare_labels` gives them, none missing.
    """
    kind = found.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        try:
            return tuple(found.cast(pa.large_string()).to_pylist())
        except pa.ArrowException:
            raise InputError("Labels that are dates must be of a known time zone.") from None
    values = found.to_pylist()
    if pa.types.is_float32(kind):
        values = [float(str(np.float32(value))) for value in values]
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        whole = all(value == int(value) for value in values)
        return tuple(int(value) if whole else float(value) for value in values)
    return tuple(values)
