"""The labels that a mechanism is asked about, and their prior."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ldpaudit.datasets.beside.priors import LabelPrior, read_prior, split_labels
from ldpaudit.datasets.labels import positions
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.parameters import check_classes, check_prior
from ldpaudit.release import FloatArray, IndexArray, Label

MOST_LABELS: Final = 4096
"""How many labels an exact analysis takes."""
_SAME: Final = 1e-9


@dataclass(frozen=True, eq=False)
class Domain:
    """The true labels of a mechanism.

    Parameters
    ----------
    classes : tuple, length k, or None
        The labels, distinct; None for any number of a range.
    range : LabelRange or None
        Their range, where they are numbers on a grid or anywhere in it.
    prior : float64 array of shape (k,) or None
        Their probabilities, summing to 1.
    """

    classes: tuple[Label, ...] | None
    range: LabelRange | None = None
    prior: FloatArray | None = None


def read_domain(classes: str | None, labels: str | None, prior: Path | None) -> Domain:
    """Return the labels that ``--classes``, ``--labels`` and ``--prior`` state together.

    Parameters
    ----------
    classes : str or None
        ``A,B,…``.
    labels : str or None
        ``LO:HI`` or ``LO:HI:STEP``; without a step any number of the range, or with a prior the
        step 1.
    prior : Path or None
        A CSV file ``label,probability``; it names the labels where nothing else does.

    Raises
    ------
    InputError
        If labels are stated twice, or are no valid labels, or the prior is not one of theirs.
    """
    if classes is not None and labels is not None:
        raise InputError("State the labels once: --classes or --labels, not both.")
    table = None if prior is None else read_prior(prior)
    if labels is not None:
        return _on_range(LabelRange.parse(labels), table)
    if classes is not None:
        named = check_classes(split_labels(classes))
    elif table is not None:
        named = check_classes(table.labels)
    else:
        raise InputError("State the labels: --classes A,B,… or --labels LO:HI:STEP.")
    known = None if table is None else prior_over(named, table)
    return Domain(_few(named), _range_of(named), known)


def grid(labels: LabelRange) -> LabelRange:
    """Return a range with a step: its own, or 1."""
    return labels if labels.step is not None else LabelRange(labels.low, labels.high, 1.0)


def _on_range(labels: LabelRange, table: LabelPrior | None) -> Domain:
    if labels.step is None and table is None:
        return Domain(None, labels)
    stepped = grid(labels)
    if stepped.steps >= MOST_LABELS:
        raise InputError(f"At most {MOST_LABELS} labels can be analysed; use a larger step.")
    known = None if table is None else prior_over(stepped.classes, table)
    return Domain(stepped.classes, stepped, known)


def _few(classes: tuple[Label, ...]) -> tuple[Label, ...]:
    if len(classes) > MOST_LABELS:
        raise InputError(f"At most {MOST_LABELS} labels can be analysed. Got {len(classes)}.")
    return classes


def _range_of(classes: tuple[Label, ...]) -> LabelRange | None:
    """Return the grid that the labels are, None where they are none."""
    if any(isinstance(label, bool | str) for label in classes):
        return None
    values = np.asarray(classes, dtype=np.float64)
    gaps = np.diff(values)
    if not (gaps > 0).all() or not np.allclose(gaps, gaps[0], rtol=_SAME, atol=0):
        return None
    step = float(gaps[0])
    return LabelRange(float(values[0]), float(values[0]) + step * len(gaps), step)


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
            f"The prior must name exactly the declared {len(classes)} labels. It names "
            f"{len(table.labels)}, of which {int((place >= 0).sum())} are declared."
        )
    ordered = np.empty(len(classes))
    ordered[place] = table.probabilities
    return check_prior(ordered, len(classes))


def _places(labels: tuple[Label, ...], classes: tuple[Label, ...]) -> IndexArray:
    """Return the position of each label among the classes, −1 where it is none of them."""
    found = positions(labels, classes).astype(np.int64)
    if any(isinstance(label, bool | str) for label in (*labels, *classes)):
        return found
    # A grid's 0.1 + 2 · 0.1 is the file's 0.3.
    values, targets = np.asarray(labels, np.float64), np.asarray(classes, np.float64)
    order = np.argsort(targets)
    near = order[np.clip(np.searchsorted(targets[order], values), 0, len(targets) - 1)]
    before = order[np.clip(np.searchsorted(targets[order], values) - 1, 0, len(targets) - 1)]
    nearest = np.where(abs(targets[near] - values) <= abs(targets[before] - values), near, before)
    close = np.abs(targets[nearest] - values) <= _SAME * np.maximum(1.0, np.abs(values))
    return np.where((found < 0) & close, nearest, found)
