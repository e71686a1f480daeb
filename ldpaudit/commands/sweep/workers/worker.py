"""The process in which points are measured: ``python -m`` this module, with a descriptor.

A process of its own, so that one that needs too much memory ends alone, and several measure at
once. It reads the data itself, then answers each task with a result or one line about what went
wrong.
"""

import os
import sys
import threading
import time
from contextlib import suppress
from functools import cached_property
from multiprocessing.connection import Connection
from typing import Any

from ldpaudit.commands.privatize.features.generated_rows import FittedGenerator, fit_generator
from ldpaudit.commands.sweep.measuring import measure, reference
from ldpaudit.commands.sweep.tables import MemoryBatches, SweepTables, read_tables
from ldpaudit.commands.sweep.workers.memory import peak
from ldpaudit.commands.sweep.workers.tasks import Answer, Setup, Task
from ldpaudit.errors import LdpAuditError
from ldpaudit.progress import NoProgress


class Workbench:
    """The data and the generator, as tasks use them."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._tables: SweepTables = read_tables(setup.request, setup.seed)

    def run(self, task: Task) -> dict[str, Any]:
        """Return what came of a task.

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
        return measure(self._tables, task, self._setup.policy, fitted).stored()

    def _fit(self) -> tuple[str, ...]:
        from ldpaudit.synthesis import save_generator

        request, tables = self._setup.request, self._tables
        users = (request.privatized(point, self._setup.seed) for point in request.points())
        asked = next(user for user in users if user.generator is not None)
        rows = MemoryBatches(tables.training, tables.everything.location)
        _, survey = tables.survey(asked)
        fitted = fit_generator(asked, rows, survey, tables.features, NoProgress())
        assert fitted is not None
        made: Any = fitted.generator
        save_generator(made, self._setup.generator, overwrite=True)
        return fitted.warnings

    @cached_property
    def _fitted(self) -> FittedGenerator:
        from ldpaudit.synthesis import load_generator

        return FittedGenerator(load_generator(self._setup.generator), ())


def answer(bench: Workbench, task: Task) -> Answer:
    """Do a task; whatever goes wrong becomes one line without data."""
    try:
        return Answer(bench.run(task), peak=peak())
    except LdpAuditError as error:
        reason = " ".join(str(error).split())
    except MemoryError:
        reason = "It needs more memory than there is."
    except Exception as error:
        # The text of a foreign exception may hold data, so only its type is told.
        reason = f"Internal fault ({type(error).__name__})."
    return Answer(None, reason, peak())


def serve(connection: Any) -> None:
    """Answer tasks until the pipe closes."""
    try:
        bench = Workbench(connection.recv())
    except LdpAuditError as error:
        connection.send(Answer(None, str(error)))
        return
    except MemoryError:
        connection.send(Answer(None, "The data needs more memory than there is."))
        return
    connection.send(Answer({}))
    while True:
        connection.send(answer(bench, connection.recv()))


def _end_with_parent() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def main() -> None:
    """Serve on the file descriptor named on the command line."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection = Connection(int(sys.argv[1]))
    with suppress(EOFError, BrokenPipeError):
        serve(connection)


if __name__ == "__main__":
    main()
