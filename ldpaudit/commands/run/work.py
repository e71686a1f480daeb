"""The work of ``run``, ``report`` and ``demo``, and what is said besides the result."""

import contextlib
import os
import shlex
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from ldpaudit.api import audit_with
from ldpaudit.commands.outputs import Outputs, ReportOutputs, read_result
from ldpaudit.commands.requests import RunRequest
from ldpaudit.commands.run.steps import TypedSteps
from ldpaudit.commands.shell import Said, Told, carry_out, public_lines, tell
from ldpaudit.errors import OutputError, quoted, refuse
from ldpaudit.judging.policy import check_lines, load_policy
from ldpaudit.judging.policy.explaining import CHECKS
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.randomness import child_generator
from ldpaudit.release import Declaration
from ldpaudit.reports import FORMATS, check_format, render
from ldpaudit.reports.charts.svg import prepare
from ldpaudit.reports.interface import Place, Surroundings
from ldpaudit.reports.text.pieces import Piece, every_answer, named, pieces, worst_first
from ldpaudit.reports.text.wording import (
    PUBLISH,
    assumptions_of_bounds,
    correction_lines,
    every_check,
    plugin_words,
    plugins_of,
    policy_words,
    publish_line,
    waiver_line,
)
from ldpaudit.result import AuditResult, Check, Profile
from ldpaudit.result.answers import is_warning, warnings_of
from ldpaudit.result.harmless import one_line
from ldpaudit.result.public import public
from ldpaudit.result.sentence import WARNING
from ldpaudit.terminal import GITHUB, others_read, progress_on_terminal, say, stream, words_only
from ldpaudit.work.documents import as_json
from ldpaudit.work.files import WholeFiles, write_all
from ldpaudit.work.interruption import last_words
from ldpaudit.work.memory import Scratch
from ldpaudit.work.progress import Progress, Stop
from ldpaudit.work.tasks import processes

if TYPE_CHECKING:
    import pyarrow as pa

    from ldpaudit.mechanisms.exact_sampling import Randomness
    from ldpaudit.mechanisms.keyed import NoiseKey


def run_and_write(
    request: RunRequest,
    outputs: Outputs,
    *,
    quiet: bool = False,
    status: Callable[[AuditResult], int] | None = None,
    profile: Profile = "internal",
    details: bool = False,
) -> AuditResult:
    """Audit, write the result and the reports, and print the summary.

    ``status`` gives the exit status of a result, which some formats repeat; ``profile`` is whom
    the reports are for, ``details`` whether the log of a service may show what was found.
    Ctrl-C ends the audit early: what is finished is written.
    """
    with outputs.for_people():
        for name in outputs.asked:
            check_format(name, profile)
    # The page for insiders shows nothing of what is known to everybody; a stored result may later
    # become a public page.
    outsiders = profile == "public" or bool(outputs.asked.keys() - {"html"})
    discreet = profile == "public" or (others_read() and not details)
    stop = Stop.after(request.timeout)
    with stop.on_signals():

        def work(request: RunRequest, progress: Progress) -> _Audited:
            if "html" in outputs.asked and is_small(request):
                prepare()
            options = replace(request, progress=progress, stop=stop)
            released = request.release if len(request.release) > 1 else request.release[0]
            result = audit_with(released, options, outsiders=outsiders)
            ended = None if status is None else status(result)
            around = Surroundings(_places(result, request.policy), CHECKS, ended, profile)
            typed = None if discreet else TypedSteps(request).step
            return _Audited(result, around, typed, details, tuple(outputs.asked))

        found = carry_out(work, request, outputs, quiet=quiet, discreet=discreet, minds_log=True)
    with words_only():
        _summarize(found)
    return found.result


# Bytes of a release with which an audit has memory to spare.
SMALL: Final = 50_000_000


def is_small(request: RunRequest) -> bool:
    """Return whether all releases are small files."""
    paths = [Path(one) for one in request.release]
    with contextlib.suppress(OSError, ValueError):
        return all(path.is_file() and path.stat().st_size <= SMALL for path in paths)
    return False


