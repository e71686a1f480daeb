"""Charts of several releases at once: intervals in groups, curves one over the other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.curves import curve_table
from ldpaudit.reports.charts.intervals import (
    LINE_SAMPLES,
    MOST_MARKS,
    Cell,
    Figure,
    Table,
    interval_figure,
)
from ldpaudit.reports.text.harmless import brief, shown
from ldpaudit.reports.text.quantities import Printer, Quantity, words_of
from ldpaudit.result import AuditResult, Curve

MOST_LINES: Final = 6
"""Lines of one picture: there are so many dashes."""
_MOST_POINTS: Final = 120
_LEAST_SHARE: Final = 1e-3
_DASHES: Final[tuple[charts.Dash, ...]] = (0, 1, 2, 3, 4, 5)

Group = tuple[str, Sequence[tuple[str, Quantity]]]
"""What is compared, and by letter its number in each release."""


@dataclass(frozen=True)
class LetteredCurve:
    """A curve of one of the compared releases."""

    letter: str
    result: AuditResult
    curve: Curve

    @property
    def label(self) -> str:
        """The letter, the curve's name, and the kind of the values, which are what is drawn."""
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
    """Return numbers with their intervals, those of the same thing under each other.

    Parameters
    ----------
    key, title, axis_title, rules
        As for :func:`ldpaudit.reports.charts.intervals.interval_figure`.
    groups : sequence of Group
        At most as many as a chart has room for are drawn; the table holds all.
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
        own = dict(members)
        body.append((name, *(own.get(letter, "–") for letter in letters)))
    return Table((first, *letters), tuple(body))


def overlay_figure(
    key: str, title: str, curves: Sequence[LetteredCurve], y_title: str
) -> Figure | None:
    """Return curves of several releases in one picture; None without two points to draw.

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
    lines = [_line(each, dash) for each, dash in zip(curves, _DASHES, strict=False)]
    lines = [line for line in lines if line.x]
    xs = [x for line in lines for x in line.x]
    if len(set(xs)) < 2:
        return None
    ys = [y for line in lines for y in line.y]
    share = curves[0].curve.unit == "proportion"
    head = max(*ys, 1e-6) * 1.05
    logarithmic = min(xs) >= 1 and max(xs) / min(xs) > 40
    x_axis = charts.Axis(brief(curves[0].curve.x_label, 80) or "x", min(xs), max(xs), logarithmic)
    y_axis = charts.Axis(y_title, min(0.0, *ys), min(head, 1.0) if share else head)
    description = " ".join(f"{each.label}." for each in curves)
    drawing = charts.draw(
        lambda width: charts.curves(lines, (), x_axis, y_axis, width), title, description, key
    )
    legend = tuple((LINE_SAMPLES[line.dash], line.label) for line in lines)
    return Figure(key, title, description, drawing, _points(curves), legend)


def _with_room(groups: Sequence[Group]) -> list[Group]:
    """Return the first groups that a chart has room for, at least one."""
    kept: list[Group] = []
    for group in groups:
        if kept and sum(len(members) for _, members in [*kept, group]) > MOST_MARKS:
            break
        kept.append(group)
    return kept


def _line(each: LetteredCurve, dash: charts.Dash) -> charts.Line:
    curve = each.curve
    points = [
        (x, y)
        for x, y in zip(curve.x, curve.value, strict=True)
        if math.isfinite(x) and math.isfinite(y)
    ]
    if curve.unit == "proportion":
        # A tail too small to be seen would only press the rest of the picture together.
        seen = [i for i, (_, y) in enumerate(points) if y >= _LEAST_SHARE]
        points = points[: max(seen, default=0) + 2]
    step = max(1, math.ceil(len(points) / _MOST_POINTS))
    kept = [*points[:-1:step], *points[-1:]]
    return charts.Line(each.label, tuple(x for x, _ in kept), tuple(y for _, y in kept), dash)


def _points(curves: Sequence[LetteredCurve]) -> Table:
    """Return the points of all curves, each named by its release."""
    body: list[tuple[Cell, ...]] = []
    remark = ""
    for each in curves:
        table = curve_table([each.curve], Printer(each.result))
        headers, remark = table.headers, table.remark or remark
        body += [(f"{each.letter}: {row[0]}", *row[1:]) for row in table.rows]
    return Table(headers, tuple(body), remark)
