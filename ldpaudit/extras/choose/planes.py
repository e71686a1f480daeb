"""Charts of two numbers at once: the channel as a heat map, leakage against utility."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from ldpaudit.doors import number
from ldpaudit.reports.charts.figure import (
    ACCENT,
    BEYOND,
    DASHES,
    PAPER,
    WIDE,
    Axis,
    Figure,
    Rule,
    Spec,
    Table,
    as_it_is,
    distinct,
    far_apart,
    layer,
    rule_mark,
    wrapped,
)
from ldpaudit.result.harmless import name as named
from ldpaudit.result.numbers import exactly

Outcome = Literal["pass", "fail", "other"]
_SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
MOST_LINES: Final = len(_SHAPES)
_MOST_TABLE_ROWS: Final = 30
_MOST_COLUMNS: Final = 12
_LINE: Final = 15


@dataclass(frozen=True)
class Spot:
    """One setting: two numbers with the ends of their intervals, and the outcome of its audit."""

    # Filled if every draw passed, otherwise hollow; in the second colour if one failed. The label
    # is printed next to it if there is room.

    x: float
    y: float
    x_ends: tuple[float, float]
    y_ends: tuple[float, float]
    label: str = ""
    outcome: Outcome = "other"


@dataclass(frozen=True)
class Path:
    """The settings of one mechanism, in the order of their noise."""

    label: str
    spots: tuple[Spot, ...]


def frontier_figure(
    title: str,
    paths: Sequence[Path],
    axes: tuple[str, str],
    references: tuple[Rule | None, Rule | None],
    table: Table,
) -> Figure | None:
    """Return a chart of paths through two numbers, at most :data:`MOST_LINES`; None without any.

    ``references`` are a vertical and a horizontal line to compare with.
    """
    paths = [path for path in paths if path.spots]
    if not paths:
        return None
    spots = [spot for path in paths for spot in path.spots]
    x = _axis(axes[0], [end for spot in spots for end in spot.x_ends], references[0])
    y = _axis(axes[1], [end for spot in spots for end in spot.y_ends], references[1])
    description = " ".join(
        f"{path.label}: from {number(path.spots[0].x)} and {number(path.spots[0].y)} at the least "
        f"noise to {number(path.spots[-1].x)} and {number(path.spots[-1].y)} at the most."
        for path in paths
    )
    marks = [
        (f"line-{i}", f"{path.label} ({_SHAPES[i].replace('-', ' ')})")
        for i, path in enumerate(paths)
    ]
    rules = [rule for rule in references if rule is not None]
    figure = Figure.of(
        ("paths", title, description),
        lambda width: _frontier(paths, references, x, y, width),
        table,
        rules=rules,
    )
    return replace(figure, legend=(*marks, *figure.legend))


def _axis(title: str, ends: Sequence[float], rule: Rule | None) -> Axis:
    """Return an axis that shows these ends and a rule, with some room around them."""
    shown = [end for end in [*ends, *([] if rule is None else [rule.at])] if math.isfinite(end)]
    low, high = min(shown), max(shown)
    share = low >= 0 and high <= 1
    if not share and far_apart(shown):
        return Axis.around(title, shown, 0.06)
    pad = 0.06 * (high - low) or 0.05 * max(abs(high), 1.0)
    top = min(high + 1.6 * pad, 1.0) if share else high + 1.6 * pad
    return Axis(title, max(low - pad, 0.0) if low >= 0 else low - pad, top)


def _frontier(
    paths: Sequence[Path], references: Sequence[Rule | None], x: Axis, y: Axis, width: int
) -> Spec:
    x_of, y_of = x.on(), y.on(vertical=True)
    plot, tall = width - 60, 330 if width == WIDE else 260
    at, color = {"x": x_of("x"), "y": y_of("y")}, {"stroke": as_it_is("color")}
    across = {"x": x_of("x0"), "x2": {"field": "x1"}, "y": y_of("y")}
    along = {"x": x_of("x"), "y": y_of("y0"), "y2": {"field": "y1"}}
    order = {"order": {"field": "i", "type": "quantitative"}}
    layers = [
        layer([{key: rule.at}], rule_mark(rule), {key: at[key]})
        for key, rule in zip("xy", references, strict=True)
        if rule is not None
    ]
    for place, path in enumerate(paths):
        # Without an order the line would run from left to right instead of by noise.
        data = [_datum(spot) | {"i": i} for i, spot in enumerate(path.spots)]
        line = {"type": "line", "color": ACCENT, "strokeDash": DASHES[place], "strokeWidth": 1.6}
        rule_look = {"type": "rule", "strokeWidth": 1.4, "opacity": 0.55}
        point = {"type": "point", "shape": _SHAPES[place], "size": 75, "strokeWidth": 1.8}
        layers += [
            layer(data, line, at | order),
            layer(data, rule_look, across | color),
            layer(data, rule_look, along | color),
            layer(data, point | {"opacity": 1}, at | color | {"fill": as_it_is("fill")}),
        ]
    text = {"type": "text", "dy": -9, "fontSize": 11, "stroke": PAPER, "strokeWidth": 5}
    labels = _labels(paths, x, y, (plot, tall))
    for right, side in ((True, {"align": "right", "dx": -8}), (False, {"align": "left", "dx": 8})):
        data = [one for one in labels if (x.share(one["x"]) > 0.6) == right]
        layers.append(layer(data, text | side, at | {"text": {"field": "t"}}))
    return {"width": plot, "height": tall, "layer": layers}


def _labels(paths: Sequence[Path], x: Axis, y: Axis, size: tuple[int, int]) -> list[Spec]:
    """Return the spots whose labels are written: ends of paths first, none over another."""
    ends = [spot for path in paths for spot in (path.spots[0], path.spots[-1])]
    placed: list[tuple[float, float]] = []
    labels: list[Spec] = []
    for spot in [*ends, *(spot for path in paths for spot in path.spots[1:-1])]:
        across, down, room = (
            x.share(spot.x) * size[0],
            y.share(spot.y) * size[1],
            14 + 7 * len(spot.label),
        )
        if spot.label and all(abs(across - a) > room or abs(down - d) > _LINE for a, d in placed):
            placed.append((across, down))
            labels.append({"x": spot.x, "y": spot.y, "t": spot.label})
    return labels


def _datum(spot: Spot) -> Spec:
    color = BEYOND if spot.outcome == "fail" else ACCENT
    (x0, x1), (y0, y1) = spot.x_ends, spot.y_ends
    ends = {"x": spot.x, "y": spot.y, "x0": x0, "x1": x1, "y0": y0, "y1": y1}
    return ends | {"color": color, "fill": color if spot.outcome == "pass" else PAPER}


def channel_figure(
    labels: Sequence[str], outputs: Sequence[str], matrix: Sequence[Sequence[float]]
) -> Figure:
    """Return the channel as a heat map: P(output | label), float of shape (k, m)."""
    largest = max(max(row) for row in matrix) or 1.0
    description = (
        f"A heat map of {len(labels)} true labels by {len(outputs)} outputs. The more opaque, the "
        "more likely the output is under the label; the largest probability is "
        f"{exactly(largest)}."
    )
    body = tuple(
        (named(label), *(exactly(p) for p in row[:_MOST_COLUMNS]))
        for label, row in zip(labels[:_MOST_TABLE_ROWS], matrix, strict=False)
    )
    cut = len(body) < len(labels) or len(outputs) > _MOST_COLUMNS
    remark = "The first labels and outputs; the result in JSON holds them all." if cut else ""
    table = Table(("Label", *map(named, outputs[:_MOST_COLUMNS])), body, remark)
    data = [
        {"x": x, "x2": x + 1, "y": y, "y2": y + 1, "p": cell / largest}
        for y, row in enumerate(matrix)
        for x, cell in enumerate(row)
    ]
    shade = {"scale": {"domain": [0, 1], "range": [0.02, 1]}, "legend": None}

    def build(width: int) -> Spec:
        letters, plot = (20, width - 90) if width == WIDE else (9, width - 70)
        tall = max(120, min(420, round(plot * len(labels) / max(len(outputs), 1))))
        down = [wrapped(label, letters) for label in distinct(map(named, labels))]
        tall = max(tall, _LINE * sum(map(len, down))) if len(labels) <= _MOST_COLUMNS else tall
        over = [
            wrapped(one, max(6, plot // (8 * len(outputs))))
            for one in distinct(map(named, outputs))
        ]
        place = {
            "x": _places("output", over, 46 / plot, [0, len(outputs)]),
            "x2": {"field": "x2"},
            "y": _places("true label", down, _LINE / tall, [len(labels), 0]),
            "y2": {"field": "y2"},
            "opacity": {"field": "p", "type": "quantitative"} | shade,
        }
        mark = {"type": "rect", "color": ACCENT, "strokeWidth": 0}
        return {"width": plot, "height": tall, **layer(data, mark, place)}

    return Figure.of(("channel", "The channel", description), build, table)


def _places(title: str, names: Sequence[Sequence[str]], share: float, domain: list[int]) -> Spec:
    """Return an axis of unit steps with names in the middle of some; each takes a share of it."""
    step = max(1, math.ceil(len(names) * share - 1e-9))
    # Names are looked up by position: labels of different types may read alike.
    words = f"{json.dumps(names)}[floor(datum.value)]"
    axis: Spec = {"values": [i + 0.5 for i in range(0, len(names), step)], "labelExpr": words}
    axis |= {"grid": False, "labelOverlap": False}
    scale = {"domain": domain, "nice": False, "zero": False}
    field = {"field": title[0].replace("o", "x").replace("t", "y"), "type": "quantitative"}
    return field | {"title": title, "scale": scale, "axis": axis}
