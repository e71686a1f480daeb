"""Charts over a variable: curves such as J(τ) and RDP, and the histogram of the loss."""

import math
import statistics
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Final, Literal

from ldpaudit.reports.charts.figure import (
    ACCENT,
    DASHES,
    PAPER,
    WIDE,
    Axis,
    Cell,
    Dash,
    Figure,
    Line,
    Rule,
    Spec,
    Table,
    far_apart,
    layer,
    rule_mark,
    thinned,
)
from ldpaudit.reports.text.quantities import Printer, Quantity, words_of
from ldpaudit.result import AuditResult, Curve, Histogram
from ldpaudit.result.harmless import as_identifier, name, shown
from ldpaudit.result.numbers import digits_apart, number, rows

Points = Sequence[tuple[float, float]]
NamedCurve = tuple[str, AuditResult, Curve]
"""A curve of one of several releases, and the release's name."""
MOST_POINTS: Final = 120
MOST_TABLE_ROWS: Final = 25
_LEAST_SHARE_SEEN: Final = 1e-3
SOME_POINTS: Final = "Some of the points; the JSON result has all of them."
_HEADERS: Final = ("Curve", "Value", "Lower end", "Upper end", "Kind")
LINE_DASHES: Final[tuple[Dash, ...]] = (0, 1, 2, 3, 4, 5)
MOST_LINES: Final = len(LINE_DASHES)


def lines_chart(lines: Sequence[Line], rules: Sequence[Rule], x: Axis, y: Axis, width: int) -> Spec:
    """Return a chart of curves over one variable, with horizontal rules."""
    y_of = y.on(vertical=True)
    place = {"x": x.on()("x"), "y": y_of("y")}
    layers = []
    # Dashes lie over whole lines and are thicker, so that of two equal curves both are seen.
    for line in sorted(lines, key=lambda line: line.dash != 0):
        points = zip(line.x, line.y, line.fill_to or line.y, strict=True)
        data = [{"x": x, "y": y, "fill": f} for x, y, f in points if math.isfinite(x + y + f)]
        if line.fill_to is not None:
            band = {"type": "area", "color": ACCENT, "opacity": 0.18}
            layers.append(layer(data, band, place | {"y2": {"field": "fill"}}))
        style = {"strokeDash": DASHES[line.dash], "strokeWidth": 3.0 if line.dash else 1.6}
        layers.append(layer(data, {"type": "line", "color": ACCENT, **style}, place))
    layers += [layer([{"y": rule.at}], rule_mark(rule), {"y": y_of("y")}) for rule in rules]
    return {"width": width - 60, "height": 240 if width == WIDE else 190, "layer": layers}


def lines_figure(
    names: tuple[str, str, str],
    lines: Sequence[Line],
    axes: tuple[str, str],
    table: Table,
    rules: Sequence[Rule] = (),
    *,
    share: bool = False,
) -> Figure | None:
    """Return lines over one variable; None if there are fewer than two points to draw.

    ``names`` are key (unique on the page), title and description, ``axes`` what x and y are;
    ``share`` says that heights are shares, so that the axis ends at 1.
    """
    points = [point for line in lines for point in zip(line.x, line.y, strict=True)]
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    xs, ys = [x for x, _ in finite], [y for _, y in finite]
    if len(set(xs)) < 2:
        return None
    tops = [y for line in lines for y in line.fill_to or () if math.isfinite(y)]
    tops += [rule.at for rule in rules]
    logarithmic = min(xs) >= 0.5 and max(xs) / min(xs) > 40
    whole = min(xs) >= 1 and all(float(x).is_integer() for x in xs)
    x_axis = Axis(axes[0], min(xs), max(xs), logarithmic, whole)
    y_axis = Axis(axes[1], *_ends(min(ys), max(*ys, *tops, 1e-6), share=share))
    peaks = [max(filter(math.isfinite, line.y), default=min(ys)) for line in lines]
    if not share and min(ys) > 0 and far_apart(peaks):
        y_axis = Axis.around(axes[1], [*ys, *tops], 0.05)
    build = partial(lines_chart, lines, rules, x_axis, y_axis)
    return Figure.of(names, build, table, lines, rules)


