"""Progress reports: a small protocol with a default that does nothing."""

from typing import Protocol


class Progress(Protocol):
    """Reports how far an audit has got; the command line draws it, a library call ignores it."""

    def step(self, text: str) -> None:
        """Report the current step in a few words, without any data."""

    def advance(self, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` equal parts of the current step are finished."""

    def remark(self, text: str) -> None:
        """Report something in one line, without any data."""


class NoProgress:
    """The default: reports nothing."""

    def step(self, text: str) -> None:
        """Ignore the text."""

    def advance(self, done: int, total: int) -> None:
        """Ignore the numbers."""

    def remark(self, text: str) -> None:
        """Ignore the text."""
