"""A release as the options describe it: one private column, or several."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from ldpaudit.claim import claim_of_column, claims_of_columns
from ldpaudit.datasets.formats.watching import unchanged
from ldpaudit.errors import InputError
from ldpaudit.options import (
    AS_FOUND,
    FileOptions,
    LabelOptions,
    ReleaseOptions,
    keywords_for,
    named_columns,
    texts_of,
)
from ldpaudit.release import ColumnsDeclaration, FileColumns, Release
from ldpaudit.result import Note

if TYPE_CHECKING:
    from ldpaudit.datasets.private_columns import ColumnsReport
    from ldpaudit.datasets.reading import ReadReport
    from ldpaudit.datasets.releases import HashedIds
    from ldpaudit.running.scratch import Scratch

T = TypeVar("T", Release, FileColumns)

_OF_ONE = ("original", "synthetic", "held_out", "public", "public_posterior", "canaries")
"""Options about a release of one private column."""


def read_with(
    release: Any,
    options: ReleaseOptions,
    scratch: "Scratch | None" = None,
    keyed: "HashedIds | None" = None,
) -> "ReadReport":
    """Read a release of one private column with what the options say about it.

    ``keyed``: hides ids, to join the rows of several releases.

    Raises
    ------
    InputError
        If the options name several, or the input is not what they say.
    """
    from ldpaudit.datasets import read_release

    columns = named_columns(options)
    truths = texts_of(options.truth_column, "true label")
    if len(columns) > 1 or len(truths) > 1:
        raise InputError("One private column (--label) is read here; name one of them.")
    column = columns[0] if columns else None
    claim, by = claim_of_column(column, options.mechanism, _files(options))
    stated = {
        **_shared(read_release, options, scratch),
        "label": None if column is None else column.label,
        "truth_column": next(iter(truths), None),
        "keyed": keyed,
    }
    return read_release(release, declaration=claim, by=by, **stated)


@unchanged()
def read_columns(
    release: Any,
    options: ReleaseOptions,
    scratch: "Scratch | None" = None,
    keyed: "HashedIds | None" = None,
) -> "ReadReport | ColumnsReport":
    """Read a release with all private columns that the options name, or else that it declares.

    ``keyed``: hides ids, to join the rows of several releases.
    """
    columns = named_columns(options)
    source, declared = opened(release, options)
    names = () if declared is None else declared.names
    columns = columns or tuple(LabelOptions(label=name) for name in names)
    if len(columns) < 2:
        report = read_with(source, options, scratch, keyed)
        return replace(report, release=_with_epsilon(report.release, declared))
    from ldpaudit.datasets import read_file_columns, read_release

    for name in _OF_ONE:
        if getattr(options, name, None) is not None:
            raise InputError(
                f"--{name.replace('_', '-')} is about one private column; audit that one alone "
                "(--label)."
            )
    stated = _shared(read_release, options, scratch)
    stated.pop("label", None)
    several = read_file_columns(
        source,
        declaration=claims_of_columns(columns, options.mechanism, _files(options)),
        keyed=keyed,
        **stated | {"labels": [one.label for one in columns]},
    )
    return replace(several, file=_with_epsilon(several.file, declared))


def _with_epsilon(release: T, declared: ColumnsDeclaration | None) -> T:
    """Return a release with the ε of all columns that its file declares, if some are left out."""
    from ldpaudit.mechanisms.joint import from_declaration

    if release.declared is None or declared is None:
        return release
    try:
        epsilon = from_declaration(declared, [()] * len(declared.labels)).epsilon
    except InputError:  # A claim that is not audited may lack labels.
        epsilon = None
    return replace(release, declared=replace(release.declared, epsilon=epsilon))


def opened(release: Any, options: ReleaseOptions) -> tuple[Any, ColumnsDeclaration | None]:
    """Return the release, opened if it is a file, and what it declares."""
    from ldpaudit.datasets.batchwise.opening import open_source
    from ldpaudit.datasets.declaration import parse_declaration

    if hasattr(release, "read_all"):  # A stream of Arrow's can be read once.
        release = release.read_all()
    table = open_source(release, options.projection, _files(options))
    declared = None if table.declaration is None else parse_declaration(table.declaration)
    return table if isinstance(release, str | os.PathLike) else release, declared


def _files(options: ReleaseOptions) -> FileOptions:
    return options.files if isinstance(options, FileOptions) else AS_FOUND


def _shared(function: Any, options: ReleaseOptions, scratch: "Scratch | None") -> dict[str, Any]:
    from ldpaudit.mechanisms.coding import DeclaredCoding
    from ldpaudit.mechanisms.joint import marginal_claims

    truth = options.truth
    if isinstance(truth, tuple) and all(isinstance(one, str) for one in truth):
        raise InputError(f"--truth is given once for one release. Got {len(truth)} files.")
    stated = keywords_for(function, options)
    stated |= {"coding": DeclaredCoding, "marginals": marginal_claims, "scratch": scratch}
    return stated | {"files": options if isinstance(options, FileOptions) else AS_FOUND}


def notes_of(reading: "ReadReport | ColumnsReport") -> tuple[Note, ...]:
    """Return the reader's remarks and warnings as notes."""
    remarks = tuple(Note.info("reading", text) for text in reading.remarks)
    return remarks + tuple(Note.warning("reading", text) for text in reading.warnings)
