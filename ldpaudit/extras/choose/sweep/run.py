"""`ldpaudit sweep`: its checks, its points in worker processes, and the folder that keeps them."""

import hmac
import os
import secrets
import threading
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from ldpaudit import __version__
from ldpaudit.api import cluster_of, policy_of
from ldpaudit.datasets.formats.locations import check_unchanged, locate, unchanged
from ldpaudit.device import need_torch
from ldpaudit.doors import (
    AuditResult,
    Estimate,
    InputError,
    LdpAuditError,
    NoProgress,
    OutputError,
    Progress,
    Scratch,
    available_threads,
    processes,
    refuse,
)
from ldpaudit.errors import PolicyError, quoted
from ldpaudit.extras.choose.sweep.page import Sweep
from ldpaudit.extras.choose.sweep.points import (
    SweepTables,
    confidence_of,
    measure,
    mechanism_at,
    read_tables,
    reference,
)
from ldpaudit.extras.choose.sweep.request import Point, SweepRequest
from ldpaudit.extras.choose.sweep.result import (
    SIMULATED,
    Contrast,
    Facts,
    Setting,
    contrasts_of,
    least_noise,
    setting_of,
)
from ldpaudit.extras.release.privatize.features import FittedGenerator
from ldpaudit.extras.release.privatize.plan import check_column, options_of
from ldpaudit.extras.release.privatize.scan import released_as_they_are
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import traits_of
from ldpaudit.mechanisms.registry import applicable
from ldpaudit.options import option_name
from ldpaudit.pipeline.audit import chosen_audits
from ldpaudit.result import Decision, Verdict
from ldpaudit.result.plug_ins import given
from ldpaudit.work.documents import as_json, parse_json, read_document
from ldpaudit.work.files import WholeFiles, hold
from ldpaudit.work.interruption import last_words
from ldpaudit.work.limits import DOCUMENT_BYTES, RELEASES
from ldpaudit.work.memory import size_of
from ldpaudit.work.tasks import Pool

_FORMAT: Final = "ldpaudit-sweep"
# The options that may name files besides the data.
_FILES: Final = ("test", "synthetic", "generator_data", "prior")
# The options that change no number, and those of which something else is remembered.
_APART: Final = frozenset(
    {
        *("processes", "memory", "cluster", "cluster_without_tls", "out", "resume"),
        *("data", *_FILES, "public", "policy", "grid", "threads", "seed", "attacks"),
    }
)
# Of a point's time, about that of its audits; the rest is its learner's. Seconds between two looks
# at what runs.
_AUDITS, _LOOK = 0.8, 0.5
# Fit the generator, score a learner on the true labels, or measure a point.
Task = Literal["generator", "reference"] | Point


def check_sweep(request: SweepRequest) -> None:
    """Refuse what the options alone show to be wrong, by its first fault (LdpAuditError)."""
    for wrong, fault in _faults(request):
        refuse(wrong, fault)
    request.check()
    if request.learner == "network":
        need_torch("The learner 'network'")
    if request.generator == "gan":
        need_torch("The generator 'gan'")
    for point in request.first_points():
        check_column(request.privatized(point, 0))


