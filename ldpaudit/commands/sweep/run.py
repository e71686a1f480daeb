"""A running sweep: recalls what is done, does what is left, keeps each point at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ldpaudit.api import available_threads, cluster_of
from ldpaudit.commands.sweep.folder import SweepFolder, is_finished
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.least_noise import least_noise
from ldpaudit.commands.sweep.points.workbench import Setup, Task, measured
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.commands.sweep.result import Sweep
from ldpaudit.commands.sweep.summary import Setting, setting_of
from ldpaudit.datasets.formats.watching import check_unchanged
from ldpaudit.errors import LdpAuditError
from ldpaudit.interruption import last_words
from ldpaudit.running.memory import size_of
from ldpaudit.running.progress import Progress
from ldpaudit.running.scratch import Scratch
from ldpaudit.tasks.interface import Answer, Pool
from ldpaudit.tasks.local import PREPARE, LocalProcesses
from ldpaudit.tasks.processes import Processes, default_cap


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
            gib = default_cap() if request.memory is None else size_of(request.memory) / 2**30
            with Processes(PREPARE, None, most=most, threads=threads, gib=gib) as processes:
                yield LocalProcesses(processes, scratch.folder)

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

    def result(self, level: float, rows: int, test_rows: int | None, seed: int) -> Sweep:
        """Put everything together.

        Raises
        ------
        LdpAuditError
            If no point could be measured.
        """
        if not self.done:
            reason = next(iter(self.failed.values()), "")
            raise LdpAuditError(f"No point could be measured. {reason}")
        settings = [
            self._setting(name, value)
            for name in self.request.mechanisms
            for value in self.request.grid.values
        ]
        least = [
            least_noise(name, [s for s in settings if s.mechanism == name], level)
            for name in self.request.mechanisms
        ]
        warnings = self.shared.get("generator", {}).get("warnings", [])
        return Sweep(
            self.request,
            tuple(settings),
            tuple(least),
            self.shared.get("reference"),
            level,
            rows,
            test_rows,
            seed,
            tuple(str(text) for text in [*warnings, *self._remarks]),
        )

    def _setting(self, name: str, value: float) -> Setting:
        draws = [
            Point(name, self.request.grid.parameter, value, repeat)
            for repeat in range(1, self.request.repeats + 1)
        ]
        contents = [self.done[draw] for draw in draws if draw in self.done]
        failed = [self.failed[draw] for draw in draws if draw in self.failed]
        return setting_of(name, self.request.grid, value, contents, failed)
