"""Rows outside of a release that have labels of their own: synthetic rows and test rows."""

from dataclasses import dataclass

from ldpaudit.release import FeatureTable, FloatArray, IntArray


@dataclass(frozen=True)
class LabelledRows:
    """Other rows with their true labels, in the release's codes.

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