def _faults(request: SweepRequest) -> Iterator[tuple[bool, str]]:
    """Yield what may be wrong; what comes later needs that nothing was wrong before."""
    names, parameter = request.mechanisms, request.grid.parameter
    yield not names, "A sweep must be given at least one mechanism: --mechanism NAME."
    able = ", ".join(name for name in applicable() if traits_of(name).swept)
    for name in names:
        known = f"choose from {able}."
        yield name not in applicable(), f"The mechanism {name!r} is not known; {known}"
        own = f"The mechanism {name!r} needs options of its own and cannot be swept; {known}"
        yield not traits_of(name).swept, own
        by_epsilon = f"The mechanism {name!r} is swept by --epsilon."
        yield parameter not in traits_of(name).stated_by, by_epsilon
    yield (
        len({traits_of(name).numeric for name in names}) > 1,
        "Mechanisms on numbers and mechanisms on classes are judged by different attacks: sweep "
        "them apart (on numbers, debiased-rr is randomized response).",
    )
    taken = {option for name in names for option in options_of(name)}
    for option in ("labels", "prior", "synthetic", "generator"):
        foreign = getattr(request, option) is not None and option not in taken
        yield foreign, f"{option_name(request, option)} does not belong to any of the mechanisms."
    made = request.synthetic is not None or request.generator is not None
    for name in names:
        yield (
            "synthetic rows" in traits_of(name).needs and not made,
            f"The mechanism {name!r} must be given synthetic rows: --public FILE, --synthetic FILE "
            "or --generator NAME.",
        )
    lone, several = request.generator_data is not None, request.processes is not None
    yield (
        lone and request.generator is None,
        "--generator-data must come with --generator, which is trained on it.",
    )
    yield (
        request.resume and request.out is None,
        "--resume must come with --out, the folder of the sweep to go on with.",
    )
    share = f"--test-share must lie in (0, 1). Got {request.test_share:g} instead."
    yield not 0 < request.test_share < 1, share
    yield (
        request.test is not None and request.test_share != SweepRequest.test_share,
        "--test-share does not go with --test, whose rows are all test rows.",
    )
    yield (
        request.cluster is not None and several,
        "--processes does not go with --cluster, which has workers of its own.",
    )
    for name, most in (("repeats", request.repeats), ("processes", request.processes or 1)):
        yield most < 1, f"--{name} must be at least 1. Got {getattr(request, name)} instead."
    releases = request.repeats * len(request.grid.values) * len(names)
    yield (
        releases > RELEASES,
        f"A sweep must have at most {RELEASES:,} simulated releases. Got {releases:.6g}: take "
        "a coarser grid, fewer mechanisms or fewer --repeats.",
    )
    yield request.seed is not None and request.seed < 0, "--seed must not be negative."


@dataclass(frozen=True)
class Setup:
    """What each process works with."""

    request: SweepRequest
    seed: int
    policy: Policy | None
    generator: Path
    """The file of the fitted generator."""
    noted: Path | None = None
    """The folder in which processes of this machine note how far their points are."""

    def anywhere(self) -> "Setup":
        """Return it for processes that work in another folder: with whole paths."""
        asked = {name: getattr(self.request, name) for name in ("data", *_FILES)}
        whole: dict[str, Any] = {
            name: str(path) if "://" in str(path) else str(Path(path).absolute())
            for name, path in asked.items()
            if path is not None
        }
        request = replace(self.request, **whole, cluster=None)
        return replace(self, request=request, generator=self.generator.absolute())

    @cached_property
    def _tables(self) -> SweepTables:
        return read_tables(self.request, self.seed)

    @cached_property
    def _with_generator(self) -> SweepTables:
        """The tables with the fitted generator; a process loads it once."""
        from ldpaudit.extras.release.synthesis.factory import load_generator

        if not self.generator.is_file():
            return self._tables
        return replace(self._tables, fitted=FittedGenerator(load_generator(self.generator), ()))

    def run(self, task: Task) -> dict[str, Any]:
        """Do a task; return what is stored of it."""
        points, made = self.request.points(), self.request.privatized
        if task == "generator":
            from ldpaudit.extras.release.synthesis.factory import save_generator

            users = (point for point in points if made(point, 0).generator is not None)
            fitted: Any = self._tables.with_generator(next(users), self._noting(task)).fitted
            save_generator(fitted.generator, self.generator, overwrite=True)
            return {"warnings": list(fitted.warnings)}
        if task == "reference":
            return reference(self._tables, points[0], confidence_of(self.policy)).model_dump()
        tables = self._with_generator if made(task, 0).generator is not None else self._tables
        return measure(tables, task, self.policy, self._noting(task))

    def _noting(self, task: Task) -> Progress:
        return NoProgress() if self.noted is None else _Noting(note_of(task, self.noted))


