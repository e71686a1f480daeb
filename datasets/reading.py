"""From a file or a table to a release that can be audited."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
    Companion,
    LabelledRows,
    Parts,
    ReleasedRows,
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
    declares,
    parse_declaration,
    remarks_on,
)
from ldpaudit.datasets.domains import (
    Coding,
    EncodedLabels,
    LabelCoding,
    PlainCoding,
    ReadReports,
    encode_labels,
    encode_numeric_labels,
    encode_reported,
    read_numbers,
    read_reports,
)
from ldpaudit.datasets.features import EncodedFeatures
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.datasets.formats.registered import open_sparse
from ldpaudit.datasets.formats.tables import (
    TEXTS,
    VALUES,
    TableSource,
    allowed,
    comparable_values,
    held_to,
    is_any,
)
from ldpaudit.datasets.groups import read_bags, read_groups, read_strata
from ldpaudit.datasets.known import KnownColumns, known_columns
from ldpaudit.datasets.labels import LabelColumn, positions, read_labels
from ldpaudit.datasets.names import Roles, assign_roles, column_of, missing_column, quoted
from ldpaudit.datasets.row_order import check_row_order
from ldpaudit.datasets.spelling import with_spelling
from ldpaudit.errors import InputError
from ldpaudit.numeric_labels import NumericView
from ldpaudit.options import AS_FOUND, FileOptions
from ldpaudit.release import (
    Bags,
    ColumnsDeclaration,
    Declaration,
    DeclaredColumns,
    FeatureTable,
    IndexArray,
    Release,
    ReleasedLabels,
    TrueLabels,
)
from ldpaudit.release.features import ColumnSurvey
from ldpaudit.work.memory import (
    MANY_ROWS,
    MOST_ROWS_LOOKED_AT,
    RUN,
    give_back,
    most_rows,
    rows_looked_at,
    shown,
)

# Bytes of Python and the libraries.
_BASE: Final = 450 << 20
# What an audit needs of each row besides features: labels, halves, and one pass over them.
_BYTES_PER_ROW: Final = 24
# Bytes of each row that audits look at: in all, for each column, and for each class.
_WORKING, _PER_COLUMN, _PER_CLASS = 220, 12, 40
# For so many classes there is room where rows are drawn before the labels are read.
_CLASSES_EXPECTED: Final = 32
# Bytes of a CSV file from which on its rows are counted before they are read.
_LARGE: Final = 1 << 26


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
        claimed = _claimed(table, label, declaration, by, coding, marginals)
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
        cells = _read_special(table, roles, claimed, memory, joined=keyed is not None)
        check_same_index(source, truth, id_column)
        with column_of(roles.label, private):
            view = claimed.coding.view(len(cells))
            known = _known(
                cells, roles, truth, truth_column, files, numeric=view is not None, text=table.text
            )
            labels, reports, bags = _labels(table, claimed, view, cells.of(roles.label), known)
            if truth is not None and roles.identifier is None:
                _check_in_order(labels, bags, cells, table)
            cells.forget((roles.label, roles.truth))
        others = {*private, *claimed.others}
        owned = {roles.label, roles.truth, roles.identifier, *others}
        strata, warnings_of_strata = read_strata(
            table, claimed.by, claimed.mechanism, owned, cells.looked_at
        )
        width, classes = len(roles.features), len(labels.domains.classes)
        every = None if cells.looked_at is None else cells.rows
        _check_memory(memory, len(cells), width, classes, every=every)
        companions = open_companions(
            sources, cells.rows, roles, cells.special, table.names, files, cells.looked_at
        )
        settled = known_columns(before, claimed.before, table, roles, others, known)
        read = _read_features(table, roles, cells, settled, companions, files)
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
            groups=read_groups(cells.special, group, roles.identifier),
            sketch=read.sketch,
            strata=strata,
            places=cells.looked_at,
            before=frozenset(place for column in from_before for place in column.arrays),
            declared=claimed.beside({roles.label, *private}),
        )
        release, test_rows = with_companions(release, read.parts)
        warnings = warnings_about(known, labels, read.encoded, table.names, roles)
        warnings += [*warnings_of_strata, *claimed.warnings()]
        remarks = (
            *_remarks_on_files(table, known, companions),
            *_remarks_on_columns(table, read.surveyed),
            *_remarks_on_rows(cells),
        )
        hidden_ids = None
        if keyed is not None and roles.identifier is not None:
            hidden_ids = keyed(cells.of(roles.identifier))
        return ReadReport(release, tuple(warnings), test_rows, remarks, hidden_ids)


@dataclass(frozen=True)
class _Claimed:
    """What a file and a caller state together about one private column."""

    mechanism: Declaration | None
    """What released the labels; None where nothing is claimed."""
    coding: LabelCoding
    """How the labels of the mechanism are coded."""
    declared: ColumnsDeclaration | None
    """All that the file declares."""
    label: str | None
    """The private column that the file declares; None where it declares none."""
    by: str | None
    """The public column of the claim's strata."""

    @property
    def bag(self) -> str | None:
        """The column that tells the bags apart; None where labels are of rows."""
        return None if self.coding.bags is None else self.coding.bags.bag

    @property
    def others(self) -> tuple[str, ...]:
        """All private columns that the file declares."""
        return () if self.declared is None else self.declared.names

    @property
    def before(self) -> tuple[str, ...]:
        """The columns that the file declares to be from before the noise."""
        return () if self.declared is None else tuple(self.declared.before)

    def beside(self, audited: Collection[str]) -> DeclaredColumns | None:
        """Return the private columns that the file declares, if not all of them are audited."""
        if not {*self.others} - {*audited}:
            return None
        return DeclaredColumns(dict.fromkeys((name,) for name in self.others))

    def warnings(self) -> list[str]:
        """Return what is remarkable about where the declaration comes from."""
        return [] if self.declared is None else [*remarks_on(self.declared.provenance)]


