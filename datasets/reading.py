"""From a file or a table to a release that can be audited."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ldpaudit.datasets.as_read import ColumnReader, said_of
from ldpaudit.datasets.column_survey import (
    ranks,
    survey_keys,
    survey_left_out,
    surveyed,
    with_arrays,
)
from ldpaudit.datasets.companions import (
    LabelledRows,
    Truth,
    encode_together,
    open_companions,
    read_truth,
    true_labels,
    warnings_about,
    with_companions,
)
from ldpaudit.datasets.declaration import (
    Marginals,
    agreed,
    claim_about,
    parse_declaration,
    remarks_on,
)
from ldpaudit.datasets.domains import (
    Coding,
    EncodedLabels,
    LabelCoding,
    PlainCoding,
    Reports,
    encode_labels,
    encode_numeric_labels,
    encode_reported,
    read_numbers,
    read_reports,
)
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.datasets.formats.registered import open_sparse
from ldpaudit.datasets.formats.tables import (
    TEXTS,
    TableSource,
    allowed,
    check_fits,
    comparable_values,
    held_to,
    is_any,
)
from ldpaudit.datasets.groups import read_bags, read_groups, read_strata
from ldpaudit.datasets.known import known_columns
from ldpaudit.datasets.labels import LabelColumn, positions, read_labels
from ldpaudit.datasets.names import Roles, assign_roles, column_of, missing_column, quoted
from ldpaudit.datasets.row_order import check_row_order
from ldpaudit.datasets.spelling import with_spelling
from ldpaudit.errors import InputError
from ldpaudit.numeric_labels import NumericView
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import (
    Bags,
    Declaration,
    DeclaredColumns,
    IndexArray,
    Release,
    ReleasedLabels,
    TrueLabels,
)
from ldpaudit.release.features import ColumnSurvey
from ldpaudit.work.memory import RUN, most_rows, rows_looked_at, shown

# Bytes of Python and the libraries.
_BASE: Final = 450 << 20
# What an audit needs of each row besides features: labels, halves, and one pass over them.
_BYTES_PER_ROW: Final = 24
# Bytes of each row that audits look at: in all, for each column, and for each class.
_WORKING, _PER_COLUMN, _PER_CLASS = 220, 12, 40
# Bytes of a CSV file from which on its rows are counted before they are read.
_LARGE: Final = 1 << 26


@dataclass(frozen=True)
class ReadReport:
    """A release as it was read, and what its reader should know about it."""

    # ``release``, Release. ``warnings``, tuple of str: signs of a mistake, such as a true label
    # left among the features. They hold no name and no value, so they may be shown in a report.
    # ``test``, LabelledRows or None: the test rows, if any. ``remarks``, tuple of str: how files
    # are read, in words, if that was detected and is unusual. ``people``, array of shape (n,) or
    # None: what ``keyed`` made of the ids; None where it was not asked for.

    release: Release
    warnings: tuple[str, ...] = ()
    test: LabelledRows | None = None
    remarks: tuple[str, ...] = ()
    people: npt.NDArray[Any] | None = field(default=None, repr=False)


def open_source(
    source: Any, projection: int | None = None, files: FileOptions = AS_FOUND
) -> TableSource:
    """Open a path, a URL, a table in memory, or a sparse matrix with labels."""
    # What has been opened already is returned as it is. ``projection``: the columns that sparse
    # features become; ``files``: how text files are written.
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
        take more than half of that a sample of rows is read.
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
    with held_to(memory):
        table = open_source(source, projection, files)
        declared = None if table.declaration is None else parse_declaration(table.declaration)
        of_file = None if declared is None else claim_about(declared, label, marginals)
        claim = agreed(None if of_file is None else of_file.mechanism, declaration)
        mechanism = coding(claim)
        if table.sparse and (label or of_file):
            called = label or (of_file.label if of_file else table.names[0])
            table.names = (called, *table.names[1:])
        bag = None if mechanism.bags is None else mechanism.bags.bag
        if bag is not None and bag not in table.names:
            raise missing_column(bag, "bag", table.names, typed=False)
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
        if table.sparse and any(one is not None for one in sources.values()):
            raise InputError(
                "A sparse release is audited with --truth alone: other tables (--original, "
                "--synthetic, --held-out, --test, --public) cannot be combined with it."
            )
        known_names = {*roles.special, *roles.features, bag}
        rest = [name for name in table.names if name not in known_names]
        for name in files.text:
            if name not in table.names:
                raise missing_column(name, "to read as text", table.names)
        rows, looked_at = _looked_at(table, roles, memory, joined=bool(bag or keyed))
        wanted = (*roles.special, *roles.features, *rest)
        cells = table.columns(wanted, roles.special, looked_at)
        special = {name: next(cells)[1] for name in roles.special}
        column = special[roles.label]
        if not len(column):
            raise InputError(f"The release {quoted(table.name)} has no rows.")
        rows = len(column) if rows is None or looked_at is None else rows
        check_same_index(source, truth, id_column)
        view = mechanism.view(len(column))
        with column_of(roles.label, private):
            known: Truth | None = None
            if truth is not None:
                known = read_truth(
                    truth,
                    rows,
                    label=roles.label,
                    truth_column=truth_column,
                    id_column=roles.identifier,
                    identifiers=None if roles.identifier is None else special[roles.identifier],
                    numeric=view is not None,
                    files=files,
                    looked_at=looked_at,
                )
            elif roles.truth is not None:
                of_rows = special[roles.truth]
                own = true_labels(of_rows, numeric=view is not None, from_text=table.text)
                known = Truth(own, roles.truth)
            labels, reports, bags = _labels(table, mechanism, view, claim, column, known)
            in_order = truth is not None and roles.identifier is None and looked_at is None
            if in_order and labels.truth is not None and labels.numeric is None and bags is None:
                meaning = positions(labels.domains.outputs, labels.domains.classes)
                check_row_order(meaning[labels.released], labels.truth, table.part_rows)
        by = by or (None if of_file is None else of_file.by)
        others = () if declared is None else declared.names
        owned = {roles.label, roles.truth, roles.identifier, *private, *others}
        strata, of_strata = read_strata(table, by, claim, owned, looked_at)
        _check_memory(memory, len(column), len(roles.features), len(labels.domains.classes))
        companions = open_companions(sources, rows, roles, special, table.names, files, looked_at)
        found: list[ColumnSurvey] = []
        reader = ColumnReader.of(table, files)
        keys = {name: _key(special[name]) for name in roles.keys}
        stated = () if declared is None else declared.before
        settled = known_columns(before, stated, table, roles, {*private, *others}, known)
        compared = settled.compared(islice(cells, len(roles.features)), roles.features, keys)
        own_cells = surveyed(compared, found, table.names, reader)
        encoded, parts = encode_together(own_cells, len(column), companions, table.names, files)
        columns = with_arrays(found, encoded) + survey_left_out(cells, table.names, reader)
        if (sketch := getattr(table, "sketch", None)) is not None:
            encoded.columns = sketch.features
        features_read = encoded.table()
        if looked_at is None:
            features_read = with_spelling(features_read, table, columns)
        places = {name: place for place, name in enumerate(table.names, start=1)}
        surveys = columns + survey_keys(keys, features_read.width, table.names)
        surveys = tuple(settled.of(one) if one.arrays else one for one in surveys)
        release, test_rows = with_companions(
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
                columns=tuple(replace(one, place=places.get(one.name, 0)) for one in surveys),
                keys=tuple(ranks(column) for column in keys.values()),
                holds_truth=roles.truth is not None,
                left_out=len(rest),
                unread=table.unread,
                groups=read_groups(special, group, roles.identifier),
                sketch=sketch,
                strata=strata,
                places=looked_at,
                before=frozenset(place for one in surveys if one.before for place in one.arrays),
                # The private columns that the file declares, where not all of them are audited.
                declared=(
                    DeclaredColumns(dict.fromkeys((name,) for name in others))
                    if {*others} - {roles.label, *private}
                    else None
                ),
            ),
            parts,
        )
        warnings = warnings_about(known, labels, encoded, table.names, roles)
        warnings += [*of_strata, *(remarks_on(declared.provenance) if declared else ())]
        said = [("release", table.remark), ("true labels", known.remark if known else "")]
        said += [(f"{one.role} table", one.table.remark) for one in companions]
        remarks = [f"Read the {what} as {remark}." for what, remark in said if remark]
        remarks += filter(None, (said_of(places[one.name], one.reading) for one in found))
        if looked_at is not None:
            remarks.append(
                f"Read {len(looked_at):,} of the {rows:,} rows, drawn blind to all labels: the "
                f"features of all take more than half of the memory that may be used "
                f"({shown(allowed())}, --memory)."
            )
        people = keyed(special[roles.identifier]) if keyed and roles.identifier else None
        return ReadReport(release, tuple(warnings), test_rows, tuple(remarks), people)


def _key(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ids or groups as they can be compared; whole numbers of a text file as integers."""
    column = comparable_values(column)
    if not is_any(column.type, *TEXTS) or not len(column):
        return column
    whole = pc.all(pc.match_substring_regex(column, r"^(0|-?[1-9][0-9]{0,17})$")).as_py()
    return column.cast(pa.int64()) if whole else column


