"""The work of ``compare``: read, check that the data are the same, audit, train, subtract."""

# Whether data are the same is seen without a look at a true label: compared are rows, classes and
# feature columns and, of two files, the features themselves. A mechanism on the label alone leaves
# all features unchanged, double randomized response those of a share 1 − λ. Guesses and scores of
# single rows stay here; the comparison holds counts, estimates and bounds.

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

import ldpaudit
from ldpaudit.api import (
    check_keys,
    cluster_of,
    notes_of,
    plan_of,
    policy_of,
    read_with,
    replays_of,
    seed_of,
    with_before,
)
from ldpaudit.audits.alignment import UNRELATED
from ldpaudit.audits.interface import HeldOutGuesses
from ldpaudit.claim import declaration_of
from ldpaudit.commands.outputs import read_result
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.locations import unchanged
from ldpaudit.datasets.groups import read_slices
from ldpaudit.datasets.labels import canonical
from ldpaudit.datasets.probabilities import with_canaries, with_public_posterior
from ldpaudit.datasets.truth import comparable_ids
from ldpaudit.doors import (
    AuditResult,
    Declaration,
    InputError,
    InsufficientDataError,
    NoProgress,
    Note,
    Plan,
    Progress,
    Release,
    Scratch,
    Stop,
    Traits,
    child_generator,
    from_declaration,
    parse_declaration,
    refuse,
)
from ldpaudit.errors import quoted
from ldpaudit.extras.compare.comparison import LETTERS, Comparison, Fingerprint
from ldpaudit.extras.compare.differences import Side, all_differences, attack_scores
from ldpaudit.extras.compare.request import CompareRequest, is_result
from ldpaudit.extras.compare.sentences import remark, sentences
from ldpaudit.extras.learn.utility.companions import ColumnToLearn, column_to_learn
from ldpaudit.extras.learn.utility.learner import Learner
from ldpaudit.extras.learn.utility.outside import rows_inside
from ldpaudit.extras.learn.utility.scores import utility
from ldpaudit.extras.several.reading import same_features
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.mechanisms import UNKNOWN, traits_of
from ldpaudit.options import named_columns
from ldpaudit.options.tables import Table
from ldpaudit.pipeline.audit import audit, run_info
from ldpaudit.pipeline.terms import Terms
from ldpaudit.receipt.found import Replay
from ldpaudit.work.progress import Watched
from ldpaudit.work.tasks import Tasks, Threads

_LEAST_OF_ALL = 0.99
# The share of the rows expected to be unchanged that must be unchanged.
_LEAST_OF_UNCHANGED = 0.5
_SHOWN = 12


@dataclass(frozen=True)
class ReleaseInput:
    """A release to audit, with the notes of its reader."""

    letter: str
    source: Table
    """The file, or the table in memory."""
    release: Release
    column: ColumnToLearn | None
    """The same column with the test rows, coded like it, and without the other private ones, which
    are beside it to learn from; None without test rows."""
    notes: tuple[Note, ...]
    private: frozenset[str] = frozenset()
    """The names of all private columns, where it declares several."""
    replays: tuple[Replay | None, ...] = (None,)
    """What drawing its noise again found."""


@dataclass(frozen=True)
class ResultInput:
    """A stored result."""

    letter: str
    result: AuditResult


Input = ReleaseInput | ResultInput


def read_inputs(request: CompareRequest, progress: Progress) -> tuple[Input, ...]:
    """Read every release and result, in their order."""
    # One line says what is wrong with which input (InputError).
    tables = _synthetic_tables(request)
    releases = [name for name in request.inputs if not is_result(name)]
    refuse(
        declaration_of(request.mechanism, request) is not None
        and all(_declared(request, name) for name in releases),
        "Every release declares what made its labels, so the claim that is given (--mechanism, "
        "--epsilon, --lambda, --channel) is about none of them; leave it out.",
    )
    inputs: list[Input] = []
    for letter, name in zip(LETTERS, request.inputs, strict=False):
        progress.step(f"reading {Path(name).name if isinstance(name, str | Path) else letter}")
        if is_result(name):
            result = read_result(Path(name))
            if result.labels or result.releases:
                kind = "releases" if result.releases else "private columns"
                raise InputError(
                    f"The result {quoted(Path(name).name)} is of several {kind}, and compare looks "
                    "at one column of one release at a time: give it the released files, and "
                    "--label COLUMN."
                )
            inputs.append(ResultInput(letter, result))
        else:
            release = _release(request, letter, name, tables.get(letter))
            inputs.append(release)
            for note in release.notes:
                if note.level == "info":
                    progress.remark(f"{letter}: {note.text}")
    check_keys([one for item in inputs for one in getattr(item, "replays", ())])
    return tuple(inputs)


