"""Several private columns of one release, and several releases of the same people."""

# Rows of releases are joined on their ids by a keyed hash. The key is drawn in memory for one
# audit; neither key nor hashes are ever written.

import hashlib
import os
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import coo_array

from ldpaudit.api.reading import (
    OF_ONE_COLUMN,
    declared_epsilon,
    files_of,
    notes_of,
    opened,
    read_with,
    stated,
)
from ldpaudit.arrays import BoolArray
from ldpaudit.claim import Claim, claim_of_column
from ldpaudit.datasets.companions import LabelledRows
from ldpaudit.datasets.declaration import Marginals, agreed, claims_differ, claims_of
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.datasets.names import missing_column, quoted
from ldpaudit.datasets.reading import ReadReport, check_same_index, open_source
from ldpaudit.datasets.truth import UnknownIdError, comparable_ids, named_truth, open_truth
from ldpaudit.doors import (
    AuditOptions,
    FeatureTable,
    IndexArray,
    InputError,
    Note,
    Progress,
    Release,
    ReleaseOptions,
    parse_declaration,
    read_release,
)
from ldpaudit.extras.several.files import FileColumns, ReleasedFiles
from ldpaudit.options import (
    AS_FOUND,
    FileOptions,
    LabelOptions,
    named_columns,
    option_name,
    texts_of,
)
from ldpaudit.release import ColumnsDeclaration, LabelDeclaration

_BYTES: Final = 16
_FEWEST: Final = 2
_LOOKED_AT: Final = 2_000


@dataclass(frozen=True)
class ColumnsReport:
    """Several private columns as they were read, and what their reader should know about them."""

    file: FileColumns
    warnings: tuple[str, ...] = ()
    """Those that hold of some columns only say which."""
    tests: tuple[LabelledRows | None, ...] = ()
    """The test rows of each column, if any."""
    remarks: tuple[str, ...] = ()
    """As in a ``ReadReport``."""
    people: npt.NDArray[np.void] | None = None
    """As in a ``ReadReport``."""


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
    if table.sparse:
        raise InputError("A sparse release (svmlight, SciPy) has one label; audit it alone.")
    check_same_index(source, truth, others.get("id_column"))
    of_file = None if table.declaration is None else parse_declaration(table.declaration)
    claim = agreed_columns(of_file, declaration)
    asked = tuple(labels) if labels else (claim.names if claim is not None else ())
    if len(set(asked)) < len(asked):
        raise InputError("Each private column (--label) must be named once.")
    if len(asked) < 2:
        raise InputError(
            f"At least two private columns must be named (--label) or declared. Got {len(asked)}."
        )
    truths = dict(zip(asked, _truth_columns(asked, truth, truth_column, files), strict=True))
    hidden = [] if truth is not None else [name for name in truths.values() if name is not None]
    claim = None if claim is None else claim.only(asked)
    names = asked if claim is None else claim.names  # A joint mechanism has an order of its own.
    for name in names:
        if name not in table.names:
            declared = of_file is not None and name in of_file.names
            raise missing_column(name, "label", table.names, typed=not declared)
        if features is not None and name in features:
            raise InputError("A private column must not be a feature (--features) as well.")
    claims = {name: LabelDeclaration(name) for name in names}
    claims |= {} if claim is None else {one.label: one for one in claims_of(claim, marginals)}
    reports = []
    for name in names:
        rest = [other for other in names if other != name]
        report = read_release(
            table,
            label=name,
            declaration=claims[name].mechanism,
            by=claims[name].by,
            private=names,
            truth=truth,
            truth_column=truths[name],
            drop=(*drop, *(other for other in hidden if other != truths[name])),
            features=None if features is None else (*features, *rest),
            marginals=marginals,
            files=files,
            **others,
        )
        reports.append(report)
    return _together(reports, names, claim)


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


