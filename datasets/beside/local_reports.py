"""Columns of recorded local reports: labels, lists of labels, lists of numbers, or structs."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.coding import ReportReading, Reports
from ldpaudit.datasets.formats.columns import LISTS, check_complete, is_any
from ldpaudit.datasets.labels import read_labels
from ldpaudit.errors import InputError
from ldpaudit.release import IntArray, Label


def read_reports(column: pa.ChunkedArray, reading: ReportReading, *, from_text: bool) -> Reports:
    """Read a released column of reports.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of n reports
        A label, a list of labels (as many in every row), a list of numbers or booleans, or a
        struct with the fields ``seed`` and ``value``.
    reading : ReportReading
    from_text : bool
        Whether the column comes from a text file; only reports that are labels can.

    Returns
    -------
    array of shape (n, d)
        Label codes or numbers, checked by the protocol.

    Raises
    ------
    InputError
        If a report is missing, of another kind, or not one of the protocol's.
    """
    if reading.report_kind == "label":
        return reading.check(_codes(column, reading.classes, from_text)[:, None])
    check_complete(column.null_count, len(column), "a report")
    flat, width = _entries(column)
    _check_whole(flat)
    labels = reading.report_kind == "labels"
    entries: Reports = _codes(flat, reading.classes, False) if labels else _numbers(flat)
    return reading.check(entries.reshape(len(column), width))


def _check_whole(entries: pa.ChunkedArray) -> None:
    if entries.null_count:
        raise InputError(f"Every report must be whole; {entries.null_count} entries are missing.")


def _codes(column: pa.ChunkedArray, classes: tuple[Label, ...], from_text: bool) -> IntArray:
    labels = read_labels(column, "released", from_text=from_text)
    return labels.coded(classes, "reported label", "the declared classes")


def _entries(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Return all entries in a row and how many a report has."""
    if pa.types.is_struct(column.type):
        return _fields(column)
    if not is_any(column.type, *LISTS):
        raise InputError(
            "The declared protocol's reports must be lists or structs; the released column holds "
            "single values."
        )
    lengths = pc.unique(pc.list_value_length(column)).to_pylist()
    if len(lengths) != 1 or not lengths[0]:
        raise InputError(
            f"Every report must have the same number of entries; {len(lengths)} different numbers "
            f"occur."
        )
    return pc.list_flatten(column), int(lengths[0])


def _fields(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    names = {field.name for field in column.type}
    if names != {"seed", "value"}:
        raise InputError("A report that is a struct must have the fields seed and value.")
    parts = [_numbers(pc.struct_field(column, name)) for name in ("seed", "value")]
    return pa.chunked_array([pa.array(np.column_stack(parts).ravel())]), 2


def _numbers(column: pa.ChunkedArray) -> Reports:
    _check_whole(column)
    if pa.types.is_boolean(column.type):
        return np.asarray(column.cast(pa.uint8()).to_numpy())
    if not is_any(column.type, "integer", "floating"):
        raise InputError("The entries of these reports must be numbers or booleans.")
    return np.asarray(column.to_numpy())
