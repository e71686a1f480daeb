"""Charts over a variable: curves such as J(τ) and RDP, and the histogram of the loss."""

import math
import statistics
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Final, Literal, TypeVar

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.intervals import Cell, Figure, Table
from ldpaudit.reports.text.harmless import as_identifier, name, shown
from ldpaudit.reports.text.numbers import digits_apart, number, rows
from ldpaudit.reports.text.quantities import Printer, Quantity, words_of
from ldpaudit.result import Curve, Histogram

MOST_POINTS: Final = 120
LEAST_SHARE_SEEN: Final = 1e-3
MOST_ROWS: Final = 25
SOME_POINTS: Final = "Some of the points; the JSON result has all of them."
T = TypeVar("T")
DASHES: Final[tuple[charts.Dash, ...]] = (0, 1, 2, 3, 4, 5)


def curve_figure(
    drawn: Sequence[Curve], printer: Printer, title: str, rules: Sequence[charts.Rule] = ()
) -> Figure | None:
    """Return curves over one variable; None if there are fewer than two points to draw."""
    lines = [line for position, curve in enumerate(drawn) for line in _lines(curve, position)]
    description = " ".join(f"{shown(c.title)} ({words_of(c)}): {_course(c)}" for c in drawn)
    names = (as_identifier(drawn[0].id), title, description)
    axes = (variable(drawn[0]), _height_title(drawn[0]))
    share = drawn[0].unit == "proportion"
    return lines_figure(names, lines, axes, curve_table(drawn, printer), rules, share=share)


def lines_figure(
    names: tuple[str, str, str],
    lines: Sequence[charts.Line],
    axes: tuple[str, str],
    table: Table,
    rules: Sequence[charts.Rule] = (),
    *,
    share: bool = False,
) -> Figure | None:
    """Return lines over one variable; None if there are fewer than two points to draw.

    Parameters
    ----------
    names : three str
        Key (unique on the page), title and description.
    lines : sequence of Line
    axes : two str
        What x and y are, with units.
    table : Table
    rules : sequence of Rule
        Horizontal lines to compare with.
    share : bool
        Whether heights are shares, so that the axis ends at 1.
    """
    points = [point for line in lines for point in zip(line.x, line.y, strict=True)]
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    xs, ys = [x for x, _ in finite], [y for _, y in finite]
    if len(set(xs)) < 2:
        return None
    tops = [y for line in lines for y in line.fill_to or () if math.isfinite(y)]
    logarithmic = min(xs) >= 0.5 and max(xs) / min(xs) > 40
    x_axis = charts.Axis(axes[0], min(xs), max(xs), logarithmic)
    heights = (min(ys), max(*ys, *tops, *(rule.at for rule in rules), 1e-6))
    y_axis = charts.Axis(axes[1], *_ends(*heights, share=share))
    peaks = [max(filter(math.isfinite, line.y), default=min(ys)) for line in lines]
    if not share and min(ys) > 0 and charts.far_apart(peaks):
        y_axis = charts.Axis.around(axes[1], [*ys, *tops, *(rule.at for rule in rules)], 0.05)
    build = partial(charts.curves, lines, rules, x_axis, y_axis)
    return Figure.of(names, build, table, lines, rules)


def curve_table(drawn: Sequence[Curve], printer: Printer) -> Table:
    """Return the points of curves, thinned if there are many."""
    body: list[tuple[Cell, ...]] = []
    for curve in drawn:
        limits = printer.limits(curve.id)
        low = curve.low or (None,) * len(curve.x)
        high = curve.high or (None,) * len(curve.x)
        points = list(zip(curve.x, curve.value, low, high, strict=True))
        head: tuple[Cell, ...] = (shown(curve.title, 60),)
        body += [
            head + _point(*point, limits) + (words_of(curve),)
            for point in thinned(points, MOST_ROWS)
        ]
    headers = ("Curve", variable(drawn[0]), "Value", "Lower end", "Upper end", "Kind")
    left_out = any(len(curve.x) > MOST_ROWS for curve in drawn)
    return Table(headers, tuple(body), SOME_POINTS if left_out else "")


def histogram_figure(histogram: Histogram, means: Sequence[Quantity], title: str) -> Figure | None:
    """Return a histogram with the means as rules; None if it is empty."""
    total = sum(histogram.counts)
    edges = _finite_edges(histogram.edges)
    if total == 0 or edges is None:
        return None
    bins = [
        (left, right, count / total / (right - left))
        for count, (left, right) in zip(histogram.counts, pairwise(edges), strict=True)
    ]
    rules = [_mean_rule(q) for q in means if edges[0] <= q.estimate.value <= edges[-1]]
    x_axis = charts.Axis(variable(histogram), edges[0], edges[-1])
    unit = "nat" if histogram.unit == "nats" else "unit"
    head = max(height for *_, height in bins) * 1.05
    y_axis = charts.Axis(f"share of people per {unit}", 0.0, head)
    description = (
        f"{rows(total)} people in {len(bins)} bins; the area of a bar is the share of people. "
        + " ".join(f"{q.name}: {q.text} ({q.words})." for q in means)
    )
    names = (as_identifier(histogram.id), title, description)
    build = partial(charts.histogram, bins, rules, x_axis, y_axis)
    return Figure.of(names, build, histogram_table(histogram), rules=rules)


