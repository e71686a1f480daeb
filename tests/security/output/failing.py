"""Calls on files that fail: the n-th of them, or all from the n-th on, within this process."""

import os
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

CALLS = ("open", "fsync", "link", "rename", "replace", "unlink", "chmod", "fdopen")


@dataclass
class Failing:
    """Which call fails, and how.

    Attributes
    ----------
    folder : Path
        Only calls on what lies below it count.
    turn : int
        The first call that fails.
    error : BaseException
    lasting : bool
        Whether all calls from then on fail.
    calls : int
        How many there were.
    """

    folder: Path
    turn: int
    error: BaseException
    lasting: bool = False
    calls: int = 0

    def count(self):
        """Count a call, and fail if it is its turn."""
        self.calls += 1
        if self.calls == self.turn or (self.lasting and self.calls > self.turn):
            raise self.error

    def concerns(self, place):
        """Return whether a path or a descriptor lies below the folder."""
        if isinstance(place, int):
            place = Path(f"/proc/self/fd/{place}")
            place = place.readlink() if place.is_symlink() else ""
        return os.fspath(place).startswith(f"{self.folder}/")


class _Stream:
    """A file whose writing and flushing may fail."""

    def __init__(self, stream, failing):
        self._stream, self._failing = stream, failing

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def write(self, content):
        self._failing.count()
        return self._stream.write(content)

    def flush(self):
        self._failing.count()
        self._stream.flush()


@contextmanager
def failing_calls(failing):
    """Let the calls in this block fail as is said."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, _shim(name, getattr(os, name), failing))
        yield failing


def _shim(name, real, failing):
    def call(*words, **more):
        reads = name == "open" and not words[1] & (os.O_WRONLY | os.O_RDWR)
        own = not reads and failing.concerns(words[-1] if name in ("link", "replace") else words[0])
        if name == "fdopen":
            stream = real(*words, **more)
            return _Stream(stream, failing) if own else stream
        if own:
            failing.count()
        return real(*words, **more)

    return call