def _claimed(
    table: TableSource,
    label: str | None,
    declaration: Declaration | None,
    by: str | None,
    coding: Coding,
    marginals: Marginals | None,
) -> _Claimed:
    """Return what is claimed of one column; refuse what contradicts the file (InputError)."""
    declared = None if table.declaration is None else parse_declaration(table.declaration)
    of_file = None if declared is None else claim_about(declared, label, marginals)
    mechanism = agreed(None if of_file is None else of_file.mechanism, declaration)
    claimed = _Claimed(
        mechanism,
        coding(mechanism),
        declared,
        None if of_file is None else of_file.label,
        by or (None if of_file is None else of_file.by),
    )
    if table.sparse and (label or claimed.label):
        called = label or claimed.label or table.names[0]
        table.names = (called, *table.names[1:])
    if claimed.bag is not None and claimed.bag not in table.names:
        raise missing_column(claimed.bag, "bag", table.names, typed=False)
    return claimed


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


@dataclass(frozen=True)
class _Cells:
    """The cells of a release: labels, ids and groups at once, the other columns one by one."""

    special: dict[str, pa.ChunkedArray]
    """The columns that are no features, by name."""
    columns: Iterator[tuple[str, pa.ChunkedArray]]
    """The features, then the columns that are left out, each with its name."""
    left_out: tuple[str, ...]
    """The columns that have no role."""
    keys: dict[str, pa.ChunkedArray]
    """Ids and groups, as they can be compared."""
    rows: int
    """How many rows the release has."""
    looked_at: IndexArray | None
    """The rows that are read; None for all."""
    read: int
    """How many rows are read."""

    def __len__(self) -> int:
        return self.read

    def of(self, name: str) -> pa.ChunkedArray:
        """Return a column that is no feature."""
        return self.special[name]

    def forget(self, names: Iterable[str | None]) -> None:
        """Let go of labels, which are coded by now."""
        for name in names:
            self.special.pop(name or "", None)


def _read_special(
    table: TableSource, roles: Roles, claimed: _Claimed, memory: int | None, *, joined: bool
) -> _Cells:
    """Read the columns that are no features (InputError where there are no rows).

    ``joined``: the rows are joined with those of other releases, so all are needed.
    """
    rows, looked_at = _looked_at(table, roles, memory, joined=joined or claimed.bag is not None)
    used = {*roles.special, *roles.features, claimed.bag}
    left_out = tuple(name for name in table.names if name not in used)
    wanted = (*roles.special, *roles.features, *left_out)
    columns = table.columns(wanted, roles.special, looked_at)
    special = {name: next(columns)[1] for name in roles.special}
    read = len(special[roles.label])
    if not read:
        raise InputError(f"The release {quoted(table.name)} has no rows.")
    return _Cells(
        special,
        columns,
        left_out,
        {name: _key(special[name]) for name in roles.keys},
        read if rows is None or looked_at is None else rows,
        looked_at,
        read,
    )