def note_of(task: Task, folder: Path) -> Path:
    """Return the file in which a process notes how far a task is."""
    return folder / f"{task.key if isinstance(task, Point) else task}.at"


@dataclass
class _Noting(NoProgress):
    """Progress within a task, noted for the process that shows it: what runs, and its share."""

    place: Path
    words: str = ""
    tenths: int = 0
    names: Sequence[str] = ()
    ended: bool = False  # Whether the audits are over: the learner is what is left.

    def step(self, text: str) -> None:
        """Note what is done before and after the audits; steps within an audit are not noted."""
        self.words = text
        if not self.names:
            self._note(text, _AUDITS if self.ended else self.tenths / 10)

    def advance(self, done: int, total: int) -> None:
        """Note each tenth of what has no audits."""
        tenths = 10 * done // max(total, 1)
        if not (self.names or self.ended) and tenths > self.tenths:
            self.tenths = tenths
            self._note(self.words, tenths / 10)

    def phases(self, names: Sequence[str]) -> None:
        """Begin the audits, or end them where there are no names."""
        self.ended |= bool(self.names)
        self.names = names

    def phase(self, number: int) -> None:
        """Note which audit begins."""
        words = f"{self.names[number]} ({number + 1} of {len(self.names)} audits)"
        self._note(words, _AUDITS * number / len(self.names))

    def _note(self, words: str, share: float) -> None:
        with suppress(OSError):  # What is not shown costs the point nothing.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with os.fdopen(os.open(self.place, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(as_json({"words": words, "share": share}))


def measured(task: Task, setup: Setup) -> dict[str, Any]:
    """Do a task; return what is stored of it."""
    return setup.run(task)


class _Kept(BaseModel):
    """What a point's file must hold, as far as it is read again."""

    verdict: Verdict
    decision: Decision
    sentence: str
    test: Estimate
    correction: str
    result: AuditResult


def is_finished(content: dict[str, Any] | None) -> bool:
    """Return whether a point's file holds all of it; if not, the point is measured again."""
    try:
        _Kept.model_validate(content)
    except ValidationError:
        return False
    return True


def manifest(request: SweepRequest, seed: int, policy_sha256: str | None) -> dict[str, Any]:
    """Return everything that the numbers of a sweep depend on; it stays in memory."""
    # Files are known by their digest; the number of processes and the memory change no number.

    def plain(value: Any) -> Any:  # The value of an option as JSON can say it.
        if value is None or isinstance(value, bool | int | float | str):
            return value
        return list(value) if isinstance(value, Collection) else str(value)

    files = {name: getattr(request, name) for name in ("data", *_FILES)}
    names = [option.name for option in fields(request) if option.name not in _APART]
    attacks = [given("attack", str(one), str(one)) for one in request.attacks]
    return {
        "version": __version__,
        "policy": policy_sha256,
        "parameter": request.grid.parameter,
        "values": list(request.grid.values),
        "threads": request.threads or 1,
        "seed": seed,
        **{name: None if path is None else locate(path).sha256() for name, path in files.items()},
        "attacks": [(attack.name, attack.sha256) for attack in attacks],
        **{name: plain(getattr(request, name)) for name in names},
    }


def _digests(key: str, options: dict[str, Any]) -> dict[str, str]:
    """Return a digest of each option, which nobody can make without the key."""
    texts = {name: as_json({name: value}).encode() for name, value in options.items()}
    return {name: hmac.digest(key.encode(), text, "sha256").hex() for name, text in texts.items()}


