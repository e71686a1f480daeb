"""Tables on standard output: framed on a terminal, plain columns in a pipe."""

import sys
from collections.abc import Sequence

from ldpaudit.reports.text.harmless import brief
from ldpaudit.reports.text.numbers import number
from ldpaudit.terminal import say

_CELL = 46


def show(title: str, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is text, the others are numbers, right-aligned."""
    cells = [[brief(cell, _CELL) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _framed(title, headers, cells)
        return
    widths = [max(len(row[i]) for row in [list(headers), *cells]) for i in range(len(headers))]
    say(f"\n{title}")
    for row in [list(headers), *cells]:
        padded = [row[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
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
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def exact(value: float) -> str:
    """Return an exact number with six significant digits, or as the reports write it."""
    if value and 1e-4 <= abs(value) < 1e6:
        return f"{value:.6g}"
    return number(value)
