"""`ldpaudit sweep`: its checks, its points in worker processes, and the folder that keeps them."""

import hmac
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import BaseModel, ValidationError

from ldpaudit import __version__
from ldpaudit.api import available_threads, cluster_of, policy_of
from ldpaudit.commands.privatize.features import FittedGenerator
from ldpaudit.commands.privatize.plan import check_column, options_of
from ldpaudit.commands.privatize.scan import released_as_they_are
from ldpaudit.commands.sweep.page import Sweep
from ldpaudit.commands.sweep.points import (
    SweepTables,
    confidence_of,
    measure,
    mechanism_at,
    read_tables,
    reference,
)
from ldpaudit.commands.sweep.request import Point, SweepRequest
from ldpaudit.commands.sweep.result import SIMULATED, Facts, least_noise, setting_of
from ldpaudit.datasets.formats.locations import check_unchanged, locate, unchanged
from ldpaudit.datasets.names import quoted
from ldpaudit.device import need_torch
from ldpaudit.errors import InputError, LdpAuditError, OutputError, PolicyError
from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import traits_of
from ldpaudit.mechanisms.registry import applicable
from ldpaudit.options import option_name
from ldpaudit.pipeline.audit import chosen_audits
from ldpaudit.plugins import given
from ldpaudit.result import AuditResult, Decision, Estimate, Verdict
from ldpaudit.work.documents import as_json, parse_json, read_document
from ldpaudit.work.files import WholeFiles, hold
from ldpaudit.work.interruption import last_words
from ldpaudit.work.limits import DOCUMENT_BYTES, RELEASES
from ldpaudit.work.memory import Scratch, size_of
from ldpaudit.work.progress import NoProgress, Progress
from ldpaudit.work.tasks import Answer, Pool, processes

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
# Fit the generator, score a learner on the true labels, or measure a point.
Task = Literal["generator", "reference"] | Point


def check_sweep(request: SweepRequest) -> None:
    """Refuse what the options alone show to be wrong, by its first fault (LdpAuditError)."""
    for wrong, fault in chain(_mechanism_faults(request), _faults(request)):
        if wrong:
            raise InputError(fault)
    request.check()
    if request.learner == "network":
        need_torch("The learner 'network'")
    if request.generator == "gan":
        need_torch("The generator 'gan'")
    for point in request.first_points():
        check_column(request.privatized(point, 0))


def _mechanism_faults(request: SweepRequest) -> Iterator[tuple[bool, str]]:
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
    kinds = {traits_of(name).numeric for name in names}
    yield (
        len(kinds) > 1,
        "Mechanisms on numbers and mechanisms on classes are judged by different attacks: sweep "
        "them apart (on numbers, debiased-rr is randomized response).",
    )
    taken = {option for name in names for option in options_of(name)}
    for option in ("labels", "prior", "synthetic", "generator"):
        foreign = getattr(request, option) is not None and option not in taken
        yield foreign, f"{option_name(request, option)} does not belong to any of the mechanisms."
    for name in names:
        made = request.synthetic is not None or request.generator is not None
        yield (
            "synthetic rows" in traits_of(name).needs and not made,
            f"The mechanism {name!r} must be given synthetic rows: --public FILE, --synthetic FILE "
            "or --generator NAME.",
        )


def _faults(request: SweepRequest) -> tuple[tuple[bool, str], ...]:
    releases = request.repeats * len(request.grid.values) * len(request.mechanisms)
    return (
        (
            request.generator_data is not None and request.generator is None,
            "--generator-data must come with --generator, which is trained on it.",
        ),
        (
            request.resume and request.out is None,
            "--resume must come with --out, the folder of the sweep to go on with.",
        ),
        (
            not 0 < request.test_share < 1,
            f"--test-share must lie in (0, 1). Got {request.test_share:g} instead.",
        ),
        (
            request.cluster is not None and request.processes is not None,
            "--processes does not go with --cluster, which has workers of its own.",
        ),
        (
            request.repeats < 1,
            f"--repeats must be at least 1. Got {request.repeats} instead.",
        ),
        (
            request.processes is not None and request.processes < 1,
            f"--processes must be at least 1. Got {request.processes} instead.",
        ),
        (
            releases > RELEASES,
            f"A sweep must have at most {RELEASES:,} simulated releases. Got {releases:.6g}: take "
            "a coarser grid, fewer mechanisms or fewer --repeats.",
        ),
        (request.seed is not None and request.seed < 0, "--seed must not be negative."),
    )


