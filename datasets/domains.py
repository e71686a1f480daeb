"""The labels that can occur: the declared classes and outputs, or those in the data."""

# Readers know no mechanism; whoever calls them hands over what it says of labels (a
# ``LabelCoding``).

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.formats.tables import LISTS, TEXTS, check_complete, decoded, is_any
from ldpaudit.datasets.labels import (
    LabelColumn,
    canonical,
    check_inside,
    check_not_continuous,
    forms,
    in_order,
    most_classes,
    positions,
    read_labels,
    spelt_otherwise,
    too_many,
)
from ldpaudit.errors import InputError
from ldpaudit.numeric_labels import NumericLabels, NumericView
from ldpaudit.randomness import child_generator
from ldpaudit.release import Declaration, FloatArray, IntArray, Label

# Reports of n people, shape (n, d); what the d entries are is the protocol's.
Reports = npt.NDArray[Any]


class ReportReading(Protocol):
    """What the declared protocol says about its reports."""

    @property
    def classes(self) -> tuple[Label, ...]:
        """The labels."""

    @property
    def report_kind(self) -> Literal["label", "labels", "numbers"]:
        """How the column holds a report."""

    def check(self, reports: Reports) -> Reports:
        """Return reports of shape (n, d), or raise where some are not the protocol's."""

    def labels(self, reports: Reports, rng: np.random.Generator) -> IntArray:
        """Return a most likely label's code for each report, ties broken at random."""


class BagReading(Protocol):
    """What the declared mechanism says about the sums of its bags."""

    bag: str
    classes: tuple[Label, ...]
    statistic: str

    @property
    def sums_are_whole(self) -> bool:
        """Whether every released sum is a whole number."""

    @property
    def sums_fit_the_bag(self) -> bool:
        """Whether every released sum lies between 0 and the bag's size."""


class LabelCoding(Protocol):
    """How the labels of a declared mechanism are coded."""

    @property
    def outputs_are_labels(self) -> bool:
        """Whether what is released is one of the labels, unless outputs are declared."""

    @property
    def order_of_classes_matters(self) -> bool:
        """Whether the classes must be declared: they are the rows of a matrix."""

    @property
    def bags(self) -> BagReading | None:
        """How sums of bags are read; None where each row is released by itself."""

    @property
    def reports(self) -> ReportReading | None:
        """How reports are read that are no labels; None for a mechanism that releases labels."""

    def view(self, rows: int) -> NumericView | None:
        """Return how labels that are numbers are coded; None for a mechanism on classes."""


Coding = Callable[[Declaration | None], LabelCoding]


@dataclass(frozen=True)
class PlainCoding:
    """Released labels are labels; without a declaration nothing is known of them."""

    declaration: Declaration | None
    order_of_classes_matters: bool = False
    bags: None = None
    reports: None = None

    @property
    def outputs_are_labels(self) -> bool:
        """Whether there is a declaration."""
        return self.declaration is not None

    def view(self, rows: int) -> None:
        """Return None: labels are no numbers."""


# Part of the key by which ties between most likely labels are drawn.
_TIES: Final = "frequency-oracle"
# Of true labels that are numbers, rows of a group.
_LEAST_GROUP, _LEAST_SHARE = 20, 0.002


