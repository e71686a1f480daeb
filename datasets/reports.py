"""Releases that are no label in each row: one sum for each bag of rows, and local reports."""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.domains import (
    BagReading,
    Domains,
    EncodedLabels,
    ReportReading,
    Reports,
    read_numbers,
    true_codes,
)
from ldpaudit.datasets.formats.tables import LISTS, check_complete, decoded, is_any
from ldpaudit.datasets.labels import LabelColumn, read_labels
from ldpaudit.errors import InputError
from ldpaudit.release import Bags, FloatArray, IntArray, Label

# How far from a whole number a sum may be that was written as a proportion.
_ROUNDING: Final = 0.05
_SAME: Final = 1e-6
_OUTPUTS: Final = ("at most half of the bag", "more than half of the bag")


def read_bags(
    reading: BagReading, label: pa.ChunkedArray, bag: pa.ChunkedArray, truth: LabelColumn | None
) -> tuple[EncodedLabels, Bags]:
    """Read a release of bags: ``label`` holds the same proportion or sum in every row of a bag.

    The released codes say whether more than half of the bag has the second class.
    """
    bag = decoded(bag)
    check_complete(bag.null_count, len(bag), "a bag")
    encoded = bag.dictionary_encode().combine_chunks()
    members = encoded.indices.to_numpy().astype(np.int64)
    sizes = np.bincount(members, minlength=len(encoded.dictionary))
    single = int((sizes < 2).sum())
    if single:
        raise InputError(
            f"A bag must have at least 2 rows, since the sum of one label is the label; {single} "
            f"of {len(sizes)} bags have one."
        )
    values = read_numbers(label, "released")
    low, high = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
    np.minimum.at(low, members, values)
    np.maximum.at(high, members, values)
    differ = int((high - low > _SAME * np.maximum(np.abs(high), 1.0)).sum())
    if differ:
        raise InputError(
            f"Every row of a bag must hold the same released value; in {differ} of {len(sizes)} "
            "bags they differ."
        )
    sums: FloatArray = low * sizes if reading.statistic == "proportion" else low
    if reading.sums_are_whole:
        rounded, words = np.rint(sums), "a whole number of rows"
        off = np.abs(sums - rounded) > _ROUNDING
        if reading.sums_fit_the_bag:
            off |= (rounded < 0) | (rounded > sizes)
            words += " between 0 and the bag's size"
        if off.any():
            raise InputError(
                f"Every bag's released value, a proportion times the bag's size, must be {words}, "
                f"as declared; in {int(off.sum())} of {len(sums)} bags it is not."
            )
        sums = rounded
    released = (sums > sizes / 2).astype(np.int32)[members]
    codes = true_codes(truth, reading.classes)
    return EncodedLabels(Domains(reading.classes, _OUTPUTS), released, codes), Bags(members, sums)


def read_reports(column: pa.ChunkedArray, reading: ReportReading, *, from_text: bool) -> Reports:
    """Read a released column of reports, of shape (n, d): label codes or numbers.

    A report is a label, a list of labels (as many in every row), a list of numbers or booleans, or
    a struct with the fields ``seed`` and ``value``.
    """
    if reading.report_kind == "label":
        return reading.check(_codes(column, reading.classes, from_text)[:, None])
    check_complete(column.null_count, len(column), "a report")
    if pa.types.is_struct(column.type):
        if {field.name for field in column.type} != {"seed", "value"}:
            raise InputError("A report that is a struct must have the fields seed and value.")
        parts = [_numbers(pc.struct_field(column, name)) for name in ("seed", "value")]
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
    entries: Reports = _codes(flat, reading.classes, False) if labels else _numbers(flat)
    return reading.check(entries.reshape(len(column), -1))


def _check_whole(entries: pa.ChunkedArray) -> None:
    if entries.null_count:
        raise InputError(
            f"Every report must be complete; {entries.null_count} entries are missing."
        )


def _codes(column: pa.ChunkedArray, classes: tuple[Label, ...], from_text: bool) -> IntArray:
    labels = read_labels(column, "released", from_text=from_text)
    return labels.coded(classes, "reported label", "the declared classes")


def _numbers(column: pa.ChunkedArray) -> Reports:
    _check_whole(column)
    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.uint8()).to_numpy())
    if not is_any(column.type, "integer", "floating"):
        raise InputError("The entries of these reports must be numbers or booleans.")
    return np.asarray(column.to_numpy())
