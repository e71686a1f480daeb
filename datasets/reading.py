"""From a file or a table to a release that can be audited."""

import os
from collections.abc import Collection
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ldpaudit.datasets.batchwise.opening import Space, open_source, reading_of
from ldpaudit.datasets.beside.bags import bag_column, read_bags
from ldpaudit.datasets.beside.companions import open_beside
from ldpaudit.datasets.beside.groups import read_groups
from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.datasets.beside.leak_warnings import warnings_about
from ldpaudit.datasets.beside.local_reports import read_reports
from ldpaudit.datasets.beside.truth import Truth, read_truth, true_labels
from ldpaudit.datasets.coding import Coding, LabelCoding, PlainCoding, Reports
from ldpaudit.datasets.column_survey import ranks, survey_keys
from ldpaudit.datasets.declaration import agreed, parse_declaration
from ldpaudit.datasets.domains import (
    EncodedLabels,
    encode_labels,
    encode_numeric_labels,
    encode_reported,
)
from ldpaudit.datasets.formats.csv_file import small_csv
from ldpaudit.datasets.formats.tabular import TableSource
from ldpaudit.datasets.labels import LabelColumn, most_classes, read_labels
from ldpaudit.datasets.names import quoted
from ldpaudit.datasets.numbers import read_numbers
from ldpaudit.datasets.roles import Roles, assign_roles
from ldpaudit.datasets.sparse.table import SparseTable
from ldpaudit.errors import InputError
from ldpaudit.numeric_labels import NumericView
from ldpaudit.release import Bags, Declaration, Release, ReleasedLabels, TrueLabels
from ldpaudit.running.scratch import Scratch


@dataclass(frozen=True)
class ReadReport:
    """A release as it was read, and what its reader should know about it.

    Attributes
    ----------
    release : Release
    warnings : tuple of str
        Signs of a mistake, such as a true label left among the features. They hold no name and no
        value, so they may be shown in a report.
    test : LabelledRows or None
        The test rows, if any.
    """

    release: Release
    warnings: tuple[str, ...] = ()
    test: LabelledRows | None = None


def read_release(
    source: Any,
    *,
    label: str | None = None,
    truth: Any = None,
    truth_column: str | None = None,
    id_column: str | None = None,
    group: str | None = None,
    drop: Collection[str] = (),
    features: Collection[str] | None = None,
    declaration: Declaration | None = None,
    coding: Coding = PlainCoding,
    original: Any = None,
    synthetic: Any = None,
    held_out: Any = None,
    test: Any = None,
    public: Any = None,
    projection: int | None = None,
    memory: int | None = None,
    scratch: Scratch | None = None,
) -> ReadReport:
    """Read a release, and its true labels where they are given.

    Parameters
    ----------
    source : str, os.PathLike, pandas.DataFrame or pyarrow.Table
        A Parquet file, a folder or a pattern of Parquet files, a CSV file (also ``.csv.gz``), an
        svmlight file (``.svm``, ``.libsvm``, also with ``.gz``), the URL of any of them, a table in
        memory, or a pair of a SciPy sparse matrix and labels. n rows.
    label : str, optional
        The released label's column; default: the declared one, else ``"label"``.
    truth : path, table, Series or array of shape (n,), optional
        The true labels, in the same row order or joined on ``id_column``.
    truth_column : str, optional
        With ``truth`` its column of labels; without it the column of the release that holds the
        true labels.
    id_column : str, optional
        The column of row ids: no feature, and the key of the join. Rows with one id belong
        together, where no ``group`` is given.
    group : str, optional
        The column of rows that belong together, such as a household; no feature.
    drop, features : collections of str, optional
        Columns to leave out; the only columns to use.
    declaration : Declaration, optional
        The claim; it must agree with the file's, where it has one.
    coding : callable, optional
        Gives, for a claim, how the labels of its mechanism are coded; default: as labels.
    original : path or table, optional
        The original features, in the same row order or joined on ``id_column``.
    synthetic : path or table, optional
        The synthetic rows that features were replaced with, with the column ``label``.
    held_out : path or table, optional
        Rows of the same population that no generator was trained on; only features are read.
    test : path or table, optional
        Rows outside of the release with true labels, in the column ``label``.
    public : path or table, optional
        Public rows with labels, in the column ``label``, for the observational audit.
    projection : int, optional
        Of a sparse release, the columns that its features become; default: 256.
    memory : int, optional
        The most bytes of memory to use; default: half of the machine's.
    scratch : Scratch, optional
        Where features go that do not fit in memory; default: a folder of its own.

    Returns
    -------
    ReadReport

    Raises
    ------
    InputError
        One line about what is wrong; it may name a column, never a value.
    """
    table = open_source(source, projection)
    before = table.stamp()
    declared = None if table.declaration is None else parse_declaration(table.declaration)
    claim = agreed(None if declared is None else declared.mechanism, declaration)
    mechanism = coding(claim)
    if isinstance(table, SparseTable) and (label or declared):
        table.call_label(label or (table.names[0] if declared is None else declared.label))
    bag = bag_column(mechanism.bags, table.names)
    roles = assign_roles(
        table.names,
        label=label,
        declared_label=None if declared is None else declared.label,
        truth_column=truth_column if truth is None else None,
        id_column=id_column,
        group=group,
        drop=drop if bag is None else (*drop, bag),
        features=features,
    )
    sources = {"original": original, "synthetic": synthetic, "test": test, "public": public}
    sources |= {"held-out": held_out}
    used = {*roles.special, *roles.features, bag}
    rest = tuple(name for name in table.names if name not in used)
    space = Space(memory, scratch or Scratch())
    reading = reading_of(
        *(table, roles, rest, partial(_coded, mechanism, roles)),
        space=space,
        alone=all(one is None for one in sources.values()),
    )
    special = reading.special
    column = special[roles.label]
    if not len(column):
        raise InputError(f"The release {quoted(table.name)} has no rows.")
    _check_same_index(source, truth, id_column)
    view = mechanism.view(len(column))
    known = _truth(table, special, roles, truth, truth_column, view is not None)
    labels, reports, bags = _labels(table, mechanism, view, claim, column, known)
    space.check(len(column), len(roles.features), len(labels.domains.classes))
    beside = open_beside(sources, len(column), roles, special)
    encoded, tables, columns = reading.encoded(beside)
    keys = {name: special[name] for name in roles.keys}
    features_read = encoded.table()
    release = tables.beside(
        Release(
            features=features_read,
            released=ReleasedLabels(labels.released),
            outputs=labels.domains.outputs,
            classes=labels.domains.classes,
            truth=None if labels.truth is None else TrueLabels(labels.truth),
            declaration=claim,
            name=table.name,
            label=roles.label,
            sha256=table.sha256(),
            numeric=labels.numeric,
            reports=reports,
            bags=bags,
            columns=columns + survey_keys(keys, features_read.width),
            keys=tuple(ranks(column) for column in keys.values()),
            holds_truth=roles.truth is not None,
            left_out=len(rest),
            groups=read_groups(special, group, roles.identifier),
            sketch=table.sketch if isinstance(table, SparseTable) else None,
        )
    )
    if table.stamp() != before:
        raise InputError(f"The file {quoted(table.name)} changed while it was being read.")
    warnings = warnings_about(known, labels, encoded, table.names, roles)
    warnings += [] if declared is None else declared.remarks()
    return ReadReport(release, tuple(warnings), tables.test_rows(release))