def _known(
    cells: _Cells,
    roles: Roles,
    truth: Any,
    truth_column: str | None,
    files: FileOptions,
    *,
    numeric: bool,
    text: bool,
) -> Truth | None:
    """Return the true labels that are given, or that the release holds; None without any.

    ``numeric``: whether they are numbers; ``text``: whether the release is a text file.
    """
    if truth is not None:
        release = ReleasedRows(
            cells.rows,
            roles.label,
            id_column=roles.identifier,
            identifiers=None if roles.identifier is None else cells.of(roles.identifier),
            looked_at=cells.looked_at,
        )
        return read_truth(truth, release, truth_column=truth_column, numeric=numeric, files=files)
    if roles.truth is None:
        return None
    own = true_labels(cells.of(roles.truth), numeric=numeric, from_text=text)
    return Truth(own, roles.truth)


def _is_release(known: Truth | None, table: TableSource) -> bool:
    """Return whether true labels come from the release itself, or from another one."""
    if known is None or known.table is None:
        return False
    same = known.table.location is not None and known.table.location == table.location
    return same or declares(known.table, [known.column or ""])


def _check_in_order(
    labels: EncodedLabels, bags: Bags | None, cells: _Cells, table: TableSource
) -> None:
    """Refuse true labels that fit the released ones in another order of rows only (InputError)."""
    of_rows = labels.numeric is None and bags is None
    if cells.looked_at is None and labels.truth is not None and of_rows:
        meaning = positions(labels.domains.outputs, labels.domains.classes)
        check_row_order(meaning[labels.released], labels.truth, table.part_rows)


@dataclass(frozen=True)
class _ReadFeatures:
    """The features of a release, and what was seen of each of its columns."""

    features: FeatureTable
    encoded: EncodedFeatures
    sketch: Any
    """What stands for the features of a sparse release; None for any other."""
    parts: Parts
    """The tables that come with the release, coded alike."""
    columns: tuple[ColumnSurvey, ...]
    """All columns but the private ones: features, left out ones, ids and groups."""
    surveyed: tuple[ColumnSurvey, ...]
    """The features as their reader saw them."""


def _read_features(
    table: TableSource,
    roles: Roles,
    cells: _Cells,
    settled: KnownColumns,
    companions: Sequence[Companion],
    files: FileOptions,
) -> _ReadFeatures:
    """Code the features together with those of the companions, and survey all columns."""
    surveyed_features: list[ColumnSurvey] = []
    reader = ColumnReader.of(table, files)
    of_features = islice(cells.columns, len(roles.features))
    compared = settled.compared(of_features, roles.features, cells.keys)
    as_read = surveyed(compared, surveyed_features, table.names, reader)
    numbers = 0
    if not table.sparse:
        types = [table.schema.field(name).type for name in roles.features]
        numbers = sum(is_any(kind, *VALUES) for kind in types)
    encoded, parts = encode_together(as_read, len(cells), companions, table.names, files, numbers)
    give_back(at_once=len(cells) >= MANY_ROWS)
    surveys = with_arrays(surveyed_features, encoded)
    surveys += survey_left_out(cells.columns, table.names, reader)
    sketch = getattr(table, "sketch", None)
    if sketch is not None:
        encoded.columns = sketch.features
    features = encoded.table()
    if cells.looked_at is None:
        features = with_spelling(features, table, surveys)
    surveys += survey_keys(cells.keys, features.width, table.names)
    places = {name: place for place, name in enumerate(table.names, start=1)}
    columns = tuple(
        replace(settled.of(survey) if survey.arrays else survey, place=places.get(survey.name, 0))
        for survey in surveys
    )
    return _ReadFeatures(features, encoded, sketch, parts, columns, tuple(surveyed_features))


def _remarks_on_files(
    table: TableSource, known: Truth | None, companions: Sequence[Companion]
) -> Iterator[str]:
    """Yield how the files are read, where that was detected and is unusual."""
    said = [("release", table.remark)]
    if known is not None:
        said.append(("true labels", known.remark))
    said += [(f"{companion.role} table", companion.table.remark) for companion in companions]
    for what, remark in said:
        if remark:
            yield f"Read the {what} as {remark}."