@dataclass(frozen=True)
class Setup:
    """What each process works with; ``generator`` is the file of the fitted generator."""

    request: SweepRequest
    seed: int
    policy: Policy | None
    generator: Path

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
        return read_tables(self.request, self.seed)  # At the first task of a process.

    @cached_property
    def _with_generator(self) -> SweepTables:
        from ldpaudit.synthesis import load_generator

        fitted = FittedGenerator(load_generator(self.generator), ())
        return replace(self._tables, fitted=fitted)

    def run(self, task: Task) -> dict[str, Any]:
        """Do a task; return what is stored of it."""
        if task == "generator":
            from ldpaudit.synthesis import save_generator

            points = self.request.points()
            users = (p for p in points if self.request.privatized(p, 0).generator is not None)
            fitted: Any = self._tables.with_generator(next(users)).fitted
            save_generator(fitted.generator, self.generator, overwrite=True)
            return {"warnings": list(fitted.warnings)}
        if task == "reference":
            level, point = confidence_of(self.policy), self.request.points()[0]
            return reference(self._tables, point, level).model_dump()
        made = self.request.privatized(task, 0).generator is not None
        return measure(self._with_generator if made else self._tables, task, self.policy)


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
    """Return everything that the numbers of a sweep depend on; it stays in memory.

    Files are known by their digest; the number of processes and the memory change no number.
    """
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
        **{name: _plain(getattr(request, name)) for name in names},
    }


