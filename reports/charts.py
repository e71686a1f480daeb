"""The charts as Vega-Lite specifications: plain values in, no result, no files.

Colours mean nothing by themselves: each kind of number has its own shape or dash, and every chart
is read with its table. The two colours are of middle lightness, so that both stand out on white and
on near-black, and differ for colour-blind eyes; all else is the page's own colour.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import altair as alt

from ldpaudit.reports.quantities import Mark
from ldpaudit.reports.svg import Drawing, inline_svg

Chart: TypeAlias = Any
"""One of altair's charts; its own types are too narrow for what its functions return."""
Encoding: TypeAlias = Callable[[str], Any]
"""From the name of a field to its place on an axis."""
Dash = Literal[0, 1, 2, 3]

WIDE: Final = 820
NARROW: Final = 320
ACCENT: Final = "#3a7fc4"
BEYOND: Final = "#d0662f"
PAPER: Final = "Canvas"
"""A system colour, so that hollow marks stay hollow without a style sheet."""
DASHES: Final[tuple[tuple[int, ...], ...]] = ((1, 0), (6, 4), (2, 3), (10, 4, 2, 4))

_ROW: Final = 46
_LINE: Final = 16
_SIDES: Final = (215, 190)
"""Widths of the columns for the labels and for the numbers beside a wide chart."""
_SYMBOLS: Final[dict[Mark, str]] = {
    "exact": "diamond",
    "lower": "triangle-right",
    "upper": "triangle-left",
    "interval": "circle",
    "estimated": "circle",
}


@dataclass(frozen=True)
class Row:
    """One number with its ends, a row of a chart of intervals."""

    label: str
    text: str
    words: str
    mark: Mark
    value: float
    low: float | None = None
    high: float | None = None
    beyond: bool = False
    also: float | None = None
    """A second, estimated value in the same row, drawn hollow."""


@dataclass(frozen=True)
class Rule:
    """A straight line to compare with: a short label in the chart, a full one in its legend."""

    at: float
    label: str
    legend: str
    dash: Dash = 0
    forbidden_beyond: bool = False
    """Whether the chart is tinted beyond it."""


