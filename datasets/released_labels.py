"""The labels of a release, released and true, as its mechanism means them."""

from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.beside.bags import read_bags
from ldpaudit.datasets.beside.local_reports import read_reports
from ldpaudit.datasets.beside.truth import Truth, read_truth, true_labels
from ldpaudit.datasets.coding import LabelCoding, Reports
from ldpaudit.datasets.domains import (
    EncodedLabels,
    encode_labels,
    encode_numeric_labels,
    encode_reported,
)
from ldpaudit.datasets.formats.tabular import TableSource
from ldpaudit.datasets.labels import LabelColumn, read_labels
from ldpaudit.datasets.numbers import read_numbers
from ldpaudit.datasets.roles import Roles
from ldpaudit.numeric_labels import NumericView
from ldpaudit.options import FileOptions
from ldpaudit.release import Bags, Declaration


def coded(mechanism: LabelCoding, roles: Roles, rows: int) -> tuple[str, ...]:
    """Return the columns that hold one of few labels in each of the rows."""
    if mechanism.bags or mechanism.reports or mechanism.view(rows) is not None:
        return ()
    return tuple(name for name in (roles.label, roles.truth) if name is not None)


def labels_of(
    table: TableSource,
    mechanism: LabelCoding,
    view: NumericView | None,
    claim: Declaration | None,
    column: pa.ChunkedArray,
    truth: Truth | None,
) -> tuple[EncodedLabels, Reports | None, Bags | None]:
    """Return the labels as codes, and the recorded reports or the bags' sums, if any."""
    known = None if truth is None else truth.labels
    classes = known if isinstance(known, LabelColumn) else None
    if mechanism.bags is not None:
        bag = mechanism.bags.bag
        members = next(table.columns((bag,), as_text=(bag,)))[1]
        labels, bags = read_bags(mechanism.bags, column, members, classes)
        return labels, None, bags
    if mechanism.reports is not None:
        reports = read_reports(column, mechanism.reports, from_text=table.text)
        return encode_reported(mechanism.reports, reports, classes), reports, None
    if view is not None:
        numbers = known if isinstance(known, np.ndarray) else None
        labels = encode_numeric_labels(view, read_numbers(column, "released"), numbers)
        return labels, None, None
    released = read_labels(column, "released", from_text=table.text)
    return encode_labels(claim, released, classes, mechanism), None, None


def truth_of(
    table: TableSource,
    special: dict[str, pa.ChunkedArray],
    roles: Roles,
    source: Any,
    truth_column: str | None,
    numeric: bool,
    files: FileOptions,
) -> Truth | None:
    """Return the true labels, of another file or of a column of the release, if there are any."""
    if source is not None:
        return read_truth(
            source,
            len(special[roles.label]),
            label=roles.label,
            truth_column=truth_column,
            id_column=roles.identifier,
            identifiers=None if roles.identifier is None else special[roles.identifier],
            numeric=numeric,
            files=files,
        )
    if roles.truth is None:
        return None
    column = special[roles.truth]
    return Truth(true_labels(column, numeric=numeric, from_text=table.text), roles.truth)