def _plain(value: Any) -> Any:
    """Return the value of an option as JSON can say it."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return list(value) if isinstance(value, Collection) else str(value)


def _digests(key: str, options: dict[str, Any]) -> dict[str, str]:
    """Return a digest of each option, which nobody can make without the key."""
    texts = {name: as_json({name: value}).encode() for name, value in options.items()}
    return {name: hmac.digest(key.encode(), text, "sha256").hex() for name, text in texts.items()}


@dataclass(frozen=True)
class SweepFolder:
    """The folder where the points of a sweep are kept; its files can be read by its owner only.

    Of its options, the data among them, it holds digests made with a random key: without the key
    no guess of a true label or of a column's name can be tested against them.
    """

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
            if not hold(descriptor):
                raise InputError(f"Another sweep writes to the folder {shown}: wait until it ends.")
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
        if not resume:
            raise InputError(
                f"The folder {shown} is not empty; give another, or go on with --resume."
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
        return self.path / (
            f"points/{what.key}.json" if isinstance(what, Point) else f"{what}.json"
        )

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
    """A running sweep.

    ``done``: the contents of the files of the measured points; ``failed``: why others could not be
    measured, which a resumed sweep tries again; ``shared``: "generator" and "reference".
    """

    request: SweepRequest
    folder: SweepFolder
    progress: Progress
    done: dict[Point, dict[str, Any]] = field(default_factory=dict)
    failed: dict[Point, str] = field(default_factory=dict)
    shared: dict[str, dict[str, Any]] = field(default_factory=dict)
    _generator_failure: str = ""
    _remarks: list[str] = field(default_factory=list)

    def go(self, setup: Setup) -> None:
        """Take what the folder holds, and do what is left."""
        kept = ((point, self.folder.kept(point)) for point in self.request.points())
        self.done |= {point: content for point, content in kept if content and is_finished(content)}
        parts = ((name, self.folder.kept(name)) for name in ("generator", "reference"))
        self.shared |= {name: part for name, part in parts if part is not None}
        if not self._left() and "reference" in self.shared:
            return
        setup = setup.anywhere()
        with last_words(self._interrupted), self._pool() as pool:
            asked = ((point, self.request.privatized(point, 0)) for point in self._left())
            needing = [point for point, one in asked if one.generator is not None]
            ready = "generator" in self.shared and self.folder.generator.is_file()
            if needing and not ready:
                self.progress.step(f"fitting the generator {self.request.generator}")
                self._do(pool, setup, ["generator"])
                if "generator" not in self.shared:
                    self.failed |= dict.fromkeys(needing, self._generator_failure)
            tasks: list[Task] = [*self._left()]
            if "reference" not in self.shared:
                tasks.insert(
                    1, "reference"
                )  # A point comes first: its memory limits the processes.
            self._do(pool, setup, tasks)

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
        for number, answer in pool.answers(measured, tasks, setup):
            self._take(tasks[number], answer)

    def _left(self) -> list[Point]:
        points = self.request.points()
        return [p for p in points if p not in self.done and p not in self.failed]

    def _take(self, task: Task, answer: Answer) -> None:
        content = answer.content
        if content is not None:
            check_unchanged()
            self.folder.keep(task, content)
            # Read back, so that an interrupted sweep gives the same result.
            content = self.folder.kept(task) or {}
        if isinstance(task, Point):
            if content is None:
                self.failed[task] = answer.reason
            else:
                self.done[task] = content
            done, total = len(self.done) + len(self.failed), len(self.request.points())
            self.progress.step(f"{done} of {total} points: {task.words}")
            self.progress.advance(done, total)
        elif content is not None:
            self.shared[task] = content
        elif task == "generator":
            self._generator_failure = answer.reason
        else:
            self._remarks.append(f"No learner could be scored on the true labels: {answer.reason}")

    def _interrupted(self) -> str:
        done, total = len(self.done), len(self.request.points())
        if self.request.out is None:
            return "Interrupted; nothing was kept. With --out DIR a sweep can go on later."
        return (
            f"Interrupted after {done} of {total} points; the same command with --resume goes on."
        )

    def result(self, level: float, facts: Facts) -> Sweep:
        """Put everything together (LdpAuditError if no point could be measured)."""
        if not self.done:
            reason = next(iter(self.failed.values()), "")
            raise LdpAuditError(f"No point could be measured. {reason}")
        parameter, settings = self.request.grid.parameter, {}
        for name in self.request.mechanisms:
            settings[name] = [
                setting_of(
                    *(name, parameter, value),
                    [self.done[draw] for draw in draws if draw in self.done],
                    [self.failed[draw] for draw in draws if draw in self.failed],
                    level,
                )
                for value in self.request.grid.values
                for draws in [self.request.draws(name, value)]
            ]
        warnings = [*self.shared.get("generator", {}).get("warnings", []), *self._remarks]
        score = self.shared.get("reference")
        return Sweep(
            ldpaudit_version=__version__,
            points=[setting for some in settings.values() for setting in some],
            least_noise={name: least_noise(name, some, level) for name, some in settings.items()},
            reference=None if score is None else {score["id"]: Estimate.model_validate(score)},
            notes=[SIMULATED, *map(str, warnings)],
            run=facts,
        )


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
    policy = _policy(request)
    progress.step("reading the data")
    tables = read_tables(request, progress=progress)
    _check_data(tables)
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


def _policy(request: SweepRequest) -> Policy | None:
    chosen_audits(request.only, request.skip)
    policy = policy_of(request)
    claimed = None if policy is None or policy.claim is None else policy.claim.mechanism
    if claimed is not None and set(request.mechanisms) != {claimed}:
        raise PolicyError(
            f"The policy claims the mechanism {claimed!r}; leave it out of [claim] to compare "
            f"others by it."
        )
    return policy


def _check_data(tables: SweepTables) -> None:
    """Check labels, mechanisms and columns as privatize would, before any point is measured."""
    request = tables.request
    for point in request.first_points():
        mechanism_at(tables, point)
    if any(traits_of(name).feature_values_kept for name in request.mechanisms):
        whole = tables.everything.table
        released_as_they_are(whole, request.label, request.keep, tables.columns).refuse()