def histogram_table(histogram: Histogram) -> Table:
    """Return the counts of a histogram."""
    total = max(sum(histogram.counts), 1)
    body = tuple(
        (number(left), number(right), rows(count), number(count / total))
        for (left, right), count in zip(pairwise(histogram.edges), histogram.counts, strict=True)
    )
    remark = f"Kind: {histogram.kind}."
    return Table(("From", "To", "People", "Share"), body, remark)


def variable(part: Curve | Histogram) -> str:
    """Return what x is."""
    return name(part.x_label) or "x"


def _ends(lowest: float, highest: float, *, share: bool) -> tuple[float, float]:
    """Return the ends of the vertical axis: from 0, except for shares that are all large."""
    pad = 0.05 * (highest - min(lowest, 0.0))
    head = min(highest + pad, 1.0) if share and highest <= 1 else highest + pad
    if share and lowest > 0.4:
        return math.floor(lowest * 10 - 1e-9) / 10, head
    return (lowest - pad if lowest < 0 else 0.0), head


def _height_title(curve: Curve) -> str:
    if curve.axis == "share of people":
        return curve.axis
    return {"proportion": "share", "1": ""}.get(curve.unit, curve.unit)


def visible(curve: Curve) -> Curve:
    """Return the curve without the tail of shares too small to be seen."""
    if curve.axis != "share of people":
        return curve
    seen = [i for i, share in enumerate(curve.value) if share >= LEAST_SHARE_SEEN]
    return first_points(curve, max(seen, default=0) + 2)


def first_points(curve: Curve, count: int) -> Curve:
    """Return the curve's first points."""
    parts = {name: getattr(curve, name) for name in ("x", "value", "low", "high")}
    return curve.model_copy(update={k: v and v[:count] for k, v in parts.items()})


def up_to(curve: Curve, order: float) -> Curve:
    """Return the curve up to a value of its variable; all of it if fewer than two points remain."""
    end = sum(x <= order for x in curve.x)
    return curve if end < 2 else first_points(curve, end)


def _lines(curve: Curve, position: int) -> list[charts.Line]:
    curve = visible(curve)
    x, value = thinned(curve.x), thinned(curve.value)
    label = shown(curve.title, 80)
    if curve.low is None or curve.low == curve.value:
        dash = DASHES[position % len(DASHES)]
        return [charts.Line(f"{label} ({words_of(curve)})", x, value, dash)]
    low = thinned(curve.low)
    if curve.high is None:
        bound = charts.Line(f"lower end of it ({words_of(curve)})", x, low, 0, value)
        return [charts.Line(f"{label} ({curve.kind})", x, value, 1), bound]
    ends = charts.Line("lower and upper end", x, low, 2, thinned(curve.high))
    return [ends, charts.Line(f"{label} ({words_of(curve)})", x, value, 0)]


def thinned(values: Sequence[T], most: int = MOST_POINTS) -> tuple[T, ...]:
    """Return at most so many of the values, evenly spread, the last among them."""
    if len(values) <= most:
        return tuple(values)
    step = math.ceil((len(values) - 1) / (most - 1))
    return (*values[:-1:step], values[-1])


def _course(curve: Curve) -> str:
    ends = ((curve.x[0], curve.value[0]), (curve.x[-1], curve.value[-1])) if curve.x else ()
    return " to ".join(f"{number(value)} at {number(x)}" for x, value in ends) + "."


def _point(
    x: float, value: float, low: float | None, high: float | None, limits: Sequence[float]
) -> tuple[str, ...]:
    ends: list[tuple[float, Literal["down", "nearest", "up"]]] = [(value, "nearest")]
    if low is not None:
        ends.append((low, "down"))
    if high is not None:
        ends.append((high, "up"))
    digits = digits_apart(ends, limits)
    low_text = "–" if low is None else number(low, "down", digits)
    high_text = "–" if high is None else number(high, "up", digits)
    return number(x), number(value, "nearest", digits), low_text, high_text


def _finite_edges(edges: Sequence[float]) -> list[float] | None:
    """Return the edges, with infinite outer ones moved one bin's width away."""
    finite = [edge for edge in edges if math.isfinite(edge)]
    if len(finite) < 2:
        return None
    width = statistics.median(right - left for left, right in pairwise(finite))
    below, above = finite[0] - width, finite[-1] + width
    drawn = [edge if math.isfinite(edge) else below if edge < 0 else above for edge in edges]
    return drawn if all(left < right for left, right in pairwise(drawn)) else None


def _mean_rule(quantity: Quantity) -> charts.Rule:
    dash: charts.Dash = 1 if quantity.mark == "estimated" else 0
    legend = f"{quantity.name}: {quantity.text} ({quantity.words})"
    return charts.Rule(quantity.estimate.value, "", legend, dash)