@dataclass(frozen=True)
class SweepFolder:
    """The folder where the points of a sweep are kept; its files can be read by its owner only."""

    # Of its options, the data among them, it holds digests made with a random key: without the key
    # no guess of a true label or of a column's name can be tested against them.

    path: Path

    @property
    def generator(self) -> Path:
        """The fitted generator."""
        return self.path / "generator.npz"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Make the folder and hold it: a second sweep in it would write the same files."""
        shown = quoted(self.path.name)
        try:
            for folder in (self.path, self.path / "points"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDONLY)
        except OSError:
            raise OutputError(f"The folder {shown} cannot be made or written to.") from None
        try:
            refuse(
                not hold(descriptor),
                f"Another sweep writes to the folder {shown}: wait until it ends.",
            )
            yield
        finally:
            os.close(descriptor)

    def open(self, options: dict[str, Any], *, resume: bool) -> None:
        """Start the folder, or continue it; refuse another sweep's (InputError)."""
        shown, points = quoted(self.path.name), self.path / "points"
        entries = [e for e in self.path.iterdir() if not e.name.startswith(".") and e != points]
        if not entries and not any(points.glob("*.json")):
            key = secrets.token_hex(32)
            digests = _digests(key, options)
            return self.keep("manifest", {"format": _FORMAT, "key": key, "digests": digests})
        refuse(
            not resume, f"The folder {shown} is not empty; give another, or go on with --resume."
        )
        stored = self.kept("manifest")
        if stored is None or stored.get("format") != _FORMAT:
            raise InputError(f"The folder {shown} holds something that is no sweep.")
        known, wanted = stored.get("digests"), _digests(str(stored.get("key")), options)
        known = known if isinstance(known, dict) else {}
        other = [name for name in wanted if known.get(name) != wanted[name]]
        if other:
            # An earlier version stored fewer options, or no digests of them.
            first = other[0] if other[0] in known else "version"
            words = {"version": "version of ldpaudit", "data": "data", "policy": "policy"}
            words |= {"parameter": "parameter", "values": "grid"}
            what = words.get(first) or option_name(SweepRequest, first)
            raise InputError(
                f"The folder {shown} holds a sweep with another {what}; give another folder."
            )
        return None

    def _place(self, what: str | Point) -> Path:
        name = f"points/{what.key}" if isinstance(what, Point) else what
        return self.path / f"{name}.json"

    def keep(self, what: str | Point, content: dict[str, Any]) -> None:
        """Write the file of a point, or of what all points share, completely or not at all."""
        with WholeFiles() as files:
            files.add(self._place(what), private=True).write(as_json(content).encode())

    def kept(self, what: str | Point) -> dict[str, Any] | None:
        """Return what a file holds; None without a complete one."""
        try:
            text = read_document(self._place(what), DOCUMENT_BYTES)
            content = parse_json(text, "A file of the sweep", "It is incomplete.")
        except (OSError, ValueError):
            return None
        return content if isinstance(content, dict) else None


