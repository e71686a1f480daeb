"""Several processes that run a randomizer, each call under a time limit."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from ldpaudit.commands.black_box.worker import Setting, Task
from ldpaudit.errors import InputError
from ldpaudit.progress import Progress

_WORKER: Final = "ldpaudit.commands.black_box.worker"
_ONE_THREAD: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Any
    started: float
    task: int | None = None
    """The number of the task that it works on; −1 while it imports the function."""


class Workers:
    """Processes that answer tasks; :func:`workers` starts and ends them."""

    def __init__(self, setting: Setting, count: int, timeout: float) -> None:
        self._timeout = timeout
        self._workers: list[_Worker] = []
        self._setting = setting
        self._count = count

    def start(self) -> None:
        """Start the processes; each imports the function."""
        for _ in range(self._count):
            mine, theirs = Pipe()
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    _WORKER,
                    str(theirs.fileno()),
                ],
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # A group of its own: what it starts ends with it.
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=os.environ | dict.fromkeys(_ONE_THREAD, "1"),
            )
            theirs.close()
            self._workers.append(_Worker(process, mine, time.monotonic(), -1))
            mine.send(self._setting)

    def run(self, tasks: Iterable[Task], progress: Progress) -> list[Any]:
        """Run tasks and return their results in order.

        Raises
        ------
        InputError
            If the randomizer raises, returns what cannot be read, ends its process or takes
            longer than the time limit.
        """
        queue = list(tasks)
        results: list[Any] = [None] * len(queue)
        given, done = 0, 0
        while done < len(queue):
            for worker in self._workers:
                if worker.task is None and given < len(queue):
                    worker.task, worker.started = given, time.monotonic()
                    with suppress(BrokenPipeError):  # Its end is noticed when it is read.
                        worker.connection.send(queue[given])
                    given += 1
            for worker in self._answered():
                answer = self._receive(worker)
                if worker.task is not None and worker.task >= 0:
                    results[worker.task] = answer
                    done += 1
                    progress.advance(done, len(queue))
                worker.task = None
        return results

    def stop(self) -> None:
        """End every process and whatever it started."""
        for worker in self._workers:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(worker.process.pid, signal.SIGKILL)
            worker.process.wait()
            worker.connection.close()
        self._workers.clear()

    def _answered(self) -> list[_Worker]:
        busy = {worker.connection: worker for worker in self._workers if worker.task is not None}
        deadline = min(worker.started for worker in busy.values()) + self._timeout
        connections: list[Connection[Any, Any]] = list(busy)
        ready = wait(connections, max(deadline - time.monotonic(), 0.0))
        if not ready:
            raise InputError(
                f"The function must return within {self._timeout:g} s; a call did not and was "
                f"ended. Raise --timeout if it is only slow."
            )
        return [busy[connection] for connection in ready if connection in busy]

    def _receive(self, worker: _Worker) -> Any:
        try:
            fine, answer = worker.connection.recv()
        except (EOFError, OSError):
            status = worker.process.wait()
            raise InputError(
                f"The function must return outputs; it ended its process (status {status})."
            ) from None
        if not fine:
            raise InputError(answer)
        return answer


@contextmanager
def workers(setting: Setting, count: int, timeout: float) -> Iterator[Workers]:
    """Give ``count`` processes with a time limit in seconds per call; all ended afterwards."""
    pool = Workers(setting, count, timeout)
    try:
        pool.start()
        yield pool
    finally:
        pool.stop()
