"""Standard output and error that may break without any harm to the work or its exit status."""

import contextlib
import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator
from typing import Any


class Steady:
    """A text stream whose reader may go, or whose disk may fill up: what is left is thrown away."""

    # ``lost``: why something was thrown away.

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
