"""Ending a command by a signal: nothing is left over, one line is said, and the status is 2.

Ctrl-C (SIGINT), a request to terminate (SIGTERM) and a lost terminal (SIGHUP) have one handler,
around every command. It raises no exception, which a library may swallow or which may come in the
middle of cleaning up: it does what is registered here, and ends the process at once.

A call of the system may not return, on a disk that does not answer: then no handler runs, or what
waits for a block's end waits on. A second signal, a second or more after the first, ends the
process all the same, as SIGKILL would; the next run removes its drafts.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import Final, TypeAlias

COULD_NOT_RUN: Final = 2
INTERRUPTED: Final = "Interrupted; nothing was written."
_LATE: Final = "Interrupted when everything was written; what is printed may end early."
_LONGEST: Final = 60
"""Seconds after which the program ends even if something is still being removed."""
_STUCK: Final = "Interrupted twice, and ended in the middle of a call that does not return."
_AGAIN, _GRACE = 1.0, 5.0
"""Seconds from which a signal is a second one, and in which a handler begins that can."""
_HEEDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_Work: TypeAlias = Callable[[], object]


@dataclass
class _State:
    """What a signal would do now.

    Attributes
    ----------
    owner : int
        The process that heeds signals; 0: none does. One that was forked from it does not.
    leftovers : list of callables
        What is done before the end, the last first.
    lines : list of callables
        What gives the last words, the last first.
    held : int
        In how many blocks signals wait.
    waiting : int
        The signal that waits; 0: none.
    over : bool
        Whether all files of the command are written: only printing is left.
    taken : float
        When a handler last began.
    since : float
        Since when a signal waits.
    """

    owner: int = 0
    leftovers: list[_Work] = field(default_factory=list)
    lines: list[Callable[[], str]] = field(default_factory=list)
    held: int = 0
    waiting: int = 0
    over: bool = False
    taken: float = 0.0
    since: float = 0.0


_state = _State()


@contextmanager
def heeded() -> Iterator[None]:
    """Let signals end the program, and leave nothing over; they are ignored from the block's end.

    For the program itself: its exit status is decided when the block ends. A signal that is
    ignored already (``nohup``, a shell's job in the background) stays ignored.
    """
    _state.owner, _state.over = os.getpid(), False
    for number in _HEEDED:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _heed)
    read, write = os.pipe()
    os.set_blocking(write, False)
    threading.Thread(target=_watch, args=(read,), daemon=True).start()
    before = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    try:
        yield
    finally:
        _ignore()
        signal.set_wakeup_fd(before)
        os.close(write)


def _watch(read: int) -> None:
    """End the process at a second signal where no handler runs: its thread is stuck in a call."""
    first = 0.0
    while os.read(read, 1):
        first = first or time.monotonic()
        if time.monotonic() - first < _AGAIN:
            continue
        time.sleep(_GRACE)
        if _state.taken < first:
            _end_hard()
        first = 0.0
    os.close(read)


def _end_hard() -> None:
    tell(_STUCK)
    os._exit(COULD_NOT_RUN)


def taken() -> None:
    """Say that a handler has begun."""
    _state.taken = time.monotonic()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a signal that comes during the block wait for its end."""
    _state.held += 1
    try:
        yield
    finally:
        _state.held -= 1
        if _state.waiting and not _state.held:
            number, _state.waiting = _state.waiting, 0
            signal.raise_signal(number)


def at_end(action: _Work) -> _Work:
    """Let a signal do this before the program ends; return what takes that back."""
    _state.leftovers.append(action)

    def forget() -> None:
        with suppress(ValueError):
            _state.leftovers.remove(action)

    return forget


@contextmanager
def last_words(line: Callable[[], str]) -> Iterator[None]:
    """Let a signal during the block say this line."""
    _state.lines.append(line)
    try:
        yield
    finally:
        _state.lines.remove(line)


def over() -> None:
    """Say that all files of the command are written: a signal now cuts off only what is printed.

    The exit status is that of the work.
    """
    _state.over = True


def _heed(number: int, _frame: FrameType | None) -> None:
    taken()
    if os.getpid() != _state.owner:  # Forked: it ends as it would have without all this.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    elif _state.held:
        if not _state.waiting:
            _state.waiting, _state.since = number, _state.taken
        elif _state.taken - _state.since > _AGAIN:
            _end_hard()
    elif not _state.over:
        _end()
    else:
        _ignore()
        tell(_LATE)
        _print_nothing_more()


def _ignore() -> None:
    for number in _HEEDED:
        signal.signal(number, signal.SIG_IGN)


def _end() -> None:
    _state.held += 1  # A second signal changes nothing.
    _ignore()
    signal.signal(signal.SIGALRM, lambda *_: os._exit(COULD_NOT_RUN))
    signal.alarm(_LONGEST)
    for action in reversed(_state.leftovers):
        with suppress(Exception):
            action()
    line = INTERRUPTED
    with suppress(Exception):
        line = _state.lines[-1]() if _state.lines else INTERRUPTED
    tell(line)
    os._exit(COULD_NOT_RUN)


def tell(line: str) -> None:
    """Print a line on standard error: not through its stream, which may be writing just now."""
    with suppress(OSError):
        clear = "\r\x1b[K\x1b[?25h" if os.isatty(2) else ""  # A bar may be there, and no cursor.
        os.write(2, f"{clear}ldpaudit: {line}\n".encode())


def _print_nothing_more() -> None:
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        os.close(nowhere)