@dataclass
class SweepRun:
    """A running sweep: what is ``done``, by its task, and why others ``failed``."""

    # A resumed sweep tries these again.

    request: SweepRequest
    folder: SweepFolder
    progress: Progress
    done: dict[Task, dict[str, Any]] = field(default_factory=dict)
    failed: dict[Task, str] = field(default_factory=dict)

    @property
    def points(self) -> list[Point]:
        """The points that are measured, those that failed left out."""
        return [point for point in self.request.points() if point in self.done]

    def _left(self, *tasks: Task) -> list[Task]:
        return [one for one in tasks if one not in self.done and one not in self.failed]

    def go(self, setup: Setup) -> None:
        """Take what the folder holds, and do what is left."""
        points = self.request.points()
        every: list[Task] = ["generator", "reference", *points]
        for task in every:
            content = self.folder.kept(task)
            if content is not None and (not isinstance(task, Point) or is_finished(content)):
                self.done[task] = content
        if not self._left(*points, "reference"):
            return
        setup = setup.anywhere()
        with last_words(self._interrupted), self._pool() as pool:
            needing = [one for one in points if self.request.privatized(one, 0).generator]
            fitted = "generator" in self.done and self.folder.generator.is_file()
            if self._left(*needing) and not fitted:
                self._do(pool, setup, ["generator"])
                if (why := self.failed.get("generator")) is not None:
                    self.failed |= dict.fromkeys(self._left(*needing), why)
            # A point comes first: its memory limits the processes.
            left = self._left(*points)
            self._do(pool, setup, [*left[:1], *self._left("reference"), *left[1:]])

    @contextmanager
    def _pool(self) -> Iterator[Pool]:
        """Give what measures the points: the cluster, where one is named, else processes here."""
        request = self.request
        with Scratch() as scratch, cluster_of(request, scratch, self.progress) as cluster:
            if cluster is not None:
                yield cluster
                return
            most, threads = request.processes or available_threads(), request.threads or 1
            memory = None if request.memory is None else size_of(request.memory)
            with processes(most, threads, scratch.folder, memory) as pool:
                yield pool

    def _do(self, pool: Pool, setup: Setup, tasks: list[Task]) -> None:
        left = [one for one in tasks if one != "reference"]
        shown = _Shown(self, left)
        if pool.client is None and pool.folder is not None:
            setup = replace(setup, noted=pool.folder)
        with shown.looking(setup.noted):
            for number, answer in pool.answers(measured, tasks, setup):
                task = tasks[number]
                if answer.content is None:
                    self.failed[task] = answer.reason
                else:
                    check_unchanged()
                    self.folder.keep(task, answer.content)
                    # Read back, so that an interrupted sweep gives the same result.
                    self.done[task] = self.folder.kept(task) or {}
                if task != "reference":
                    shown.end(task)

    @property
    def ended(self) -> int:
        """How many points are measured, or have failed."""
        return sum(one in self.done or one in self.failed for one in self.request.points())

    def _interrupted(self) -> str:
        done = f"{len(self.points)} of {len(self.request.points())} points"
        if self.request.out is None:
            return "Interrupted; nothing was kept. With --out DIR a sweep can go on later."
        return f"Interrupted after {done}; the same command with --resume goes on."

    def result(self, level: float, facts: Facts) -> Sweep:
        """Put everything together (LdpAuditError if no point could be measured)."""
        if not self.points:
            reason = next(iter(self.failed.values()), "")
            raise LdpAuditError(f"No point could be measured. {reason}")
        parameter, settings = self.request.grid.parameter, dict[str, list[Setting]]()
        contrasts: list[Contrast] = []
        for name in self.request.mechanisms:
            for value in self.request.grid.values:
                draws = self.request.draws(name, value)
                contents = [self.done[draw] for draw in draws if draw in self.done]
                failed = [self.failed[draw] for draw in draws if draw in self.failed]
                made = setting_of(name, parameter, value, contents, failed, level)
                settings.setdefault(name, []).append(made)
                first = self.request.draws(self.request.mechanisms[0], value)
                if name != self.request.mechanisms[0] and contents and first[0] in self.done:
                    contrasts += contrasts_of(
                        *(name, value), self.done[first[0]], contents[0], level
                    )
        warnings = [*map(str, self.done.get("generator", {}).get("warnings", []))]
        score, lost = self.done.get("reference"), self.failed.get("reference")
        if lost is not None:
            warnings.append(f"No learner could be scored on the true labels: {lost}")
        return Sweep(
            ldpaudit_version=__version__,
            points=[setting for some in settings.values() for setting in some],
            least_noise={name: least_noise(name, some, level) for name, some in settings.items()},
            differences=contrasts,
            reference=None if score is None else {score["id"]: Estimate.model_validate(score)},
            notes=[SIMULATED, *warnings],
            run=facts,
        )


