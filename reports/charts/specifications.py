"""The charts as Vega-Lite specifications: plain values in, no result, no files.

Colours mean nothing by themselves: each kind of number has its own shape or dash, and every chart
is read with its table. The two colours are of middle lightness, so that both stand out on white and
on near-black, and differ for colour-blind eyes; all else is the page's own colour.
"""

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ldpaudit.reports.charts.svg import Drawing, inline_svg
from ldpaudit.reports.text.quantities import Mark

Spec: TypeAlias = dict[str, Any]
"""A Vega-Lite specification or a part of one, as JSON."""
Encoding: TypeAlias = Callable[[str], Spec]
"""From the name of a field to its place on an axis."""
Dash = Literal[0, 1, 2, 3, 4, 5]

WIDE: Final = 820
NARROW: Final = 320
ACCENT: Final = "#3a7fc4"
BEYOND: Final = "#d0662f"
PAPER: Final = "Canvas"
"""A system colour, so that hollow marks stay hollow without a style sheet."""
DASHES: Final[tuple[tuple[int, ...], ...]] = (
    (1, 0),
    (6, 4),
    (2, 3),
    (10, 4, 2, 4),
    (14, 3),
    (1, 6),
)

_ROW: Final = 46
_LINE: Final = 16
_SIDES: Final = (215, 215)
"""Widths of the columns for the labels and for the numbers beside a wide chart."""
_SYMBOLS: Final[dict[Mark, str]] = {
    "exact": "diamond",
    "lower": "triangle-right",
    "upper": "triangle-left",
    "interval": "circle",
    "estimated": "circle",
}
_STRETCHES: Final[dict[str, Spec]] = {
    "solid": {"strokeWidth": 2.2, "opacity": 0.7},
    "dotted": {"strokeWidth": 1.6, "strokeDash": DASHES[2]},
}
_TEXT: Final[Spec] = {
    "type": "text",
    "align": "left",
    "baseline": "alphabetic",
    "color": "currentColor",
}
_CONFIG: Final[Spec] = {
    "background": "transparent",
    "font": "sans-serif",
    "padding": 4,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor",
        "labelFontSize": 12,
        "labelOpacity": 0.8,
        "titleColor": "currentColor",
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titleOpacity": 0.8,
        "gridColor": "currentColor",
        "gridOpacity": 0.1,
        "domain": False,
        "ticks": False,
        "labelPadding": 6,
        "titlePadding": 8,
    },
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


def draw(build: Callable[[int], Spec], title: str, description: str, key: str) -> Drawing:
    """Draw a chart in both widths."""
    return Drawing(
        inline_svg(build(WIDE) | {"config": _CONFIG}, title, description, f"{key}-w"),
        inline_svg(
            build(NARROW) | {"config": _CONFIG}, title, description, f"{key}-n", twin=f"{key}-w"
        ),
    )


def intervals(rows: Sequence[Row], rules: Sequence[Rule], axis: Axis, width: int) -> Spec:
    """Return a chart with a row for each number.

    Wide: label, mark and number side by side. Narrow: label and number above the mark.
    """
    height = _ROW * len(rows)
    plot = width - sum(_SIDES) if width == WIDE else width
    middle = 23 if width == WIDE else 33
    x, y = _on(axis), _pixels(height)
    layers = [*_tint(rules, x, axis, height), *_rules(rules, axis, x, height)]
    layers += _marks(rows, axis, x, y, middle)
    labels = [row.label for row in rows]
    if width == WIDE:
        layers.append(_texts(labels, -_SIDES[0], middle + 4, y))
        layers.append(_texts([row.text for row in rows], plot + 20, 19, y, fontWeight="bold"))
        words = [row.words for row in rows]
        layers.append(_texts(words, plot + 20, 35, y, fontSize=11, opacity=0.8))
        layers.append(_room(-_SIDES[0], plot + _SIDES[1]))
    else:
        layers.append(_texts(labels, 0, 18, y))
        text = [row.text.split(" · ")[0] for row in rows]
        layers.append(_texts(text, plot, 18, y, fontWeight="bold", align="right"))
    return {"width": plot, "height": height, "layer": layers}


