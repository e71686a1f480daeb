"""Charts over a variable: curves such as J(τ) and RDP, and the histogram of the loss."""

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, Literal, TypeVar

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.intervals import LINE_SAMPLES, Cell, Figure, Table, rule_sample
from ldpaudit.reports.text.harmless import as_identifier, brief, shown
from ldpaudit.reports.text.numbers import digits_apart, number, rows
from ldpaudit.reports.text.quantities import Printer, Quantity, words_of
from ldpaudit.result import Curve, Histogram

MOST_POINTS: Final = 120
LEAST_SHARE_SEEN: Final = 1e-3
MOST_ROWS: Final = 25
T = TypeVar("T")
_DASHES: Final[tuple[charts.Dash, ...]] = (0, 1, 2, 3, 4, 5)


def curve_figure(
    drawn: Sequence[Curve], printer: Printer, title: str, rules: Sequence[charts.Rule] = ()
) -> Figure | None:
    """Return curves over one variable; None where there are not two points to draw."""
    lines = [line for position, curve in enumerate(drawn) for line in _lines(curve, position)]
    points = [point for line in lines for point in zip(line.x, line.y, strict=True)]
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    xs = [x for x, _ in finite]
    if len(set(xs)) < 2:
        return None
    tops = [y for line in lines for y in line.fill_to or () if math.isfinite(y)]
    heights = [*(y for _, y in finite), *tops, *(rule.at for rule in rules)]
    logarithmic = min(xs) >= 1 and max(xs) / min(xs) > 40
    x_axis = charts.Axis(_variable(drawn[0]), min(xs), max(xs), logarithmic)
    foot, head = _foot(drawn[0], lines), _head(drawn[0], heights)
    y_axis = charts.Axis(_height_title(drawn[0]), foot, head)
    description = " ".join(f"{shown(c.title)} ({words_of(c)}): {_course(c)}" for c in drawn)
    key = as_identifier(drawn[0].id)
    drawing = charts.draw(
        lambda width: charts.curves(lines, rules, x_axis, y_axis, width), title, description, key
    )
    legend = [(LINE_SAMPLES[line.dash], line.label) for line in lines]
    legend += [(rule_sample(rule), rule.legend) for rule in rules]
    table = curve_table(drawn, printer)
    return Figure(key, title, description, drawing, table, tuple(legend))


def curve_table(drawn: Sequence[Curve], printer: Printer) -> Table:
    """Return the points of curves, thinned where they are many."""
    body: list[tuple[Cell, ...]] = []
    for curve in drawn:
        limits = printer.limits(curve.id)
        low = curve.low or (None,) * len(curve.x)
        high = curve.high or (None,) * len(curve.x)
        points = list(zip(curve.x, curve.value, low, high, strict=True))
        head: tuple[Cell, ...] = (shown(curve.title, 60),)
        body += [
            head + _point(*point, limits) + (words_of(curve),)
            for point in _thinned(points, MOST_ROWS)
        ]
    headers = ("Curve", _variable(drawn[0]), "Value", "Lower end", "Upper end", "Kind")
    left_out = any(len(curve.x) > MOST_ROWS for curve in drawn)
    remark = "Some of the points; the result in JSON holds them all." if left_out else ""
    return Table(headers, tuple(body), remark)


def histogram_figure(histogram: Histogram, means: Sequence[Quantity], title: str) -> Figure | None:
    """Return a histogram with the means as rules; None where it is empty."""
    total = sum(histogram.counts)
    edges = _finite_edges(histogram.edges)
    if total == 0 or edges is None:
        return None
    bins = [
        (left, right, count / total / (right - left))
        for count, (left, right) in zip(histogram.counts, pairwise(edges), strict=True)
    ]
    rules = [_mean_rule(q) for q in means if edges[0] <= q.estimate.value <= edges[-1]]
    x_axis = charts.Axis(_variable(histogram), edges[0], edges[-1])
    unit = "nat" if histogram.unit == "nats" else "unit"
    head = max(height for *_, height in bins) * 1.05
    y_axis = charts.Axis(f"share of people per {unit}", 0.0, head)
    description = (
        f"{rows(total)} people in {len(bins)} bins; the area of a bar is the share of people. "
        + " ".join(f"{q.name}: {q.text} ({q.words})." for q in means)
    )
    key = as_identifier(histogram.id)
    drawing = charts.draw(
        lambda width: charts.histogram(bins, rules, x_axis, y_axis, width), title, description, key
    )
    legend = tuple((rule_sample(rule), rule.legend) for rule in rules)
    return Figure(key, title, description, drawing, histogram_table(histogram), legend)


def histogram_table(histogram: Histogram) -> Table:
    """Return the counts of a histogram."""
    total = max(sum(histogram.counts), 1)
    body = tuple(
        (number(left), number(right), rows(count), number(count / total))
        for (left, right), count in zip(pairwise(histogram.edges), histogram.counts, strict=True)
    )
    remark = f"Kind: {histogram.kind}. Bins with fewer than 10 people are merged with a neighbour."
    return Table(("From", "To", "People", "Share"), body, remark)


def _variable(part: Curve | Histogram) -> str:
    return brief(part.x_label, 80) or "x"


def _foot(curve: Curve, lines: Sequence[charts.Line]) -> float:
    """Return where the vertical axis begins: at 0 but for shares that are all large."""
    lowest = min(y for line in lines for y in line.y if math.isfinite(y))
    if curve.unit == "proportion" and lowest > 0.4:
        return math.floor(lowest * 10 - 1e-9) / 10
    return min(lowest, 0.0)


def _head(curve: Curve, heights: Sequence[float]) -> float:
    """Return where the vertical axis ends: a little above the curve, for shares at most at 1."""
    highest = max(*heights, 1e-6)
    share = curve.unit == "proportion" and highest <= 1
    return min(highest * 1.05, 1.0) if share else highest * 1.05


def _height_title(curve: Curve) -> str:
    if curve.axis == "share of people":
        return curve.axis
    return {"proportion": "share", "1": ""}.get(curve.unit, curve.unit)


def _visible(curve: Curve) -> Curve:
    """Return the curve without the tail in which a share is too small to be seen."""
    if curve.axis != "share of people":
        return curve
    seen = [i for i, share in enumerate(curve.value) if share >= LEAST_SHARE_SEEN]
    end = max(seen, default=0) + 2
    cut = {"x": curve.x[:end], "value": curve.value[:end]}
    low = None if curve.low is None else curve.low[:end]
    return curve.model_copy(update=cut | {"low": low})


def _lines(curve: Curve, position: int) -> list[charts.Line]:
    curve = _visible(curve)
    x, value = _thinned(curve.x, MOST_POINTS), _thinned(curve.value, MOST_POINTS)
    label = shown(curve.title, 80)
    if curve.low is None or curve.low == curve.value:
        dash = _DASHES[position % len(_DASHES)]
        return [charts.Line(f"{label} ({words_of(curve)})", x, value, dash)]
    low = _thinned(curve.low, MOST_POINTS)
    if curve.high is None:
        bound = charts.Line(f"lower end of it ({words_of(curve)})", x, low, 0, value)
        return [charts.Line(f"{label} ({curve.kind})", x, value, 1), bound]
    ends = charts.Line("lower and upper end", x, low, 2, _thinned(curve.high, MOST_POINTS))
    return [ends, charts.Line(f"{label} ({words_of(curve)})", x, value, 0)]


def _thinned(values: Sequence[T], most: int) -> tuple[T, ...]:
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
    """Return the edges with infinite outer ones drawn one bin's width away."""
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
