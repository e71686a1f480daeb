"""Several releases of the same people, as a call or a command line names them."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ldpaudit.api.reading import notes_of, read_columns
from ldpaudit.datasets.formats.watching import unchanged
from ldpaudit.errors import InputError
from ldpaudit.options import AuditOptions, option_name
from ldpaudit.result import Note

if TYPE_CHECKING:
    from ldpaudit.release import ReleasedFiles
    from ldpaudit.running.progress import Progress
    from ldpaudit.running.scratch import Scratch

_OF_ONE: Final = (
    "original",
    "synthetic",
    "held_out",
    "public",
    "public_posterior",
    "canaries",
    "slices",
)
"""Options about a single release."""


def several(release: Any) -> tuple[Any, ...] | None:
    """Return the releases where several are given, None for one.

    Several are a list, or a tuple of paths or tables; a pair of a sparse matrix and labels is one.
    """
    if isinstance(release, list):
        return tuple(release)
    if not isinstance(release, tuple) or not release:
        return None
    sparse = len(release) == 2 and hasattr(release[0], "tocsr")
    return None if sparse else release


@unchanged()
def read_repeated(
    releases: Sequence[Any], options: AuditOptions, scratch: "Scratch", progress: "Progress"
) -> "tuple[ReleasedFiles, tuple[Note, ...]]":
    """Read several releases of the same people, and what their reader should know.

    Raises
    ------
    InputError
        One line about what is wrong with which release.
    """
    from ldpaudit.datasets.releases import HashedIds, join_releases

    _check(releases, options)
    hashed = HashedIds()
    readings, notes = [], []
    truths = _truths(releases, options)
    for number, (source, truth) in enumerate(zip(releases, truths, strict=True), start=1):
        progress.step(f"reading release {number}")
        try:
            stated = replace(options, truth=truth)
            readings.append(read_columns(source, stated, scratch, hashed))
        except InputError as error:
            raise InputError(f"Release {number}: {error}") from None
        for note in notes_of(readings[-1]):
            notes.append(note.model_copy(update={"text": f"Release {number}: {note.text}"}))
            if note.level == "info":
                progress.remark(notes[-1].text)
    files = join_releases(readings)
    _private_in_all(files)
    return files, tuple(notes)


def _private_in_all(files: "ReleasedFiles") -> None:
    """Refuse a file that holds a private column of another one undeclared, perhaps as it is."""
    from ldpaudit.release import FileColumns

    leaves = [f.columns if isinstance(f, FileColumns) else (f,) for f in files.files]
    private = [[leaf.label for leaf in own] for own in leaves]
    for number, own in enumerate(leaves, start=1):
        held = {column.name for leaf in own for column in leaf.columns} - set(private[number - 1])
        for other, labels in enumerate(private, start=1):
            for name in labels:
                if name in held:
                    raise InputError(
                        f"Column {name!r} is private in release {other}, and release {number} "
                        "holds it undeclared: declare it there, too (ldpaudit declare), or leave "
                        "it out of the release."
                    )


def _check(releases: Sequence[Any], options: AuditOptions) -> None:
    places = [os.fspath(one) for one in releases if isinstance(one, str | os.PathLike)]
    if len(set(places)) < len(places):
        raise InputError("Each release must be named once: the same file is given twice.")
    for name in _OF_ONE:
        if getattr(options, name):
            raise InputError(
                f"{option_name(options, name)} is about a single release; audit that one alone."
            )


def _truths(releases: Sequence[Any], options: AuditOptions) -> list[Any]:
    """Return the true labels of each release: one for all, or one for each in order."""
    truth = options.truth
    if not isinstance(truth, list | tuple):
        return [truth] * len(releases)
    if len(truth) != len(releases):
        raise InputError(
            "--truth is given once, for true labels that do not change, or once for each release "
            f"in order. Got {len(truth)} for {len(releases)} releases."
        )
    return list(truth)
