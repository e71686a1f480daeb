"""The tasks of a sweep's processes: fit the generator, score a learner, measure a point.

Each process reads the data itself, so that one that needs too much memory ends alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator, fit_generator
from ldpaudit.commands.sweep.folder import FILES
from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.points.measuring import measure, reference
from ldpaudit.commands.sweep.points.tables import SweepTables, read_tables
from ldpaudit.commands.sweep.request import SweepRequest
from ldpaudit.datasets.formats.memory_batches import MemoryBatches
from ldpaudit.judging.policy import Policy
from ldpaudit.running.progress import NoProgress

Task = Literal["generator", "reference"] | Point
"""Fit the generator, score a learner on the true labels, or measure a point."""


@dataclass(frozen=True)
class Setup:
    """The input of each process; ``generator`` is the file of the fitted generator."""

    request: SweepRequest
    seed: int
    policy: Policy | None
    generator: Path

    def anywhere(self) -> "Setup":
        """Return it for processes that work in another folder: with whole paths."""
        asked = {name: getattr(self.request, name) for name in ("data", *FILES)}
        whole: dict[str, Any] = {
            name: _whole(path) for name, path in asked.items() if path is not None
        }
        request = replace(self.request, **whole, cluster=None)
        return replace(self, request=request, generator=self.generator.absolute())

    @cached_property
    def workbench(self) -> "Workbench":
        """The data, read at the first task of a process."""
        return Workbench(self)


def _whole(path: str | Path) -> str:
    return str(path) if "://" in str(path) else str(Path(path).absolute())


def measured(task: Task, setup: Setup) -> dict[str, Any]:
    """Do a task; return what is stored of it."""
    return setup.workbench.run(task)


class Workbench:
    """The data and the generator, as tasks use them."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._tables: SweepTables = read_tables(setup.request, setup.seed)

    def run(self, task: Task) -> dict[str, Any]:
        """Do a task; return what is stored of it.

        Raises
        ------
        LdpAuditError
            One line about why it cannot be done.
        """
        if task == "generator":
            return {"warnings": list(self._fit())}
        if task == "reference":
            first = self._setup.request.points()[0]
            return reference(self._tables, first, self._setup.policy).model_dump()
        needed = self._setup.request.privatized(task, 0).generator is not None
        fitted = self._fitted if needed else None
        return measure(self._tables, task, self._setup.policy, fitted)

    def _fit(self) -> tuple[str, ...]:
        from ldpaudit.synthesis import save_generator

        request, tables = self._setup.request, self._tables
        users = (request.privatized(point, self._setup.seed) for point in request.points())
        asked = next(user for user in users if user.generator is not None)
        rows = MemoryBatches(tables.training, tables.everything.location)
        _, survey = tables.survey(asked)
        fitted = fit_generator(asked, rows, survey, tables.features, NoProgress())
        assert fitted is not None
        generator: Any = fitted.generator
        save_generator(generator, self._setup.generator, overwrite=True)
        return fitted.warnings

    @cached_property
    def _fitted(self) -> FittedGenerator:
        from ldpaudit.synthesis import load_generator

        return FittedGenerator(load_generator(self._setup.generator), ())
