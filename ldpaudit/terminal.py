"""What the commands print: lines and tables, and progress while they work."""

import os
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final

from ldpaudit.work.progress import NoProgress, Progress

# Characters of a table's cell.
_CELL: Final = 46
# Characters of a step.
_WIDE: Final = 60
GITHUB: Final = "GITHUB_ACTIONS"
# Variables by which services say that they run a command.
_SERVICES: Final = (GITHUB, "GITLAB_CI")


def others_read(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether GitHub or GitLab runs the command, in a job whose log others may read."""
    return "true" in (environment.get(name) for name in _SERVICES)


def _printable(text: str) -> str:
    """Return lines in which whatever would move the cursor or turn a line around is visible."""
    # All text for a terminal passes here, whoever wrote it: names of a file are in it.
    if text.replace("\n", "").isprintable():
        return text
    from ldpaudit.result.harmless import printable

    return printable(text)


def say(text: str) -> None:
    """Write lines to standard output."""
    sys.stdout.write(f"{_printable(text)}\n")


def debugging() -> bool:
    """Return whether the traceback of a fault is wanted."""
    return "--debug" in sys.argv or bool(os.environ.get("LDPAUDIT_DEBUG"))


@contextmanager
def words_only() -> Iterator[None]:
    """Print in this block what was done: a fault in it takes nothing back, and is told in one line.

    What is written is written, so the exit status is that of the work. A caller who takes a fault
    in the words for one of the work would do it again, and draw the same labels a second time.
    """
    try:
        yield
    except Exception as error:
        if debugging():
            traceback.print_exc()
        remark(f"The work is done; not all of it could be printed ({type(error).__name__}).")


def remark(text: str) -> None:
    """Write one line to standard error."""
    sys.stderr.write(f"ldpaudit: {_printable(text)}\n")


def stream(text: str) -> None:
    """Write a report to standard output: in UTF-8, whatever the terminal shows."""
    # Where it is lost, on a full disk for instance, one line says so; a reader that has enough may
    # go. The exit status is that of the work all the same.
    with suppress(OSError, AttributeError):  # A stream that is broken, or holds text itself.
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    sys.stdout.write(text)
    sys.stdout.flush()
    lost = getattr(sys.stdout, "lost", None)
    if lost is not None and not isinstance(lost, BrokenPipeError):
        why = (getattr(lost, "strerror", None) or type(lost).__name__).lower()
        remark(f"Standard output is lost, and with it what was to be written there: {why}.")


class _Lines(NoProgress):
    """One line per phase, for a log; one per step where there are no phases."""

    _names: Sequence[str] = ()

    def step(self, text: str) -> None:
        if not self._names:
            self.remark(f"{text} …")

    def remark(self, text: str) -> None:
        remark(text)

    def phases(self, names: Sequence[str]) -> None:
        self._names = names

    def phase(self, number: int) -> None:
        self.remark(f"{number + 1} of {len(self._names)}: {self._names[number]} …")


class _Bar:
    """A bar on a terminal: of all phases where there are some, else of each step."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar
        self._names: Sequence[str] = ()
        self._task = bar.add_task("reading", total=None)

    def step(self, text: str) -> None:
        if self._names:
            self._describe(f"{self._place} – {text}")
        else:
            self._bar.reset(self._task, total=None, description=_printable(text))

    def advance(self, done: int, total: int) -> None:
        if not self._names:
            self._bar.update(self._task, completed=done, total=total)

    def remark(self, text: str) -> None:
        self._bar.console.print(_printable(text), markup=False, highlight=False)

    def phases(self, names: Sequence[str]) -> None:
        self._names = names
        self._bar.reset(self._task, total=len(names) or None, description="")

    def phase(self, number: int) -> None:
        self._place = f"{number + 1} of {len(self._names)}: {self._names[number]}"
        self._bar.update(self._task, completed=number)
        self._describe(self._place)

    def _describe(self, text: str) -> None:
        self._bar.update(self._task, description=_printable(text[:_WIDE]), refresh=True)


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

        what = TextColumn("{task.description}", markup=False)
        console = Console(stderr=True)
        bar = RichProgress(what, BarColumn(), TimeElapsedColumn(), console=console, transient=True)
        bar.start()
        try:
            yield _Bar(bar)
        finally:
            with suppress(Exception):  # The files are written: no bar changes that.
                bar.stop()


def show(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: framed on a terminal, plain columns in a pipe."""
    # The first column is text; the others are numbers, right-aligned.
    from ldpaudit.result.harmless import brief

    heads, *cells = [[brief(cell, _CELL) for cell in row] for row in (headers, *rows)]
    if sys.stdout.isatty():
        _framed(_printable(title), heads, cells)
        return
    widths = [max(map(len, column)) for column in zip(heads, *cells, strict=True)]
    say(f"\n{title}")
    for row in [heads, *cells]:
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
