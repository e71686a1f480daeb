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

TEXT: Final[Spec] = {
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
        inline_svg(build(NARROW) | {"config": _CONFIG}, title, "", f"{key}-n", twin=f"{key}-w"),
    )


def curves(lines: Sequence[Line], rules: Sequence[Rule], x: Axis, y: Axis, width: int) -> Spec:
    """Return a chart of curves over one variable, with horizontal rules."""
    x_of, y_of = on_axis(x), on_axis(y, vertical=True)
    layers = []
    for line in lines:
        data = _points(line)
        place = {"x": x_of("x"), "y": y_of("y")}
        if line.fill_to is not None:
            band = {"type": "area", "color": ACCENT, "opacity": 0.18}
            layers.append(layer(data, band, place | {"y2": {"field": "fill"}}))
        mark = {"type": "line", "color": ACCENT, "strokeDash": DASHES[line.dash]}
        weight = 2.2 if line.dash == 0 else 1.6
        layers.append(layer(data, mark | {"strokeWidth": weight}, place))
    layers += [layer([{"y": r.at}], rule_mark(r), {"y": y_of("y")}) for r in rules]
    return {"width": width - 60, "height": 240 if width == WIDE else 190, "layer": layers}


def histogram(
    bins: Sequence[tuple[float, float, float]],
    rules: Sequence[Rule],
    x: Axis,
    y: Axis,
    width: int,
) -> Spec:
    """Return a histogram of bins (left, right, height), with vertical rules."""
    x_of, y_of = on_axis(x), on_axis(y, vertical=True)
    data = [{"x": left, "x2": right, "y": height} for left, right, height in bins]
    bar = {"type": "rect", "color": ACCENT, "opacity": 0.55, "stroke": PAPER, "strokeWidth": 0.5}
    place = {"x": x_of("x"), "x2": {"field": "x2"}, "y": y_of("y"), "y2": {"datum": 0}}
    layers = [layer(data, bar, place)]
    layers += [layer([{"x": r.at}], rule_mark(r), {"x": x_of("x")}) for r in rules]
    return {"width": width - 60, "height": 220 if width == WIDE else 180, "layer": layers}


def layer(data: Sequence[Spec], mark: Spec, encoding: Spec) -> Spec:
    """Return a layer that holds its own data."""
    return {"data": {"values": list(data)}, "mark": mark, "encoding": encoding}


def on_axis(axis: Axis, *, vertical: bool = False) -> Encoding:
    """Return the encoding of fields on an axis."""
    scale: Spec = {"domain": [axis.low, axis.high], "nice": False}
    ticks: Spec = {"tickCount": 5, "labelFlush": False}
    if vertical:
        ticks |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end"}
        ticks |= {"titleX": 0, "titleY": -10, "titleBaseline": "bottom"}
    if axis.logarithmic:
        scale["type"] = "log"
        ticks |= {"values": _powers_of_two(axis.low, axis.high), "format": "~r"}
    place = {"type": "quantitative", "title": textwrap.wrap(axis.title, 44)}
    return lambda field: {"field": field, **place, "scale": scale, "axis": ticks}


def on_pixels(height: int) -> Encoding:
    """Return the encoding of fields that are pixels from the top."""
    scale = {"domain": [height, 0], "nice": False, "zero": False}
    return lambda field: {"field": field, "type": "quantitative", "scale": scale, "axis": None}


def as_it_is(field: str) -> Spec:
    """Return the encoding of a field that holds the colour or the shape itself."""
    return {"field": field, "type": "nominal", "scale": None}


def _powers_of_two(low: float, high: float) -> list[float]:
    first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
    return [2.0**power for power in range(first, last + 1)]


def rule_mark(rule: Rule) -> Spec:
    """Return the look of a rule."""
    style = {"strokeWidth": 1.6, "strokeDash": DASHES[rule.dash]}
    return {"type": "rule", "color": "currentColor", **style}


def _points(line: Line) -> list[dict[str, float]]:
    fill = line.fill_to or line.y
    return [
        {"x": x, "y": y, "fill": f}
        for x, y, f in zip(line.x, line.y, fill, strict=True)
        if math.isfinite(x) and math.isfinite(y) and math.isfinite(f)
    ]