def _ends(lowest: float, highest: float, *, share: bool) -> tuple[float, float]:
    """Return the ends of the vertical axis: from 0, except for shares that are all large."""
    pad = 0.05 * (highest - min(lowest, 0.0))
    head = min(highest + pad, 1.0) if share and highest <= 1 else highest + pad
    if share and lowest > 0.4:
        return math.floor(lowest * 10 - 1e-9) / 10, head
    return (lowest - pad if lowest < 0 else 0.0), head


def curve_figure(
    drawn: Sequence[Curve], printer: Printer, title: str, key: str = "", rules: Sequence[Rule] = ()
) -> Figure | None:
    """Return curves of a result over one variable; None without two points to draw."""
    first = drawn[0]
    lines = [line for place, curve in enumerate(drawn) for line in _lines(curve, place)]
    description = " ".join(f"{shown(c.title)} ({words_of(c)}): {_course(c)}" for c in drawn)
    height = {"proportion": "share", "1": ""}.get(first.unit, first.unit)
    axes = (variable_of(first), first.axis if first.axis == "share of people" else height)
    names = (f"{key}{as_identifier(first.id)}", title, description)
    table = curve_table([("", curve) for curve in drawn], printer)
    return lines_figure(names, lines, axes, table, rules, share=first.unit == "proportion")


def curve_table(curves: Sequence[tuple[str, Curve]], printer: Printer) -> Table:
    """Return the points of curves, named by their releases where they are several."""
    body: list[tuple[Cell, ...]] = []
    for release, curve in curves:
        limits, title = printer.limits(curve.id), shown(curve.title, 60)
        none = (None,) * len(curve.x)
        points = zip(curve.x, curve.value, curve.low or none, curve.high or none, strict=True)
        head = f"{release}: {title}" if release else title
        body += [
            (head, *_point(*point, limits), words_of(curve))
            for point in thinned(list(points), MOST_TABLE_ROWS)
        ]
    some = any(len(curve.x) > MOST_TABLE_ROWS for _, curve in curves)
    headers = (_HEADERS[0], variable_of(curves[0][1]), *_HEADERS[1:])
    return Table(headers, tuple(body), SOME_POINTS if some else "")


def _point(
    x: float, value: float, low: float | None, high: float | None, limits: Sequence[float]
) -> tuple[str, ...]:
    ends: list[tuple[float | None, Literal["down", "nearest", "up"]]]
    ends = [(value, "nearest"), (low, "down"), (high, "up")]
    digits = digits_apart([(e, way) for e, way in ends if e is not None], limits)
    return number(x), *("–" if e is None else number(e, way, digits) for e, way in ends)


def histogram_figure(
    histogram: Histogram, means: Sequence[Quantity], title: str, key: str = ""
) -> Figure | None:
    """Return a histogram with the means as rules; None if it is empty."""
    total, edges = sum(histogram.counts), _finite_edges(histogram.edges)
    if total == 0 or edges is None:
        return None
    bins = [
        {"x": left, "x2": right, "y": count / total / (right - left)}
        for count, (left, right) in zip(histogram.counts, pairwise(edges), strict=True)
    ]
    rules = [
        Rule(
            q.estimate.value,
            "",
            f"{q.name}: {q.text} ({q.words})",
            1 if q.mark == "estimated" else 0,
        )
        for q in means
        if edges[0] <= q.estimate.value <= edges[-1]
    ]
    unit = "nat" if histogram.unit == "nats" else "unit"
    x = Axis(variable_of(histogram), edges[0], edges[-1]).on()
    y = Axis(f"share of people per {unit}", 0.0, max(b["y"] for b in bins) * 1.05).on(vertical=True)

    def build(width: int) -> Spec:
        bar = {"type": "rect", "color": ACCENT, "opacity": 0.55, "stroke": PAPER}
        place = {"x": x("x"), "x2": {"field": "x2"}, "y": y("y"), "y2": {"datum": 0}}
        layers = [layer(bins, bar | {"strokeWidth": 0.5}, place)]
        layers += [layer([{"x": rule.at}], rule_mark(rule), {"x": x("x")}) for rule in rules]
        return {"width": width - 60, "height": 220 if width == WIDE else 180, "layer": layers}

    description = (
        f"{rows(total)} people in {len(bins)} bins; the area of a bar is the share of people. "
        + " ".join(f"{q.name}: {q.text} ({q.words})." for q in means)
    )
    names = (f"{key}{as_identifier(histogram.id)}", title, description)
    return Figure.of(names, build, histogram_table(histogram), rules=rules)


