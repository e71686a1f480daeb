"""Heat maps and bars as Vega-Lite specifications; the look is that of the other charts."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from ldpaudit.reports.charts.measuring import distinct, wrapped
from ldpaudit.reports.charts.measuring import width as width_of
from ldpaudit.reports.charts.row_words import GAP, SIDE
from ldpaudit.reports.charts.specifications import (
    ACCENT,
    TEXT,
    WIDE,
    Axis,
    Encoding,
    Spec,
    far_apart,
    layer,
    on_axis,
    on_pixels,
)
from ldpaudit.reports.text.harmless import name as named

_NUMBER: Final = 110
"""Pixels of a number beside its bar."""
_LETTERS: Final = 12
_LINE: Final = 15
_AIR: Final = 16
_BELOW: Final = 20
"""Pixels of a bar below its words in a narrow chart."""
_NAME: Final = 90.0
"""Pixels of the name of an output where there are many."""
_FEW: Final = 12
"""True labels up to which every one is named."""


@dataclass(frozen=True)
class Bar:
    """A bar: what it is, its number in words, and whether it is the one to look at."""

    label: str
    text: str
    value: float
    strong: bool = False


def heat_map(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[float]], width: int
) -> Spec:
    """Return a heat map of probabilities: the larger, the more opaque.

    Parameters
    ----------
    rows, columns : sequences of str, length k and m
        Labels and outputs; an axis shows as many names as it has room for.
    cells : k sequences of m numbers in [0, 1]
    """
    down = _wrapped(rows, 150.0 if width == WIDE else 70.0)
    plot = width - 90 if width == WIDE else width - 70
    most = max(map(len, down))
    room = _LINE * most + 4
    tall = min(420, max(120, round(plot * len(rows) / max(len(columns), 1))))
    tall = max(tall, room * len(rows)) if len(rows) <= _FEW else tall
    widest = max(width_of(name, _LETTERS) for name in map(named, columns)) + 2 * GAP
    across = max(46.0, min(widest, _NAME), plot / len(columns) if widest > _NAME else 0.0)
    largest = max(max(row) for row in cells) or 1.0
    data = [
        {"x": x, "x2": x + 1, "y": y, "y2": y + 1, "p": cell / largest}
        for y, row in enumerate(cells)
        for x, cell in enumerate(row)
    ]
    place: Spec = {
        "x": _places("output", _wrapped(columns, across - GAP), across / plot),
        "x2": {"field": "x2"},
        "y": _places("true label", down, room / tall),
        "y2": {"field": "y2"},
        "opacity": {
            "field": "p",
            "type": "quantitative",
            "scale": {"domain": [0, 1], "range": [0.02, 1]},
            "legend": None,
        },
    }
    mark = {"type": "rect", "color": ACCENT, "strokeWidth": 0}
    return {"width": plot, "height": tall, **layer(data, mark, place)}


def _wrapped(names: Sequence[str], room: float) -> list[list[str]]:
    return [wrapped(name, room, _LETTERS) for name in distinct(map(named, names))]


def _places(title: str, names: Sequence[Sequence[str]], share: float) -> Spec:
    """Return an axis of unit steps with names in the middle of some of them.

    A name takes a ``share`` of the axis.
    """
    field = "x" if title == "output" else "y"
    step = max(1, math.ceil(len(names) * share - 1e-9))
    shown = list(range(0, len(names), step))
    # Names are looked up by position: labels of different types may read alike.
    domain = [0, len(names)] if field == "x" else [len(names), 0]
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": domain, "nice": False, "zero": False},
        "axis": {
            "values": [position + 0.5 for position in shown],
            "labelExpr": f"{json.dumps(names)}[floor(datum.value)]",
            "labelLimit": 0,
            "grid": False,
            "labelOverlap": False,
        },
    }


def bars(rows: Sequence[Bar], unit: str, width: int) -> Spec:
    """Return a bar for each number, with the number in words, over an axis.

    Numbers that are a hundred times apart stand on a logarithmic axis, as points: the length of a
    bar would mean nothing there. An infinite number has no mark.
    Wide: label, bar and number side by side. Narrow: label and number above the bar.
    """
    wide = width == WIDE
    plot = width - SIDE - _NUMBER if wide else width
    axis = _axis(unit, [row.value for row in rows if math.isfinite(row.value)])
    labels = [
        wrapped(label, SIDE - GAP if wide else plot - _NUMBER, _LETTERS)
        for label in distinct(row.label for row in rows)
    ]
    tall = [_LINE * len(lines) + (_AIR if wide else _AIR + _BELOW) for lines in labels]
    tops = list(accumulate(tall, initial=0.0))
    x, y = on_axis(axis), on_pixels(round(tops[-1]))
    starts = [top + (_AIR / 2 if wide else 0) for top in tops]
    middles = [
        start + (_LINE * len(lines) / 2 if wide else _LINE * len(lines) + _BELOW / 2)
        for start, lines in zip(starts, labels, strict=False)
    ]
    layers = _bars(rows, middles, axis, x, y)
    words = [
        {"t": line, "y": start + _LINE * (i + 0.78)}
        for start, lines in zip(starts, labels, strict=False)
        for i, line in enumerate(lines)
    ]
    numbers = [
        {"t": row.text, "y": middle + 4 if wide else start + _LINE * 0.78}
        for row, middle, start in zip(rows, middles, starts, strict=False)
    ]
    layers.append(_words(words, y("y"), -SIDE if wide else 0))
    strong_words = {"fontWeight": "bold"} if wide else {"fontWeight": "bold", "align": "right"}
    layers.append(_words(numbers, y("y"), plot + (12 if wide else 0), **strong_words))
    return {"width": plot, "height": round(tops[-1]), "layer": layers}


def _axis(unit: str, finite: Sequence[float]) -> Axis:
    """Return the axis of bars: from 0, or logarithmic from the power of ten below the least."""
    positive = [value for value in finite if value > 0]
    if positive and min(finite) >= 0 and far_apart(positive):
        least = 10.0 ** math.floor(math.log10(min(positive)))
        title = f"{unit} (logarithmic axis)"
        return Axis(title, least, max(positive) * 1.3, logarithmic=True)
    low, high = min([0.0, *finite]), max([0.0, *finite])
    return Axis(unit, low, high if high > low else low + 1.0)


def _bars(
    rows: Sequence[Bar], middles: Sequence[float], axis: Axis, x: Encoding, y: Encoding
) -> list[Spec]:
    """Return the bars, or the points on a logarithmic axis; strong ones apart from the others."""
    layers: list[Spec] = []
    half = 1.0 if axis.logarithmic else 7.0
    for strong, opacity in ((True, 1.0), (False, 0.45)):
        data = [
            {
                "x": axis.low if axis.logarithmic else 0.0,
                "x2": r.value,
                "y": m - half,
                "y2": m + half,
            }
            for r, m in zip(rows, middles, strict=True)
            if r.strong == strong and math.isfinite(r.value) and r.value >= axis.low
        ]
        mark: Spec = {"type": "rect", "color": ACCENT, "opacity": opacity}
        place = {"x": x("x"), "x2": {"field": "x2"}, "y": y("y"), "y2": {"field": "y2"}}
        layers.append(layer(data, mark, place))
        if axis.logarithmic:
            points = [{"x": datum["x2"], "y": datum["y"] + half} for datum in data]
            point = mark | {"type": "point", "filled": True, "size": 90}
            layers.append(layer(points, point, {"x": x("x"), "y": y("y")}))
    return [each for each in layers if each["data"]["values"]]


def _words(data: Sequence[Spec], y: Spec, at: float, **style: str) -> Spec:
    mark = TEXT | {"fontSize": _LETTERS} | style
    place = {"x": {"value": at}, "y": y, "text": {"field": "t"}}
    return layer(data, mark, place)
