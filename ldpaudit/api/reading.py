"""A release as the options describe it: one private column, or several."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ldpaudit.claim import claim_of_column, claims_of_columns
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.errors import InputError
from ldpaudit.options import (
    AS_FOUND,
    AuditOptions,
    FileOptions,
    LabelOptions,
    PlanOptions,
    ReleaseOptions,
    named_columns,
    option_name,
    texts_of,
)
from ldpaudit.release import ColumnsDeclaration, DeclaredColumns, FileColumns, Release
from ldpaudit.result import Note

if TYPE_CHECKING:
    from ldpaudit.datasets.formats.tables import TableSource
    from ldpaudit.datasets.reading import ReadReport
    from ldpaudit.datasets.several import ColumnsReport, HashedIds
    from ldpaudit.receipt.found import Replay
    from ldpaudit.release import ReleasedFiles
    from ldpaudit.work.progress import Progress

T = TypeVar("T", Release, FileColumns)

_OF_ONE = ("original", "synthetic", "held_out", "public", "public_posterior", "canaries")
"""Options about a release of one private column."""


def read_with(
    release: Any,
    options: ReleaseOptions,
    keyed: "HashedIds | None" = None,
    test: Any = None,
) -> "ReadReport":
    """Read a release of one private column with what the options say about it."""
    # ``keyed``: hides ids, to join the rows of several releases. ``test``: rows outside of the
    # release with true labels.
    from ldpaudit.datasets import read_release

    columns = named_columns(options)
    truths = texts_of(options.truth_column, "true label")
    if len(columns) > 1 or len(truths) > 1:
        raise InputError("One private column (--label) is read here; name one of them.")
    column = columns[0] if columns else None
    claim, by = claim_of_column(column, options.mechanism, _files(options))
    return read_release(
        release,
        label=None if column is None else column.label,
        truth_column=next(iter(truths), None),
        declaration=claim,
        by=by,
        keyed=keyed,
        **_stated(options, test),
    )


@unchanged()
def read_columns(
    release: Any,
    options: ReleaseOptions,
    keyed: "HashedIds | None" = None,
    test: Any = None,
) -> "ReadReport | ColumnsReport":
    """Read a release with all private columns that the options name, or else that it declares."""
    # ``keyed``: hides ids, to join the rows of several releases. ``test``: rows outside of the
    # release with true labels.
    columns = named_columns(options)
    source, declared = opened(release, options)
    names = () if declared is None else declared.names
    columns = columns or tuple(LabelOptions(label=name) for name in names)
    if len(columns) < 2:
        report = read_with(source, options, keyed, test)
        return replace(report, release=_with_epsilon(report.release, declared))
    from ldpaudit.datasets import read_file_columns

    for name in _OF_ONE:
        if getattr(options, name, None) is not None:
            raise InputError(
                f"--{name.replace('_', '-')} is about one private column; audit that one alone "
                "(--label)."
            )
    several = read_file_columns(
        source,
        declaration=claims_of_columns(columns, options.mechanism, _files(options)),
        keyed=keyed,
        labels=[one.label for one in columns],
        truth_column=texts_of(options.truth_column, "true label"),
        **_stated(options, test),
    )
    return replace(several, file=_with_epsilon(several.file, declared))


def _with_epsilon(release: T, declared: ColumnsDeclaration | None) -> T:
    """Return a release with the ε of all columns that its file declares, if some are left out."""
    from ldpaudit.mechanisms.joint import from_declaration
    from ldpaudit.mechanisms.registry import from_declaration as one_column

    if release.declared is None or declared is None:
        return release
    together, labels = declared.joint is not None, declared.labels
    claims: dict[tuple[str, ...], float | None] = {}
    for part in [labels] if together else [(one,) for one in labels]:
        names = tuple(one.label for one in part)
        claims[names] = None
        with suppress(InputError):  # A claim that is not audited may lack labels.
            claims[names] = (
                from_declaration(declared, [()] * len(part)).epsilon
                if together
                else one_column(part[0].mechanism, ()).epsilon
            )
    return replace(release, declared=DeclaredColumns(claims))


def opened(release: Any, options: ReleaseOptions) -> tuple[Any, ColumnsDeclaration | None]:
    """Return the release, opened if it is a file, and what it declares."""
    from ldpaudit.datasets.declaration import parse_declaration
    from ldpaudit.datasets.formats.tables import held_to
    from ldpaudit.datasets.reading import open_source

    if hasattr(release, "read_all"):  # A stream of Arrow's can be read once.
        release = release.read_all()
    with held_to(getattr(options, "memory", None)):
        table = open_source(release, options.projection, _files(options))
    declared = None if table.declaration is None else parse_declaration(table.declaration)
    return table if isinstance(release, str | os.PathLike) else release, declared


def _files(options: ReleaseOptions) -> FileOptions:
    return options.files if isinstance(options, FileOptions) else AS_FOUND


def _stated(options: ReleaseOptions, test: Any = None) -> dict[str, Any]:
    """Return what the options say about a release, as its reader takes it."""
    # ``test``: rows outside of the release with true labels.
    from ldpaudit.mechanisms.joint import marginal_claims
    from ldpaudit.mechanisms.view import DeclaredCoding

    truth = options.truth
    if isinstance(truth, tuple) and all(isinstance(one, str) for one in truth):
        raise InputError(f"--truth is given once for one release. Got {len(truth)} files.")
    return {
        "truth": truth,
        "id_column": options.id_column,
        "group": options.group,
        "drop": options.drop,
        "features": options.features,
        "before": options.before,
        "original": options.original,
        "synthetic": options.synthetic,
        "held_out": options.held_out,
        "test": test,
        "public": options.public if isinstance(options, AuditOptions) else None,
        "projection": options.projection,
        "files": _files(options),
        "memory": options.memory if isinstance(options, PlanOptions) else None,
        "coding": DeclaredCoding,
        "marginals": marginal_claims,
    }


def notes_of(reading: "ReadReport | ColumnsReport") -> tuple[Note, ...]:
    """Return the reader's remarks and warnings as notes."""
    remarks = tuple(Note.info("reading", text) for text in reading.remarks)
    return remarks + tuple(Note.warning("reading", text) for text in reading.warnings)


