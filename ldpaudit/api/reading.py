"""A release of one private column as the options describe it."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from ldpaudit.claim import claim_of_column
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.errors import InputError
from ldpaudit.options import (
    AS_FOUND,
    AuditOptions,
    FileOptions,
    PlanOptions,
    ReleaseOptions,
    named_columns,
    texts_of,
)
from ldpaudit.release import ColumnsDeclaration, Declaration, DeclaredColumns, Release
from ldpaudit.result import Note

if TYPE_CHECKING:
    from ldpaudit.datasets.formats.tables import TableSource
    from ldpaudit.datasets.reading import ReadReport
    from ldpaudit.receipt.found import Replay

OF_ONE_COLUMN = ("original", "synthetic", "held_out", "public", "public_posterior", "canaries")
"""Options about a release of one private column."""


class Remarked(Protocol):
    """What was read, with what its reader should know."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What may be of use."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What may be wrong."""


def read_with(
    release: Any,
    options: ReleaseOptions,
    keyed: Callable[[Any], Any] | None = None,
    test: Any = None,
) -> "ReadReport":
    """Read a release of one private column with what the options say about it.

    ``keyed``: hides ids, to join the rows of several releases. ``test``: rows outside of the
    release with true labels.
    """
    from ldpaudit.datasets import read_release

    columns = named_columns(options)
    truths = texts_of(options.truth_column, "true label")
    if len(columns) > 1 or len(truths) > 1:
        raise InputError("One private column (--label) is read here; name one of them.")
    column = columns[0] if columns else None
    claim, by = claim_of_column(column, options.mechanism, files_of(options))
    return read_release(
        release,
        label=None if column is None else column.label,
        truth_column=next(iter(truths), None),
        declaration=claim,
        by=by,
        keyed=keyed,
        **stated(options, test),
    )


@unchanged()
def read_column(release: Any, options: ReleaseOptions) -> "ReadReport | tuple[Any, int]":
    """Read a release that has one private column.

    Where several are named or declared, return the release, opened, and how many they are.
    """
    source, declared = opened(release, options)
    columns = named_columns(options) or (() if declared is None else declared.names)
    if len(columns) > 1:
        return source, len(columns)
    report = read_with(source, options)
    every = declared_epsilon(report.release.declared, declared)
    return replace(report, release=replace(report.release, declared=every))


def declared_epsilon(
    columns: DeclaredColumns | None, declared: ColumnsDeclaration | None
) -> DeclaredColumns | None:
    """Return all columns that a file declares with their ε, where some of them are left out."""
    if columns is None or declared is None:
        return columns
    from ldpaudit.mechanisms.joint import from_declaration
    from ldpaudit.mechanisms.registry import from_declaration as one_column

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
    return DeclaredColumns(claims)


def opened(release: Any, options: ReleaseOptions) -> tuple[Any, ColumnsDeclaration | None]:
    """Return the release, opened if it is a file, and what it declares."""
    from ldpaudit.datasets.declaration import parse_declaration
    from ldpaudit.datasets.formats.tables import held_to
    from ldpaudit.datasets.reading import open_source

    release = in_memory(release)
    with held_to(getattr(options, "memory", None)):
        table = open_source(release, options.projection, files_of(options))
    declared = None if table.declaration is None else parse_declaration(table.declaration)
    return table if isinstance(release, str | os.PathLike) else release, declared


def in_memory(table: Any) -> Any:
    """Return a stream of Arrow's as a table, since it can be read once; all else as it is."""
    return table.read_all() if hasattr(table, "read_all") else table


def with_tables_in_memory(options: AuditOptions) -> AuditOptions:
    """Return options whose tables can be read more than once."""
    truth: Any = options.truth
    several = isinstance(truth, list | tuple)
    others: dict[str, Any] = {name: in_memory(getattr(options, name)) for name in OF_ONE_COLUMN}
    own = type(truth)(map(in_memory, truth)) if several else in_memory(truth)
    return replace(options, truth=own, **others)


def files_of(options: ReleaseOptions) -> FileOptions:
    """Return how files are to be read."""
    return options.files if isinstance(options, FileOptions) else AS_FOUND


def stated(options: ReleaseOptions, test: Any = None) -> dict[str, Any]:
    """Return what the options say about a release, as its reader takes it.

    ``test``: rows outside of the release with true labels.
    """
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
        "files": files_of(options),
        "memory": options.memory if isinstance(options, PlanOptions) else None,
        "coding": DeclaredCoding,
        "marginals": _marginal_claims,
    }


def _marginal_claims(joint: Declaration) -> list[Declaration]:
    """Return the exact claim about each column alone that a mechanism on several makes."""
    from ldpaudit.mechanisms.joint import marginal_claims

    return marginal_claims(joint)


def notes_of(reading: Remarked) -> tuple[Note, ...]:
    """Return the reader's remarks and warnings as notes."""
    remarks = tuple(Note.info("reading", text) for text in reading.remarks)
    return remarks + tuple(Note.warning("reading", text) for text in reading.warnings)


def replays_of(
    releases: Sequence[Any],
    options: ReleaseOptions,
    one: Release | None = None,
    *,
    shared: bool = False,
) -> "list[Replay | None]":
    """Return what drawing the noise of each release again finds; None without receipt or truth.

    ``one``: the release as it was read, where there is one alone. ``shared``: whether the true
    labels are given for other releases, too: one file holds one key. InputError where two
    releases have one key: what differs between them then shows labels.
    """
    truth: Any = options.truth
    several = isinstance(truth, list | tuple) and len(releases) > 1
    shared = shared or (len(releases) > 1 and not several)
    every = list(truth) if several else [truth] * len(releases)
    # As the mechanism's classes are, if all rows are there in their order.
    posterior = None
    if one is not None and one.places is None and options.id_column is None:
        posterior = one.public_posterior
    person, files = options.id_column, files_of(options)
    found: list[Replay | None] = []
    for source, own in zip(releases, every, strict=True):
        table = None if own is None else _with_receipt(source, files)
        if table is None:
            found.append(None)
            continue
        from ldpaudit.receipt.seam import drawn_again

        synthetic = options.synthetic if len(releases) == 1 else None
        found.append(
            drawn_again().replay(
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