class _Shown:
    """Shows what a sweep is at: a point, its audit, the share that is done and the time left."""

    # ``left``: the points that are to be measured, or the generator alone.

    def __init__(self, run: SweepRun, left: Sequence[Task]) -> None:
        self._run, self._left, self._all = run, list(left), len(left)
        self._began, self._notes = time.monotonic(), dict[Task, tuple[str, float]]()
        self._busy, self._over, self._last = threading.Lock(), threading.Event(), ""

    @contextmanager
    def looking(self, noted: Path | None) -> Iterator[None]:
        """Show what begins while the block runs; ``noted``: where processes note it, if they do."""
        if self._left:
            self._say(self._left[0])
        watch = threading.Thread(target=self._watch, args=(noted,), daemon=True)
        if noted is not None:
            watch.start()
        try:
            yield
        finally:
            self._over.set()
            if noted is not None:
                watch.join()

    def end(self, task: Task) -> None:
        """Show that a task is over, and what is done now."""
        with self._busy:
            self._left.remove(task)
            self._notes.pop(task, None)
            if self._left:
                self._say(self._left[0])
            self._run.progress.advance(self._run.ended, len(self._run.request.points()))

    def _watch(self, noted: Path) -> None:
        while not self._over.wait(_LOOK):
            with self._busy:
                for task in self._left:
                    found = _read_note(note_of(task, noted))
                    if found is not None and found != self._notes.get(task):
                        self._notes[task] = found
                        self._say(task)

    def _say(self, task: Task) -> None:
        request, ended = self._run.request, self._run.ended
        words, share = self._notes.get(task, (", ".join(request.only) or "all audits", 0.0))
        done = self._all - len(self._left) + sum(share for _, share in self._notes.values())
        left = ""
        if done > 0:
            seconds = (time.monotonic() - self._began) * (self._all - done) / done
            left = f", about {_span(seconds)} left"
        if not isinstance(task, Point):
            part = f": {share:.0%}{left}" if share else ""
            text = f"fitting the generator {request.generator}{part}"
        else:
            total = len(request.points())
            of_all = f", {(total - self._all + done) / total:.0%} of all" if done > 0 else ""
            text = f"measuring {task.words}: {words}; {ended} of {total} points done{of_all}{left}"
            if task not in self._notes and ended == 0 and not request.only:
                text += " (attacks and the test score alone are quicker: --only label-inference)"
        if text != self._last:
            self._last = text
            self._run.progress.step(text)


def _read_note(place: Path) -> tuple[str, float] | None:
    """Return what a process noted, None where it did not, or is just writing it."""
    try:
        found = parse_json(read_document(place, DOCUMENT_BYTES), "A note", "It is incomplete.")
        return str(found["words"]), float(found["share"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _span(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes else f"{max(round(seconds), 1)} s"


@unchanged()
def sweep(request: SweepRequest, progress: Progress | None = None) -> Sweep:
    """Simulate, audit and learn at every point of a grid.

    One line says what is wrong (LdpAuditError); points that cannot be measured are named in the
    result, unless there is no other.
    """
    progress, request = progress or NoProgress(), request.with_generator()
    if request.out is not None and request.out.is_file():
        raise OutputError(f"{request.out.name} is a file; --out needs a folder.")
    check_sweep(request)
    chosen_audits(request.only, request.skip)
    policy, names = policy_of(request), request.mechanisms
    claimed = None if policy is None or policy.claim is None else policy.claim.mechanism
    if claimed is not None and {*names} != {claimed}:
        raise PolicyError(
            f"The policy claims the mechanism {claimed!r}; leave it out of [claim] to compare "
            f"others by it."
        )
    progress.step("reading the data")
    tables = read_tables(request, progress=progress)
    # Labels, mechanisms and columns are checked as privatize would, before any point is measured.
    for point in request.first_points():
        mechanism_at(tables, point)
    if any(traits_of(name).feature_values_kept for name in names):
        whole = tables.everything.table
        released_as_they_are(whole, request.label, request.keep, tables.columns).refuse()
    options = manifest(request, tables.seed, None if policy is None else policy.sha256)
    facts = Facts(
        seed=tables.seed,
        rows=tables.training.num_rows,
        test_rows=None if isinstance(tables.test, str) else int(tables.test.num_rows),
        repeats=request.repeats,
        learner=request.learner,
    )
    del tables  # The workers read the data themselves.
    with Scratch() as scratch:
        folder = SweepFolder(request.out or scratch.folder / "sweep")
        with folder.alone():
            folder.open(options, resume=request.resume)
            run = SweepRun(request, folder, progress)
            run.go(Setup(request, facts.seed, policy, folder.generator))
    return run.result(confidence_of(policy), facts)
