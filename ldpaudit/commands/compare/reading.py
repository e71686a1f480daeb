"""The inputs of a comparison: releases in memory and stored results."""

from dataclasses import dataclass, replace
from pathlib import Path

from ldpaudit.api import notes_of, read_with
from ldpaudit.claim import declaration_of
from ldpaudit.commands.compare.request import CompareRequest, is_result
from ldpaudit.commands.outputs import read_result
from ldpaudit.commands.utility.reading import ColumnToLearn, column_to_learn
from ldpaudit.datasets.companions import LabelledRows
from ldpaudit.datasets.declaration import parse_declaration
from ldpaudit.datasets.formats.opening import open_table
from ldpaudit.datasets.probabilities import with_canaries, with_public_posterior
from ldpaudit.errors import InputError, quoted
from ldpaudit.mechanisms import UNKNOWN, traits_of
from ldpaudit.options import named_columns
from ldpaudit.release import LabelDeclaration, Release
from ldpaudit.result import AuditResult, Note
from ldpaudit.result.comparison import LETTERS
from ldpaudit.work.progress import Progress


@dataclass(frozen=True)
class ReleaseInput:
    """A release to audit, with the test rows coded like it and the notes of its reader.

    ``private``: the names of all private columns, where it declares several. ``several``: the same
    column without the others, which are beside it to learn from.
    """

    letter: str
    path: str
    release: Release
    test: LabelledRows | None
    notes: tuple[Note, ...]
    private: frozenset[str] = frozenset()
    several: ColumnToLearn | None = None


@dataclass(frozen=True)
class ResultInput:
    """A stored result."""

    letter: str
    result: AuditResult


Input = ReleaseInput | ResultInput


def read_inputs(request: CompareRequest, progress: Progress) -> tuple[Input, ...]:
    """Read every release and result, in their order.

    Raises
    ------
    InputError
        One line about what is wrong with which input.
    """
    tables = _synthetic_tables(request)
    inputs: list[Input] = []
    for letter, name in zip(LETTERS, request.inputs, strict=False):
        progress.step(f"reading {Path(name).name if isinstance(name, str | Path) else letter}")
        if is_result(name):
            inputs.append(ResultInput(letter, _of_one_column(Path(name))))
        else:
            release = _release(request, letter, name, tables.get(letter))
            inputs.append(release)
            for note in release.notes:
                if note.level == "info":
                    progress.remark(f"{letter}: {note.text}")
    return tuple(inputs)


def _of_one_column(path: Path) -> AuditResult:
    """Read a stored result that is not of several columns or releases."""
    result = read_result(path)
    if result.labels or result.releases:
        kind = "releases" if result.releases else "private columns"
        raise InputError(
            f"The result {quoted(path.name)} is of several {kind}, and compare looks at one column "
            "of one release at a time: give it the released files, and --label COLUMN."
        )
    return result


def _synthetic_tables(request: CompareRequest) -> dict[str, str | None]:
    """Return by letter the synthetic table of each release with synthetic features.

    Raises
    ------
    InputError
        If the number of tables fits neither one for all nor one for each.
    """
    named = zip(LETTERS, request.inputs, strict=False)
    double = [letter for letter, name in named if not is_result(name) and _is_double(request, name)]
    tables: list[str | None] = [*request.synthetic]
    if len(tables) == 1 and double:
        tables *= len(double)
    if tables and not double:
        raise InputError(
            "--synthetic is for releases that declare double randomized response, and none of "
            "these does."
        )
    if len(tables) not in (0, len(double)):
        raise InputError(
            "--synthetic must be given once, or once for each release that declares double "
            f"randomized response. Got {len(request.synthetic)} for {len(double)}."
        )
    return dict(zip(double, tables or [None] * len(double), strict=True))


def _is_double(request: CompareRequest, name: str) -> bool:
    labels = _declared(request, name)
    claim = declaration_of(request.mechanism, request)
    if labels:
        named = [one.label for one in named_columns(request)]
        claim = next((one.mechanism for one in labels if one.label in named or not named), None)
    return traits_of(UNKNOWN if claim is None else claim.name).features == "partly synthetic"


def _declared(request: CompareRequest, name: str) -> tuple[LabelDeclaration, ...]:
    declared = open_table(name, request).declaration
    return () if declared is None else parse_declaration(declared).labels


def _release(
    request: CompareRequest, letter: str, name: str, synthetic: str | None
) -> ReleaseInput:
    options = replace(
        request,
        mechanism=request.mechanism if open_table(name, request).declaration is None else None,
        original=request.original if synthetic is not None else None,
        held_out=request.held_out if synthetic is not None else None,
        synthetic=synthetic,
    )
    reading = read_with(name, options)
    release = _with_probabilities(request, reading.release)
    labels, notes = _declared(request, name), notes_of(reading)
    if len(labels) < 2:
        return ReleaseInput(letter, name, release, reading.test, notes)
    private = frozenset(one.label for one in labels)
    several = None if reading.test is None else column_to_learn(name, options)
    return ReleaseInput(letter, name, release, reading.test, notes, private, several)


def _with_probabilities(request: CompareRequest, release: Release) -> Release:
    """Return the release with its tables of probabilities of classes; numbers have none."""
    if release.numeric is not None:
        return release
    try:
        known = with_public_posterior(release, request.public_posterior, request)
        return with_canaries(known, request.canaries, request)
    except InputError as error:
        raise InputError(f"{release.name}: {error}") from None
