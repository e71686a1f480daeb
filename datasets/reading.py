"""From a file or a table to a release that can be audited."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt
import pyarrow as pa

from ldpaudit.datasets.cells import Cells, known_truth, read_special
from ldpaudit.datasets.claimed import claimed_of, labels_of
from ldpaudit.datasets.column_survey import ranks
from ldpaudit.datasets.companions import LabelledRows, open_companions, with_companions
from ldpaudit.datasets.declaration import Marginals, declares
from ldpaudit.datasets.domains import Coding, EncodedLabels, PlainCoding
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.datasets.formats.registered import open_sparse
from ldpaudit.datasets.formats.tables import TableSource, held_to
from ldpaudit.datasets.groups import read_groups, read_strata
from ldpaudit.datasets.known import known_columns
from ldpaudit.datasets.labels import positions
from ldpaudit.datasets.mistakes import named_as_truth, warnings_about
from ldpaudit.datasets.names import assign_roles, column_of, missing_column
from ldpaudit.datasets.read_features import read_features
from ldpaudit.datasets.remarks import remarks_on_columns, remarks_on_files, remarks_on_rows
from ldpaudit.datasets.row_order import check_row_order
from ldpaudit.datasets.rows_in_memory import check_memory
from ldpaudit.datasets.truth import Truth
from ldpaudit.datasets.writings import otherwise_written, whole_reports
from ldpaudit.errors import InputError
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import Bags, Declaration, Release, ReleasedLabels, TrueLabels


@dataclass(frozen=True)
class ReadReport:
    """A release as it was read, and what its reader should know about it.

    ``release``, Release. ``warnings``, tuple of str: signs of a mistake, such as a true label
    left among the features. They hold no name and no value, so they may be shown in a report.
    ``test``, LabelledRows or None: the test rows, if any. ``remarks``, tuple of str: how files
    are read, in words, if that was detected and is unusual. ``people``, array of shape (n,) or
    None: what ``keyed`` made of the ids; None where it was not asked for.
    """

    release: Release
    warnings: tuple[str, ...] = ()
    test: LabelledRows | None = None
    remarks: tuple[str, ...] = ()
    people: npt.NDArray[Any] | None = field(default=None, repr=False)


def open_source(
    source: Any, projection: int | None = None, files: FileOptions = AS_FOUND
) -> TableSource:
    """Open a path, a URL, a table in memory, or a sparse matrix with labels.

    What has been opened already is returned as it is. ``projection``: the columns that sparse
    features become; ``files``: how text files are written.
    """
    if isinstance(source, TableSource):
        return source
    sparse = open_sparse(source, projection)
    if sparse is not None:
        return sparse
    if projection is not None:
        raise InputError("--projection is for sparse releases: svmlight files, SciPy matrices.")
    return open_table(source, files)


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
    before: Collection[str] = (),
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
        The public column of the strata of the claim; default: the declared one.
    before : collection of str, optional
        Columns that are known to be from before the noise; ``"*"``: all but the private ones.
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
        The most bytes of memory to use; default: half of the machine's. Of a table whose features
        take more than half of that, or whose labels all of it, a sample of rows is read.
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
    sources = {"original": original, "synthetic": synthetic, "test": test, "public": public}
    sources["held-out"] = held_out
    with held_to(memory):
        table = open_source(source, projection, files)
        claimed = claimed_of(table, label, declaration, by, coding, marginals)
        roles = assign_roles(
            table.names,
            label=label,
            declared_label=claimed.label,
            truth_column=truth_column if truth is None else None,
            id_column=id_column,
            group=group,
            drop=drop if claimed.bag is None else (*drop, claimed.bag),
            features=features,
        )
        _check_combined(table, sources, files)
        cells = read_special(table, roles, claimed, memory, joined=keyed is not None)
        check_same_index(source, truth, id_column)
        with column_of(roles.label, private):
            view = claimed.coding.view(len(cells))
            known = known_truth(
                cells, roles, truth, truth_column, files, numeric=view is not None, text=table.text
            )
            labels, reports, bags = labels_of(table, claimed, view, cells.of(roles.label), known)
            if truth is not None and roles.identifier is None:
                _check_in_order(labels, bags, cells, table)
            in_other_ways = 0
            if reports is None and bags is None:
                in_other_ways = otherwise_written(
                    table, roles.label, cells.of(roles.label), labels, cells.looked_at
                )
            cells.forget((roles.label, roles.truth))
        others = {*private, *claimed.others}
        owned = {roles.label, roles.truth, roles.identifier, *others}
        strata, warnings_of_strata = read_strata(
            table, claimed.by, claimed.mechanism, owned, cells.looked_at
        )
        width, classes = len(roles.features), len(labels.domains.classes)
        every = None if cells.looked_at is None else cells.rows
        check_memory(memory, len(cells), width, classes, every=every)
        companions = open_companions(
            sources, cells.rows, roles, cells.special, table.names, files, cells.looked_at
        )
        settled = known_columns(before, claimed.before, table, roles, others, known)
        read = read_features(table, roles, cells, settled, companions, files)
        from_before = [column for column in read.columns if column.before]
        holds_truth = roles.truth is not None
        release = Release(
            features=read.features,
            released=ReleasedLabels(labels.released),
            outputs=labels.domains.outputs,
            classes=labels.domains.classes,
            truth=None if labels.truth is None else TrueLabels(labels.truth),
            declaration=claimed.mechanism,
            name=table.name,
            label=roles.label,
            # A digest of a file that holds true labels would let guesses of them be tested.
            sha256=None if holds_truth else table.sha256(),
            numeric=labels.numeric,
            reports=None if reports is None else reports.checked,
            reports_as_read=None if reports is None else reports.as_read,
            bags=bags,
            columns=read.columns,
            keys=tuple(ranks(column) for column in cells.keys.values()),
            holds_truth=holds_truth,
            truth_released=_is_release(known, table),
            left_out=len(cells.left_out),
            unread=table.unread,
            besides=table.besides + claimed.besides,
            otherwise_written=in_other_ways,
            whole_reports=0 if reports is None else whole_reports(reports.checked),
            groups=read_groups(cells.special, group, roles.identifier),
            sketch=read.sketch,
            strata=strata,
            places=cells.looked_at,
            before=frozenset(place for column in from_before for place in column.arrays),
            declared=claimed.beside({roles.label, *private}),
            prior_epsilon=claimed.prior_epsilon,
            faults_of_making=claimed.faults_of_making,
            named_as_truth=named_as_truth(known, table.names, roles),
        )
        release, test_rows = with_companions(release, read.parts)
        warnings = warnings_about(known, labels, read.encoded, table.names, roles)
        warnings += [*warnings_of_strata, *claimed.warnings()]
        remarks = (
            *remarks_on_files(table, known, companions),
            *remarks_on_columns(table, read.surveyed),
            *remarks_on_rows(table, cells),
        )
        hidden_ids = None
        if keyed is not None and roles.identifier is not None:
            hidden_ids = keyed(cells.of(roles.identifier))
        return ReadReport(release, tuple(warnings), test_rows, remarks, hidden_ids)


def _check_combined(table: TableSource, sources: Mapping[str, Any], files: FileOptions) -> None:
    """Refuse what cannot be read together with a release (InputError)."""
    given = any(source is not None for source in sources.values())
    if table.sparse and given:
        raise InputError(
            "A sparse release is audited with --truth alone: other tables (--original, "
            "--synthetic, --held-out, --test, --public) cannot be combined with it."
        )
    for name in files.text:
        if name not in table.names:
            raise missing_column(name, "to read as text", table.names)


def _is_release(known: Truth | None, table: TableSource) -> bool:
    """Return whether true labels come from the release itself, or from another one."""
    if known is None or known.table is None:
        return False
    same = known.table.location is not None and known.table.location == table.location
    return same or declares(known.table, [known.column or ""])


def _check_in_order(
    labels: EncodedLabels, bags: Bags | None, cells: Cells, table: TableSource
) -> None:
    """Refuse true labels that fit the released ones in another order of rows only (InputError)."""
    of_rows = labels.numeric is None and bags is None
    if cells.looked_at is None and labels.truth is not None and of_rows:
        meaning = positions(labels.domains.outputs, labels.domains.classes)
        check_row_order(meaning[labels.released], labels.truth, table.part_rows)


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
