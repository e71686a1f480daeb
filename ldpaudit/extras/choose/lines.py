"""A chart of exact curves over one axis."""

from collections.abc import Sequence

from ldpaudit.reports.charts.curves import (
    LINE_DASHES,
    MOST_TABLE_ROWS,
    SOME_POINTS,
    Points,
    lines_figure,
)
from ldpaudit.reports.charts.figure import (
    Figure,
    Line,
    Table,
    thinned,
)
from ldpaudit.result.harmless import shown
from ldpaudit.result.numbers import exactly


def line_figure(
    key: str, title: str, axes: tuple[str, str], curves: Sequence[tuple[str, Points]], kind: str
) -> Figure | None:
    """Return at most four exact curves, or upper bounds (``kind``); None without two points."""
    lines = [
        Line(shown(name, 80), tuple(x for x, _ in points), tuple(y for _, y in points), dash)
        for dash, (name, points) in zip(LINE_DASHES[:4], curves, strict=False)
    ]

    def point(at: tuple[float, float]) -> str:
        return f"{exactly(at[1])} at {exactly(at[0])}"

    courses = [f"{name}: from {point(ends[0])} to {point(ends[-1])}" for name, ends in curves]
    description = f"{axes[1]} against {axes[0]}, {kind}. {'; '.join(courses)}."
    body = [
        (exactly(x), exactly(y), shown(name, 60))
        for name, points in curves
        for x, y in thinned(points, MOST_TABLE_ROWS)
    ]
    every = sum(len(points) for _, points in curves)
    remark = SOME_POINTS if len(body) < every else ""
    table = Table((*axes, "Curve"), tuple(body), remark)
    if len(curves) == 1:
        table = Table(axes, tuple(row[:2] for row in body), remark)
        lines = [Line("", line.x, line.y) for line in lines]
    return lines_figure((key, title, description), lines, axes, table)
