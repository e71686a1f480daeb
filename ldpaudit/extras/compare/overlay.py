"""Curves of several releases in one chart."""

from collections.abc import Sequence

from ldpaudit.reports.charts.curves import (
    LINE_DASHES,
    MOST_POINTS,
    NamedCurve,
    curve_table,
    lines_figure,
    seen_part,
    variable_of,
)
from ldpaudit.reports.charts.figure import (
    Figure,
    Line,
    Table,
    distinct,
    thinned,
)
from ldpaudit.reports.text.quantities import Printer, words_of
from ldpaudit.result.harmless import shown


def overlay_figure(
    key: str, title: str, curves: Sequence[NamedCurve], y_title: str
) -> Figure | None:
    """Return curves of several releases in one chart, the first six; the table holds all."""
    kinds = [words_of(c) if c.low in (None, c.value) else c.kind for _, _, c in curves]
    full = [f"{n}: {shown(c.title)} ({k})" for (n, _, c), k in zip(curves, kinds, strict=True)]
    alike = len({curve.title for *_, curve in curves}) == 1
    short = [f"{n} ({kind})" for (n, *_), kind in zip(curves, kinds, strict=True)]
    labels = distinct(short if alike else full)
    seen = [seen_part(curve) for *_, curve in curves]
    lines = [
        Line(label, thinned(c.x, MOST_POINTS), thinned(c.value, MOST_POINTS), dash)
        for label, c, dash in zip(labels, seen, LINE_DASHES, strict=False)
    ]
    first = curves[0][2]
    body = [curve_table([(n, c)], Printer(result)) for n, result, c in curves]
    remark = max(table.remark for table in body)
    rows = tuple(row for one in body for row in one.rows)
    table = Table(body[0].headers, rows, remark)
    names = (key, title, " ".join(f"{label}." for label in full))
    axes = (variable_of(first), y_title)
    return lines_figure(names, lines, axes, table, share=first.unit == "proportion")
