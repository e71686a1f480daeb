"""The words of a row of a chart: wrapped, so that none is cut, and the room that they need."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ldpaudit.reports.charts.measuring import width, wrapped
from ldpaudit.reports.text.quantities import Mark

SIDE: Final = 215
"""Width of each of the columns beside a wide chart: labels to the left, numbers to the right."""
GAP: Final = 10
SIZE: Final = 13
_SMALL: Final = 11
_LINE, _SMALL_LINE = 16, 14
_AIR: Final = 14
"""Pixels between the words of two rows."""
_HEADING: Final = 310.0
"""Pixels of a line of a heading: fits into both widths."""
_MARK: Final = 18
"""Pixels that the mark takes below the words in a narrow chart."""

Style = tuple[tuple[str, Any], ...]
_BOLD: Final = (("fontWeight", "bold"),)
_QUIET: Final = (("fontSize", _SMALL), ("opacity", 0.8))
_RIGHT: Final = (*_BOLD, ("align", "right"))


@dataclass(frozen=True)
class Row:
    """One number with its ends, a row of a chart of intervals."""

    label: str
    text: str
    words: str
    mark: Mark
    value: float
    low: float | None = None
    high: float | None = None
    beyond: bool = False
    heading: str = ""
    """Written above the row, where a group of rows begins."""


@dataclass(frozen=True)
class Words:
    """A line of words: how far from the left and down, and how they look."""

    text: str
    x: float
    y: float
    style: Style = ()


@dataclass(frozen=True)
class Placed:
    """The words of a row from its top, where its mark is, and how tall it is."""

    words: tuple[Words, ...]
    middle: float
    height: float


def beside(row: Row, plot: int) -> Placed:
    """Return the words of a row to the left and to the right of its mark."""
    labels = wrapped(row.label, SIDE - GAP, SIZE)
    numbers = wrapped(row.text, SIDE - 2 * GAP, SIZE, bold=True)
    remarks = wrapped(row.words, SIDE - 2 * GAP, _SMALL)
    right = _LINE * len(numbers) + _SMALL_LINE * len(remarks)
    height = max(_LINE * len(labels), right) + _AIR
    words = _column(labels, -SIDE, (height - _LINE * len(labels)) / 2)
    top, at = (height - right) / 2, plot + 2 * GAP
    words += _column(numbers, at, top, _BOLD)
    words += _column(remarks, at, top + _LINE * len(numbers), _QUIET)
    return Placed(tuple(words), height / 2, height)


def above(row: Row, plot: int) -> Placed:
    """Return the words of a row above its mark: the number on the label's line if both fit."""
    number = row.text.split(" · ")[0] if row.high is not None else row.text
    both = width(row.label, SIZE) + width(number, SIZE, bold=True) + GAP
    if both <= plot:
        words = [*_column([row.label], 0, 0), *_column([number], plot, 0, _RIGHT)]
        lines = 1
    else:
        labels, numbers = wrapped(row.label, plot, SIZE), wrapped(number, plot, SIZE, bold=True)
        words = _column(labels, 0, 0) + _column(numbers, 0, _LINE * len(labels), _BOLD)
        lines = len(labels) + len(numbers)
    return Placed(tuple(words), _LINE * lines + _MARK / 2, _LINE * lines + _MARK + _AIR)


def headed(row: Row, placed: Placed) -> Placed:
    """Return a row with its heading above it, where it has one."""
    if not row.heading:
        return placed
    left = min(words.x for words in placed.words)
    lines = wrapped(row.heading, _HEADING, SIZE, bold=True)
    down = _LINE * len(lines) + _AIR
    lowered = tuple(replace(words, y=words.y + down) for words in placed.words)
    heading = tuple(_column(lines, left, _AIR / 2, _BOLD))
    return Placed((*heading, *lowered), placed.middle + down, placed.height + down)


def _column(lines: Sequence[str], x: float, top: float, style: Style = ()) -> list[Words]:
    """Return lines below each other, the first with its top at ``top``."""
    small = dict(style).get("fontSize") == _SMALL
    line = _SMALL_LINE if small else _LINE
    return [Words(text, x, top + line * (i + 0.78), style) for i, text in enumerate(lines)]
