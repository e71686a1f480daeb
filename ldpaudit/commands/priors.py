"""A prior from a file, in the order of the labels."""

from typing import Final

import numpy as np

from ldpaudit.datasets.labels import positions
from ldpaudit.datasets.probabilities import LabelPrior
from ldpaudit.errors import refuse
from ldpaudit.mechanisms.parameters import check_prior
from ldpaudit.release import FloatArray, Label

# Numbers that differ by less, relatively, are one label.
SAME: Final = 1e-9


def prior_over(classes: tuple[Label, ...], table: LabelPrior) -> FloatArray:
    """Return the prior of the labels in their order, float64 of shape (k,)."""
    # InputError if its labels are not exactly these, or it is no distribution.
    # A grid's 0.1 + 2 · 0.1 is the file's 0.3.
    place = positions(tuple(map(_rounded, table.labels)), tuple(map(_rounded, classes)))
    refuse(
        len(table.labels) != len(classes) or (np.sort(place) != np.arange(len(classes))).any(),
        f"The prior must have one row for each of the {len(classes)} labels; "
        f"labels without one: {len(classes) - len(np.unique(place[place >= 0]))}, "
        f"rows of other labels: {int((place < 0).sum())}.",
    )
    ordered = np.empty(len(classes))
    ordered[place] = table.probabilities
    return check_prior(ordered, len(classes))


def _rounded(label: Label) -> Label:
    whole = isinstance(label, bool | str) or float(label).is_integer()
    return label if whole else float(f"{label:.9g}")