def _remarks_on_columns(table: TableSource, columns: Sequence[ColumnSurvey]) -> Iterator[str]:
    """Yield how columns are read, where that is not plain."""
    places = {name: place for place, name in enumerate(table.names, start=1)}
    for column in columns:
        remark = said_of(places[column.name], column.reading)
        if remark:
            yield remark


def _remarks_on_rows(cells: _Cells) -> Iterator[str]:
    """Yield that a sample of the rows is read, where memory is too small for all."""
    if cells.looked_at is not None:
        yield (
            f"Read {len(cells.looked_at):,} of the {cells.rows:,} rows, drawn blind to all labels: "
            "all of them take too much of the memory that may be used "
            f"({shown(allowed())}, --memory)."
        )


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
    # Features must fit into half of the memory, and what an audit needs into all of it; else rows
    # are drawn as audits draw them.
    if not table.sparse and (
        table.location is None or (table.text and table.location.size() < _LARGE)
    ):
        return None, None
    rows, width, columns = table.row_count or 0, table.width(roles.features), len(roles.features)
    # How many classes there are is not known yet, nor in how many parts numbers will be seen.
    classes = _CLASSES_EXPECTED
    least = _BYTES_PER_ROW * rows if memory is None else _least_memory(rows, columns, classes)
    if 8 * rows * width <= allowed() and least <= allowed():
        return rows, None
    of_each = _BYTES_PER_ROW + _bytes_looked_at(columns, classes)
    room = min(allowed() / max(8 * width, 1), max(allowed() - _BASE, 0) / of_each)
    some = rows_looked_at(rows, 0, min(most_rows(int(width), 2), int(room) // RUN * RUN))
    if joined or some is None or not len(some):
        raise InputError(
            f"The rows of {quoted(table.name)} take too much of the memory that may be used "
            f"({shown(allowed())}), and all of them are needed; give more --memory, or use fewer "
            "columns (--features)."
        )
    return rows, some


def _check_memory(
    memory: int | None, rows: int, columns: int, classes: int, *, every: int | None = None
) -> None:
    """Refuse an amount of memory in which a table cannot be audited; say the least (InputError).

    ``every``: the rows of a file of which ``rows`` were drawn; with more memory more would be.
    """
    if memory is not None and memory < _least_memory(rows, columns, classes):
        rows = rows if every is None else min(MOST_ROWS_LOOKED_AT, every)
        least = _least_memory(rows, columns, classes)
        if every is not None and _least_memory(every, columns, _CLASSES_EXPECTED) <= least:
            rows, least = every, _least_memory(every, columns, classes)
        raise InputError(
            f"--memory is {shown(memory)}; {rows:,} rows with {columns:,} "
            f"column{'s' if columns != 1 else ''} and {classes:,} classes need at least "
            f"{shown(least)}."
        )


def _least_memory(rows: int, columns: int, classes: int) -> int:
    """Return the bytes that an audit of a table takes at least."""
    looked_at = min(rows, most_rows(columns, classes))
    return _BASE + rows * _BYTES_PER_ROW + looked_at * _bytes_looked_at(columns, classes)


def _bytes_looked_at(columns: int, classes: int) -> int:
    """Return the bytes that an audit takes for each row that it looks at."""
    return _WORKING + _PER_COLUMN * columns + _PER_CLASS * classes


def _labels(
    table: TableSource,
    claimed: _Claimed,
    view: NumericView | None,
    column: pa.ChunkedArray,
    truth: Truth | None,
) -> tuple[EncodedLabels, ReadReports | None, Bags | None]:
    """Return the labels as codes, and the recorded reports or the bags' sums, if any."""
    coding = claimed.coding
    known = None if truth is None else truth.labels
    classes = known if isinstance(known, LabelColumn) else None
    if coding.bags is not None:
        bag = coding.bags.bag
        members = next(table.columns((bag,), as_text=(bag,)))[1]
        labels, bags = read_bags(coding.bags, column, members, classes)
        return labels, None, bags
    if coding.reports is not None:
        reports = read_reports(column, coding.reports, from_text=table.text)
        return encode_reported(coding.reports, reports.checked, classes), reports, None
    if view is not None:
        numbers = known if isinstance(known, np.ndarray) else None
        labels = encode_numeric_labels(view, read_numbers(column, "released"), numbers)
        return labels, None, None
    released = read_labels(column, "released", from_text=table.text)
    return encode_labels(claimed.mechanism, released, classes, coding), None, None


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
