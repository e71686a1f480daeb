"""The labels that can occur: the declared classes and outputs, or those in the data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ldpaudit.datasets.coding import LabelCoding, PlainCoding, ReportReading, Reports
from ldpaudit.datasets.labels import (
    LabelColumn,
    canonical,
    check_not_continuous,
    forms,
    in_order,
    most_classes,
    positions,
    too_many,
)
from ldpaudit.datasets.numbers import encode_numbers
from ldpaudit.errors import InputError
from ldpaudit.numeric_labels import NumericLabels, NumericView
from ldpaudit.randomness import child_generator
from ldpaudit.release import Declaration, FloatArray, IntArray, Label

_TIES: Final = "frequency-oracle"
"""Part of the key by which ties between most likely labels are drawn."""


@dataclass(frozen=True)
class Domains:
    """The labels that can occur.

    Attributes
    ----------
    classes : tuple, length k
        The values of a true label.
    outputs : tuple, length m
        The values of a released label.
    apart : bool
        Whether the two were kept apart because, undeclared, they have no value in common.
    """

    classes: tuple[Label, ...]
    outputs: tuple[Label, ...]
    apart: bool = False


@dataclass(frozen=True)
class EncodedLabels:
    """Labels as codes: ``released`` into ``outputs``, ``truth`` into ``classes``.

    ``numeric`` holds them as numbers, where the mechanism is one on numbers.
    """

    domains: Domains
    released: IntArray
    truth: IntArray | None
    numeric: NumericLabels | None = None

    @property
    def true_values(self) -> IntArray | None:
        """Codes of the true labels before any of them were grouped, of shape (n,)."""
        if self.numeric is None or self.numeric.truth is None:
            return self.truth
        return np.unique(self.numeric.truth, return_inverse=True)[1].astype(np.int32)


def encode_labels(
    declaration: Declaration | None,
    released: LabelColumn,
    truth: LabelColumn | None,
    coding: LabelCoding | None = None,
) -> EncodedLabels:
    """Find the classes and outputs, and code the labels by them.

    Parameters
    ----------
    declaration : Declaration or None
        Its ``classes`` and ``outputs`` are used in their order where it names them.
    released : LabelColumn
    truth : LabelColumn or None
    coding : LabelCoding, optional
        What the declared mechanism releases; default: labels.

    Raises
    ------
    InputError
        If a label lies outside of what is declared, there is one class only, or there are more
        classes than rows allow.
    """
    # Where the labels are declared, one released label for all is a result, and no mistake.
    constant = len(released.values) == 1 and not declared_labels(declaration, "classes")
    _check_two_values(not constant, truth is None or len(truth.values) > 1)
    domains = find_domains(declaration, released, truth, coding)
    _check_size(domains, len(released.codes))
    codes = released.coded(domains.outputs, "released label", "the declared outputs")
    return EncodedLabels(domains, codes, true_codes(truth, domains.classes))


def true_codes(truth: LabelColumn | None, classes: tuple[Label, ...]) -> IntArray | None:
    """Return the true labels as codes into the classes, None where they are not known.

    Raises
    ------
    InputError
        If a true label is not one of the declared classes.
    """
    return None if truth is None else truth.coded(classes, "true label", "the declared classes")


def encode_numeric_labels(
    view: NumericView, released: FloatArray, truth: FloatArray | None
) -> EncodedLabels:
    """Code the labels of a mechanism on numbers by its view.

    Raises
    ------
    InputError
        If a label lies outside of what is declared, or takes one value only.
    """
    _check_two_values(bool(np.ptp(released)), truth is None or bool(np.ptp(truth)))
    labels, outputs, classes = encode_numbers(view, released, truth)
    domains = Domains(labels.view.classes.names, labels.view.outputs.names)
    return EncodedLabels(domains, outputs, classes, labels)


def encode_reported(
    oracle: ReportReading, reports: Reports, truth: LabelColumn | None
) -> EncodedLabels:
    """Code the labels of reports: the released label is a most likely one.

    Ties are broken by draws that depend on nothing, so what holds for a function of the reports
    holds for these labels.

    Raises
    ------
    InputError
        If a true label is not one of the declared classes.
    """
    domains = Domains(oracle.classes, oracle.classes)
    released = oracle.labels(reports, child_generator(0, _TIES, "ties"))
    return EncodedLabels(domains, released, true_codes(truth, domains.classes))


def _check_two_values(*several: bool) -> None:
    for enough, role in zip(several, ("released", "true"), strict=True):
        if not enough:
            raise InputError(f"The {role} label must take at least two values; it takes one only.")


def find_domains(
    declaration: Declaration | None,
    released: LabelColumn,
    truth: LabelColumn | None,
    coding: LabelCoding | None = None,
) -> Domains:
    """Return the declared classes and outputs, or the sorted union of the labels that occur.

    Without a declaration, released and true labels with no value in common are kept apart: they
    are then outputs and classes of their own.
    """
    classes = declared_labels(declaration, "classes")
    outputs = declared_labels(declaration, "outputs")
    coding = PlainCoding(declaration) if coding is None else coding
    if coding.order_of_classes_matters and classes is None:
        raise InputError("A declared channel must name its classes, in the order of its rows.")
    apart = False
    if classes is None:
        classes, apart = _occurring(outputs, released, truth)
        if apart and coding.outputs_are_labels:
            raise InputError(
                "No true label has the value of any released label; write both in the same way, "
                "or declare the classes."
            )
    if outputs is None:
        outputs = classes if coding.outputs_are_labels else _outputs(classes, released)
    return Domains(classes, outputs, apart)


def declared_labels(declaration: Declaration | None, key: str) -> tuple[Label, ...] | None:
    """Return the declared ``classes`` or ``outputs``, None where they are not declared.

    Raises
    ------
    InputError
        If they are not a list of at least two different texts, numbers or booleans.
    """
    value: Any = None if declaration is None else _stated(declaration.parameters, key)
    if value is None:
        return None
    if not isinstance(value, list | tuple):
        raise InputError(f"The declared {key} must be a list. Got {type(value).__name__} instead.")
    labels = tuple(_plain(label, key) for label in value)
    least = 2 if key == "classes" else 1
    if len(labels) < least:
        raise InputError(f"There must be at least {least} declared {key}. Got {len(labels)}.")
    forms(labels, f"declared {key}")
    return labels


def _stated(parameters: Mapping[str, Any], key: str) -> Any:
    """Return what is stated of the labels; where each stratum states them, all of them once."""
    strata = parameters.get("strata")
    if key in parameters or not isinstance(strata, list | tuple):
        return parameters.get(key)
    parts = [one.get("mechanism") if isinstance(one, Mapping) else None for one in strata]
    lists: list[Any] = [part.get(key) if isinstance(part, Mapping) else None for part in parts]
    if not all(isinstance(labels, list | tuple) for labels in lists):
        return None
    known = {canonical(_plain(label, key)): label for labels in lists for label in labels}
    return list(known.values())


def _plain(label: Any, key: str) -> Label:
    if hasattr(label, "item") and not isinstance(label, str):
        label = label.item()
    finite = not isinstance(label, float) or abs(label) < float("inf")
    if not isinstance(label, str | int | float) or not finite:
        raise InputError(
            f"The declared {key} must be texts, finite numbers or booleans. "
            f"Got {type(label).__name__} among them."
        )
    return label


def _occurring(
    outputs: Sequence[Label] | None, released: LabelColumn, truth: LabelColumn | None
) -> tuple[tuple[Label, ...], bool]:
    check_not_continuous(released, "released")
    base = released.values if outputs is None else tuple(outputs)
    if truth is None:
        return in_order(base), False
    check_not_continuous(truth, "true")
    places = positions(truth.values, base)
    if (places < 0).all():
        return in_order(truth.values), True
    more = tuple(v for v, place in zip(truth.values, places, strict=True) if place < 0)
    return in_order(base + more), False


def _outputs(classes: tuple[Label, ...], released: LabelColumn) -> tuple[Label, ...]:
    if (positions(released.values, classes) >= 0).all():
        return classes
    check_not_continuous(released, "released")
    return in_order(released.values)


def _check_size(domains: Domains, rows: int) -> None:
    for labels, role in ((domains.classes, "true"), (domains.outputs, "released")):
        if len(labels) > most_classes(rows):
            raise too_many(role, len(labels), rows)
