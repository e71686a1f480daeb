"""`ldpaudit sweep`: its checks, its points in worker processes, and the folder that keeps them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ldpaudit import __version__
from ldpaudit.api import available_threads, cluster_of, policy_of
from ldpaudit.commands.privatize.features import FittedGenerator, fit_generator
from ldpaudit.commands.privatize.plan import check_column, options_of
from ldpaudit.commands.privatize.scan import released_as_they_are
from ldpaudit.commands.sweep.folder import FILES, SweepFolder, is_finished, manifest
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points import (
    SweepTables,
    measure,
    mechanism_at,
    read_tables,
    reference,
)
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.commands.sweep.result import (
    SIMULATED,
    Facts,
    Setting,
    Sweep,
    least_noise,
    setting_of,
)
from ldpaudit.datasets.formats.locations import check_unchanged, unchanged
from ldpaudit.datasets.formats.tables import MemoryTable
from ldpaudit.device import need_torch
from ldpaudit.errors import InputError, LdpAuditError, OutputError, PolicyError
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.mechanisms import traits_of
from ldpaudit.mechanisms.registry import applicable
from ldpaudit.options import option_name
from ldpaudit.pipeline.audit import chosen_audits
from ldpaudit.result import Estimate
from ldpaudit.work.interruption import last_words
from ldpaudit.work.limits import RELEASES
from ldpaudit.work.memory import Scratch, size_of
from ldpaudit.work.progress import NoProgress, Progress
from ldpaudit.work.tasks import Answer, Pool, processes


def check_sweep(request: SweepRequest) -> None:
    """Refuse what the options alone show to be wrong, by its first fault (LdpAuditError)."""
    for fault in _faults(request):
        raise InputError(fault)
    if request.learner == "network":
        need_torch("The learner 'network'")
    if request.generator == "gan":
        need_torch("The generator 'gan'")
    for point in request.points():
        if point.repeat == 1:
            check_column(request.privatized(point, 0))


def _faults(request: SweepRequest) -> Iterator[str]:
    """Yield what is wrong; what comes later may need that nothing was wrong before."""
    names, parameter = request.mechanisms, request.grid.parameter
    if not names:
        yield "A sweep must be given at least one mechanism: --mechanism NAME."
    able = ", ".join(name for name in applicable() if traits_of(name).swept)
    for name in names:
        if name not in applicable():
            yield f"The mechanism {name!r} is not known; choose from {able}."
        if not traits_of(name).swept:
            yield (
                f"The mechanism {name!r} needs options of its own and cannot be swept; choose from "
                f"{able}."
            )
        if parameter not in traits_of(name).stated_by:
            yield f"The mechanism {name!r} is swept by --epsilon."
    if len({traits_of(name).numeric for name in names}) > 1:
        yield (
            "Mechanisms on numbers and mechanisms on classes are judged by different attacks: "
            "sweep them apart (on numbers, debiased-rr is randomized response)."
        )
    taken = {option for name in names for option in options_of(name)}
    for option in ("labels", "prior", "synthetic", "generator"):
        if getattr(request, option) is not None and option not in taken:
            yield f"{option_name(request, option)} does not belong to any of the mechanisms."
    hungry = [name for name in names if "synthetic rows" in traits_of(name).needs]
    if hungry and request.synthetic is None and request.generator is None:
        yield (
            f"The mechanism {hungry[0]!r} must be given synthetic rows: --public FILE, "
            f"--synthetic FILE or --generator NAME."
        )
    if request.generator_data is not None and request.generator is None:
        yield "--generator-data must come with --generator, which is trained on it."
    if request.resume and request.out is None:
        yield "--resume must come with --out, the folder of the sweep to go on with."
    if not 0 < request.test_share < 1:
        yield f"--test-share must lie in (0, 1). Got {request.test_share:g} instead."
    if request.cluster is not None and request.processes is not None:
        yield "--processes does not go with --cluster, which has workers of its own."
    request.check()
    for option in ("repeats", "processes"):
        value = getattr(request, option)
        if value is not None and value < 1:
            yield f"--{option} must be at least 1. Got {value} instead."
    releases = request.repeats * len(request.grid.values) * len(names)
    if releases > RELEASES:
        yield (
            f"A sweep must have at most {RELEASES:,} simulated releases. Got {releases:.6g}: take "
            "a coarser grid, fewer mechanisms or fewer --repeats."
        )
    if request.seed is not None and request.seed < 0:
        yield "--seed must not be negative."


# Fit the generator, score a learner on the true labels, or measure a point.
Task = Literal["generator", "reference"] | Point


@dataclass(frozen=True)
class Setup:
    """What each process works with; ``generator`` is the file of the fitted generator."""

    request: SweepRequest
    seed: int
    policy: Policy | None
    generator: Path

    def anywhere(self) -> "Setup":
        """Return it for processes that work in another folder: with whole paths."""
        asked = {name: getattr(self.request, name) for name in ("data", *FILES)}
        whole: dict[str, Any] = {
            name: str(path) if "://" in str(path) else str(Path(path).absolute())
            for name, path in asked.items()
            if path is not None
        }
        request = replace(self.request, **whole, cluster=None)
        return replace(self, request=request, generator=self.generator.absolute())

    @cached_property
    def _tables(self) -> SweepTables:
        """The data, read at the first task of a process."""
        return read_tables(self.request, self.seed)

    @cached_property
    def _fitted(self) -> FittedGenerator:
        from ldpaudit.synthesis import load_generator

        return FittedGenerator(load_generator(self.generator), ())

    def run(self, task: Task) -> dict[str, Any]:
        """Do a task; return what is stored of it."""
        if task == "generator":
            return {"warnings": list(self._fit())}
        if task == "reference":
            return reference(self._tables, self.request.points()[0], self.policy).model_dump()
        needed = self.request.privatized(task, 0).generator is not None
        return measure(self._tables, task, self.policy, self._fitted if needed else None)

    def _fit(self) -> tuple[str, ...]:
        from ldpaudit.synthesis import save_generator

        users = (self.request.privatized(point, self.seed) for point in self.request.points())
        asked = next(user for user in users if user.generator is not None)
        tables = self._tables
        rows = MemoryTable(tables.training, tables.everything.location)
        _, survey = tables.survey(asked)
        fitted = fit_generator(asked, rows, survey, tables.features, NoProgress())
        assert fitted is not None
        generator: Any = fitted.generator
        save_generator(generator, self.generator, overwrite=True)
        return fitted.warnings


def measured(task: Task, setup: Setup) -> dict[str, Any]:
    """Do a task; return what is stored of it."""
    return setup.run(task)


@dataclass
class SweepRun:
    """A running sweep: what is done, and what is left.

    Attributes
    ----------
    request : SweepRequest
    folder : SweepFolder
    progress : Progress
    done : mapping
        The contents of the files of the measured points.
    failed : mapping
        Why others could not be measured; a resumed sweep tries them again.
    shared : mapping
        What all points share: ``"generator"`` and ``"reference"``.
    """

    request: SweepRequest
    folder: SweepFolder
    progress: Progress
    done: dict[Point, dict[str, Any]] = field(default_factory=dict)
    failed: dict[Point, str] = field(default_factory=dict)
    shared: dict[str, dict[str, Any]] = field(default_factory=dict)
    _generator_failure: str = ""
    _remarks: list[str] = field(default_factory=list)

    def recall(self) -> None:
        """Take what the folder holds."""
        for point in self.request.points():
            content = self.folder.kept(point)
            if content is not None and is_finished(content):
                self.done[point] = content
        for name in ("generator", "reference"):
            part = self.folder.kept_part(name)
            if part is not None:
                self.shared[name] = part

    def go(self, setup: Setup) -> None:
        """Do what is left."""
        if not self._left() and "reference" in self.shared:
            return
        setup = setup.anywhere()
        with last_words(self._interrupted), self._pool() as pool:
            self._fit_generator(pool, setup)
            self._do(pool, setup, self._tasks())

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

    def _tasks(self) -> list[Task]:
        """Return what is left, a point first: its memory limits the number of processes."""
        tasks: list[Task] = [*self._left()]
        if "reference" not in self.shared:
            tasks.insert(1, "reference")
        return tasks

    def _left(self) -> list[Point]:
        points = self.request.points()
        return [p for p in points if p not in self.done and p not in self.failed]

    def _fit_generator(self, pool: Pool, setup: Setup) -> None:
        needing = [p for p in self._left() if self.request.privatized(p, 0).generator is not None]
        ready = "generator" in self.shared and self.folder.generator.is_file()
        if not needing or ready:
            return
        self.progress.step(f"fitting the generator {self.request.generator}")
        self._do(pool, setup, ["generator"])
        if "generator" not in self.shared:
            self.failed |= dict.fromkeys(needing, self._generator_failure)

    def _take(self, task: Task, answer: Answer) -> None:
        if isinstance(task, Point):
            if answer.content is None:
                self.failed[task] = answer.reason
            else:
                check_unchanged()
                self.folder.keep(task, answer.content)
                # Read back, so that an interrupted sweep gives the same result.
                self.done[task] = self.folder.kept(task) or {}
            done, total = len(self.done) + len(self.failed), len(self.request.points())
            self.progress.step(f"{done} of {total} points: {task.words}")
            self.progress.advance(done, total)
        elif answer.content is not None:
            self.folder.keep_part(task, answer.content)
            self.shared[task] = self.folder.kept_part(task) or {}
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
        """Put everything together.

        Raises
        ------
        LdpAuditError
            If no point could be measured.
        """
        if not self.done:
            reason = next(iter(self.failed.values()), "")
            raise LdpAuditError(f"No point could be measured. {reason}")
        names, values = self.request.mechanisms, self.request.grid.values
        settings = {name: [self._setting(name, v, level) for v in values] for name in names}
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

    def _setting(self, name: str, value: float, level: float) -> Setting:
        parameter, repeats = self.request.grid.parameter, range(1, self.request.repeats + 1)
        draws = [Point(name, parameter, value, repeat) for repeat in repeats]
        contents = [self.done[draw] for draw in draws if draw in self.done]
        failed = [self.failed[draw] for draw in draws if draw in self.failed]
        return setting_of(name, parameter, value, contents, failed, level)


@unchanged()
def sweep(request: SweepRequest, progress: Progress | None = None) -> Sweep:
    """Simulate, audit and learn at every point of a grid.

    Raises
    ------
    LdpAuditError
        One line about what is wrong; the result names points that cannot be measured, unless there
        is no other.
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
    with _folder(request) as folder:
        folder.open(options, resume=request.resume)
        run = SweepRun(request, folder, progress)
        run.recall()
        test_rows = None if isinstance(tables.test, str) else int(tables.test.num_rows)
        facts = Facts(
            seed=tables.seed,
            rows=tables.training.num_rows,
            test_rows=test_rows,
            repeats=request.repeats,
            learner=request.learner,
        )
        del tables  # The workers read the data themselves.
        run.go(Setup(request, facts.seed, policy, folder.generator))
        return run.result((policy or default_policy()).audit.confidence, facts)


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
    for point in request.points():
        if point.repeat == 1:
            mechanism_at(tables, point)
    if any(traits_of(name).feature_values_kept for name in request.mechanisms):
        whole = tables.everything.table
        released_as_they_are(whole, request.label, request.keep, tables.columns).refuse()


@contextmanager
def _folder(request: SweepRequest) -> Iterator[SweepFolder]:
    """Give the folder of ``--out``, or a temporary one."""
    with Scratch() as scratch:
        yield SweepFolder(request.out or scratch.folder / "sweep")
