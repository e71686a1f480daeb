"""The chart of intervals: a row for each number, with rules to compare with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ldpaudit.reports.charts.specifications import (
    ACCENT,
    BEYOND,
    DASHES,
    PAPER,
    TEXT,
    WIDE,
    Axis,
    Encoding,
    Rule,
    Spec,
    as_it_is,
    layer,
    on_axis,
    on_pixels,
    rule_mark,
)
from ldpaudit.reports.text.quantities import Mark

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
_COLOR: Final = as_it_is("color")


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


def intervals(rows: Sequence[Row], rules: Sequence[Rule], axis: Axis, width: int) -> Spec:
    """Return a chart with a row for each number.

    Wide: label, mark and number side by side. Narrow: label and number above the mark.
    """
    height = _ROW * len(rows)
    plot = width - sum(_SIDES) if width == WIDE else width
    middle = 23 if width == WIDE else 33
    x, y = on_axis(axis), on_pixels(height)
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


def _texts(texts: Sequence[str], x: float, down: float, y: Encoding, **style: Any) -> Spec:
    """Return one text in each row, ``down`` pixels below the row's top."""
    mark = TEXT | {"fontSize": 13, "limit": 0, "stroke": PAPER, "strokeWidth": 4} | style
    data = [{"t": text, "y": i * _ROW + down} for i, text in enumerate(texts)]
    return layer(data, mark, {"x": {"value": x}, "y": y("y"), "text": {"field": "t"}})


def _room(left: float, right: float) -> Spec:
    """Return an invisible mark that keeps room for letters wider than those measured here."""
    encoding = {"x": {"value": left}, "x2": {"value": right}, "y": {"value": 0}}
    return layer([{}], {"type": "rule", "strokeOpacity": 0}, encoding)


def _rules(rules: Sequence[Rule], axis: Axis, x: Encoding, height: int) -> list[Spec]:
    """Return vertical rules, each label on a line of its own above the rows."""
    layers = []
    for position, rule in enumerate(_in_order(rules, axis)):
        top = -6 - _LINE * (len(rules) - 1 - position)
        data = [{"x": rule.at, "t": rule.label}]
        ends = {"y": {"value": top - 10}, "y2": {"value": height}}
        layers.append(layer(data, rule_mark(rule) | {"opacity": 0.7}, {"x": x("x"), **ends}))
        right = _position(rule.at, axis) > 0.5
        side = {"align": "right", "dx": -5} if right else {"align": "left", "dx": 5}
        place = {"x": x("x"), "y": {"value": top}, "text": {"field": "t"}}
        layers.append(layer(data, TEXT | side | {"fontSize": 12}, place))
    return layers


def _in_order(rules: Sequence[Rule], axis: Axis) -> list[Rule]:
    """Return rules in an order in which no rule runs through the label of another."""
    left = [rule for rule in rules if _position(rule.at, axis) <= 0.5]
    right = [rule for rule in rules if _position(rule.at, axis) > 0.5]
    return sorted(right, key=lambda r: -r.at) + sorted(left, key=lambda r: r.at)


def _position(at: float, axis: Axis) -> float:
    return (at - axis.low) / (axis.high - axis.low)


def _tint(rules: Sequence[Rule], x: Encoding, axis: Axis, height: int) -> list[Spec]:
    data = [{"x": rule.at, "x2": axis.high} for rule in rules if rule.forbidden_beyond]
    place = {"x": x("x"), "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}}
    return [layer(data, {"type": "rect", "color": BEYOND, "opacity": 0.1}, place)] if data else []


def _marks(rows: Sequence[Row], axis: Axis, x: Encoding, y: Encoding, middle: int) -> list[Spec]:
    """Return the marks of all rows, a layer for each style."""
    data = [_mark(row, axis, i * _ROW + middle) for i, row in enumerate(rows)]
    layers = []
    for style, options in _STRETCHES.items():
        chosen = [datum for datum in data if datum["style"] == style]
        place = {"x": x("low"), "x2": {"field": "high"}, "y": y("y"), "stroke": _COLOR}
        layers.append(layer(chosen, {"type": "rule", **options}, place))
    caps = [{**d, "x": d[end]} for d in data if d["shape"] == "circle" for end in ("low", "high")]
    tick = {"type": "tick", "orient": "vertical", "size": 10, "thickness": 1.6}
    layers.append(layer(caps, tick, {"x": x("x"), "y": y("y"), "color": _COLOR}))
    also = [datum | {"fill": PAPER, "x": datum["also"]} for datum in data if "also" in datum]
    for points, size in ((also, 60), (data, 75)):
        mark = {"type": "point", "size": size, "opacity": 1, "strokeWidth": 1.8}
        look = {"shape": as_it_is("shape"), "fill": as_it_is("fill"), "stroke": _COLOR}
        layers.append(layer(points, mark, {"x": x("x"), "y": y("y"), **look}))
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


def _stretch(row: Row, axis: Axis) -> tuple[float, float]:
    """Return the ends of the line through a mark; a one-sided bound strikes out the rest."""
    if row.mark == "lower":
        return axis.low, row.value
    if row.mark == "upper":
        return row.value, axis.high
    low = row.value if row.low is None else row.low
    return low, row.value if row.high is None else row.high