def _together(
    reports: Sequence[ReadReport], names: Sequence[str], claim: ColumnsDeclaration | None
) -> ColumnsReport:
    first, others = reports[0].release, []
    columns = tuple(replace(report.release, declared=None) for report in reports)
    for release in columns:
        private = [c for c in release.columns if c.name in names and c.name != release.label]
        others.append(tuple(sorted(place for column in private for place in column.arrays)))
    file = FileColumns(columns, tuple(others), claim, first.name, first.sha256, first.declared)
    said: dict[str, list[str]] = {}
    for report in reports:
        for text in report.warnings:
            said.setdefault(text, []).append(quoted(report.release.label))
    warnings = tuple(
        text if len(of) == len(reports) else f"Private column {', '.join(of)}: {text}"
        for text, of in said.items()
    )
    remarks = dict.fromkeys(remark for report in reports for remark in report.remarks)
    tests = tuple(report.test for report in reports)
    return ColumnsReport(file, warnings, tests, tuple(remarks), reports[0].people)


@dataclass(frozen=True)
class HashedIds:
    """Turns ids into keyed hashes, with one key for all releases of an audit."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    def __call__(self, ids: pa.ChunkedArray) -> npt.NDArray[np.void]:
        """Return the hash of each id, of shape (n,); all whole numbers or text (InputError)."""
        plain = comparable_ids(ids, "release").combine_chunks().dictionary_encode()
        if isinstance(plain, pa.ChunkedArray):
            plain = plain.unify_dictionaries().combine_chunks()
        texts = plain.dictionary.cast(pa.large_binary()).to_pylist()
        hashed = [hashlib.blake2b(t, digest_size=_BYTES, key=self.key).digest() for t in texts]
        own = plain.indices.to_numpy(zero_copy_only=False)
        return np.asarray(np.array(hashed, dtype=f"V{_BYTES}")[own])


def join_releases(readings: Sequence[ReadReport | ColumnsReport]) -> ReleasedFiles:
    """Return releases with the row of each person in each of them."""
    # Joined on the hashed ids of the readings; where they have none, rows are taken to be in the
    # same order in all releases.
    files = tuple(r.file if isinstance(r, ColumnsReport) else r.release for r in readings)
    columns = [one.columns if isinstance(one, FileColumns) else (one,) for one in files]
    if any(one.bags is not None or one.reports is not None for some in columns for one in some):
        raise InputError(
            "Several releases are audited together where each row has a released label; audit "
            "bags and local reports one by one."
        )
    hashed = [reading.people for reading in readings if reading.people is not None]
    if len(hashed) < len(readings):
        first, *others = [some[0] for some in columns]
        counts, sample = {*map(len, files)}, np.arange(min(len(first), _LOOKED_AT))
        whole = (
            "Without an id column (--id) the rows of all releases must be the same people in the"
        )
        if len(counts) > 1:
            few, many = min(counts), max(counts)
            raise InputError(f"{whole} same order; they have {few:,} to {many:,} rows.")
        for other in others:
            same = same_features(first, other, sample, sample)
            if same is not None and len(sample) > 1 and not same.any():
                raise InputError(
                    f"{whole} same order, and no row has the same features in two releases."
                )
        rows = np.arange(len(first))[:, None].repeat(len(files), axis=1)
        return ReleasedFiles(files, rows, by_id=False)
    # People are in the order in which they first occur: that of the hashes varies with the key.
    _, starts, codes = np.unique(np.concatenate(hashed), return_index=True, return_inverse=True)
    codes, people = starts.argsort().argsort()[codes.reshape(-1)], len(starts)
    rows = np.full((people, len(hashed)), -1, dtype=np.int64)
    repeats, start = np.zeros(people, dtype=bool), 0
    for place, ids in enumerate(hashed):
        mine = codes[start : start + len(ids)]
        start += len(ids)
        rows[mine, place] = np.arange(len(ids))
        repeats |= np.bincount(mine, minlength=people) > 1
    rows = rows[~repeats]
    here = rows >= 0
    if (here[:, 1:] & here[:, :-1]).sum(axis=0).max() < _FEWEST:
        raise InputError(
            "The releases have no people in common: fewer than two ids are in one release and the "
            "next. Is the id column (--id) the same in all of them?"
        )
    return ReleasedFiles(files, rows, repeated=int(repeats.sum()))


def same_features(
    one: Release, two: Release, first: IndexArray, second: IndexArray, *, shifted: bool = False
) -> BoolArray | None:
    """Return which rows have the same values in the columns of both releases; None without any.

    ``first`` and ``second`` are rows of the two releases that belong together. Categories have
    codes of each release's own: the commonest partner of a code is the same value. ``shifted``:
    numbers, too, may be counted from a least one of each release's own.
    """
    others = {column.name: column for column in two.columns}
    shared = [(c, others[c.name]) for c in one.columns if c.name in others]
    pairs = [
        (a, b)
        for c, d in shared
        if c.kind == d.kind and len(c.arrays) == len(d.arrays)
        for a, b in zip(c.arrays, d.arrays, strict=True)
        if a < one.features.width and b < two.features.width
    ]
    if not pairs:
        return None
    same = np.ones(len(first), dtype=bool)
    for a, b in pairs:
        (numeric, x), (also, y) = _cells(one.features, a, first), _cells(two.features, b, second)
        if numeric and also and shifted:
            apart, counts = np.unique((x - y)[np.isfinite(x - y)], return_counts=True)
            x = x - apart[counts.argmax()] if len(apart) else x
        if numeric and also:
            same &= (x == y) | (np.isnan(x) & np.isnan(y))
        elif numeric or also:
            same[:] = False
        else:
            u, v = x.astype(np.int64) + 1, y.astype(np.int64) + 1
            partners = coo_array((np.ones(len(u)), (u, v))).tocsr()
            forth, back = (np.asarray(partners.argmax(axis=axis)).reshape(-1) for axis in (1, 0))
            same &= (forth[u] == v) & (back[v] == u)
    return same


def _cells(features: FeatureTable, place: int, rows: IndexArray) -> tuple[bool, Any]:
    """Return whether a column is numeric, and some of its cells."""
    numbers = features.numeric.shape[1]
    if place < numbers:
        return True, features.numeric[rows, place]
    return False, features.categorical[rows, place - numbers]


def claims_of_columns(
    columns: Sequence[LabelOptions], mechanism: Claim, files: FileOptions = AS_FOUND
) -> ColumnsDeclaration | None:
    """Return the claims about several private columns, None where the options claim nothing."""
    own = [bool(one.stated()) for one in columns]
    if any(own) and not all(own):
        raise InputError(
            "Give the claim of each private column (--label NAME:rr:epsilon=1), or of none."
        )
    claims = [
        LabelDeclaration(one.label, *claim_of_column(one, mechanism, files)) for one in columns
    ]
    if not claims or any(one.mechanism is None for one in claims):
        return None
    return ColumnsDeclaration(tuple(claims))


@unchanged()
def read_columns(
    release: Any,
    options: ReleaseOptions,
    keyed: HashedIds | None = None,
    test: Any = None,
) -> ReadReport | ColumnsReport:
    """Read a release with all private columns that the options name, or else that it declares.

    ``keyed``: hides ids, to join the rows of several releases. ``test``: rows outside of the
    release with true labels.
    """
    columns = named_columns(options)
    source, declared = opened(release, options)
    names = () if declared is None else declared.names
    columns = columns or tuple(LabelOptions(label=name) for name in names)
    if len(columns) < 2:
        report = read_with(source, options, keyed, test)
        every = declared_epsilon(report.release.declared, declared)
        return replace(report, release=replace(report.release, declared=every))
    for name in OF_ONE_COLUMN:
        if getattr(options, name, None) is not None:
            raise InputError(
                f"--{name.replace('_', '-')} is about one private column; audit that one alone "
                "(--label)."
            )
    several = read_file_columns(
        source,
        declaration=claims_of_columns(columns, options.mechanism, files_of(options)),
        keyed=keyed,
        labels=[one.label for one in columns],
        truth_column=texts_of(options.truth_column, "true label"),
        **stated(options, test),
    )
    every = declared_epsilon(several.file.declared, declared)
    return replace(several, file=replace(several.file, declared=every))


@unchanged()
def read_repeated(
    releases: Sequence[Any], options: AuditOptions, progress: Progress
) -> tuple[ReleasedFiles, tuple[Note, ...]]:
    """Read several releases of the same people, and what their reader should know."""
    places = [os.fspath(one) for one in releases if isinstance(one, str | os.PathLike)]
    if len(set(places)) < len(places):
        raise InputError("Each release must be named once: the same file is given twice.")
    for name in (*OF_ONE_COLUMN, "slices"):
        if getattr(options, name):
            raise InputError(
                f"{option_name(options, name)} is about a single release; audit that one alone."
            )
    # One file of true labels for all releases, or one for each in order.
    truth = options.truth
    truths = list(truth) if isinstance(truth, list | tuple) else [truth] * len(releases)
    if len(truths) != len(releases):
        raise InputError(
            "--truth is given once, for true labels that do not change, or once for each release "
            f"in order. Got {len(truths)} for {len(releases)} releases."
        )
    hashed, readings, notes = HashedIds(), [], list[Note]()
    for number, (source, own) in enumerate(zip(releases, truths, strict=True), start=1):
        progress.step(f"reading release {number}")
        try:
            reading = read_columns(source, replace(options, truth=own), hashed)
        except InputError as error:
            alone = isinstance(error, UnknownIdError) and not isinstance(truth, list | tuple)
            hint = " Give --truth once for each release, in order." if alone else ""
            raise InputError(f"Release {number}: {error}{hint}") from None
        readings.append(reading)
        for note in notes_of(reading):
            notes.append(note.model_copy(update={"text": f"Release {number}: {note.text}"}))
            if note.level == "info":
                progress.remark(notes[-1].text)
    files = join_releases(readings)
    _check_private_in_all(files)
    return files, tuple(notes)


def _check_private_in_all(files: ReleasedFiles) -> None:
    """Refuse a file that holds a private column of another one undeclared, perhaps as it is."""
    leaves = [f.columns if isinstance(f, FileColumns) else (f,) for f in files.files]
    private = [{leaf.label: None for leaf in own} for own in leaves]
    for number, own in enumerate(leaves, start=1):
        held = {column.name for leaf in own for column in leaf.columns} - private[number - 1].keys()
        for other, labels in enumerate(private, start=1):
            for name in labels:
                if name in held:
                    raise InputError(
                        f"Column {name!r} is private in release {other}, and release {number} "
                        "holds it undeclared: declare it there, too (ldpaudit declare), or leave "
                        "it out of the release."
                    )


def agreed_columns(
    of_file: ColumnsDeclaration | None, given: ColumnsDeclaration | None
) -> ColumnsDeclaration | None:
    """Return the claims about several columns that a file and the options state together."""
    # A column of which only one of the two says something has that one's claim (InputError where
    # both do and differ).
    if of_file is None or given is None:
        return of_file or given
    if (of_file.joint is None) != (given.joint is None):
        raise claims_differ("mechanism")
    theirs, labels = {one.label: one for one in given.labels}, []
    for one in of_file.labels:
        other = theirs.pop(one.label, one)
        if one.by != other.by:
            raise claims_differ("column of strata")
        labels.append(replace(one, mechanism=agreed(one.mechanism, other.mechanism)))
    if theirs:
        raise InputError(
            f"The options claim something about {len(theirs)} of the private columns that the "
            "file's declaration does not name; leave out the options, or correct the declaration."
        )
    return replace(of_file, labels=tuple(labels), joint=agreed(of_file.joint, given.joint))
