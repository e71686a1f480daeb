"""Heat maps and bars as Vega-Lite specifications; the look is that of the other charts."""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ldpaudit.reports.charts.specifications import ACCENT, TEXT, WIDE, Spec, layer, on_pixels
from ldpaudit.reports.text.harmless import brief

_ROW: Final = 34
_LABEL: Final = 215
_NUMBER: Final = 110
_CUT: Final = 6.0


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
    plot = width - 90
    tall = min(420, max(120, round(plot * len(rows) / max(len(columns), 1))))
    largest = max(max(row) for row in cells) or 1.0
    data = [
        {"x": x, "x2": x + 1, "y": y, "y2": y + 1, "p": cell / largest}
        for y, row in enumerate(cells)
        for x, cell in enumerate(row)
    ]
    place: Spec = {
        "x": _places(columns, "output", plot, 46),
        "x2": {"field": "x2"},
        "y": _places(rows, "true label", tall, 18),
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


def _places(names: Sequence[str], title: str, pixels: int, room: int) -> Spec:
    """Return an axis of unit steps with names in the middle of some of them."""
    field = "x" if title == "output" else "y"
    step = max(1, math.ceil(len(names) * room / max(pixels, 1)))
    shown = list(range(0, len(names), step))
    # Names are looked up by position: labels of different types may read alike.
    words = [brief(name, 9) for name in names]
    domain = [0, len(names)] if field == "x" else [len(names), 0]
    return {
        "field": field,
        "type": "quantitative",
        "title": title,
        "scale": {"domain": domain, "nice": False, "zero": False},
        "axis": {
            "values": [position + 0.5 for position in shown],
            "labelExpr": f"{json.dumps(words)}[floor(datum.value)]",
            "grid": False,
            "labelOverlap": False,
        },
    }


def bars(rows: Sequence[Bar], width: int) -> Spec:
    """Return horizontal bars, each with its number in words.

    One enormous number must not hide the others: a bar beyond six times the median is cut at the
    edge, and a gap near its end says so; an infinite number has no bar.
    Wide: label, bar and number side by side. Narrow: label and number above the bar.
    """
    wide = width == WIDE
    plot = width - _LABEL - _NUMBER if wide else width
    each, middle = (_ROW, 17) if wide else (_ROW + 8, 31)
    low, high = _ends([row.value for row in rows if math.isfinite(row.value)])
    x: Spec = {"field": "x", "type": "quantitative", "axis": None}
    x |= {"scale": {"domain": [low, high], "nice": False}}
    y = on_pixels(each * len(rows))("y")
    data = [
        {"x": start, "x2": end, "y": i * each + middle - 7, "strong": row.strong}
        for i, row in enumerate(rows)
        for start, end in _pieces(row.value, high)
    ]
    place = {"x": x, "x2": {"field": "x2"}, "y": y, "y2": {"field": "y2"}}
    layers: list[Spec] = []
    for strong, opacity in ((True, 1.0), (False, 0.45)):
        chosen = [{**datum, "y2": datum["y"] + 14} for datum in data if datum["strong"] == strong]
        if chosen:
            mark: Spec = {"type": "rect", "color": ACCENT, "opacity": opacity}
            layers.append(layer(chosen, mark, place))
    down = middle + 4 if wide else 18
    labels = [{"t": brief(row.label, 32), "y": i * each + down} for i, row in enumerate(rows)]
    numbers = [{"t": row.text, "y": i * each + down} for i, row in enumerate(rows)]
    layers.append(_words(labels, y, -_LABEL if wide else 0))
    strong_words = {"fontWeight": "bold"} if wide else {"fontWeight": "bold", "align": "right"}
    layers.append(_words(numbers, y, plot + (12 if wide else 0), **strong_words))
    return {"width": plot, "height": each * len(rows), "layer": layers}


def _pieces(value: float, high: float) -> list[tuple[float, float]]:
    """Return where a bar is drawn: in two pieces if it is cut, nowhere if it has no end."""
    if not math.isfinite(value):
        return []
    return [(0.0, value)] if value <= high else [(0.0, 0.95 * high), (0.97 * high, high)]


def _ends(finite: Sequence[float]) -> tuple[float, float]:
    """Return the ends of the bars' axis."""
    low, high = min([0.0, *finite]), max([0.0, *finite])
    if low == 0 and finite:
        high = min(high, _CUT * statistics.median(finite)) or high
    return low, high if high > low else low + 1.0


def _words(data: Sequence[Spec], y: Spec, at: float, **style: str) -> Spec:
    mark = TEXT | {"fontSize": 12} | style
    place = {"x": {"value": at}, "y": y, "text": {"field": "t"}}
    return layer(data, mark, place)
