"""Progress reports: a small protocol with a default that does nothing."""

from typing import Protocol


class Progress(Protocol):
    """What an audit tells while it works; the command line draws it, a library call ignores it."""

    def step(self, text: str) -> None:
        """Say what is being done now, in a few words and without any data."""

    def advance(self, done: int, total: int) -> None:
        """Say that ``done`` of ``total`` equal parts of the current step are finished."""


class NoProgress:
    """The default: says nothing."""

    def step(self, text: str) -> None:
        """Ignore the text."""

    def advance(self, done: int, total: int) -> None:
        """Ignore the numbers."""