def curves(lines: Sequence[Line], rules: Sequence[Rule], x: Axis, y: Axis, width: int) -> Spec:
    """Return a chart of curves over one variable, with horizontal rules."""
    x_of, y_of = _on(x), _on(y, vertical=True)
    layers = []
    for line in lines:
        data = _points(line)
        place = {"x": x_of("x"), "y": y_of("y")}
        if line.fill_to is not None:
            band = {"type": "area", "color": ACCENT, "opacity": 0.18}
            layers.append(_layer(data, band, place | {"y2": {"field": "fill"}}))
        mark = {"type": "line", "color": ACCENT, "strokeDash": DASHES[line.dash]}
        weight = 2.2 if line.dash == 0 else 1.6
        layers.append(_layer(data, mark | {"strokeWidth": weight}, place))
    layers += [_layer([{"y": r.at}], _rule_mark(r), {"y": y_of("y")}) for r in rules]
    return {"width": width - 60, "height": 240 if width == WIDE else 190, "layer": layers}


def histogram(
    bins: Sequence[tuple[float, float, float]],
    rules: Sequence[Rule],
    x: Axis,
    y: Axis,
    width: int,
) -> Spec:
    """Return a histogram of bins (left, right, height), with vertical rules."""
    x_of, y_of = _on(x), _on(y, vertical=True)
    data = [{"x": left, "x2": right, "y": height} for left, right, height in bins]
    bar = {"type": "rect", "color": ACCENT, "opacity": 0.55, "stroke": PAPER, "strokeWidth": 0.5}
    place = {"x": x_of("x"), "x2": {"field": "x2"}, "y": y_of("y"), "y2": {"datum": 0}}
    layers = [_layer(data, bar, place)]
    layers += [_layer([{"x": r.at}], _rule_mark(r), {"x": x_of("x")}) for r in rules]
    return {"width": width - 60, "height": 220 if width == WIDE else 180, "layer": layers}


def _layer(data: Sequence[Spec], mark: Spec, encoding: Spec) -> Spec:
    return {"data": {"values": list(data)}, "mark": mark, "encoding": encoding}


def _on(axis: Axis, *, vertical: bool = False) -> Encoding:
    """Return the encoding of fields on an axis."""
    scale: Spec = {"domain": [axis.low, axis.high], "nice": False}
    ticks: Spec = {"tickCount": 5, "labelFlush": False}
    if vertical:
        ticks |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end"}
        ticks |= {"titleX": 0, "titleY": -10, "titleBaseline": "bottom"}
    if axis.logarithmic:
        scale["type"] = "log"
        ticks |= {"values": _powers_of_two(axis.low, axis.high), "format": "~r"}
    made = {
        "type": "quantitative",
        "title": textwrap.wrap(axis.title, 44),
        "scale": scale,
        "axis": ticks,
    }
    return lambda field: {"field": field, **made}


def _pixels(height: int) -> Encoding:
    """Return the encoding of fields that are pixels from the top."""
    scale = {"domain": [height, 0], "nice": False, "zero": False}
    return lambda field: {"field": field, "type": "quantitative", "scale": scale, "axis": None}


