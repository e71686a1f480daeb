"""A keeper above each worker: with the worker ends everything that it started.

A worker runs code of others, which may start processes, also in sessions of their own. On Linux the
keeper inherits each of them whose parent ends, so none gets out of its reach.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress
from typing import Final

KEEPERS: Final = sys.platform.startswith("linux")
_TICK: Final = 0.5
"""Seconds between two looks at whether the command is still there."""
_GRACE: Final = 5.0
"""Seconds in which everything below the keeper must have ended."""
_SUBREAPER, _PARENT_DEATH = 36, 1
"""Numbers of prctl: inherit orphans below; a signal when the parent ends."""
_SIGNALS: Final = frozenset({signal.SIGTERM, signal.SIGCHLD})


def kept(command: int, descriptor: int) -> None:
    """Go on in a worker; this process becomes its keeper and never returns.

    Elsewhere than on Linux there is no keeper, and the worker ends itself with the command.

    Parameters
    ----------
    command : int
        The process whose end ends the worker.
    descriptor : int
        The worker's end of the pipe, which the keeper closes.
    """
    if not KEEPERS:
        threading.Thread(target=_end_with, args=(command,), daemon=True).start()
        return
    _prctl(_SUBREAPER, 1)
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    worker = os.fork()
    if worker:
        os.close(descriptor)
        _keep(worker, command)
    os.setsid()  # A signal to its group reaches no keeper.
    _prctl(_PARENT_DEATH, signal.SIGKILL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _keep(worker: int, command: int) -> None:
    """Wait until the worker ends, the command ends or asks for the end; leave as the worker did."""
    status = None
    while status is None and os.getppid() == command:
        if _asked_to_end():
            break
        status = _reaped(worker)
    with suppress(ProcessLookupError):
        if status is None:
            os.kill(worker, signal.SIGKILL)
    later = _ended_all(worker)
    status = later if status is None else status
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _asked_to_end() -> bool:
    told = signal.sigtimedwait(_SIGNALS, _TICK)
    return told is not None and told.si_signo == signal.SIGTERM


def _reaped(worker: int) -> int | None:
    """Let all that has ended go; return the worker's status if it is among them."""
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in (0, worker):
                return status if pid else None
    return None


def _ended_all(worker: int) -> int:
    """Kill everything below this process; return the worker's status."""
    found, deadline = int(signal.SIGKILL), time.monotonic() + _GRACE
    with suppress(ChildProcessError):  # Nothing is left.
        while time.monotonic() < deadline:
            pid, status = os.waitpid(-1, os.WNOHANG)
            found = status if pid == worker else found
            if not pid:
                _kill_all_below()
                time.sleep(0.01)
    return found


def _kill_all_below() -> None:
    import psutil

    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            process.kill()


def _prctl(what: int, value: int) -> None:
    ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


def _end_with(command: int) -> None:
    while os.getppid() == command:
        time.sleep(_TICK)
    os._exit(1)
