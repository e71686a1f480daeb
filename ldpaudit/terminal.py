"""What the commands show while they work: a bar on a terminal, lines in a log."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ldpaudit.progress import NoProgress, Progress


def say(text: str) -> None:
    """Write one line to standard output."""
    sys.stdout.write(f"{text}\n")


class _Lines:
    """One line per step, for a log."""

    def step(self, text: str) -> None:
        sys.stderr.write(f"ldpaudit: {text} …\n")

    def advance(self, done: int, total: int) -> None:
        pass


class _Bar:
    """A bar on a terminal."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task = bar.add_task("reading", total=None)

    def step(self, text: str) -> None:
        self._bar.reset(self._task, total=None, description=text)

    def advance(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)


@contextmanager
def progress_on_terminal(quiet: bool) -> Iterator[Progress]:
    """Give progress on standard error: none, a bar on a terminal, or one line per step."""
    if quiet:
        yield NoProgress()
    elif not sys.stderr.isatty():
        yield _Lines()
    else:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        with RichProgress(*columns, console=Console(stderr=True), transient=True) as bar:
            yield _Bar(bar)