def _synthetic_tables(request: CompareRequest) -> dict[str, Table | None]:
    """Return by letter the synthetic table of each release with synthetic features."""
    # InputError if the number of tables fits neither one for all nor one for each.
    named = zip(LETTERS, request.inputs, strict=False)
    double = [letter for letter, name in named if not is_result(name) and _is_double(request, name)]
    tables = request.synthetic_tables
    refuse(
        tables and not double,
        "--synthetic is for releases that declare double randomized response, and none of "
        "these does.",
    )
    refuse(
        len(tables) not in (0, 1, len(double)),
        "--synthetic must be given once, or once for each release that declares double "
        f"randomized response. Got {len(tables)} for {len(double)}.",
    )
    if not tables:
        return dict.fromkeys(double)
    if len(tables) == 1:
        return dict.fromkeys(double, tables[0])
    return dict(zip(double, tables, strict=True))


def _is_double(request: CompareRequest, source: Table) -> bool:
    declared = _declared(request, source)
    claim = declaration_of(request.mechanism, request)
    if declared:
        named = [column.label for column in named_columns(request)] or declared
        claim = next((declared[label] for label in declared if label in named), None)
    return traits_of(UNKNOWN if claim is None else claim.name).features == "partly synthetic"


def _declared(request: CompareRequest, source: Table) -> dict[str, Declaration | None]:
    """Return the private columns that a release declares, each with its own mechanism."""
    declared = open_table(source, request).declaration
    if declared is None:
        return {}
    return {column.label: column.mechanism for column in parse_declaration(declared).labels}


def _release(
    request: CompareRequest, letter: str, name: Table, synthetic: Table | None
) -> ReleaseInput:
    options = replace(
        request,
        mechanism=request.mechanism if open_table(name, request).declaration is None else None,
        original=request.original if synthetic is not None else None,
        held_out=request.held_out if synthetic is not None else None,
        synthetic=synthetic,
    )
    with _about(name):
        reading = read_with(name, options, test=request.test)
    release, column, private = reading.release, None, frozenset[str]()
    if release.numeric is None:  # Numbers have no tables of probabilities.
        try:
            release = with_public_posterior(release, request.public_posterior, request)
            release = with_canaries(release, request.canaries, request)
        except InputError as error:
            raise InputError(f"{release.name}: {error}") from None
    if reading.test is not None:
        rows_inside(release.features, reading.test.features)
        column = ColumnToLearn(release, reading.test, None, reading)
    declared = _declared(request, name)
    if len(declared) > 1:
        private = frozenset(declared)
        column = None if column is None else column_to_learn(name, options, request.test)
    replays = tuple(replays_of([name], options, release, shared=True))
    return ReleaseInput(letter, name, release, column, notes_of(reading), private, replays)


@contextmanager
def _about(source: Table) -> Iterator[None]:
    """Say which of the releases cannot be read, where the error does not (InputError)."""
    try:
        yield
    except InputError as error:
        name = Path(source).name if isinstance(source, str | os.PathLike) else ""
        if not name or quoted(name) in str(error):
            raise
        raise InputError(f"{name}: {error}") from None


def fingerprints(request: CompareRequest, inputs: tuple[Input, ...]) -> tuple[Fingerprint, ...]:
    """Return what is known of each input's data, and how it differs from the first."""
    # InputError if some differ and ``request.force`` is not set; fingerprints are in the message.
    first = _fingerprint(inputs[0])
    prints = [first, *(_compared(request, inputs[0], first, other) for other in inputs[1:])]
    names = told_apart([print_.name for print_ in prints], request.inputs)
    prints = [p.model_copy(update={"name": n}) for p, n in zip(prints, names, strict=True)]
    apart = [p for p in prints if p.mismatch]
    digests = ("no digest" if p.sha256 is None else f"sha256 {p.sha256[:_SHOWN]}…" for p in prints)
    known = "; ".join(
        f"{p.name}: {p.rows:,} rows, {p.features} feature column{'s' * (p.features != 1)}, {digest}"
        for p, digest in zip(prints, digests, strict=True)
    )
    differ = (f"{p.name} differs from {names[0]} in {' and '.join(p.mismatch)}" for p in apart)
    refuse(
        apart and not request.force,
        f"The releases must be of the same data. {'; '.join(differ)} ({known}). --force compares "
        "them all the same.",
    )
    return tuple(prints)


