"""How far an audit has got, and ending it early: its time is over, or somebody asks for it."""

# ruff: noqa: ARG002 - What ignores everything has arguments all the same.

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any, Final, Protocol

INTERRUPTED: Final = "it was interrupted"
# Seconds within which requests to terminate are one: ``timeout`` and service managers may tell a
# process and then its group.
_AT_ONCE: Final = 1.0
_TOLD: Final = (
    "ldpaudit: stopping at the next opportunity; the report will say what is missing. A second "
    "signal ends it immediately and writes nothing."
)


class Progress(Protocol):
    """Reports how far an audit has got; the command line draws it, a library call ignores it.

    A class that derives from it ignores what it does not define.
    """

    def step(self, text: str) -> None:
        """Report the current step in a few words, the ``text``, without any data."""
        return

    def advance(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` equal parts of the current step are finished."""
        return

    def remark(self, text: str) -> None:
        """Report something in one line, the ``text``, without any data."""
        return

    def phases(self, names: Sequence[str]) -> None:
        """Report the ``names`` of the phases to come, in order; none: what comes is in no phase."""
        return

    def phase(self, number: int) -> None:
        """Report that the phase ``number`` begins, counted from 0; steps are within phases."""
        return


class NoProgress(Progress):
    """The default: reports nothing."""


class Stopped(KeyboardInterrupt):
    """The part of an audit that runs is to end now; nothing of it is kept."""

    # Like any interruption it is no error: what catches errors lets it pass.


@dataclass
class _Told:
    """Whether somebody was told to end."""

    to_end: bool = False


# Of the part that runs, and of every thread that works for it; None outside of parts.
_told: ContextVar[_Told | None] = ContextVar("told", default=None)


@dataclass
class Stop:
    """Whether an audit is to end before it is done.

    Attributes
    ----------
    deadline : float or None
        When the time is over, in seconds of ``clock``; None: never.
    seconds : float or None
        The time that was given, in seconds, for :attr:`reason`.
    asked : str
        Why somebody wants it to end, in words; empty while nobody does.
    running : bool
        Whether an audit has begun that can end early and still be reported.
    obeyed : bool
        Whether somebody was told to end since this was last set to False.
    since : float
        When it was first asked to end, in seconds of ``clock``.
    clock : callable
        Returns the time in seconds; ``time.monotonic`` by default.
    """

    deadline: float | None = None
    seconds: float | None = None
    asked: str = ""
    running: bool = False
    since: float = 0.0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _all: _Told = field(default_factory=_Told, repr=False)

    @classmethod
    def after(cls, seconds: float | None) -> "Stop":
        """Return one whose time is over in so many ``seconds``; None: never."""
        return cls(None if seconds is None else time.monotonic() + seconds, seconds)

    def due(self) -> bool:
        """Return whether to end now; a part that asks and is told so must end."""
        due = bool(self.asked) or (self.deadline is not None and self.clock() >= self.deadline)
        self.obeyed = self.obeyed or due
        return due

    @property
    def obeyed(self) -> bool:
        """Whether somebody was told to end since this was last set to False; see :meth:`part`."""
        return (_told.get() or self._all).to_end

    @obeyed.setter
    def obeyed(self, told: bool) -> None:
        (_told.get() or self._all).to_end = told

    @contextmanager
    def part(self, *, told: bool = False) -> Iterator[None]:
        """Let ``obeyed`` be about the block, whatever runs beside it; after it, about all.

        ``told``: whether the block is trusted to end soon, so that none of its steps ends it.
        """
        mine = _Told(told)
        before = _told.set(mine)
        try:
            yield
        finally:
            _told.reset(before)
            self.obeyed = self.obeyed or (mine.to_end and not told)

    @contextmanager
    def share(self, of: int) -> Iterator[None]:
        """Give the block one of so many equal shares, ``of``, of the time that is left."""
        end = self.deadline
        if end is not None:
            self.deadline = self.clock() + max(end - self.clock(), 0.0) / of
        try:
            yield
        finally:
            self.deadline = end

    @property
    def reason(self) -> str:
        """Why it ends, in words."""
        return self.asked or f"its time was over (--timeout {self.seconds or 0:g})"

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Let Ctrl-C, a request to terminate or a lost terminal end the audit early, not at once.

        A second one, or one before the audit has begun or after it has ended, does what it did
        before the block, or raises KeyboardInterrupt where that was nothing of its own. Requests to
        terminate within a second of the first are the same one. A lost terminal that is ignored
        (``nohup``) stays so. Outside of the main thread, where no signals arrive, nothing changes.
        """
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
        if before[signal.SIGHUP] is signal.SIG_IGN:
            del before[signal.SIGHUP]
        if threading.current_thread() is not threading.main_thread():
            before = {}

        def heed(number: int, frame: FrameType | None) -> None:
            if self.running and not self.asked:
                self.asked, self.since = INTERRUPTED, self.clock()
                # Not through sys.stderr, which may be writing when the signal comes.
                with suppress(OSError):
                    os.write(2, f"\n{_TOLD}\n".encode())
            elif not self.asked or number == signal.SIGINT or self.clock() - self.since >= _AT_ONCE:
                if not callable(before[number]):
                    raise KeyboardInterrupt
                before[number](number, frame)

        for number in before:
            signal.signal(number, heed)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class InTurn:
    """Progress of parts that run side by side, reported as if one came after another.

    What a part reports is kept until the parts before it have ended. Where the rest is not wanted
    any more, :meth:`end` lets each part end, by :class:`Stopped`, where its next step would begin.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress, self._lock = progress, threading.RLock()
        self._front, self._last = 0, math.inf
        self._done: set[int] = set()
        self._kept: dict[int, list[tuple[str, tuple[Any, ...]]]] = {}

    def of(self, place: int) -> Progress:
        """Return the progress of a part, counted from 0."""
        inside = self._progress
        if isinstance(inside, Watched):
            return replace(inside, progress=_Part(self, place))
        return _Part(self, place)

    def done(self, place: int) -> None:
        """Note that a part has ended, and report what others have kept."""
        with self._lock:
            self._done.add(place)
            while self._front in self._done:
                self._front += 1
                for kind, words in self._kept.pop(self._front, ()):
                    self._pass(kind, words)

    def end(self, after: float = -1) -> None:
        """Let all parts after one end."""
        self._last = min(self._last, after)

    def check(self, place: int) -> None:
        """End a part that is not wanted any more."""
        if place > self._last:
            raise Stopped

    def report(self, place: int, kind: str, *words: Any) -> None:
        """Report something of a part, or keep it for later."""
        self.check(place)
        with self._lock:
            if place == self._front:
                self._pass(kind, words)
                return
            kept = self._kept.setdefault(place, [])
            if kind == "advance" and kept and kept[-1][0] == kind:
                kept.pop()
            kept.append((kind, words))

    def _pass(self, kind: str, words: tuple[Any, ...]) -> None:
        inside = self._progress
        getattr(inside.progress if isinstance(inside, Watched) else inside, kind)(*words)


@dataclass(frozen=True)
class _Part(Progress):
    """The progress of one of several parts that run side by side."""

    parts: InTurn
    place: int

    def step(self, text: str) -> None:
        self.parts.report(self.place, "step", text)

    def advance(self, done: int, total: int) -> None:
        self.parts.report(self.place, "advance", done, total)

    def remark(self, text: str) -> None:
        self.parts.report(self.place, "remark", text)

    def phases(self, names: Sequence[str]) -> None:
        self.parts.report(self.place, "phases", names)

    def phase(self, number: int) -> None:
        self.parts.report(self.place, "phase", number)


@dataclass(frozen=True)
class Watched(Progress):
    """Progress that ends a part of an audit, by :class:`Stopped`, where its next step would begin.

    So an audit that never asks whether to end still ends between two steps; one that has asked and
    was told to end is trusted to do so. ``name``: of the release, where there are several.
    """

    progress: Progress
    stop: Stop = field(default_factory=Stop)
    name: str = ""

    def step(self, text: str) -> None:
        """Report a step, unless it is time to end."""
        self._check()
        self.progress.step(self._named(text))

    def advance(self, done: int, total: int) -> None:
        """Report a part of a step, unless it is time to end."""
        self._check()
        self.progress.advance(done, total)

    def remark(self, text: str) -> None:
        """Report something in one line."""
        self.progress.remark(self._named(text))

    def phases(self, names: Sequence[str]) -> None:
        """Report the phases to come."""
        self.progress.phases([*map(self._named, names)])

    def phase(self, number: int) -> None:
        """Report that a phase begins, unless it is time to end."""
        self._check()
        self.progress.phase(number)

    def _named(self, text: str) -> str:
        return f"{self.name}: {text}" if self.name else text

    def _check(self) -> None:
        told = self.stop.obeyed
        if self.stop.due() and not told:
            raise Stopped