@dataclass(frozen=True)
class Domains:
    """The labels that can occur: the values of a true label, and those of a released one."""

    classes: tuple[Label, ...]
    outputs: tuple[Label, ...]
    apart: bool = False
    """Whether the two were kept apart because, undeclared, they have no value in common."""


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

    The declaration's ``classes`` and ``outputs`` are used in their order where it names them;
    ``coding``: what the declared mechanism releases; default: labels.
    Where the labels are declared, one released label for all is a result, and no mistake.
    """
    constant = len(released.values) == 1 and not declared_labels(declaration, "classes")
    _check_two_values(not constant, truth is None or len(truth.values) > 1)
    domains, rows = find_domains(declaration, released, truth, coding), len(released.codes)
    for labels, role in ((domains.classes, "true"), (domains.outputs, "released")):
        if len(labels) > most_classes(rows):
            raise too_many(role, len(labels), rows)
    codes = released.coded(domains.outputs, "released label", "the declared outputs")
    return EncodedLabels(domains, codes, true_codes(truth, domains.classes))


def true_codes(truth: LabelColumn | None, classes: tuple[Label, ...]) -> IntArray | None:
    """Return the true labels as codes into the declared classes (InputError), None without any."""
    return None if truth is None else truth.coded(classes, "true label", "the declared classes")


def encode_reported(
    oracle: ReportReading, reports: Reports, truth: LabelColumn | None
) -> EncodedLabels:
    """Code the labels of reports: the released label is a most likely one."""
    # Ties are broken by draws that depend on nothing, so what holds for a function of the reports
    # holds for these labels.
    domains = Domains(oracle.classes, oracle.classes)
    released = oracle.labels(reports, child_generator(0, _TIES, "ties"))
    return EncodedLabels(domains, released, true_codes(truth, domains.classes))


_REPLAY: Final = (
    " If privatize wrote the release with --secret, its noise is drawn again by ldpaudit verify "
    "RELEASE --truth TRUTH, whatever the labels are; without --truth the release alone is audited."
)


def _check_two_values(*several: bool) -> None:
    for enough, role in zip(several, ("released", "true"), strict=True):
        if not enough:
            raise InputError(
                f"The {role} label must take at least two values; it takes one only."
                f"{_REPLAY if role == 'true' else ''}"
            )


def find_domains(
    declaration: Declaration | None,
    released: LabelColumn,
    truth: LabelColumn | None,
    coding: LabelCoding | None = None,
) -> Domains:
    """Return the declared classes and outputs, or the sorted union of the labels that occur."""
    # Without a declaration, released and true labels with no value in common are kept apart: they
    # are then outputs and classes of their own.
    classes, outputs = (declared_labels(declaration, key) for key in ("classes", "outputs"))
    coding, apart = PlainCoding(declaration) if coding is None else coding, False
    if coding.order_of_classes_matters and classes is None:
        raise InputError("A declared channel must name its classes, in the order of its rows.")
    if classes is None:
        check_not_continuous(released, "released")
        base = released.values if outputs is None else outputs
        classes = in_order(base)
        if truth is not None:
            check_not_continuous(truth, "true")
            if why := spelt_otherwise(truth, base):
                raise InputError(
                    "True and released labels must be spelt in the same way: of the true labels "
                    f"{why}. Write them in one way."
                )
            places = positions(truth.values, base)
            apart = bool((places < 0).all())
            more = (v for v, place in zip(truth.values, places, strict=True) if place < 0)
            classes = in_order(truth.values if apart else (*base, *more))
        if apart and coding.outputs_are_labels:
            raise InputError(
                "No true label has the value of any released label; write both in the same way, "
                "or declare the classes."
            )
    others = outputs is None and not coding.outputs_are_labels
    if others and (positions(released.values, classes) < 0).any():
        check_not_continuous(released, "released")
        outputs = in_order(released.values)
    return Domains(classes, classes if outputs is None else outputs, apart)


def declared_labels(declaration: Declaration | None, key: str) -> tuple[Label, ...] | None:
    """Return the declared ``classes`` or ``outputs``, None where they are not declared."""
    # Where each stratum states them, they are all of these once.
    parameters: Mapping[str, Any] = {} if declaration is None else declaration.parameters
    value, strata = parameters.get(key), parameters.get("strata")
    if key not in parameters and isinstance(strata, list | tuple):
        parts = [one.get("mechanism") if isinstance(one, Mapping) else None for one in strata]
        lists: list[Any] = [part.get(key) if isinstance(part, Mapping) else None for part in parts]
        if all(isinstance(labels, list | tuple) for labels in lists):
            every = (_plain(label, key) for labels in lists for label in labels)
            value = list({canonical(label): label for label in every}.values())
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


def read_numbers(column: pa.ChunkedArray, role: str) -> FloatArray:
    """Read a column of numeric labels, or of texts that write them, float64 of shape (n,).

    ``role``: ``"released"`` or ``"true"`` (InputError if one is missing, infinite or no number).
    """
    column = decoded(column)
    try:
        if is_any(column.type, "boolean", "temporal"):
            raise pa.ArrowInvalid
        if is_any(column.type, *TEXTS):
            column = pc.utf8_trim_whitespace(column)
        # No mechanism has labels among the integers that float64 rounds.
        numbers = column.cast(pa.float64(), safe=not pa.types.is_integer(column.type))
    except pa.ArrowException:
        raise InputError(
            f"The declared mechanism releases numbers, so every {role} label must be a number."
        ) from None
    missing = numbers.null_count + (pc.sum(pc.is_nan(numbers)).as_py() or 0)
    check_complete(missing, len(numbers), f"a {role} label")
    values = np.asarray(numbers.to_numpy(), dtype=np.float64)
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise InputError(
            f"A {role} label must be finite; it is infinite in {infinite:,} of {len(values):,}."
        )
    return values


def encode_numeric_labels(
    view: NumericView, released: FloatArray, truth: FloatArray | None
) -> EncodedLabels:
    """Code the labels of a mechanism on numbers by its view."""
    # Groups of true labels that hold few people are merged with their neighbours: how labels are
    # grouped may depend on the true ones, but not on the released ones.
    _check_two_values(bool(np.ptp(released)), truth is None or bool(np.ptp(truth)))
    outputs, classes = view.outputs.codes(released), None
    check_inside(outputs, "released label", "the declared outputs")
    if truth is not None:
        classes, rows = view.classes.codes(truth), len(truth)
        check_inside(classes, "true label", "the declared labels")
        if view.classes.grouped:
            least = max(_LEAST_GROUP, int(_LEAST_SHARE * rows))
            if rows < 2 * least:
                raise InputError(
                    f"{rows:,} rows can support at most {most_classes(rows)} labels, too few for a "
                    f"numeric mechanism; at least {2 * least} rows are needed."
                )
            counts = np.bincount(classes, minlength=len(view.classes)).astype(np.int64)
            view = NumericView(view.classes.merged(counts, least), view.outputs)
            classes = view.classes.codes(truth)
    domains = Domains(view.classes.names, view.outputs.names)
    return EncodedLabels(domains, outputs, classes, NumericLabels(view, released, truth))


@dataclass(frozen=True, eq=False)
class ReadReports:
    """Reports of n people, each of shape (n, d).

    ``checked``: in the protocol's own type; ``as_read``: label codes or numbers as they stand in
    the column, which may say more; None where it is the same.
    """

    checked: Reports
    as_read: Reports | None


def read_reports(
    column: pa.ChunkedArray, reading: ReportReading, *, from_text: bool
) -> ReadReports:
    """Read a released column of reports."""
    # A report is a label, a list of labels (as many in every row), a list of numbers or booleans,
    # or a struct with the fields ``seed`` and ``value``.
    if reading.report_kind == "label":
        return _read(_report_codes(column, reading.classes, from_text)[:, None], reading)
    check_complete(column.null_count, len(column), "a report")
    if pa.types.is_struct(column.type):
        if {field.name for field in column.type} != {"seed", "value"}:
            raise InputError("A report that is a struct must have the fields seed and value.")
        parts = [_report_numbers(pc.struct_field(column, name)) for name in ("seed", "value")]
        flat = pa.chunked_array([pa.array(np.column_stack(parts).ravel())])
    elif is_any(column.type, *LISTS):
        lengths = pc.unique(pc.list_value_length(column)).to_pylist()
        if len(lengths) != 1 or not lengths[0]:
            raise InputError(
                f"Every report must have the same number of entries; {len(lengths)} different "
                "numbers occur."
            )
        flat = pc.list_flatten(column)
    else:
        raise InputError(
            "The declared protocol's reports must be lists or structs; the released column holds "
            "single values."
        )
    _check_whole(flat)
    labels = reading.report_kind == "labels"
    entries: Reports = (
        _report_codes(flat, reading.classes, False) if labels else _report_numbers(flat)
    )
    return _read(entries.reshape(len(column), -1), reading)


def _read(entries: Reports, reading: ReportReading) -> ReadReports:
    checked = reading.check(entries)
    return ReadReports(checked, None if np.array_equal(checked, entries) else entries)


def _check_whole(entries: pa.ChunkedArray) -> None:
    if entries.null_count:
        raise InputError(
            f"Every report must be complete; {entries.null_count} entries are missing."
        )


def _report_codes(column: pa.ChunkedArray, classes: tuple[Label, ...], from_text: bool) -> IntArray:
    labels = read_labels(column, "released", from_text=from_text)
    return labels.coded(classes, "reported label", "the declared classes")


def _report_numbers(column: pa.ChunkedArray) -> Reports:
    _check_whole(column)
    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.uint8()).to_numpy())
    if not is_any(column.type, "integer", "floating"):
        raise InputError("The entries of these reports must be numbers or booleans.")
    return np.asarray(column.to_numpy())