def pairable(print_: Fingerprint) -> bool:
    """Return whether rows of a release can be paired with those of the first one."""
    return print_.source == "data" and not print_.mismatch


def _fingerprint(item: Input) -> Fingerprint:
    if isinstance(item, ResultInput):
        info = item.result.release
        known = info.model_dump(include={"name", "sha256", "rows", "classes", "features", "truth"})
        return Fingerprint(letter=item.letter, source="result", **known)
    release = item.release
    return Fingerprint(
        letter=item.letter,
        source="data",
        name=release.name,
        sha256=release.sha256,
        rows=len(release),
        classes=len(release.classes),
        features=release.features.columns,
        truth=release.truth is not None,
    )


def _compared(
    request: CompareRequest, first: Input, ours: Fingerprint, other: Input
) -> Fingerprint:
    theirs = _fingerprint(other)
    if columns := _other_column(request, first, other):
        return theirs.model_copy(update={"mismatch": (columns,)})
    mismatch = ["rows"] if ours.rows != theirs.rows else []
    numbers = any(isinstance(i, ReleaseInput) and i.release.numeric for i in (first, other))
    withheld = "withheld" in (_traits(first).features, _traits(other).features)
    if ours.classes != theirs.classes and not numbers:
        mismatch.append("classes")
    if ours.features != theirs.features and not withheld:
        mismatch.append("feature columns")
    if ours.truth != theirs.truth:
        mismatch.append("whether true labels were given")
    if mismatch or isinstance(first, ResultInput) or isinstance(other, ResultInput):
        return theirs.model_copy(update={"mismatch": tuple(mismatch)})
    one, two = ({canonical(y) for y in item.release.classes} for item in (first, other))
    if one != two and not numbers:
        mismatch.append("the values of the label")
    if not withheld and (_names(first) ^ _names(other)) - first.private - other.private:
        mismatch.append("the names of feature columns")
    least = 1.0 if request.id_column else _least_share(first.release, other.release)
    share = _shared_rows(request, first, other, shifted=0 < least < _LEAST_OF_ALL)
    if share is not None and share < least:
        mismatch.append("the rows' features, or their order")
    return theirs.model_copy(update={"mismatch": tuple(mismatch), "shared_rows": share})


def _other_column(request: CompareRequest, first: Input, other: Input) -> str:
    """Return which columns two releases privatized, where that of one is a feature of the other."""
    if isinstance(first, ResultInput) or isinstance(other, ResultInput):
        return ""
    pairs = ((first, other), (other, first))
    if not any(a.release.label in _names(b) - b.private for a, b in pairs):
        return ""
    one, two = (
        open_table(item.source, request).names.index(item.release.label) + 1
        for item in (first, other)
    )
    return f"the private column (column {two} instead of column {one})"


def _traits(item: Input) -> Traits:
    if isinstance(item, ResultInput):
        return traits_of(item.result.mechanism.name)
    declared = item.release.declaration
    return traits_of(UNKNOWN if declared is None else declared.name)


def _names(item: ReleaseInput) -> frozenset[str]:
    return frozenset(column.name for column in item.release.columns)


def _shared_rows(
    request: CompareRequest, a: ReleaseInput, b: ReleaseInput, *, shifted: bool
) -> float | None:
    """Return the share of rows with the same id, or without ids the same features.

    ``shifted``: synthetic features may have another least value, from which numbers are counted.
    """
    if (name := request.id_column) is not None:
        tables = (open_table(item.source, request) for item in (a, b))
        ids = (comparable_ids(dict(table.columns((name,)))[name], "release") for table in tables)
        return float(pc.mean(pc.equal(*ids).cast("int8")).as_py())
    hidden, rows = a.private | b.private, np.arange(len(a.release))
    one, two = (
        replace(release, columns=tuple(c for c in release.columns if c.name not in hidden))
        for release in (a.release, b.release)
    )
    same = same_features(one, two, rows, rows, shifted=shifted)
    return None if same is None else float(same.mean())


