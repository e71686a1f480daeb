"""Rows outside of a release that have labels of their own: synthetic rows and test rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ldpaudit.datasets.labels import read_labels
from ldpaudit.errors import InputError
from ldpaudit.release import FeatureTable, FloatArray, IntArray, Label


@dataclass(frozen=True)
class LabelledRows:
    """Other rows with their true labels, coded like the release.

    Attributes
    ----------
    features : FeatureTable
        t rows.
    labels : int32 array of shape (t,) or None
        Codes into the release's classes; None where labels are numbers.
    numbers : float64 array of shape (t,) or None
        The labels as numbers, for a mechanism on numbers.
    """

    features: FeatureTable
    labels: IntArray | None = None
    numbers: FloatArray | None = None

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.features)


def label_codes(
    column: pa.ChunkedArray, role: str, classes: Sequence[Label], *, from_text: bool
) -> IntArray:
    """Return labels as codes into the release's classes, int32 of shape (t,).

    Raises
    ------
    InputError
        If a label is none of the classes.
    """
    labels = read_labels(column, role, from_text=from_text)
    codes, unknown = labels.recoded(classes)
    if unknown:
        raise InputError(
            f"Every label of the {role} table must be one of the release's {len(classes)} "
            f"classes; {unknown} rows have another."
        )
    return codes