@dataclass(frozen=True)
class _Audited(Told):
    """A result, for whom it is; ``typed``: None where files are not named: others may read it."""

    result: AuditResult
    around: Surroundings
    typed: Callable[[str], str] | None
    details: bool
    formats: Collection[str]

    @property
    def confidential(self) -> bool:
        """Whether its files show what true labels reveal."""
        return self.around.profile == "internal" and self.result.confidential

    @property
    def detailed(self) -> bool:
        """Whether the log of a service shows the checks and what was measured."""
        return self.details and self.around.profile == "internal"

    def makers(self) -> Mapping[str, Callable[[], str]]:
        """Return what makes each format."""
        names = dict.fromkeys((*FORMATS, *self.formats))
        return {name: partial(render, self.result, name, self.around) for name in names}

    def said(self, *, quiet: bool) -> Iterator[Said]:
        """Yield the summary, and what the service that runs the command is told."""
        if self.around.profile == "public":
            yield from public_lines(public(self.result), quiet=quiet)
        elif self.typed is not None:
            yield from said_of(self.result, quiet=quiet, typed=self.typed)
        if others_read():
            yield from _told_service(self.result, self.around, details=self.detailed)


def _places(result: AuditResult, policy: object) -> dict[str, Place]:
    """Return where the policy asks for each check; nothing where it is no file, or has changed."""
    if not isinstance(policy, str | Path):
        return {}
    path = Path(policy)
    try:
        if not path.is_file() or load_policy(path).sha256 != result.run.policy_sha256:
            return {}
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError):  # It has changed since; that takes nothing from the result.
        return {}
    shown = path.name  # From outside of the working directory.
    with contextlib.suppress(ValueError):
        shown = path.resolve().relative_to(Path.cwd().resolve()).as_posix()
    lines = check_lines(text, list(dict.fromkeys(check.id for check in every_check(result))))
    return {check: Place(shown, line) for check, line in lines.items()}


def _told_service(result: AuditResult, around: Surroundings, *, details: bool) -> Iterator[Said]:
    """Yield the decision and the exit status, for the service that runs the command.

    On GitHub as an annotation; with ``details`` it holds the checks and what was measured.
    """
    if os.environ.get(GITHUB) != "true":
        yield from () if details else (_ended(result, around),)
        return
    from ldpaudit.reports.text.answers import annotations, of_decision

    ended = _ended(result, around)
    yield from annotations(result, around) if details else [of_decision(result, ended)]


def _ended(result: AuditResult, around: Surroundings) -> str:
    return f"Publish: {PUBLISH[result.decision]}. Exit status {around.exit_status(result)}."


def _summarize(audited: _Audited) -> None:
    """Append the decision, or the checks with it, to the summary of the step on GitHub."""
    if os.environ.get(GITHUB) != "true":
        return
    result, around = audited.result, audited.around
    shown = audited.detailed or around.profile == "public"
    text = render(result, "markdown", around) if shown else f"**{_ended(result, around)}**\n"
    summary = Path(os.environ.get("GITHUB_STEP_SUMMARY", ""))
    with contextlib.suppress(OSError, ValueError):
        if summary.is_file():
            with summary.open("a", encoding="utf-8") as page:
                page.write("\n" + text)


def render_again(
    stored: Path,
    outputs: ReportOutputs,
    policy: Path | None = None,
    profile: Profile = "internal",
) -> None:
    """Render a stored result: as asked for, else as a page beside it."""
    # InputError where it is no stored result, or was judged by another policy.
    result = read_result(stored)
    if not outputs.asked:
        outputs = replace(outputs, html=stored.with_suffix(".html"))
    with outputs.for_people():
        outputs.check([stored, policy])
        if policy is not None:
            load_policy(policy)
        around = Surroundings(_places(result, policy), CHECKS, None, profile)
        name = "" if policy is None else quoted(policy.name)
        refuse(name and not around.places, f"The result was not judged by the policy {name}.")
        streamed = outputs.write(
            {name: partial(render, result, name, around) for name in outputs.asked},
            confidential=profile == "internal" and result.confidential,
        )
    with words_only(), outputs.for_people():
        for path in outputs.given():
            say(f"Wrote {one_line(str(path))}.")
    if streamed:
        with words_only():
            stream(streamed)


# Audits of special releases: only the result says that they do not apply to others.
SPECIAL = frozenset({"numeric-inference", "aggregates", "synthetic"})