def _least_share(a: Release, b: Release) -> float:
    """Return the least share of equal rows at which two releases may be of the same rows."""
    # Unless it is declared that a mechanism changes features, they are as they were.
    one, two = (_unchanged_share(release) for release in (a, b))
    return _LEAST_OF_ALL if one * two == 1 else _LEAST_OF_UNCHANGED * one * two


def _unseen(inputs: Sequence[Input]) -> bool:
    """Return whether a mechanism changes all features, so that rows cannot be compared by them."""
    releases = [item.release for item in inputs if isinstance(item, ReleaseInput)]
    return any(_unchanged_share(release) == 0 for release in releases)


def _unchanged_share(release: Release) -> float:
    share = from_declaration(release.declaration, release.classes).unchanged_share
    return 1.0 if share is None else share


def told_apart(names: Sequence[str], inputs: Sequence[Any]) -> list[str]:
    """Return the names of released files, all different.

    Where some are alike, the shortest ends of their ``inputs`` (files, folders, addresses, stored
    results or tables in memory) that differ, never a whole path, or the names with a letter.
    """
    alike = [names.count(name) > 1 for name in names]
    # A table in memory has no place.
    parts = [Path(one).absolute().parts if isinstance(one, str | Path) else () for one in inputs]
    for length in range(1, max(map(len, parts))):
        # A name alone is no path; an end must leave a folder besides the root.
        ends = [
            "/".join(each[-length:]) if length == 1 or length < len(each) - 1 else ""
            for each in parts
        ]
        found = [end if same else name for end, same, name in zip(ends, alike, names, strict=True)]
        if all(found) and len(set(found)) == len(found):
            return found
    return [
        f"{name} ({chr(ord('A') + place)})" if same else name
        for place, (name, same) in enumerate(zip(names, alike, strict=True))
    ]


_AUDIT = "comparison"


@unchanged()
def compare(request: CompareRequest, progress: Progress | None = None) -> Comparison:
    """Compare releases of the same data."""
    start, progress = time.perf_counter(), progress or NoProgress()
    request.check()
    request = replace(request, stop=request.stop or Stop.after(request.timeout))
    policy = policy_of(request)
    request = with_before(request, policy)
    confidence = (policy or default_policy()).audit.confidence
    inputs = read_inputs(request, progress)
    prints = fingerprints(request, inputs)
    read = [item for item in inputs if isinstance(item, ReleaseInput)]
    # One seed, so that all releases have the same halves; groups of the first hold the same people.
    seed = seed_of(request, next(filter(None, (item.release.sha256 for item in read)), None))
    plan = plan_of(
        request, seed, read_slices(read[0].source, request.slices, request) if read else ()
    )
    plans = [_plan_for(item, request, plan) for item in inputs]
    jobs, sides, notes = (
        [*zip(inputs, prints, plans, strict=True)],
        list[Side](),
        [*_notes(prints, unseen=_unseen(inputs))],
    )
    with Scratch() as scratch, cluster_of(request, scratch, progress) as cluster:
        tasks: Tasks = cluster or Threads(1)
        shared = _Shared(request, policy, confidence, progress)
        for side, more in tasks.map(
            _side, jobs, shared=shared if cluster is None else shared.sent()
        ):
            sides.append(side)
            notes += more
            if cluster is not None:
                progress.step(f"{len(sides)} of {len(inputs)} audited")
    progress.step("differences")
    results = tuple(side.result for side in sides)
    ran = [set(attack_scores(result)) for result in results]
    if missing := sorted(ran[0].union(*ran) - ran[0].intersection(*ran)):
        text = (
            f"These attacks ran on some of the releases only: {', '.join(missing)}. The strongest "
            "is chosen among those that ran on each; why one was left out is said for each release."
        )
        notes.append(Note.info(_AUDIT, text))
    names = {print_.letter: print_.name for print_ in prints}
    differences = tuple(
        d.model_copy(update={"a_name": names[d.a], "b_name": names[d.b]})
        for d in all_differences(sides, confidence)
    )
    texts = sentences([*zip(names.values(), results, strict=True)], differences, confidence)
    return Comparison(
        ldpaudit_version=ldpaudit.__version__,
        sentence=" ".join(texts),
        sentences=texts,
        remark=remark(differences, confidence),
        confidence=confidence,
        fingerprints=prints,
        releases=results,
        differences=differences,
        notes=tuple(notes),
        run=run_info(
            *(plan, request.command, time.perf_counter() - start, policy),
            tuple(dict.fromkeys(part for one in results for part in one.run.plugins)),
        ),
    )


