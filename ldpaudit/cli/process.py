"""The command's process: a limit on its addresses, and streams that may break without any harm."""

# Libraries may abort when they meet a limit (``ulimit -v``), and such an end cannot be caught from
# inside. Under a limit the work is therefore done by a child, and whatever becomes of it, the
# command ends with a status of the contract and one line.

import contextlib
import errno
import io
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

from ldpaudit.work.interruption import undisturbed
from ldpaudit.work.memory import address_limit, shown

# Bytes of addresses that Python and the libraries need; with fewer they may abort in any way.
LEAST: Final = 1_200 << 20
CHILD: Final = "LDPAUDITCHILD"
# Without these, libraries reserve gigabytes of addresses that they never use.
_FRUGAL: Final = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
_STATUSES: Final = (0, 1, 2, 3)


def status_under_limit() -> tuple[int, str] | None:
    """Carry out the command in a child where addresses are limited."""
    # Returns the exit status, and a line to print or nothing; None where there is no limit, or this
    # process is the child.
    limit = address_limit()
    if limit is None or os.environ.get(CHILD):
        return None
    if limit < LEAST:
        return 2, (
            f"The limit on the process's memory (ulimit -v) is {shown(limit)}; at least "
            f"{shown(LEAST)} are needed, and more for large tables."
        )
    status = _child()
    if status in _STATUSES:
        return status, ""
    return 2, (
        "The limit on the process's memory (ulimit -v) is too small for this; nothing was written. "
        "Raise it, or leave it out and limit the memory with --memory."
    )


def _child() -> int:
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    command = [sys.executable, "-m", "ldpaudit", *sys.argv[1:]]
    with undisturbed():
        child = subprocess.Popen(command, env=os.environ | _FRUGAL | {CHILD: "1"})

        def pass_on(number: int, _frame: FrameType | None) -> None:
            child.send_signal(number)

        signal.signal(signal.SIGINT, signal.SIG_IGN)  # The terminal tells the child, too.
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, pass_on)
    return child.wait()


class Steady:
    """A text stream whose reader may go, or whose disk may fill up: what is left is thrown away.

    ``lost``: why something was thrown away.
    """

    def __init__(self, stream: Any, lost: Exception | None = None) -> None:
        self._stream, self.lost = stream, lost

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, or throw it away where that is not possible."""
        with self._broken():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered, or throw it away."""
        with self._broken():
            self._stream.flush()

    @contextlib.contextmanager
    def _broken(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:  # ValueError: somebody closed it.
            self.lost = self.lost or error
            # What is in the buffer cannot be taken back: it goes nowhere, now and at the end.
            with contextlib.suppress(OSError, ValueError):
                nowhere = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nowhere, self._stream.fileno())
                os.close(nowhere)


@contextlib.contextmanager
def steady_streams() -> Iterator[None]:
    """Print on streams that cannot fail; a closed one takes everything and shows nothing."""
    for number in range(3):  # No file may be opened as a stream that is closed: a library prints.
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # The lowest one: this.
    before, streams = (sys.stdout, sys.stderr), []
    for stream in before:
        if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")  # Where the encoding lacks a letter, ε for one.
        lost = None if stream else OSError(errno.EBADF, os.strerror(errno.EBADF))
        nowhere = None if stream else open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123,SIM115
        streams.append(Steady(stream or nowhere, lost))
    shown: Any = streams
    sys.stdout, sys.stderr = shown
    try:
        yield
    finally:
        for stream in streams:
            stream.flush()
        if None not in before:
            sys.stdout, sys.stderr = before


@contextlib.contextmanager
def quiet_libraries(debug: bool) -> Iterator[None]:
    """Show no warning of a library, which nobody can act on and which names paths."""
    # A warning that a filter turns into an error, as in the tests, is one still.
    with warnings.catch_warnings():
        if not debug:
            warnings.showwarning = lambda *_, **__: None
        yield