def _looked_at(
    table: TableSource, roles: Roles, memory: int | None, *, joined: bool
) -> tuple[int | None, IndexArray | None]:
    """Return how many rows there are, where it is known, and the rows to read; None for all."""
    # Features must fit into half of the memory; else rows are drawn as audits draw them.
    if not table.sparse and (
        table.location is None or (table.text and table.location.size() < _LARGE)
    ):
        return None, None
    rows, width = table.row_count or 0, table.width(roles.features)
    check_fits(_BYTES_PER_ROW * rows, f"The release {quoted(table.name)}")
    if 8 * rows * width <= allowed():
        _check_memory(memory, rows, len(roles.features), 2)
        return rows, None
    room = int(allowed() / (8 * width)) // RUN * RUN
    some = rows_looked_at(rows, 0, min(most_rows(int(width), 2), room))
    if joined or some is None or not len(some):
        raise InputError(
            f"The features of {quoted(table.name)} take more than half of the memory that may be "
            f"used ({shown(allowed())}), and all rows are needed; give more --memory, or use fewer "
            "columns (--features)."
        )
    return rows, some


def _check_memory(memory: int | None, rows: int, columns: int, classes: int) -> None:
    """Refuse an amount of memory in which a table cannot be audited; say the least (InputError)."""
    looked_at = min(rows, most_rows(columns, classes))
    of_each = _WORKING + _PER_COLUMN * columns + _PER_CLASS * classes
    least = _BASE + rows * _BYTES_PER_ROW + looked_at * of_each
    if memory is not None and memory < least:
        raise InputError(
            f"--memory is {shown(memory)}; {rows:,} rows with {columns:,} columns and "
            f"{classes:,} classes need at least {shown(least)}."
        )


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
