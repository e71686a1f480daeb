"""From a file or a table to a release that can be audited."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from ldpaudit.datasets.batchwise.opening import Space, open_source, reading_of
from ldpaudit.datasets.beside.bags import bag_column
from ldpaudit.datasets.beside.companions import open_beside
from ldpaudit.datasets.beside.groups import read_groups
from ldpaudit.datasets.beside.labelled_rows import LabelledRows
from ldpaudit.datasets.beside.leak_warnings import twin_warnings, warnings_about
from ldpaudit.datasets.beside.strata import read_strata
from ldpaudit.datasets.coding import Coding, PlainCoding
from ldpaudit.datasets.column_survey import ranks, survey_keys
from ldpaudit.datasets.declaration import agreed, parse_declaration
from ldpaudit.datasets.declaration.columns import Marginals, claim_about
from ldpaudit.datasets.declaration.provenance import remarks_on
from ldpaudit.datasets.formats.watching import unchanged
from ldpaudit.datasets.names import column_of, quoted
from ldpaudit.datasets.released_labels import coded, labels_of, truth_of
from ldpaudit.datasets.roles import assign_roles
from ldpaudit.datasets.sparse.table import SparseTable
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import (
    Declaration,
    DeclaredColumns,
    Release,
    ReleasedLabels,
    TrueLabels,
)
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
    remarks : tuple of str
        How files are read, in words, where that was found out and is not usual.
    people : array of shape (n,) or None
        What ``keyed`` made of the ids; None where it was not asked for.
    """

    release: Release
    warnings: tuple[str, ...] = ()
    test: LabelledRows | None = None
    remarks: tuple[str, ...] = ()
    people: npt.NDArray[Any] | None = field(default=None, repr=False)


@unchanged()
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
    by: str | None = None,
    private: Collection[str] = (),
    coding: Coding = PlainCoding,
    marginals: Marginals | None = None,
    original: Any = None,
    synthetic: Any = None,
    held_out: Any = None,
    test: Any = None,
    public: Any = None,
    projection: int | None = None,
    files: FileOptions = AS_FOUND,
    memory: int | None = None,
    scratch: Scratch | None = None,
    keyed: Callable[[pa.ChunkedArray], npt.NDArray[Any]] | None = None,
) -> ReadReport:
    """Read a release, and its true labels where they are given.

    Parameters
    ----------
    source : str, os.PathLike, pandas.DataFrame or pyarrow.Table
        A Parquet file, a folder or a pattern of Parquet files, a CSV file (also ``.csv.gz``), JSON
        lines, Feather, Excel, ``.npz`` or svmlight, the URL of any of them, a table in memory, or a
        pair of a SciPy sparse matrix and labels. n rows.
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
    by : str, optional
        The public column that tells the strata of the claim; default: the declared one.
    private : collection of str, optional
        Further private columns: features here, and no strata.
    coding : callable, optional
        Gives, for a claim, how the labels of its mechanism are coded; default: as labels.
    marginals : callable, optional
        Gives for a joint mechanism the exact claim about each of its columns.
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
    files : FileOptions
        How text files and workbooks are written.
    memory : int, optional
        The most bytes of memory to use; default: half of the machine's.
    scratch : Scratch, optional
        Where features go that do not fit in memory; default: a folder of its own.
    keyed : callable, optional
        Hides the ids, by which the rows of several releases are joined.

    Returns
    -------
    ReadReport

    Raises
    ------
    InputError
        One line about what is wrong; it holds no name and no value of the file.
    """
    table = open_source(source, projection, files)
    declared = None if table.declaration is None else parse_declaration(table.declaration)
    of_file = None if declared is None else claim_about(declared, label, marginals)
    claim = agreed(None if of_file is None else of_file.mechanism, declaration)
    mechanism = coding(claim)
    if isinstance(table, SparseTable) and (label or of_file):
        table.call_label(label or (table.names[0] if of_file is None else of_file.label))
    bag = bag_column(mechanism.bags, table.names)
    roles = assign_roles(
        table.names,
        label=label,
        declared_label=None if of_file is None else of_file.label,
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
        *(table, roles, rest, partial(coded, mechanism, roles)),
        space=space,
        alone=all(one is None for one in sources.values()),
    )
    special = reading.special
    column = special[roles.label]
    if not len(column):
        raise InputError(f"The release {quoted(table.name)} has no rows.")
    check_same_index(source, truth, id_column)
    view = mechanism.view(len(column))
    with column_of(roles.label, private):
        known = truth_of(table, special, roles, truth, truth_column, view is not None, files)
        labels, reports, bags = labels_of(table, mechanism, view, claim, column, known)
    by = by or (None if of_file is None else of_file.by)
    others = () if declared is None else declared.names
    owned = {roles.label, roles.truth, roles.identifier, *private, *others}
    strata, of_strata = read_strata(table, by, claim, owned)
    space.check(len(column), len(roles.features), len(labels.domains.classes))
    beside = open_beside(sources, len(column), roles, special, table.names, files)
    encoded, tables, columns = reading.encoded(beside)
    keys = {name: special[name] for name in roles.keys}
    features_read = encoded.table()
    places = {name: place for place, name in enumerate(table.names, start=1)}
    surveys = tuple(
        replace(one, place=places.get(one.name, 0))
        for one in columns + survey_keys(keys, features_read.width, table.names)
    )
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
            # A digest of a file that holds true labels would let guesses of them be tested.
            sha256=None if roles.truth is not None else table.sha256(),
            numeric=labels.numeric,
            reports=reports,
            bags=bags,
            columns=surveys,
            keys=tuple(ranks(column) for column in keys.values()),
            holds_truth=roles.truth is not None,
            left_out=len(rest),
            groups=read_groups(special, group, roles.identifier),
            sketch=table.sketch if isinstance(table, SparseTable) else None,
            strata=strata,
            declared=_if_some_are_left(others, (roles.label, *private)),
        )
    )
    warnings = warnings_about(known, labels, encoded, table.names, roles)
    warnings += [
        *twin_warnings(table.names, roles),
        *of_strata,
        *(remarks_on(declared.provenance) if declared else ()),
    ]
    remarks = [_read_as("release", table.remark)]
    remarks += [_read_as("true labels", known.remark)] if known else []
    remarks += [_read_as(f"{one.role} table", one.table.remark) for one in beside]
    said = tuple(filter(None, remarks))
    people = keyed(special[roles.identifier]) if keyed and roles.identifier else None
    return ReadReport(release, tuple(warnings), tables.test_rows(release), said, people)


def _if_some_are_left(
    declared: Collection[str], audited: Collection[str]
) -> DeclaredColumns | None:
    """Return how many private columns a file declares, None where all of them are audited."""
    return DeclaredColumns(len(declared)) if set(declared) - set(audited) else None


def _read_as(what: str, remark: str) -> str:
    return f"Read the {what} as {remark}." if remark else ""


def check_same_index(source: Any, truth: Any, id_column: str | None) -> None:
    """Check that two pandas objects that are matched by row order have the same index."""
    ours: Any = getattr(source, "index", None)
    theirs: Any = getattr(truth, "index", None)
    joined = id_column is not None and hasattr(truth, "columns")  # A Series has no column of ids.
    if joined or not hasattr(ours, "equals") or not hasattr(theirs, "equals"):
        return
    if len(ours) == len(theirs) and not ours.equals(theirs):
        raise InputError(
            "The release and the true labels have different indices, so their rows may not "
            "belong together; reset both indices, or join on an id column."
        )