def said_of(
    result: AuditResult, *, quiet: bool, typed: Callable[[str], str] | None = None
) -> Iterator[Said]:
    """Yield the decision, the verdict, what to do next and the checks; quiet: in one line.

    ``typed``: returns a step with its command as it is typed; None: it keeps its placeholders.
    """
    steps = [step if typed is None else typed(step) for step in result.next_steps]
    publish = publish_line(result)
    if quiet:
        step = f" Next: {steps[0]}" if steps else ""
        yield one_line(f"{publish} {result.sentence}{step}")
        return
    judged = f"Audited on {result.date}, judged by {policy_words(result.run)}."
    yield from (result.access, f"{publish} {judged}" if result.date else publish)
    yield one_line(result.sentence)
    yield from (("" if n else "next", f"{n + 1}. {step}") for n, step in enumerate(steps))
    for piece in worst_first(result):
        known = (f"{name[:1].lower()}{name[1:]} {text}" for name, text in piece.found.items())
        verdict = piece.result.verdict
        warns = verdict == "pass" and warnings_of(piece.result.checks)
        sign = WARNING.lower() if warns else verdict
        yield sign, "; ".join((f"{piece.title}: {piece.claimed}", *known))
    # The checks of the whole, and of its parts those that are not met, each alike once.
    alike: dict[tuple[str, str, str], list[Piece]] = {}
    for piece, check in every_answer(result):
        waived = f" ({words})" if (words := waiver_line(check)) else ""
        if not piece.key:
            yield _sign(check), f"{check.id}: {check.reason}{waived}"
        elif check.verdict != "pass":
            found = (_sign(check), check.id, f"{check.reason}{waived}")
            alike.setdefault(found, []).append(piece)
    for (sign, identifier, reason), of in alike.items():
        yield sign, f"{identifier} of {named(of)}: {reason}"
    yield from (("correction", correction) for correction in correction_lines(result))
    every = pieces(result)
    records = [one for piece in every for one in piece.result.audits]
    left_out = [r for r in records if r.status != "ran" and r.id not in SPECIAL]
    yield from dict.fromkeys(
        (record.status, f"{record.id}: {record.reason}") for record in left_out
    )
    if others := plugin_words(plugins_of(result)):
        yield "plug-ins", f"parts of others took part: {others}"
    if assumed := assumptions_of_bounds(result):
        yield "certified", f"assumes: {assumed}"
    for note in result.notes:
        if note.audit == "person" and note.level == "info":
            yield "found", note.text
    warned: dict[str, list[Piece]] = {}
    for piece in every:
        for note in piece.result.notes:
            if note.level == "warning":
                warned.setdefault(note.text, []).append(piece)
    for text, of in warned.items():
        which = named(of)
        yield "warning", text if not of[0].key else f"{which[:1].upper()}{which[1:]}: {text}"


def _sign(check: Check) -> str:
    """Return what stands before a check in a list: its verdict, or that it is a warning."""
    return WARNING.lower() if is_warning(check) else check.verdict


CLAIMED_EPSILON: Final = 1.0
# ε of the honest release and of the other.
MADE_WITH: Final = (1.0, 3.0)
# A result, and the contents of its files: a process that may be killed writes none.
_Written: TypeAlias = tuple[AuditResult, dict[Path, str]]


def run_demo(folder: Path, seed: int) -> int:
    """Write the two releases of the demo, audit both and print the verdicts; return the status."""
    # 0 where the honest release passes and the dishonest one fails, as they should; else 1.
    # LdpAuditError if the files cannot be written, or an audit could not run.
    files = write_demo(folder, seed)
    jobs = [(path, files.truth) for path in (files.honest, files.dishonest)]
    with last_words(lambda: "Interrupted; the releases are written, and no report on them."):
        results, texts = zip(*_audited(jobs), strict=True)
        words = [[*said_of(result, quiet=False)] for result in results]
        write_all(dict(ChainMap(*texts)), last=True)
    as_meant = [result.verdict for result in results] == ["pass", "fail"]
    with words_only():
        for (release, truth), made_with, said in zip(jobs, MADE_WITH, words, strict=True):
            say(f"\n{release.name}: declares ε = 1 and was made with ε = {made_with:g}")
            say(f"$ ldpaudit run {shlex.quote(str(release))} --truth {shlex.quote(str(truth))}")
            tell(said)
            ReportOutputs().or_beside(str(release), "audit").announce()
        page = ReportOutputs().or_beside(str(files.dishonest), "audit").html
        say(f"\n{_LAST[as_meant]}\nOpen {page} in a browser.")
    return 0 if as_meant else 1


_LAST: Final = {
    True: "The honest release passes, and the dishonest one is caught, as it should be.",
    False: "These verdicts are not the usual ones: chance does that with some seeds (--seed).",
}


