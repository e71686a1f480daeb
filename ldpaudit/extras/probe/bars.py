"""A mark for each row over one axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ldpaudit.reports.charts.figure import (
    ACCENT,
    Axis,
    Figure,
    Table,
    distinct,
    far_apart,
)
from ldpaudit.reports.charts.rows import Row, rows_chart
from ldpaudit.result.harmless import shown


@dataclass(frozen=True)
class Bar:
    """A number in words, and whether it is the one to look at."""

    label: str
    text: str
    value: float
    strong: bool = False


def bars_figure(
    names: tuple[str, str, str], unit: str, rows: Sequence[Bar], table: Table
) -> Figure:
    """Return a mark for each row over an axis in ``unit``; an infinite number has none.

    ``names`` are the key, the title and the description. Numbers that are a hundred times apart
    stand on a logarithmic axis.
    """
    finite = [row.value for row in rows if math.isfinite(row.value)] or [0.0]
    positive = [value for value in finite if value > 0]
    if positive and min(finite) >= 0 and far_apart(positive):
        low, title = 10.0 ** math.floor(math.log10(min(positive))), f"{unit} (logarithmic axis)"
        axis = Axis(title, low, max(positive) * 1.3, logarithmic=True)
    else:
        low, high = min(0.0, *finite, 0.0), max(0.0, *finite, 0.0)
        axis = Axis(unit, low, high * 1.04 if high > low else low + 1.0)
    labels = distinct(shown(row.label) for row in rows)
    start = None if axis.logarithmic else low
    marks = [
        replace(
            Row(label, row.text, "", "exact", row.value, start),
            color=ACCENT if row.strong else "currentColor",
        )
        for label, row in zip(labels, rows, strict=True)
    ]
    return Figure.of(names, partial(rows_chart, marks, (), axis), table)