@dataclass(frozen=True)
class Line:
    """A curve, its label, and a filled band to another curve where it has one."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    dash: Dash = 0
    fill_to: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Axis:
    """What an axis shows."""

    title: str
    low: float
    high: float
    logarithmic: bool = False


def draw(build: Callable[[int], Chart], title: str, description: str, key: str) -> Drawing:
    """Draw a chart in both widths."""
    wide, narrow = (_configured(build(width)).to_dict() for width in (WIDE, NARROW))
    return Drawing(
        inline_svg(wide, title, description, f"{key}-w"),
        inline_svg(narrow, title, description, f"{key}-n", hidden=True),
    )


def intervals(rows: Sequence[Row], rules: Sequence[Rule], axis: Axis, width: int) -> Chart:
    """Return a chart with a row for each number.

    Wide: label, mark and number side by side. Narrow: label and number above the mark.
    """
    height = _ROW * len(rows)
    plot = width - sum(_SIDES) if width == WIDE else width
    middle = 23 if width == WIDE else 33
    x, y = _on(axis), _pixels(height)
    layers = [*_tint(rules, x, axis, height), *_rules(rules, axis, x, height)]
    layers += _marks(rows, axis, x, y, middle)
    if width == WIDE:
        layers.append(_texts([r.label for r in rows], -_SIDES[0], middle + 4, y))
        layers.append(_texts([r.text for r in rows], plot + 20, 19, y, fontWeight="bold"))
        words = [row.words for row in rows]
        layers.append(_texts(words, plot + 20, 35, y, fontSize=11, opacity=0.8))
    else:
        layers.append(_texts([r.label for r in rows], 0, 18, y))
        text = [row.text.split(" · ")[0] for row in rows]
        layers.append(_texts(text, plot, 18, y, fontWeight="bold", align="right"))
    return alt.layer(*layers).properties(width=plot, height=height)


def curves(lines: Sequence[Line], rules: Sequence[Rule], x: Axis, y: Axis, width: int) -> Chart:
    """Return a chart of curves over one variable, with horizontal rules."""
    x_of, y_of = _on(x), _on(y, vertical=True)
    layers = []
    for line in lines:
        base = _data(_points(line)).encode(x=x_of("x"))
        if line.fill_to is not None:
            area = base.mark_area(color=ACCENT, opacity=0.18)
            layers.append(area.encode(y=y_of("y"), y2=alt.Y2("fill")))
        weight = 2.2 if line.dash == 0 else 1.6
        curve = base.mark_line(color=ACCENT, strokeDash=DASHES[line.dash], strokeWidth=weight)
        layers.append(curve.encode(y=y_of("y")))
    layers += [_rule(rule, "y").encode(y=y_of("y")) for rule in rules]
    return alt.layer(*layers).properties(width=width - 60, height=240 if width == WIDE else 190)


def histogram(
    bins: Sequence[tuple[float, float, float]],
    rules: Sequence[Rule],
    x: Axis,
    y: Axis,
    width: int,
) -> Chart:
    """Return a histogram of bins (left, right, height), with vertical rules."""
    x_of, y_of = _on(x), _on(y, vertical=True)
    data = _data([{"x": left, "x2": right, "y": height} for left, right, height in bins])
    bars = data.mark_rect(color=ACCENT, opacity=0.55, stroke=PAPER, strokeWidth=0.5)
    layers = [bars.encode(x=x_of("x"), x2="x2", y=y_of("y"), y2=alt.YDatum(0))]
    layers += [_rule(rule, "x").encode(x=x_of("x")) for rule in rules]
    return alt.layer(*layers).properties(width=width - 60, height=220 if width == WIDE else 180)


def _configured(chart: Chart) -> Chart:
    config = chart.configure(background="transparent", font="sans-serif", padding=4)
    return config.configure_view(stroke=None).configure_axis(
        labelColor="currentColor",
        labelFontSize=12,
        labelOpacity=0.8,
        titleColor="currentColor",
        titleFontSize=12,
        titleFontWeight="normal",
        titleOpacity=0.8,
        gridColor="currentColor",
        gridOpacity=0.1,
        domain=False,
        ticks=False,
        labelPadding=6,
        titlePadding=8,
    )


def _on(axis: Axis, *, vertical: bool = False) -> Encoding:
    """Return the encoding of fields on an axis."""
    scale: dict[str, Any] = {"domain": [axis.low, axis.high], "nice": False}
    ticks: dict[str, Any] = {"tickCount": 5, "labelFlush": False}
    if vertical:
        ticks |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end"}
        ticks |= {"titleX": 0, "titleY": -10, "titleBaseline": "bottom"}
    if axis.logarithmic:
        scale["type"] = "log"
        ticks |= {"values": _powers_of_two(axis.low, axis.high), "format": "~r"}
    channel = alt.Y if vertical else alt.X
    made: dict[str, Any] = {"scale": alt.Scale(**scale), "axis": alt.Axis(**ticks)}
    return lambda field: channel(f"{field}:Q", title=axis.title, **made)


def _pixels(height: int) -> Encoding:
    """Return the encoding of fields that are pixels from the top."""
    scale = alt.Scale(domain=[height, 0], nice=False, zero=False)
    return lambda field: alt.Y(f"{field}:Q", scale=scale, axis=None)


def _powers_of_two(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    return [2.0**power for power in range(first, last + 1)]


def _data(values: Sequence[dict[str, Any]]) -> Chart:
    return alt.Chart(alt.InlineData(values=list(values)))


def _texts(texts: Sequence[str], x: float, down: float, y: Encoding, **style: Any) -> Chart:
    """Return one text in each row, ``down`` pixels below the row's top."""
    options = {"align": "left", "baseline": "alphabetic", "fontSize": 13, "limit": 0} | style
    data = _data([{"t": text, "y": i * _ROW + down} for i, text in enumerate(texts)])
    # The halo keeps rules from running through the letters.
    mark = data.mark_text(color="currentColor", stroke=PAPER, strokeWidth=4, **options)
    return mark.encode(x=alt.value(x), y=y("y"), text="t:N")


def _rule(rule: Rule, field: str) -> Chart:
    return _data([{field: rule.at}]).mark_rule(
        color="currentColor", strokeWidth=1.6, strokeDash=DASHES[rule.dash]
    )


