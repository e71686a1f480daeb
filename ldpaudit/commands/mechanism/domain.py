"""The labels that a mechanism is analysed for, and their prior."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from ldpaudit.commands.priors import SAME, prior_over
from ldpaudit.datasets.beside.priors import LabelPrior, read_prior, split_labels
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.label_range import LabelRange
from ldpaudit.mechanisms.parameters import check_classes
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import FloatArray, Label

MOST_LABELS: Final = 4096
"""Of an exact analysis."""


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


def read_domain(
    classes: str | Sequence[Label] | None,
    labels: str | None,
    prior: Path | None,
    files: FileOptions = AS_FOUND,
) -> Domain:
    """Return the labels that ``--classes``, ``--labels`` and ``--prior`` state together.

    A range without a step means any number of it, with a prior the step 1; a prior names the labels
    where nothing else does. ``files``: how its file is written.

    Raises
    ------
    InputError
        If labels are stated twice, or are no valid labels, or the prior is not one of theirs.
    """
    if classes is not None and labels is not None:
        raise InputError("State the labels once: --classes or --labels, not both.")
    table = None if prior is None else read_prior(prior, files)
    if labels is not None:
        return _on_range(LabelRange.parse(labels), table)
    if classes is not None:
        stated = split_labels(classes) if isinstance(classes, str) else tuple(classes)
        named = check_classes(stated)
    elif table is not None:
        named = check_classes(table.labels)
    else:
        raise InputError("State the labels: --classes A,B,… or --labels LO:HI:STEP.")
    if len(named) > MOST_LABELS:
        raise InputError(f"At most {MOST_LABELS} labels can be analysed. Got {len(named)}.")
    known = None if table is None else prior_over(named, table)
    return Domain(named, _range_of(named), known)


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


def _range_of(classes: tuple[Label, ...]) -> LabelRange | None:
    """Return the grid that the labels form, None where they do not."""
    if any(isinstance(label, bool | str) for label in classes):
        return None
    values = np.asarray(classes, dtype=np.float64)
    gaps = np.diff(values)
    if not (gaps > 0).all() or not np.allclose(gaps, gaps[0], rtol=SAME, atol=0):
        return None
    step = float(gaps[0])
    return LabelRange(float(values[0]), float(values[0]) + step * len(gaps), step)
