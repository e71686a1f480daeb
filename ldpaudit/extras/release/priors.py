"""A prior from a file, in the order of the labels."""

import os
from dataclasses import dataclass
from typing import Final

import numpy as np

from ldpaudit.datasets.formats.csv_file import small_csv
from ldpaudit.datasets.labels import forms, positions, read_texts
from ldpaudit.datasets.names import quoted
from ldpaudit.doors import FloatArray, InputError, refuse
from ldpaudit.mechanisms.parameters import check_prior
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import Label

_HEADER: Final = ("label", "probability")


@dataclass(frozen=True)
class LabelPrior:
    """A prior as a file states it; whether it sums to 1 is checked where it is used."""

    labels: tuple[Label, ...]
    probabilities: tuple[float, ...]


def read_prior(path: str | os.PathLike[str], files: FileOptions = AS_FOUND) -> LabelPrior:
    """Read a prior from a CSV file with the columns ``label`` and ``probability`` (InputError)."""
    file, rows = small_csv(path, "The prior", files)
    if file.names != _HEADER:
        raise InputError(f"The prior {quoted(file.name)} must have the header {','.join(_HEADER)}.")
    if any(len(row) != len(_HEADER) for row in rows):
        raise InputError("Every row of a prior must hold one label and one probability.")
    labels = read_texts([row[0] for row in rows])
    forms(labels, "labels of the prior")
    try:
        return LabelPrior(labels, tuple(float(row[1]) for row in rows))
    except ValueError:
        raise InputError("The probabilities of a prior must be numbers.") from None


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