def _audited(jobs: list[tuple[Path, Path]]) -> list[_Written]:
    """Audit releases, each in a process of its own: two take hardly longer than one."""
    threads = max(1, (os.cpu_count() or 1) // len(jobs))
    with (
        progress_on_terminal(quiet=False) as progress,
        Scratch() as scratch,
        processes(len(jobs), threads, scratch.folder) as pool,
    ):
        progress.step("auditing both releases, which takes about a quarter of a minute")
        return [*pool.map(_audit, jobs, shared=threads)]


def _audit(job: tuple[Path, Path], threads: int) -> _Written:
    release, truth = job
    request = RunRequest(
        release=(str(release),), truth=str(truth), threads=threads, command="ldpaudit demo"
    )
    result = audit_with(str(release), request)
    texts = {"json": as_json(result.model_dump()), "html": render(result, "html")}
    places = ReportOutputs().or_beside(str(release), "audit").asked
    return result, {place: texts[name] for name, place in places.items()}


class DemoFiles(NamedTuple):
    """The demonstration's files: two releases, and the true labels of both."""

    honest: Path
    dishonest: Path
    truth: Path


def demo_tables(seed: int) -> "tuple[pa.Table, pa.Table, pa.Table]":
    """Return the two releases and the truth, made of the embedded sample."""
    # Both releases declare randomized response with ε = 1; the second was made with ε = 3. The
    # first has a receipt, unless this installation cannot draw noise again: its key comes from the
    # seed, which no key of a real release does.
    import pyarrow as pa

    from ldpaudit.datasets.sample import CLASSES, LABEL, affairs
    from ldpaudit.mechanisms.keyed import KEY_BYTES, NoiseKey
    from ldpaudit.receipt.seam import can_draw_again

    features, labels = affairs()
    # The survey is sorted by the answer, so the order of its rows would tell every one.
    order = child_generator(seed, "demo", "order").permutation(len(labels))
    features, labels = features.iloc[order], labels[order]
    codes = np.array([CLASSES.index(label) for label in labels], dtype=np.int32)
    key = NoiseKey(child_generator(seed, "demo", "key").bytes(KEY_BYTES))
    honest = _release(features, codes, MADE_WITH[0], key.stream("release", LABEL).at(0))
    rng = child_generator(seed, "demo", "dishonest")
    dishonest = _release(features, codes, MADE_WITH[1], rng)
    truth = pa.table({LABEL: labels})
    if can_draw_again():
        honest, truth = with_receipt(honest, truth, key)
    return honest, dishonest, truth


def with_receipt(
    released: "pa.Table", truth: "pa.Table", key: "NoiseKey"
) -> "tuple[pa.Table, pa.Table]":
    """Return a release that commits to a key, and the true labels with it."""
    from ldpaudit.datasets.declaration import declared_content, parse_declaration
    from ldpaudit.datasets.formats.tables import DECLARATION_KEY
    from ldpaudit.datasets.sample import LABEL
    from ldpaudit.receipt.commitment import LabelSeal, Secret, Statement

    seal = LabelSeal(key, LABEL, numeric=False)
    seal.add(truth.column(LABEL))
    declared = released.schema.metadata[DECLARATION_KEY]
    statement = Statement.of(declared, len(truth), {LABEL: seal.digest()})
    content = parse_declaration(declared)
    stated = declared_content(replace(content, receipt=statement.receipt(key)))
    secret = Secret(key, statement).content()
    return (
        released.replace_schema_metadata({DECLARATION_KEY: stated}),
        truth.replace_schema_metadata({DECLARATION_KEY: secret}),
    )


def write_demo(folder: Path, seed: int) -> DemoFiles:
    """Write the demonstration's files into a folder, which is made if needed."""
    from ldpaudit.datasets.writing import write_table

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"The folder cannot be made ({type(error).__name__}).") from None
    names = ("honest.parquet", "dishonest.parquet", "truth.parquet")
    paths = [folder / name for name in names]
    with WholeFiles() as files:
        for path, table in zip(paths, demo_tables(seed), strict=True):
            write_table(table, files.add(path, private=path.name == "truth.parquet"))
    return DemoFiles(*paths)


def _release(features: Any, codes: Any, epsilon: float, rng: "Randomness") -> "pa.Table":
    import pyarrow as pa

    from ldpaudit.datasets import declare
    from ldpaudit.datasets.sample import CLASSES, LABEL

    released = RandomizedResponse.from_epsilon(CLASSES, epsilon).sample(codes, rng)
    table = pa.Table.from_pandas(features, preserve_index=False).replace_schema_metadata(None)
    table = table.append_column(LABEL, pa.array([CLASSES[code] for code in released]))
    claim = RandomizedResponse.from_epsilon(CLASSES, CLAIMED_EPSILON)
    parameters = {"classes": list(CLASSES), "epsilon": CLAIMED_EPSILON}
    return declare(table, Declaration(claim.name, parameters), LABEL)
