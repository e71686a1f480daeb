"""Ending a command by a signal: nothing is left over, one line is printed, and the status is 2."""

# Ctrl-C (SIGINT), a request to terminate (SIGTERM) and a lost terminal (SIGHUP) have one handler.
# It raises KeyboardInterrupt, unless files take their names just then: in those blocks a signal
# waits. Signals within two seconds are one, for service managers may send theirs to a process and
# to its group. A process that hangs in a call of the system can only be ended by SIGKILL.

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

COULD_NOT_RUN: Final = 2
INTERRUPTED: Final = "Interrupted; nothing was written."
_LATE: Final = "Interrupted when everything was written; what is printed may end early."
# Seconds in which signals count as one.
_ONE: Final = 2.0
_HEEDED: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class _State:
    """What a signal does now, in the process that heeds signals (0: none does)."""

    owner: int = 0
    line: str = INTERRUPTED
    held: int = 0
    waiting: bool = False
    over: bool = False
    raised: float = -_ONE


_state = _State()


@contextmanager
def heeded() -> Iterator[None]:
    """Let signals end the program; they are ignored from the block's end on."""
    # For the program itself: its exit status is decided when the block ends. A signal that is
    # ignored already (``nohup``, a shell's job in the background) stays ignored.
    _state.owner, _state.line, _state.over = os.getpid(), INTERRUPTED, False
    for number in _HEEDED:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _heed)
    signal.signal(signal.SIGALRM, _heed)
    sys.unraisablehook = _swallowed
    try:
        yield
    except KeyboardInterrupt:
        tell(_state.line)
        sys.exit(COULD_NOT_RUN)
    finally:
        for number in _HEEDED:
            signal.signal(number, signal.SIG_IGN)


def _heed(number: int, _frame: FrameType | None) -> None:
    if os.getpid() != _state.owner:  # Forked: it ends as it would have without all this.
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    elif _state.held:
        _state.waiting = True
    else:
        _interrupt()


def _interrupt() -> None:
    if time.monotonic() - _state.raised < _ONE:
        return
    _state.raised = time.monotonic()
    if not _state.over:
        raise KeyboardInterrupt
    tell(_LATE)
    with suppress(OSError):  # Nothing more is printed.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(nowhere, stream)
        os.close(nowhere)


def _swallowed(lost: Any) -> None:
    """Raise an interruption again that came where nothing can be raised, in a finaliser say."""
    if not issubclass(lost.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    _state.raised = -_ONE
    signal.setitimer(signal.ITIMER_REAL, 0.01)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let a signal that comes during the block wait for its end."""
    _state.held += 1
    try:
        yield
    finally:
        _state.held -= 1
        if not _state.held:
            heed_waiting()


def heed_waiting() -> None:
    """Heed a signal that waits, also within a block where signals wait."""
    if _state.waiting:
        _state.waiting = False
        _interrupt()


@contextmanager
def last_words(line: Callable[[], str]) -> Iterator[None]:
    """Let a signal during the block print this line."""
    try:
        yield
    except KeyboardInterrupt:
        _state.line = line()
        raise


def interrupted() -> str:
    """Return the line for a command that a signal ended."""
    return _state.line


def over() -> None:
    """Declare all files of the command written: a signal now cuts off only what is printed."""
    _state.over = True


def tell(line: str) -> None:
    """Print a line on standard error: not through its stream, which may be writing just now."""
    with suppress(OSError):
        clear = "\r\x1b[K\x1b[?25h" if os.isatty(2) else ""  # A bar may be there, and no cursor.
        os.write(2, f"{clear}ldpaudit: {line}\n".encode())
