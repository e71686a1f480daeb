"""From a file or a table to several private columns that can be audited together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ldpaudit.datasets.batchwise.opening import open_source
from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.datasets.beside.truth import named_truth, open_truth
from ldpaudit.datasets.declaration import agreed_vectors, parse_declaration
from ldpaudit.datasets.declaration.columns import Marginals, claims_of
from ldpaudit.datasets.formats.watching import unchanged
from ldpaudit.datasets.names import missing_column
from ldpaudit.datasets.reading import ReadReport, check_same_index, read_release
from ldpaudit.datasets.sparse.table import SparseTable
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import ColumnsDeclaration, FileColumns, LabelDeclaration, Release


@dataclass(frozen=True)
class ColumnsReport:
    """Several private columns as they were read, and what their reader should know about them.

    Attributes
    ----------
    file : FileColumns
    warnings : tuple of str
        Signs of a mistake; what holds of one column only says which, by its number in order.
    tests : tuple of LabelledRows or None, length d
        The test rows of each column, if any.
    remarks : tuple of str
        How files are read, in words, where that was found out and is not usual.
    people : void array of shape (n,) or None
        As of :class:`~ldpaudit.datasets.reading.ReadReport`.
    """

    file: FileColumns
    warnings: tuple[str, ...] = ()
    tests: tuple[LabelledRows | None, ...] = ()
    remarks: tuple[str, ...] = ()
    people: npt.NDArray[np.void] | None = None


@unchanged()
def read_file_columns(
    source: Any,
    *,
    labels: Collection[str] | None = None,
    declaration: ColumnsDeclaration | None = None,
    truth: Any = None,
    truth_column: Collection[str] | str | None = None,
    drop: Collection[str] = (),
    features: Collection[str] | None = None,
    marginals: Marginals | None = None,
    files: FileOptions = AS_FOUND,
    projection: int | None = None,
    **others: Any,
) -> ColumnsReport:
    """Read several private columns of one release, each with the others among its features.

    Parameters
    ----------
    source : str, os.PathLike, pandas.DataFrame or pyarrow.Table
        n rows; see :func:`~ldpaudit.datasets.read_release`.
    labels : collection of str, optional
        The private columns; default: the declared ones.
    declaration : ColumnsDeclaration, optional
        The claims; they must agree with the file's, where it has some.
    truth : path or table, optional
        The true values: a column of the same name for each private column.
    truth_column : collection of str, optional
        The columns of the true values, one for each private column in order; with ``truth`` there,
        without it in the release.
    drop, features : collections of str, optional
        Public columns to leave out; the only ones to use. Released columns always stay.
    marginals : callable, optional
        Gives for a joint mechanism the exact claim about each of its columns.
    files, projection, others
        As :func:`~ldpaudit.datasets.read_release` takes them.

    Raises
    ------
    InputError
        One line about what is wrong; it holds no name and no value of the file.
    """
    table = open_source(source, projection, files)
    if isinstance(table, SparseTable):
        raise InputError("A sparse release (svmlight, SciPy) has one label; audit it alone.")
    check_same_index(source, truth, others.get("id_column"))
    of_file = None if table.declaration is None else parse_declaration(table.declaration)
    claim = agreed_vectors(of_file, declaration)
    asked = _names(labels, claim)
    truths = dict(zip(asked, _truth_columns(asked, truth, truth_column, files), strict=True))
    hidden = [] if truth is not None else [name for name in truths.values() if name is not None]
    claim = None if claim is None else claim.only(asked)
    names = asked if claim is None else claim.names  # A joint mechanism has an order of its own.
    for name in names:
        if name not in table.names:
            declared = of_file is not None and name in of_file.names
            raise missing_column(name, "label", table.names, typed=not declared)
    columns = _columns(names, claim, marginals)
    reports = [
        read_release(
            table,
            label=one.label,
            declaration=one.mechanism,
            by=one.by,
            private=names,
            truth=truth,
            truth_column=truths[one.label],
            drop=(*drop, *(name for name in hidden if name != truths[one.label])),
            features=None if features is None else _with_others(features, one.label, names),
            marginals=marginals,
            files=files,
            **others,
        )
        for one in columns
    ]
    return _together(reports, names, claim)


def _names(labels: Collection[str] | None, claim: ColumnsDeclaration | None) -> tuple[str, ...]:
    names = tuple(labels) if labels else (claim.names if claim is not None else ())
    if len(set(names)) < len(names):
        raise InputError("Each private column (--label) must be named once.")
    if len(names) < 2:
        raise InputError(
            f"At least two private columns must be named (--label) or declared. Got {len(names)}."
        )
    return names


def _columns(
    names: Sequence[str], claim: ColumnsDeclaration | None, marginals: Marginals | None
) -> tuple[LabelDeclaration, ...]:
    if claim is None:
        return tuple(LabelDeclaration(name) for name in names)
    claims = {one.label: one for one in claims_of(claim, marginals)}
    return tuple(claims[name] for name in names)


def _truth_columns(
    names: Sequence[str],
    truth: Any,
    columns: Collection[str] | str | None,
    files: FileOptions,
) -> tuple[str | None, ...]:
    """Return the column of each private column's true values."""
    given = (columns,) if isinstance(columns, str) else tuple(columns or ())
    if given and len(set(given)) != len(names):
        raise InputError(
            f"Name a different column of true values (--truth-column) for each of the {len(names)} "
            f"private columns, in their order. Got {len(set(given))}."
        )
    if truth is None:
        return given or (None,) * len(names)
    table, bare = open_truth(truth, files)
    if bare:
        raise InputError("The truth of several private columns must be a table that names them.")
    wanted = given or tuple(named_truth(table.names, name) or name for name in names)
    for place, name in enumerate(wanted, start=1):
        if name not in table.names and given:
            raise missing_column(name, "true label", table.names)
        if name not in table.names:
            raise InputError(
                "The truth must have a column of the same name for each private column; column "
                f"{place} of {len(wanted)} has none."
            )
    return wanted


def _with_others(features: Collection[str], label: str, names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name in features:
            raise InputError("A private column must not be a feature (--features) as well.")
    return (*features, *(name for name in names if name != label))


def _together(
    reports: Sequence[ReadReport], names: Sequence[str], claim: ColumnsDeclaration | None
) -> ColumnsReport:
    declared = reports[0].release.declared
    columns = tuple(replace(report.release, declared=None) for report in reports)
    others = tuple(_places(release, names) for release in columns)
    first = columns[0]
    file = FileColumns(columns, others, claim, first.name, first.sha256, declared)
    remarks = dict.fromkeys(remark for report in reports for remark in report.remarks)
    tests = tuple(report.test for report in reports)
    return ColumnsReport(file, _warnings(reports), tests, tuple(remarks), reports[0].people)


def _places(release: Release, names: Sequence[str]) -> tuple[int, ...]:
    """Return the places of the other private columns among the arrays of the features."""
    others = [c for c in release.columns if c.name in names and c.name != release.label]
    return tuple(sorted(place for column in others for place in column.arrays))


def _warnings(reports: Sequence[ReadReport]) -> tuple[str, ...]:
    """Return what holds of all columns once, and what holds of some with their numbers."""
    said: dict[str, list[int]] = {}
    for number, report in enumerate(reports, start=1):
        for text in report.warnings:
            said.setdefault(text, []).append(number)
    return tuple(
        text if len(at) == len(reports) else f"Private column {', '.join(map(str, at))}: {text}"
        for text, at in said.items()
    )
