"""Figures of an exact analysis: privacy curves, the channel, errors by label, candidates."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.curves import DASHES, SOME_POINTS, lines_figure
from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.charts.matrix import Bar, bars, heat_map
from ldpaudit.reports.text.harmless import name as named
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.numbers import exactly

Points = Sequence[tuple[float, float]]

_MOST_ROWS: Final = 30
_MOST_COLUMNS: Final = 12


def line_figure(
    key: str, title: str, axes: tuple[str, str], curves: Sequence[tuple[str, Points]], kind: str
) -> Figure | None:
    """Return curves over one variable; None if there are fewer than two finite points.

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
    lines = [
        charts.Line(shown(name, 80), tuple(x for x, _ in points), tuple(y for _, y in points), dash)
        for dash, (name, points) in zip(DASHES[:4], curves, strict=False)
    ]
    words = "; ".join(f"{name}: {_course(points)}" for name, points in curves)
    description = f"{axes[1]} against {axes[0]}, {kind}. {words}."
    figure = lines_figure((key, title, description), lines, axes, _points_table(axes, curves))
    return figure if figure is None or len(curves) > 1 else replace(figure, legend=())


def _course(points: Points) -> str:
    (x0, y0), (x1, y1) = points[0], points[-1]
    return f"from {exactly(y0)} at {exactly(x0)} to {exactly(y1)} at {exactly(x1)}"


def _points_table(axes: tuple[str, str], curves: Sequence[tuple[str, Points]]) -> Table:
    body = []
    for name, points in curves:
        step = max(1, math.ceil(len(points) / _MOST_ROWS))
        body += [
            (exactly(x), exactly(y), shown(name, 60)) for x, y in (*points[:-1:step], points[-1])
        ]
    cut = len(body) < sum(len(points) for _, points in curves)
    remark = SOME_POINTS if cut else ""
    if len(curves) == 1:
        return Table(axes, tuple(row[:2] for row in body), remark)
    return Table((*axes, "Curve"), tuple(body), remark)


def channel_figure(
    labels: Sequence[str], outputs: Sequence[str], matrix: Sequence[Sequence[float]]
) -> Figure:
    """Return the channel as a heat map: P(output | label), float of shape (k, m)."""
    largest = max(max(row) for row in matrix)
    description = (
        f"A heat map of {len(labels)} true labels by {len(outputs)} outputs. The more opaque, the "
        f"more likely the output is under the label; the largest probability is "
        f"{exactly(largest)}."
    )
    names = ("channel", "The channel", description)
    table = _matrix_table(labels, outputs, matrix)
    return Figure.of(names, partial(heat_map, labels, outputs, matrix), table)


def _matrix_table(
    labels: Sequence[str], outputs: Sequence[str], matrix: Sequence[Sequence[float]]
) -> Table:
    rows, columns = labels[:_MOST_ROWS], outputs[:_MOST_COLUMNS]
    cut = len(rows) < len(labels) or len(columns) < len(outputs)
    body = tuple(
        (named(label), *(exactly(p) for p in row[:_MOST_COLUMNS]))
        for label, row in zip(rows, matrix, strict=False)
    )
    remark = "The first labels and outputs; the result in JSON holds them all." if cut else ""
    return Table(("Label", *map(named, columns)), body, remark)


def bars_figure(
    names: tuple[str, str, str], unit: str, rows: Sequence[Bar], table: Table
) -> Figure:
    """Return a bar for each row that has a number, over an axis in ``unit``.

    ``names`` are the key, the title and the description.
    """
    return Figure.of(names, partial(bars, rows, unit), table)
