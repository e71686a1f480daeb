"""Child processes that do tasks, each within a time limit, all below one memory limit.

A child can hang, crash or outgrow the memory without harm to the command. Everything that it starts
ends with it (:mod:`ldpaudit.tasks.keeper`), and it ends when its parent does, even if killed.
"""

import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, Final, Self

import psutil

from ldpaudit.interruption import at_end, undisturbed
from ldpaudit.running.scratch import Scratch
from ldpaudit.tasks.interface import Answer
from ldpaudit.tasks.keeper import KEEPERS
from ldpaudit.tasks.wire import TRUSTED, Inbox, MessageError, Wire, post

_GIB: Final = 1 << 30
_TICK: Final = 0.5
"""Seconds between two looks at the clock and the memory."""
_GRACE: Final = 10.0
"""Seconds in which a child that is told to end must have ended what it started."""
_SHARE: Final = 0.75
_CHILD: Final = "from ldpaudit.tasks.child_process import serve; serve()"
_UNREADABLE: Final = "Its process answered with something that is no answer."
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""The variables that say how many threads a process uses."""


@dataclass
class _Child:
    process: subprocess.Popen[bytes]
    connection: Any
    inbox: Any
    number: int
    """Of its task."""
    since: float
    ready: bool = False
    """Whether it is prepared for tasks."""

    def size(self) -> float:
        """Return the memory of its worker in GiB; 0 where that has ended."""
        with suppress(psutil.Error):
            keeper = psutil.Process(self.process.pid)
            processes = (keeper, *keeper.children())
            return float(max(one.memory_info().rss for one in processes) / _GIB)
        return 0.0


@dataclass
class Processes:
    """Processes that do tasks; a context manager, which ends all of them.

    With a memory limit there is one process until its first task is done, then as many as fit if
    each needs as much as the largest so far.

    Attributes
    ----------
    prepare : str
        ``MODULE:FUNCTION``: called with ``setup`` in each process, it returns the function that
        does a task.
    setup : object
        Picklable, like tasks and answers.
    most, threads : int
        Processes at most, and the threads of each.
    seconds : float
        Time limit of each task and of the preparation.
    gib : float
        Memory limit of all together.
    wire : Wire
        How answers are written and read.
    """

    prepare: str
    setup: Any
    most: int
    threads: int = 1
    seconds: float = math.inf
    gib: float = math.inf
    wire: Wire = TRUSTED
    _room: int = field(default=0, init=False)
    _largest: float = field(default=0.0, init=False)
    _busy: list[_Child] = field(default_factory=list, init=False)
    _idle: list[_Child] = field(default_factory=list, init=False)
    _forget: Callable[[], object] = field(init=False, repr=False)

    _scratch: Scratch = field(default_factory=Scratch, init=False, repr=False)

    def __enter__(self) -> Self:
        _ = self._scratch.folder  # Made first, it is removed last.
        self._forget = at_end(self._kill_all)
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._end_all()
        self._forget()
        self._scratch.close()

    def _kill_all(self) -> None:
        """End all at a signal, which may come in the middle of waiting for one of them."""
        children = [*self._busy, *self._idle]
        pids = [one.process.pid for one in children if one.process.returncode is None]
        for last in (signal.SIGTERM, signal.SIGKILL) if KEEPERS else (signal.SIGKILL,):
            for pid in pids:  # All at once; a keeper that is only told to end ends all below it.
                with suppress(OSError):
                    os.killpg(pid, last)
            deadline = time.monotonic() + _GRACE
            while (pids := list(filter(_runs, pids))) and time.monotonic() < deadline:
                time.sleep(0.01)

    def _end_all(self) -> None:
        children = [*self._busy, *self._idle]
        for child in children if KEEPERS else ():
            child.process.terminate()  # All at once; then each is waited for.
        for child in children:
            self._end(child)

    def run(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Answer]]:
        """Do every task; yield the number and the answer of each as it is done, in any order."""
        queue = deque(range(len(tasks)))
        self._room = 1 if self.gib < math.inf else self.most
        while queue or self._busy:
            while queue and len(self._busy) < self._room:
                self._give(queue.popleft(), tasks)
            yield from self._answered(tasks)
            yield from self._late()
            yield from self._too_large(queue)

    def _give(self, number: int, tasks: Sequence[Any]) -> None:
        with undisturbed():
            new = not self._idle
            child = self._started() if new else self._idle.pop()
            child.number = number
            self._busy.append(child)
        if child.ready:
            self._send(child, tasks)
        elif new:
            with suppress(OSError):  # Its end is noticed when it is read.
                told = pickle.dumps((self.prepare, self.setup, self.wire))
                post(child.connection, told, self.seconds)

    def _started(self) -> _Child:
        mine, theirs = socket.socketpair()
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _CHILD, str(theirs.fileno()), str(os.getpid())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=os.environ | dict.fromkeys(THREADS, str(self.threads)) | self._temporary,
        )
        theirs.close()
        return _Child(process, mine, Inbox(mine, self.wire.most), -1, time.monotonic())

    @property
    def _temporary(self) -> dict[str, str]:
        """Where a child puts its temporary files, which it cannot remove when it is killed."""
        return {"TMPDIR": str(self._scratch.folder)}

    def _send(self, child: _Child, tasks: Sequence[Any]) -> None:
        child.since = time.monotonic()
        with suppress(OSError):
            post(child.connection, pickle.dumps(tasks[child.number]), self.seconds)

    def _answered(self, tasks: Sequence[Any]) -> Iterator[tuple[int, Answer]]:
        ready = wait([child.connection for child in self._busy], min(_TICK, self.seconds))
        for child in [child for child in self._busy if child.connection in ready]:
            try:
                content = child.inbox.take()
                if content is None:
                    continue
                answer = self.wire.unpack(content)
            except MessageError:
                yield self._failed(child, Answer(reason=_UNREADABLE))
                continue
            except (EOFError, OSError):
                yield self._failed(child, self._ended(child))
                continue
            if child.ready:
                self._release(child)
                yield child.number, answer
            elif answer.reason:
                yield self._failed(child, answer)
            else:
                child.ready = True
                self._send(child, tasks)

    def _release(self, child: _Child) -> None:
        """Let a child wait for another task; update how many fit below the memory limit."""
        self._busy.remove(child)
        self._idle.append(child)
        if self.gib < math.inf:
            self._largest = max(self._largest, child.size())
            self._room = processes_within(self.gib, self._largest, self.most)
        while self._idle and len(self._idle) + len(self._busy) > self._room:
            self._end(self._idle.pop())

    def _late(self) -> Iterator[tuple[int, Answer]]:
        now = time.monotonic()
        for child in [child for child in self._busy if now - child.since > self.seconds]:
            reason = f"It took longer than {self.seconds:g} s and was ended."
            yield self._failed(child, Answer(reason=reason, late=True))

    def _too_large(self, queue: deque[int]) -> Iterator[tuple[int, Answer]]:
        """Stay below the memory limit: the largest gives way, or fails where it is alone."""
        if self.gib == math.inf or not self._busy:
            return
        sizes = {id(child): child.size() for child in self._busy}
        if sum(sizes.values()) <= self.gib:
            return
        while self._idle:
            self._end(self._idle.pop())
        child = max(self._busy, key=lambda child: sizes[id(child)])
        if len(self._busy) == 1:
            reason = f"It needs more than the {self.gib:.3g} GiB that --memory allows."
            yield self._failed(child, Answer(reason=reason))
            return
        self._largest = max(self._largest, sizes[id(child)])
        self._room = len(self._busy) - 1
        queue.appendleft(child.number)
        self._busy.remove(child)
        self._end(child)

    def _failed(self, child: _Child, answer: Answer) -> tuple[int, Answer]:
        self._busy.remove(child)
        self._end(child)
        return child.number, answer

    def _ended(self, child: _Child) -> Answer:
        """Return why a child that closed its socket is no more."""
        with suppress(subprocess.TimeoutExpired):
            return _ended(child.process.wait(min(_GRACE, self.seconds)))
        return Answer(reason=_UNREADABLE)

    def _end(self, child: _Child) -> None:
        """End a child: its keeper ends all that it started, and is ended where it does not."""
        child.connection.close()
        if KEEPERS:
            child.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                child.process.wait(_GRACE)
                return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.process.pid, signal.SIGKILL)
        child.process.wait()


def default_cap() -> float:
    """Return three quarters of the memory that is free, in GiB."""
    return float(_SHARE * psutil.virtual_memory().available / _GIB)


def processes_within(gib: float, largest: float, most: int) -> int:
    """Return how many processes of a size fit: 1 at least, ``most`` at most."""
    return max(1, min(most, int(gib / largest))) if largest > 0 else 1


def _runs(pid: int) -> bool:
    """Return whether a child runs still; Popen.wait would wait for its own lock."""
    with suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    return False


def _ended(status: int) -> Answer:
    reason = f"Its process ended (status {status})."
    if status == -signal.SIGKILL:
        reason = "Its process was killed, perhaps for lack of memory; try --processes 1."
    return Answer(reason=reason, status=status)