@unchanged()
def read_repeated(
    releases: Sequence[Any], options: AuditOptions, progress: "Progress"
) -> "tuple[ReleasedFiles, tuple[Note, ...]]":
    """Read several releases of the same people, and what their reader should know."""
    from ldpaudit.datasets.companions import UnknownIdError
    from ldpaudit.datasets.several import HashedIds, join_releases

    places = [os.fspath(one) for one in releases if isinstance(one, str | os.PathLike)]
    if len(set(places)) < len(places):
        raise InputError("Each release must be named once: the same file is given twice.")
    for name in (*_OF_ONE, "slices"):
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


def replays_of(
    releases: Sequence[Any],
    options: ReleaseOptions,
    one: Release | None = None,
    *,
    shared: bool = False,
) -> "list[Replay | None]":
    """Return what drawing the noise of each release again finds; None without receipt or truth."""
    # ``one``: the release as it was read, where there is one alone. ``shared``: whether the true
    # labels are given for other releases, too: one file holds one key. InputError where two
    # releases have one key: what differs between them then shows labels.
    truth: Any = options.truth
    several = isinstance(truth, list | tuple) and len(releases) > 1
    shared = shared or (len(releases) > 1 and not several)
    every = list(truth) if several else [truth] * len(releases)
    # As the mechanism's classes are, if all rows are there in their order.
    posterior = None
    if one is not None and one.places is None and options.id_column is None:
        posterior = one.public_posterior
    person, files = options.id_column, _files(options)
    found: list[Replay | None] = []
    for source, own in zip(releases, every, strict=True):
        table = None if own is None else _with_receipt(source, files)
        if table is None:
            found.append(None)
            continue
        from ldpaudit.receipt.replay import replay

        synthetic = options.synthetic if len(releases) == 1 else None
        found.append(
            replay(
                table,
                own,
                id_column=person,
                files=files,
                posterior=posterior,
                synthetic=synthetic,
            )
        )
    if shared:
        # A foreign one with a mark was drawn from the key that is here.
        found = [None if r is None or (r.status == "foreign" and not r.mark) else r for r in found]
    check_keys(found)
    return found


def _with_receipt(source: Any, files: FileOptions) -> "TableSource | None":
    """Open a release; None where it has no receipt, without which nothing is drawn again."""
    from ldpaudit.datasets.declaration import parse_declaration
    from ldpaudit.datasets.reading import open_source

    table = open_source(source, None, files)
    stated = None if table.declaration is None else parse_declaration(table.declaration)
    return table if stated is not None and stated.receipt else None


def check_keys(replays: "Sequence[Replay | None]") -> None:
    """Refuse releases that were drawn from one key (InputError)."""
    marks = [one.mark for one in replays if one is not None and one.mark]
    if len(set(marks)) < len(marks):
        raise InputError(
            "Two of the releases were drawn from one key, so what differs between them reveals "
            "labels: publish one of them, and make the other again."
        )


def _check_private_in_all(files: "ReleasedFiles") -> None:
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