def _powers_of_two(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    return [2.0**power for power in range(first, last + 1)]


def _texts(texts: Sequence[str], x: float, down: float, y: Encoding, **style: Any) -> Spec:
    """Return one text in each row, ``down`` pixels below the row's top."""
    mark = _TEXT | {"fontSize": 13, "limit": 0, "stroke": PAPER, "strokeWidth": 4} | style
    data = [{"t": text, "y": i * _ROW + down} for i, text in enumerate(texts)]
    return _layer(data, mark, {"x": {"value": x}, "y": y("y"), "text": {"field": "t"}})


def _room(left: float, right: float) -> Spec:
    """Return a mark that is not seen and keeps room for letters wider than those measured here."""
    encoding = {"x": {"value": left}, "x2": {"value": right}, "y": {"value": 0}}
    return _layer([{}], {"type": "rule", "strokeOpacity": 0}, encoding)


def _rule_mark(rule: Rule) -> Spec:
    style = {"strokeWidth": 1.6, "strokeDash": DASHES[rule.dash]}
    return {"type": "rule", "color": "currentColor", **style}


def _rules(rules: Sequence[Rule], axis: Axis, x: Encoding, height: int) -> list[Spec]:
    """Return vertical rules, each label on a line of its own above the rows."""
    layers = []
    for position, rule in enumerate(_in_order(rules, axis)):
        top = -6 - _LINE * (len(rules) - 1 - position)
        data = [{"x": rule.at, "t": rule.label}]
        ends = {"y": {"value": top - 10}, "y2": {"value": height}}
        layers.append(_layer(data, _rule_mark(rule) | {"opacity": 0.7}, {"x": x("x"), **ends}))
        right = _position(rule.at, axis) > 0.5
        side = {"align": "right", "dx": -5} if right else {"align": "left", "dx": 5}
        place = {"x": x("x"), "y": {"value": top}, "text": {"field": "t"}}
        layers.append(_layer(data, _TEXT | side | {"fontSize": 12}, place))
    return layers


def _in_order(rules: Sequence[Rule], axis: Axis) -> list[Rule]:
    """Return rules in the order in which no rule runs through the label of another."""
    left = [rule for rule in rules if _position(rule.at, axis) <= 0.5]
    right = [rule for rule in rules if _position(rule.at, axis) > 0.5]
    return sorted(right, key=lambda r: -r.at) + sorted(left, key=lambda r: r.at)


def _position(at: float, axis: Axis) -> float:
    return (at - axis.low) / (axis.high - axis.low)


def _tint(rules: Sequence[Rule], x: Encoding, axis: Axis, height: int) -> list[Spec]:
    data = [{"x": rule.at, "x2": axis.high} for rule in rules if rule.forbidden_beyond]
    place = {"x": x("x"), "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}}
    return [_layer(data, {"type": "rect", "color": BEYOND, "opacity": 0.1}, place)] if data else []


def _marks(rows: Sequence[Row], axis: Axis, x: Encoding, y: Encoding, middle: int) -> list[Spec]:
    """Return the marks of all rows, a layer for each style."""
    data = [_mark(row, axis, i * _ROW + middle) for i, row in enumerate(rows)]
    layers = []
    for style, options in _STRETCHES.items():
        chosen = [datum for datum in data if datum["style"] == style]
        place = {"x": x("low"), "x2": {"field": "high"}, "y": y("y"), "stroke": _OWN_COLOR}
        layers.append(_layer(chosen, {"type": "rule", **options}, place))
    caps = [{**d, "x": d[end]} for d in data if d["shape"] == "circle" for end in ("low", "high")]
    tick = {"type": "tick", "orient": "vertical", "size": 10, "thickness": 1.6}
    layers.append(_layer(caps, tick, {"x": x("x"), "y": y("y"), "color": _OWN_COLOR}))
    also = [datum | {"fill": PAPER, "x": datum["also"]} for datum in data if "also" in datum]
    for points, size in ((also, 60), (data, 75)):
        mark = {"type": "point", "size": size, "opacity": 1, "strokeWidth": 1.8}
        look = {"shape": _own("shape"), "fill": _own("fill"), "stroke": _OWN_COLOR}
        layers.append(_layer(points, mark, {"x": x("x"), "y": y("y"), **look}))
    return [layer for layer in layers if layer["data"]["values"]]


def _mark(row: Row, axis: Axis, y: int) -> Spec:
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


def _own(field: str) -> Spec:
    """Return the encoding of a field that holds the colour or the shape itself."""
    return {"field": field, "type": "nominal", "scale": None}


_OWN_COLOR: Final = _own("color")


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
