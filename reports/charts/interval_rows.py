"""The chart of intervals: a row for each number, with rules to compare with."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Final

from ldpaudit.reports.charts.measuring import wrapped
from ldpaudit.reports.charts.row_words import GAP, SIDE, SIZE, Row, Words, above, beside, headed
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

_LINE: Final = 16
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


def intervals(rows: Sequence[Row], rules: Sequence[Rule], axis: Axis, width: int) -> Spec:
    """Return a chart with a row for each number; a row is as tall as its words need.

    Wide: label, mark and number side by side. Narrow: label and number above the mark.
    """
    wide = width == WIDE
    plot = width - 2 * SIDE if wide else width
    placed = [headed(row, beside(row, plot) if wide else above(row, plot)) for row in rows]
    tops = list(accumulate((each.height for each in placed), initial=0.0))
    height = round(tops[-1])
    x, y = on_axis(axis), on_pixels(height)
    middles = [top + each.middle for top, each in zip(tops, placed, strict=False)]
    side = SIDE if wide else 0
    layers = [*_tint(rules, x, axis, height), *_rules(rules, axis, x, (plot, height, side))]
    layers += _marks(rows, axis, x, y, middles)
    words = [replace(w, y=w.y + top) for top, p in zip(tops, placed, strict=False) for w in p.words]
    looks = dict.fromkeys((each.x, each.style) for each in words)
    layers += [_texts([w for w in words if (w.x, w.style) == look], y) for look in looks]
    if wide:
        layers.append(_room(-SIDE, plot + SIDE))
    return {"width": plot, "height": height, "layer": layers}


def _texts(words: Sequence[Words], y: Encoding) -> Spec:
    """Return words of one look, below each other."""
    mark = TEXT | {"fontSize": SIZE, "limit": 0, "stroke": PAPER, "strokeWidth": 4}
    data = [{"t": each.text, "y": each.y} for each in words]
    place = {"x": {"value": words[0].x}, "y": y("y"), "text": {"field": "t"}}
    return layer(data, mark | dict(words[0].style), place)


def _room(left: float, right: float) -> Spec:
    """Return an invisible mark that keeps room for the columns of words."""
    encoding = {"x": {"value": left}, "x2": {"value": right}, "y": {"value": 0}}
    return layer([{}], {"type": "rule", "strokeOpacity": 0}, encoding)


def _rules(
    rules: Sequence[Rule], axis: Axis, x: Encoding, size: tuple[int, int, int]
) -> list[Spec]:
    """Return vertical rules, each label in lines of its own above the rows.

    ``size`` is the width and the height of the plot, and the room to each side of it.
    """
    plot, height, side = size
    lines: list[Spec] = []
    labels: list[Spec] = []
    bottom = -6
    for rule in reversed(_in_order(rules, axis)):
        share = axis.share(rule.at)
        room = side + plot * max(share, 1 - share) - GAP
        words = wrapped(rule.label, room, 12) if rule.label else []
        top = bottom - _LINE * max(len(words) - 1, 0)
        ends = {"y": {"value": top - 10}, "y2": {"value": height}}
        line = rule_mark(rule) | {"opacity": 0.7}
        lines.append(layer([{"x": rule.at}], line, {"x": x("x"), **ends}))
        look = {"align": "right", "dx": -5} if share > 0.5 else {"align": "left", "dx": 5}
        look |= {"fontSize": 12, "stroke": PAPER, "strokeWidth": 4}
        for i, text in enumerate(words):
            place = {"x": x("x"), "y": {"value": top + _LINE * i}, "text": {"field": "t"}}
            labels.append(layer([{"x": rule.at, "t": text}], TEXT | look, place))
        bottom = top - _LINE if words else bottom
    return lines + labels


def _in_order(rules: Sequence[Rule], axis: Axis) -> list[Rule]:
    """Return rules in an order in which no rule runs through the label of another."""
    left = [rule for rule in rules if axis.share(rule.at) <= 0.5]
    right = [rule for rule in rules if axis.share(rule.at) > 0.5]
    return sorted(right, key=lambda r: -r.at) + sorted(left, key=lambda r: r.at)


def _tint(rules: Sequence[Rule], x: Encoding, axis: Axis, height: int) -> list[Spec]:
    data = [{"x": rule.at, "x2": axis.high} for rule in rules if rule.forbidden_beyond]
    place = {"x": x("x"), "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}}
    return [layer(data, {"type": "rect", "color": BEYOND, "opacity": 0.1}, place)] if data else []


def _marks(
    rows: Sequence[Row], axis: Axis, x: Encoding, y: Encoding, middles: Sequence[float]
) -> list[Spec]:
    """Return the marks of all rows, a layer for each style."""
    data = [_mark(row, axis, middle) for row, middle in zip(rows, middles, strict=True)]
    layers = []
    for style, options in _STRETCHES.items():
        chosen = [datum for datum in data if datum["style"] == style]
        place = {"x": x("low"), "x2": {"field": "high"}, "y": y("y"), "stroke": _COLOR}
        layers.append(layer(chosen, {"type": "rule", **options}, place))
    caps = [{**d, "x": d[end]} for d in data if d["shape"] == "circle" for end in ("low", "high")]
    tick = {"type": "tick", "orient": "vertical", "size": 10, "thickness": 1.6}
    layers.append(layer(caps, tick, {"x": x("x"), "y": y("y"), "color": _COLOR}))
    mark = {"type": "point", "size": 75, "opacity": 1, "strokeWidth": 1.8}
    look = {"shape": as_it_is("shape"), "fill": as_it_is("fill"), "stroke": _COLOR}
    layers.append(layer(data, mark, {"x": x("x"), "y": y("y"), **look}))
    return [layer for layer in layers if layer["data"]["values"]]


def _mark(row: Row, axis: Axis, y: float) -> Spec:
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
    }


def _stretch(row: Row, axis: Axis) -> tuple[float, float]:
    """Return the ends of the line through a mark; a one-sided bound strikes out the rest."""
    if row.mark == "lower":
        return axis.low, row.value
    if row.mark == "upper":
        return row.value, axis.high
    low = row.value if row.low is None else row.low
    return low, row.value if row.high is None else row.high