def histogram_table(histogram: Histogram) -> Table:
    """Return the counts of a histogram."""
    total = max(sum(histogram.counts), 1)
    body = tuple(
        (number(left), number(right), rows(count), number(count / total))
        for (left, right), count in zip(pairwise(histogram.edges), histogram.counts, strict=True)
    )
    return Table(("From", "To", "People", "Share"), body, f"Kind: {histogram.kind}.")


def up_to(curve: Curve, order: float) -> Curve:
    """Return the curve up to a value of its variable; all of it if fewer than two points remain."""
    end = sum(x <= order for x in curve.x)
    return curve if end < 2 else _first_points(curve, end)


def _first_points(curve: Curve, count: int) -> Curve:
    parts = {name: getattr(curve, name) for name in ("x", "value", "low", "high")}
    return curve.model_copy(update={k: v and v[:count] for k, v in parts.items()})


def seen_part(curve: Curve) -> Curve:
    """Return the curve without the tail of shares too small to be seen."""
    if curve.axis != "share of people":
        return curve
    seen = [i for i, share in enumerate(curve.value) if share >= _LEAST_SHARE_SEEN]
    return _first_points(curve, max(seen, default=0) + 2)


def _lines(curve: Curve, place: int) -> Iterator[Line]:
    """Yield the line of a curve, and those of its ends."""
    curve, label = seen_part(curve), shown(curve.title, 80)
    x, value = thinned(curve.x, MOST_POINTS), thinned(curve.value, MOST_POINTS)
    if curve.low is None or curve.low == curve.value:
        yield Line(f"{label} ({words_of(curve)})", x, value, LINE_DASHES[place % MOST_LINES])
        return
    low = thinned(curve.low, MOST_POINTS)
    if curve.high is None:
        yield Line(f"{label} ({curve.kind})", x, value, 1)
        yield Line(f"lower end of it ({words_of(curve)})", x, low, 0, value)
    else:
        yield Line("lower and upper end", x, low, 2, thinned(curve.high, MOST_POINTS))
        yield Line(f"{label} ({words_of(curve)})", x, value, 0)


def variable_of(part: Curve | Histogram) -> str:
    """Return what the horizontal axis shows."""
    return name(part.x_label) or "x"


def _course(curve: Curve) -> str:
    ends = ((curve.x[0], curve.value[0]), (curve.x[-1], curve.value[-1])) if curve.x else ()
    return " to ".join(f"{number(value)} at {number(x)}" for x, value in ends) + "."


def _finite_edges(edges: Sequence[float]) -> list[float] | None:
    """Return the edges, with infinite outer ones moved one bin's width away."""
    finite = [edge for edge in edges if math.isfinite(edge)]
    if len(finite) < 2:
        return None
    width = statistics.median(right - left for left, right in pairwise(finite))
    below, above = finite[0] - width, finite[-1] + width
    drawn = [edge if math.isfinite(edge) else below if edge < 0 else above for edge in edges]
    return drawn if all(left < right for left, right in pairwise(drawn)) else None