@dataclass(frozen=True)
class _Shared:
    """What all audits share; ``until``: the end for other machines, in seconds of the epoch."""

    request: CompareRequest
    policy: Policy | None
    confidence: float
    progress: Progress
    until: float | None = None

    def sent(self) -> "_Shared":
        """Return it for other processes."""
        deadline = self.request.stop.deadline if self.request.stop else None
        until = None if deadline is None else time.time() + deadline - time.monotonic()
        request = replace(self.request, cluster=None, progress=None, stop=None)
        return replace(self, request=request, progress=NoProgress(), until=until)

    @property
    def stop(self) -> Stop | None:
        """The end of the time, on this machine's clock."""
        if self.until is None:
            return self.request.stop
        return Stop(time.monotonic() + self.until - time.time(), self.request.timeout)


def _plan_for(item: Input, request: CompareRequest, plan: Plan) -> Plan:
    """Return the plan of a release: one of other people has its own groups."""
    if not isinstance(item, ReleaseInput):
        return plan
    if all(len(column.codes) == len(item.release) for column in plan.slices):
        return plan
    return replace(plan, slices=read_slices(item.source, request.slices, request))


def _side(job: tuple[Input, Fingerprint, Plan], shared: _Shared) -> tuple[Side, list[Note]]:
    """Audit a release and train a model on it; a stored result is taken as it is."""
    (item, print_, plan), request, notes = job, shared.request, list[Note]()
    if not isinstance(item, ReleaseInput):
        return Side(item.letter, item.result, None, None, pairable(print_)), notes
    guesses, score = HeldOutGuesses(), None
    (replay,) = item.replays
    replay = None if replay is None else replay.of(item.release.label)
    terms = Terms(
        plan,
        shared.policy or default_policy(),
        command=request.command,
        only=request.only,
        skip=request.skip,
    )
    progress = Watched(shared.progress, name=item.release.name)
    run = terms.execution(progress=progress, stop=shared.stop, guesses=guesses)
    try:
        result = audit(item.release, terms, run, notes=item.notes, replay=replay)
    except InputError as error:
        raise InputError(f"{item.release.name}: {error}") from None
    if any(note.text == UNRELATED for note in result.notes):
        notes.append(Note.warning(_AUDIT, f"{print_.name}: {UNRELATED}"))
    if (column := item.column) is not None:
        shared.progress.step(f"{print_.name}: training a model")
        try:
            learner = Learner(request.model, request.device, beside=column.beside)
            rng = child_generator(plan.seed, "compare", "utility")
            score = utility(column.release, column.test, learner, shared.confidence, rng)
            notes += [Note.warning(_AUDIT, f"{print_.name}: {w}") for w in score.warnings]
            found = {one.id: one for one in (score.estimate, *score.beside)}
            others = (one for one in result.estimates if one.id not in found)
            result = result.model_copy(update={"estimates": (*others, *found.values())})
        except (InputError, InsufficientDataError) as error:
            text = f"No model was trained on {print_.name}: {error}"
            notes.append(Note.warning(_AUDIT, text))
    return Side(item.letter, result, guesses, score, pairable(print_)), notes


def _notes(prints: tuple[Fingerprint, ...], *, unseen: bool) -> Iterator[Note]:
    """Yield what holds for the comparison; ``unseen``: no feature is released as it was."""
    if any(print_.mismatch for print_ in prints):
        yield Note.warning(
            _AUDIT,
            "The data differ, and the comparison was forced: differences may come from the data "
            "rather than from the mechanisms, and no row was paired.",
        )
    if any(print_.source == "result" for print_ in prints):
        yield Note.info(
            _AUDIT,
            "A stored result holds no row, so its differences are not paired: their intervals are "
            "wider than those of releases that are audited together.",
        )
    unsure = [p for p in prints[1:] if pairable(p) and p.shared_rows is None]
    if (unsure or unseen) and prints[0].source == "data":
        yield Note.warning(
            _AUDIT,
            "Whether the rows are in the same order could not be seen from the features; pairing "
            "takes it for granted.",
        )
