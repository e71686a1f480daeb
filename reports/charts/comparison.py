"""Charts of several releases at once: intervals in groups, curves one over the other."""

from collections.abc import Sequence
from dataclasses import dataclass
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
from ldpaudit.reports.charts.intervals import Cell, Figure, Group, Table
from ldpaudit.reports.charts.measuring import distinct
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import Printer, words_of
from ldpaudit.result import AuditResult, Curve

MOST_LINES: Final = 6
"""Lines of one chart: the number of dash patterns."""


@dataclass(frozen=True)
class NamedCurve:
    """A curve of one of the compared releases."""

    name: str
    result: AuditResult
    curve: Curve

    @property
    def kind(self) -> str:
        """The kind of the values, which are drawn."""
        bound = self.curve.low is None or self.curve.low == self.curve.value
        return words_of(self.curve) if bound else self.curve.kind

    @property
    def label(self) -> str:
        """The release, the curve's name, and its kind."""
        return f"{self.name}: {shown(self.curve.title)} ({self.kind})"


def group_table(groups: Sequence[Group], first: str = "") -> Table:
    """Return a table with a row for each group and a column for each release."""
    names = list(dict.fromkeys(name for _, members in groups for name, _ in members))
    body: list[tuple[Cell, ...]] = []
    for title, members in groups:
        cells = dict(members)
        body.append((title, *(cells.get(name, "–") for name in names)))
    return Table((first, *names), tuple(body))


def overlay_figure(
    key: str, title: str, curves: Sequence[NamedCurve], y_title: str
) -> Figure | None:
    """Return curves of several releases in one chart; None without two points to draw.

    Parameters
    ----------
    key : str
        Unique on the page.
    title : str
    curves : sequence of NamedCurve
        The first six are drawn; the table holds all.
    y_title : str
        What the height is.
    """
    alike = len({each.curve.title for each in curves}) == 1
    labels = distinct(f"{c.name} ({c.kind})" if alike else c.label for c in curves)
    lines = [_line(*each) for each in zip(curves, labels, DASHES, strict=False)]
    names = (key, title, " ".join(f"{each.label}." for each in curves))
    axes = (variable(curves[0].curve), y_title)
    share = curves[0].curve.unit == "proportion"
    return lines_figure(names, lines, axes, _points(curves), share=share)


def _line(each: NamedCurve, label: str, dash: charts.Dash) -> charts.Line:
    curve = visible(each.curve)
    return charts.Line(label, thinned(curve.x), thinned(curve.value), dash)


def _points(curves: Sequence[NamedCurve]) -> Table:
    """Return the points of all curves, each named by its release."""
    body: list[tuple[Cell, ...]] = []
    remark = ""
    for each in curves:
        table = curve_table([each.curve], Printer(each.result))
        headers, remark = table.headers, table.remark or remark
        body += [(f"{each.name}: {row[0]}", *row[1:]) for row in table.rows]
    return Table(headers, tuple(body), remark)