def read_channel(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a channel from a CSV file, as a declaration states it.

    Parameters
    ----------
    path : str or os.PathLike
        Rows are true labels and columns outputs: the header names the outputs, the first column
        the true labels, and each other cell is P(output | label).

    Returns
    -------
    dict
        ``classes``, ``outputs`` and ``matrix`` as lists.

    Raises
    ------
    InputError
        If the file is not a rectangle of numbers with names around it. Whether the rows sum to 1
        is checked where the mechanism is built.
    """
    file, rows = small_csv(path, "The channel")
    if len(rows) < 2 or len(rows) > most_classes(10**9):
        raise InputError(f"A channel must have 2 to 1000 labels, one per row. Got {len(rows)}.")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(file.names):
            raise InputError(
                f"A channel must be rectangular: its header has {len(file.names)} fields, row "
                f"{number} has {len(row)}."
            )
    matrix = [_probabilities(row[1:], number) for number, row in enumerate(rows, start=1)]
    names = {"classes": [row[0] for row in rows], "outputs": list(file.names[1:])}
    return {**names, "matrix": matrix}


def _probabilities(cells: list[str], number: int) -> list[float]:
    try:
        return [float(cell) for cell in cells]
    except ValueError:
        raise InputError(f"Row {number} of the channel must hold numbers after its name.") from None


def _coded(mechanism: LabelCoding, roles: Roles, rows: int) -> tuple[str, ...]:
    """Return the columns that hold one of few labels in each of the rows."""
    if mechanism.bags or mechanism.reports or mechanism.view(rows) is not None:
        return ()
    return tuple(name for name in (roles.label, roles.truth) if name is not None)


def _labels(
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


def _truth(
    table: TableSource,
    special: dict[str, pa.ChunkedArray],
    roles: Roles,
    source: Any,
    truth_column: str | None,
    numeric: bool,
) -> Truth | None:
    if source is not None:
        return read_truth(
            source,
            len(special[roles.label]),
            label=roles.label,
            truth_column=truth_column,
            id_column=roles.identifier,
            identifiers=None if roles.identifier is None else special[roles.identifier],
            numeric=numeric,
        )
    if roles.truth is None:
        return None
    column = special[roles.truth]
    return Truth(true_labels(column, numeric=numeric, from_text=table.text), roles.truth)


def _check_same_index(source: Any, truth: Any, id_column: str | None) -> None:
    """Check that two pandas objects that are matched by row order have the same index."""
    ours: Any = getattr(source, "index", None)
    theirs: Any = getattr(truth, "index", None)
    if id_column is not None or not hasattr(ours, "equals") or not hasattr(theirs, "equals"):
        return
    if len(ours) == len(theirs) and not ours.equals(theirs):
        raise InputError(
            "The release and the true labels have different indices, so their rows may not "
            "belong together; reset both indices, or join on an id column."
        )
