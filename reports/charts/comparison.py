"""Charts of several releases at once: intervals in groups, curves one over the other."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.curves import (
    DASHES,
    curve_table,
    lines_figure,
    thinned,
    variable,
    visible,
)
from ldpaudit.reports.charts.intervals import (
    MOST_MARKS,
    Cell,
    Figure,
    Table,
    interval_figure,
)
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import Printer, Quantity, words_of
from ldpaudit.result import AuditResult, Curve

MOST_LINES: Final = 6
"""Lines of one chart: the number of dash patterns."""

Group = tuple[str, Sequence[tuple[str, Quantity]]]
"""What is compared, and its number in each release, by letter."""


@dataclass(frozen=True)
class LetteredCurve:
    """A curve of one of the compared releases."""

    letter: str
    result: AuditResult
    curve: Curve

    @property
    def label(self) -> str:
        """The letter, the curve's name, and the kind of the values, which are drawn."""
        bound = self.curve.low is None or self.curve.low == self.curve.value
        words = words_of(self.curve) if bound else self.curve.kind
        return f"{self.letter}: {shown(self.curve.title)} ({words})"


def group_figure(
    key: str,
    title: str,
    axis_title: str,
    groups: Sequence[Group],
    rules: Sequence[charts.Rule] = (),
) -> Figure:
    """Return numbers with their intervals, grouped by what they measure.

    Parameters
    ----------
    key, title, axis_title, rules
        As for :func:`ldpaudit.reports.charts.intervals.interval_figure`.
    groups : sequence of Group
        The chart shows as many as it has room for; the table holds all.
    """
    named = [
        (f"{letter} · {name}", quantity)
        for name, members in _with_room(groups)
        for letter, quantity in members
    ]
    return interval_figure(key, title, axis_title, named, group_table(groups), rules)


def group_table(groups: Sequence[Group], first: str = "") -> Table:
    """Return a table with a row for each group and a column for each release."""
    letters = sorted({letter for _, members in groups for letter, _ in members})
    body: list[tuple[Cell, ...]] = []
    for name, members in groups:
        cells = dict(members)
        body.append((name, *(cells.get(letter, "–") for letter in letters)))
    return Table((first, *letters), tuple(body))


def overlay_figure(
    key: str, title: str, curves: Sequence[LetteredCurve], y_title: str
) -> Figure | None:
    """Return curves of several releases in one chart; None without two points to draw.

    Parameters
    ----------
    key : str
        Unique on the page.
    title : str
    curves : sequence of LetteredCurve
        The first six are drawn; the table holds all.
    y_title : str
        What the height is.
    """
    lines = [_line(each, dash) for each, dash in zip(curves, DASHES, strict=False)]
    names = (key, title, " ".join(f"{each.label}." for each in curves))
    axes = (variable(curves[0].curve), y_title)
    share = curves[0].curve.unit == "proportion"
    return lines_figure(names, lines, axes, _points(curves), share=share)


def _with_room(groups: Sequence[Group]) -> list[Group]:
    """Return the first groups that a chart has room for, at least one."""
    marks = list(accumulate(len(members) for _, members in groups))
    return list(groups[: max(1, bisect_right(marks, MOST_MARKS))])


def _line(each: LetteredCurve, dash: charts.Dash) -> charts.Line:
    curve = visible(each.curve)
    return charts.Line(each.label, thinned(curve.x), thinned(curve.value), dash)


def _points(curves: Sequence[LetteredCurve]) -> Table:
    """Return the points of all curves, each named by its release."""
    body: list[tuple[Cell, ...]] = []
    remark = ""
    for each in curves:
        table = curve_table([each.curve], Printer(each.result))
        headers, remark = table.headers, table.remark or remark
        body += [(f"{each.letter}: {row[0]}", *row[1:]) for row in table.rows]
    return Table(headers, tuple(body), remark)
