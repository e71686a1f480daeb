"""What the commands print: lines and tables, and progress while they work."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ldpaudit.progress import NoProgress, Progress

_CELL: Final = 46
"""Characters of a table's cell."""


def say(text: str) -> None:
    """Write one line to standard output."""
    sys.stdout.write(f"{text}\n")


class _Lines:
    """One line per step, for a log."""

    def step(self, text: str) -> None:
        sys.stderr.write(f"ldpaudit: {text} …\n")

    def advance(self, done: int, total: int) -> None:
        pass

    def remark(self, text: str) -> None:
        sys.stderr.write(f"ldpaudit: {text}\n")


class _Bar:
    """A bar on a terminal."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._task = bar.add_task("reading", total=None)

    def step(self, text: str) -> None:
        self._bar.reset(self._task, total=None, description=text)

    def advance(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total)

    def remark(self, text: str) -> None:
        self._bar.console.print(text, markup=False, highlight=False)


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


def show(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: framed on a terminal, plain columns in a pipe.

    The first column is text; the others are numbers, right-aligned.
    """
    from ldpaudit.reports.text.harmless import brief

    cells = [[brief(cell, _CELL) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _framed(title, headers, cells)
        return
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]
    say(f"\n{title}")
    for row in [headers, *cells]:
        padded = [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
        say(("  " + "  ".join(padded)).rstrip())


def _framed(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE)
    for position, header in enumerate(headers):
        table.add_column(Text(header), justify="right" if position else "left")
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
