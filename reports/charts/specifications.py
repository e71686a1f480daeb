"""The charts as Vega-Lite specifications: plain values in, no result, no files.

Colours mean nothing by themselves: each kind of number has its own shape or dash, and every chart
is read with its table. The two colours are of middle lightness, so that both stand out on white and
on near-black, and differ for colour-blind eyes; all else is the page's own colour.
"""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ldpaudit.reports.charts.measuring import wrapped
from ldpaudit.reports.charts.svg import Drawing, inline_svg
from ldpaudit.reports.text.numbers import number

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

FAR_APART: Final = 100.0
"""Numbers whose ratio reaches this are drawn on a logarithmic axis."""
_TITLE: Final = 300.0
"""Pixels of a line of an axis title."""
_DECADES: Final = 1000.0
"""From this ratio of its ends on, a logarithmic axis counts in powers of ten, else of two."""
_THIN, _THICK = 1.6, 3.0

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

    @classmethod
    def around(cls, title: str, values: Sequence[float], pad: float = 0.1) -> "Axis":
        """Return an axis with room around all values: logarithmic where they are far apart."""
        finite = [value for value in values if math.isfinite(value)]
        low, high = min(finite), max(finite)
        if far_apart(finite):
            spread = (high / low) ** pad
            return cls(title, low / spread, high * spread, logarithmic=True)
        spread = (high - low) or abs(high) or 1.0
        return cls(title, low - pad * spread, high + pad * spread)

    def share(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high end."""
        low, high, at = self.low, self.high, value
        if self.logarithmic:
            low, high, at = math.log(low), math.log(high), math.log(max(at, low))
        return (at - low) / (high - low)


def far_apart(values: Sequence[float]) -> bool:
    """Return whether some of these numbers could not be told apart on a linear axis."""
    return min(values) > 0 and max(values) / min(values) >= FAR_APART


def draw(build: Callable[[int], Spec], title: str, description: str, key: str) -> Drawing:
    """Draw a chart in both widths."""
    return Drawing(
        inline_svg(build(WIDE) | {"config": _CONFIG}, title, description, f"{key}-w"),
        inline_svg(build(NARROW) | {"config": _CONFIG}, title, "", f"{key}-n", twin=f"{key}-w"),
    )


def curves(lines: Sequence[Line], rules: Sequence[Rule], x: Axis, y: Axis, width: int) -> Spec:
    """Return a chart of curves over one variable, with horizontal rules."""
    x_of, y_of = on_axis(x), on_axis(y, vertical=True)
    place = {"x": x_of("x"), "y": y_of("y")}
    layers = []
    # Dashes lie over whole lines and are thicker, so that of two equal curves both are seen.
    for line in sorted(lines, key=lambda line: line.dash != 0):
        data = _points(line)
        if line.fill_to is not None:
            band = {"type": "area", "color": ACCENT, "opacity": 0.18}
            layers.append(layer(data, band, place | {"y2": {"field": "fill"}}))
        style = {"strokeDash": DASHES[line.dash], "strokeWidth": _THICK if line.dash else _THIN}
        layers.append(layer(data, {"type": "line", "color": ACCENT, **style}, place))
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
    ticks: Spec = {"tickCount": 5, "labelFlush": False, "labelOverlap": True, "labelSeparation": 6}
    if vertical:
        ticks |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end"}
        ticks |= {"titleX": 0, "titleY": -10, "titleBaseline": "bottom"}
    if axis.logarithmic:
        scale["type"] = "log"
        powers = _powers(axis.low, axis.high)
        texts = json.dumps([number(power) for power in powers])
        ticks |= {"values": powers, "labelExpr": f"{texts}[indexof({powers}, datum.value)]"}
    place = {"type": "quantitative", "title": wrapped(axis.title, _TITLE, 12)}
    return lambda field: {"field": field, **place, "scale": scale, "axis": ticks}


def on_pixels(height: int) -> Encoding:
    """Return the encoding of fields that are pixels from the top."""
    scale = {"domain": [height, 0], "nice": False, "zero": False}
    return lambda field: {"field": field, "type": "quantitative", "scale": scale, "axis": None}


def as_it_is(field: str) -> Spec:
    """Return the encoding of a field that holds the colour or the shape itself."""
    return {"field": field, "type": "nominal", "scale": None}


def _powers(low: float, high: float) -> list[float]:
    """Return the powers of ten on an axis, of two on a short one; at most about ten of them."""
    base = 10.0 if high / low >= _DECADES else 2.0
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    return [base**power for power in range(first, last + 1, 1 + (last - first) // 10)]


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