def _rules(rules: Sequence[Rule], axis: Axis, x: Encoding, height: int) -> list[Chart]:
    """Return vertical rules, each label on a line of its own above the rows."""
    layers = []
    for position, rule in enumerate(_in_order(rules, axis)):
        top = -6 - _LINE * (len(rules) - 1 - position)
        line = _rule(rule, "x").encode(
            x=x("x"), y=alt.value(top - 10), y2=alt.value(height), opacity=alt.value(0.7)
        )
        right = _position(rule.at, axis) > 0.5
        label = _data([{"x": rule.at}]).mark_text(
            align="right" if right else "left",
            dx=-5 if right else 5,
            color="currentColor",
            fontSize=12,
            baseline="alphabetic",
        )
        layers += [
            line,
            label.encode(x=x("x"), y=alt.value(top), text=alt.value(rule.label)),
        ]
    return layers


def _in_order(rules: Sequence[Rule], axis: Axis) -> list[Rule]:
    """Return rules in the order in which no rule runs through the label of another."""
    left = [rule for rule in rules if _position(rule.at, axis) <= 0.5]
    right = [rule for rule in rules if _position(rule.at, axis) > 0.5]
    return sorted(right, key=lambda r: -r.at) + sorted(left, key=lambda r: r.at)


def _position(at: float, axis: Axis) -> float:
    return (at - axis.low) / (axis.high - axis.low)


def _tint(rules: Sequence[Rule], x: Encoding, axis: Axis, height: int) -> list[Chart]:
    data = [{"x": rule.at, "x2": axis.high} for rule in rules if rule.forbidden_beyond]
    if not data:
        return []
    mark = _data(data).mark_rect(color=BEYOND, opacity=0.1)
    return [mark.encode(x=x("x"), x2="x2", y=alt.value(0), y2=alt.value(height))]


def _marks(rows: Sequence[Row], axis: Axis, x: Encoding, y: Encoding, middle: int) -> list[Chart]:
    """Return the marks of all rows, a layer for each style."""
    data = [_mark(row, axis, i * _ROW + middle) for i, row in enumerate(rows)]
    styles: dict[str, dict[str, Any]] = {
        "solid": {"strokeWidth": 2.2, "opacity": 0.7},
        "dotted": {"strokeWidth": 1.6, "strokeDash": DASHES[2]},
    }
    layers = []
    for style, options in styles.items():
        if chosen := [datum for datum in data if datum["style"] == style]:
            rule = _data(chosen).mark_rule(**options)
            stroke = alt.Stroke("color:N", scale=None)
            layers.append(rule.encode(x=x("low"), x2="high", y=y("y"), stroke=stroke))
    caps = [{**d, "x": d[end]} for d in data if d["shape"] == "circle" for end in ("low", "high")]
    if caps:
        tick = _data(caps).mark_tick(orient="vertical", size=10, thickness=1.6)
        layers.append(tick.encode(x=x("x"), y=y("y"), color=alt.Color("color:N", scale=None)))
    also = [datum | {"fill": PAPER, "x": datum["also"]} for datum in data if "also" in datum]
    for points, size in ((also, 60), (data, 75)):
        if points:
            layers.append(_points_of(points, size, x, y))
    return layers


def _mark(row: Row, axis: Axis, y: int) -> dict[str, Any]:
    color = BEYOND if row.beyond else ACCENT
    low, high = _stretch(row, axis)
    return {
        "x": row.value,
        "y": y,
        "low": low,
        "high": high,
        "color": color,
        "fill": PAPER if row.mark == "estimated" else color,
        "shape": _SYMBOLS[row.mark],
        "style": "dotted" if row.mark == "estimated" else "solid",
    } | ({} if row.also is None else {"also": row.also})


def _points_of(data: Sequence[dict[str, Any]], size: int, x: Encoding, y: Encoding) -> Chart:
    mark = _data(data).mark_point(size=size, opacity=1, strokeWidth=1.8)
    return mark.encode(
        x=x("x"),
        y=y("y"),
        shape=alt.Shape("shape:N", scale=None),
        fill=alt.Fill("fill:N", scale=None),
        stroke=alt.Stroke("color:N", scale=None),
    )


def _stretch(row: Row, axis: Axis) -> tuple[float, float]:
    """Return the ends of the line through a mark; a one-sided bound strikes out the rest."""
    if row.mark == "lower":
        return axis.low, row.value
    if row.mark == "upper":
        return row.value, axis.high
    low = row.value if row.low is None else row.low
    return low, row.value if row.high is None else row.high


def _points(line: Line) -> list[dict[str, float]]:
    fill = line.fill_to or line.y
    return [
        {"x": x, "y": y, "fill": f}
        for x, y, f in zip(line.x, line.y, fill, strict=True)
        if math.isfinite(x) and math.isfinite(y) and math.isfinite(f)
    ]
