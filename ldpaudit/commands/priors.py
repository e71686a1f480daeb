"""A prior from a file, in the order of the labels."""

from typing import Final

import numpy as np

from ldpaudit.datasets.labels import positions
from ldpaudit.datasets.probabilities import LabelPrior
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.parameters import check_prior
from ldpaudit.release import FloatArray, IndexArray, Label

# Numbers that differ by less, relatively, are one label.
SAME: Final = 1e-9


def prior_over(classes: tuple[Label, ...], table: LabelPrior) -> FloatArray:
    """Return the prior of the labels in their order, float64 of shape (k,).

    Raises
    ------
    InputError
        If its labels are not exactly these, or it is no distribution.
    """
    place = _places(table.labels, classes)
    if len(table.labels) != len(classes) or (np.sort(place) != np.arange(len(classes))).any():
        raise InputError(
            f"The prior must have one row for each of the {len(classes)} labels; "
            f"{len(classes) - len(np.unique(place[place >= 0]))} have none, and "
            f"{int((place < 0).sum())} row(s) are of other labels."
        )
    ordered = np.empty(len(classes))
    ordered[place] = table.probabilities
    return check_prior(ordered, len(classes))


def _places(labels: tuple[Label, ...], classes: tuple[Label, ...]) -> IndexArray:
    """Return the position of each label among the classes, −1 where it is none of them."""
    places = positions(labels, classes).astype(np.int64)
    if any(isinstance(label, bool | str) for label in (*labels, *classes)):
        return places
    # A grid's 0.1 + 2 · 0.1 is the file's 0.3.
    values, targets = np.asarray(labels, np.float64), np.asarray(classes, np.float64)
    order = np.argsort(targets)
    near = order[np.clip(np.searchsorted(targets[order], values), 0, len(targets) - 1)]
    before = order[np.clip(np.searchsorted(targets[order], values) - 1, 0, len(targets) - 1)]
    nearest = np.where(abs(targets[near] - values) <= abs(targets[before] - values), near, before)
    close = np.abs(targets[nearest] - values) <= SAME * np.maximum(1.0, np.abs(values))
    return np.where((places < 0) & close, nearest, places)
