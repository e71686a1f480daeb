"""Progress reports: a small protocol, a default that does nothing, and the time that is left."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

_DOUBT: Final = 5.0
"""Seconds of work that the prediction is worth before anything is measured."""
_OVERDUE: Final = 0.5
"""What is left of a phase that takes longer than predicted, as a share of the time beyond that."""
_LAST: Final = 0.05
"""The least that is left of a phase, as a share of what it took."""
_SMOOTH: Final = 0.04
"""How long a new estimate of the time that is left takes to be taken up, as a share of all."""
_MOST_WRONG: Final = 30.0
"""How many times faster or slower than predicted a machine is taken to be at most."""


class Progress(Protocol):
    """Reports how far an audit has got; the command line draws it, a library call ignores it."""

    def step(self, text: str) -> None:
        """Report the current step in a few words, without any data."""

    def advance(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` equal parts of the current step are finished."""

    def remark(self, text: str) -> None:
        """Report something in one line, without any data."""

    def phases(self, names: Sequence[str], seconds: Sequence[float]) -> None:
        """Report the phases to come, in order, and the seconds predicted for each.

        None: what comes is in no phase.
        """

    def phase(self, number: int) -> None:
        """Report that a phase begins, counted from 0; steps are within phases."""


class NoProgress:
    """The default: reports nothing."""

    def step(self, text: str) -> None:
        """Ignore the text."""

    def advance(self, done: int, total: int) -> None:
        """Ignore the numbers."""

    def remark(self, text: str) -> None:
        """Ignore the text."""

    def phases(self, names: Sequence[str], seconds: Sequence[float]) -> None:
        """Ignore the phases."""

    def phase(self, number: int) -> None:
        """Ignore the phase."""


@dataclass
class Pace:
    """How much time is left, from the predicted seconds of each phase and the pace so far.

    Attributes
    ----------
    names : sequence of str
    seconds : sequence of float
        Predicted for each phase.
    since : float
        When the work began.
    number : int
        The current phase, counted from 0; -1 before the first.
    """

    names: Sequence[str] = ()
    seconds: Sequence[float] = ()
    clock: Callable[[], float] = time.monotonic
    since: float = field(init=False)
    number: int = field(default=-1, init=False)
    _begun: float = field(default=0.0, init=False)
    _shown: tuple[float, float] | None = field(default=None, init=False)
    """When the time that is left was last asked for, and the answer."""

    def __post_init__(self) -> None:
        self.since = self.clock()

    def begin(self, number: int) -> None:
        """Begin a phase; those before it are done."""
        self.number, self._begun = number, self.clock()

    @property
    def so_far(self) -> float:
        """Seconds since the work began."""
        return self.clock() - self.since

    def left(self) -> float:
        """Return about how many seconds are left; it changes smoothly, and is never 0."""
        now, new = self.clock(), self._estimate()
        if self._shown is None:
            self._shown = now, new
            return new
        before, shown = self._shown
        expected = max(shown - (now - before), 0.0)
        lag = max(_SMOOTH * (self.so_far + shown), 2.0)
        weight = min((now - before) / lag, 1.0)
        self._shown = now, max(expected + weight * (new - expected), self._of_this())
        return self._shown[1]

    def _estimate(self) -> float:
        ahead = sum(self.seconds[self.number + 1 :])
        return self._of_this() + self._slowness() * ahead

    def _of_this(self) -> float:
        """Return what is left of the current phase: some of it, however long it takes."""
        if self.number < 0:
            return 0.0
        took = self.clock() - self._begun
        predicted = self._slowness(done_only=True) * self.seconds[self.number]
        return max(predicted - took, _OVERDUE * (took - predicted), _LAST * took)

    def _slowness(self, *, done_only: bool = False) -> float:
        """Return how many times slower than predicted the work goes.

        A phase that is not done yet counts once it takes longer than predicted.
        """
        took, predicted = self._begun - self.since, sum(self.seconds[: max(self.number, 0)])
        if self.number < 0:
            took = 0.0
        pace = (took + _DOUBT) / (predicted + _DOUBT)
        if not done_only and self.number >= 0:
            this = self.seconds[self.number]
            longer = took + (self.clock() - self._begun)
            pace = max(pace, (longer + _DOUBT) / (predicted + this + _DOUBT))
        return min(max(pace, 1 / _MOST_WRONG), _MOST_WRONG)


def duration(seconds: float) -> str:
    """Return a guessed length of time in words: ``"about 40 s"``, ``"about 3 min"``."""
    if seconds < 9.5:
        return "a few seconds"
    if seconds < 57.5:
        return f"about {5 * round(seconds / 5)} s"
    if seconds < 90 * 60:
        return f"about {max(round(seconds / 60), 1)} min"
    return f"about {seconds / 3600:.1f} h".replace(".0 h", " h")
