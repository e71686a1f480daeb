"""Several processes that measure points, together below a cap of memory."""

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from ldpaudit.commands.sweep.grid import Point
from ldpaudit.commands.sweep.workers.memory import resident, workers_within
from ldpaudit.commands.sweep.workers.tasks import Answer, Setup, Task

_WORKER: Final = "ldpaudit.commands.sweep.workers.worker"
_TICK: Final = 0.5
_THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
Listener = Callable[[Task, Answer], None]


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    connection: Any
    task: Task
    ready: bool = False
    """Whether it has read the data."""

    @property
    def memory(self) -> float:
        return resident(self.process.pid)


@dataclass
class Pool:
    """Processes that answer tasks.

    Until the first point is measured there is one; then as many as fit under the cap if each needs
    as much as the largest so far.

    Attributes
    ----------
    setup : Setup
    processes : int
        At most so many.
    cap : float
        GiB for all of them together.
    most : int
        The most that were working at once.
    """

    setup: Setup
    processes: int
    cap: float
    most: int = 0
    _limit: int = 1
    _largest: float = 0.0
    _workers: list[_Worker] = field(default_factory=list)
    _idle: list[_Worker] = field(default_factory=list)

    def run(self, tasks: list[Task], listen: Listener) -> None:
        """Do every task, and tell of each as it is done; in no certain order."""
        queue = deque(tasks)
        while queue or self._workers:
            while queue and len(self._workers) < self._limit:
                self._give(queue.popleft())
            self.most = max(self.most, len(self._workers))
            for worker in self._answered():
                self._receive(worker, listen)
            self._watch(queue, listen)

    def stop(self) -> None:
        """End every process and whatever it started."""
        for worker in [*self._workers, *self._idle]:
            self._end(worker)
        self._workers.clear()
        self._idle.clear()

    def _give(self, task: Task) -> None:
        if self._idle:
            worker = self._idle.pop()
            worker.task = task
        else:
            worker = self._started(task)
        self._workers.append(worker)
        if worker.ready:
            with suppress(OSError):  # Its end is noticed when it is read.
                worker.connection.send(task)

    def _started(self, task: Task) -> _Worker:
        mine, theirs = Pipe()
        threads = str(self.setup.request.threads or 1)
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
            env=os.environ | dict.fromkeys(_THREADS, threads),
        )
        theirs.close()
        with suppress(OSError):
            mine.send(self.setup)
        return _Worker(process, mine, task)

    def _answered(self) -> list[_Worker]:
        connections: list[Connection[Any, Any]] = [w.connection for w in self._workers]
        ready = wait(connections, _TICK)
        return [worker for worker in self._workers if worker.connection in ready]

    def _receive(self, worker: _Worker, listen: Listener) -> None:
        try:
            found: Answer = worker.connection.recv()
        except (EOFError, OSError):
            self._fail(worker, _ended(worker.process.wait()), listen)
            return
        if not worker.ready:
            if found.content is None:
                self._fail(worker, found.reason, listen)
                return
            worker.ready = True
            with suppress(OSError):
                worker.connection.send(worker.task)
            return
        self._workers.remove(worker)
        self._idle.append(worker)
        self._learn(worker.task, found)
        listen(worker.task, found)

    def _learn(self, task: Task, found: Answer) -> None:
        """Take a finished task's memory into account."""
        self._largest = max(self._largest, found.peak)
        if self._limit > 1 or isinstance(task, Point):
            self._limit = workers_within(self.cap, self._largest, self.processes)
        while self._idle and len(self._idle) + len(self._workers) > self._limit:
            self._end(self._idle.pop())

    def _watch(self, queue: deque[Task], listen: Listener) -> None:
        """Keep all processes below the cap: the largest gives way, or fails if it is alone."""
        taken = {id(worker): worker.memory for worker in self._workers}
        if sum(taken.values()) <= self.cap or not taken:
            return
        while self._idle:
            self._end(self._idle.pop())
        worker = max(self._workers, key=lambda w: taken[id(w)])
        if len(self._workers) == 1:
            reason = f"It needs more than the {self.cap:.3g} GiB that --memory allows."
            self._fail(worker, reason, listen)
            return
        self._limit = max(1, len(self._workers) - 1)
        self._largest = max(self._largest, taken[id(worker)])
        queue.appendleft(worker.task)
        self._workers.remove(worker)
        self._end(worker)

    def _fail(self, worker: _Worker, reason: str, listen: Listener) -> None:
        self._workers.remove(worker)
        self._end(worker)
        listen(worker.task, Answer(None, reason))

    def _end(self, worker: _Worker) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(worker.process.pid, signal.SIGKILL)
        worker.process.wait()
        worker.connection.close()


def _ended(status: int) -> str:
    if status == -signal.SIGKILL:
        return "Its process was killed, as the system does when memory runs out; try --processes 1."
    return f"Its process ended (status {status})."


@contextmanager
def pool(setup: Setup, processes: int, cap: float) -> Iterator[Pool]:
    """Give processes below a cap of memory in GiB; all of them have ended afterwards."""
    made = Pool(setup, processes, cap)
    try:
        yield made
    finally:
        made.stop()
