"""Figures of an exact analysis: privacy curves, the channel, errors by label, candidates."""

import math
from collections.abc import Sequence
from typing import Final

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.intervals import LINE_SAMPLES, Figure, Table
from ldpaudit.reports.charts.matrix import Bar, bars, heat_map
from ldpaudit.reports.text.harmless import brief, shown
from ldpaudit.reports.text.numbers import number

Points = Sequence[tuple[float, float]]

_MOST_ROWS: Final = 30
_MOST_COLUMNS: Final = 12
_DASHES: Final[tuple[charts.Dash, ...]] = (0, 1, 2, 3)


def line_figure(
    key: str, title: str, axes: tuple[str, str], curves: Sequence[tuple[str, Points]], kind: str
) -> Figure | None:
    """Return curves over one variable; None where there are not two finite points.

    Parameters
    ----------
    key, title : str
        The key is unique on the page.
    axes : two str
        What x and y are, with units.
    curves : sequence of (name, points)
        At most four.
    kind : str
        "exact" or "upper bound".
    """
    lines, finite = [], []
    for dash, (name, points) in zip(_DASHES, curves, strict=False):
        kept = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
        finite += kept
        xs, ys = tuple(x for x, _ in kept), tuple(y for _, y in kept)
        lines.append(charts.Line(shown(name, 80), xs, ys, dash))
    across = sorted({x for x, _ in finite})
    if len(across) < 2:
        return None
    heights = [y for _, y in finite]
    foot, head = min([0.0, *heights]), max([*heights, 1e-6])
    pad = 0.05 * (head - foot)
    logarithmic = across[0] >= 0.5 and across[-1] / across[0] > 40
    x_axis = charts.Axis(axes[0], across[0], across[-1], logarithmic)
    y_axis = charts.Axis(axes[1], foot - (pad if foot < 0 else 0), head + pad)
    words = "; ".join(f"{name}: {_course(points)}" for name, points in curves)
    description = f"{axes[1]} against {axes[0]}, {kind}. {words}."
    drawing = charts.draw(
        lambda width: charts.curves(lines, (), x_axis, y_axis, width), title, description, key
    )
    legend = tuple(zip(LINE_SAMPLES, (line.label for line in lines), strict=False))
    table = _points_table(axes, curves)
    return Figure(key, title, description, drawing, table, legend if len(curves) > 1 else ())


def _course(points: Points) -> str:
    (x0, y0), (x1, y1) = points[0], points[-1]
    return f"from {number(y0)} at {number(x0)} to {number(y1)} at {number(x1)}"


def _points_table(axes: tuple[str, str], curves: Sequence[tuple[str, Points]]) -> Table:
    body, cut = [], False
    for name, points in curves:
        step = max(1, math.ceil(len(points) / _MOST_ROWS))
        kept = [*points[:-1:step], points[-1]]
        cut = cut or len(kept) < len(points)
        body += [(number(x), number(y), shown(name, 60)) for x, y in kept]
    if len(curves) == 1:
        return Table(axes, tuple(row[:2] for row in body), _remark(cut))
    return Table((*axes, "Curve"), tuple(body), _remark(cut))


def _remark(cut: bool) -> str:
    return "Some of the points; the result in JSON holds them all." if cut else ""


def channel_figure(
    labels: Sequence[str], outputs: Sequence[str], matrix: Sequence[Sequence[float]]
) -> Figure:
    """Return the channel as a heat map: P(output | label), float of shape (k, m)."""
    title = "The channel"
    largest = max(max(row) for row in matrix)
    description = (
        f"A heat map of {len(labels)} true labels by {len(outputs)} outputs. The more opaque, the "
        f"more likely the output is under the label; the largest probability is {number(largest)}."
    )
    drawing = charts.draw(
        lambda width: heat_map(labels, outputs, matrix, width), title, description, "channel"
    )
    return Figure("channel", title, description, drawing, _matrix_table(labels, outputs, matrix))


def _matrix_table(
    labels: Sequence[str], outputs: Sequence[str], matrix: Sequence[Sequence[float]]
) -> Table:
    rows, columns = labels[:_MOST_ROWS], outputs[:_MOST_COLUMNS]
    cut = len(rows) < len(labels) or len(columns) < len(outputs)
    body = tuple(
        (brief(label, 40), *(number(p) for p in row[:_MOST_COLUMNS]))
        for label, row in zip(rows, matrix, strict=False)
    )
    remark = "The first labels and outputs; the result in JSON holds them all." if cut else ""
    return Table(("Label", *(brief(name, 20) for name in columns)), body, remark)


def bars_figure(
    key: str, title: str, description: str, rows: Sequence[Bar], table: Table
) -> Figure:
    """Return horizontal bars, one for each row that has a number."""
    drawing = charts.draw(lambda width: bars(rows, width), title, description, key)
    return Figure(key, title, description, drawing, table)
