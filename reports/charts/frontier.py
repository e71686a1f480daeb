"""The frontier of leakage against utility: a point with its intervals for each setting."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from ldpaudit.reports.charts.intervals import LINE_SAMPLES, Sample
from ldpaudit.reports.charts.measuring import width as width_of
from ldpaudit.reports.charts.specifications import (
    ACCENT,
    BEYOND,
    DASHES,
    PAPER,
    WIDE,
    Axis,
    Encoding,
    Rule,
    Spec,
    as_it_is,
    layer,
    on_axis,
    rule_mark,
)

Outcome = Literal["pass", "fail", "other"]

_SHAPES: Final = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_LETTERS: Final = 11
_LINE: Final = 15
_GAP: Final = 8
MOST_LINES: Final = len(_SHAPES)


@dataclass(frozen=True)
class Spot:
    """One setting: two numbers with their intervals, and the outcome of its audit.

    Attributes
    ----------
    x, y : float
    x_ends, y_ends : tuple of float
        The ends of the intervals, around x and y.
    label : str
        Printed next to it if there is room; may be empty.
    outcome : {"pass", "fail", "other"}
        Filled if every draw passed, otherwise hollow; in the second colour if one failed.
    """

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


def sample_of(place: int) -> Sample:
    """Return the sample of the line of the path at ``place``."""
    return LINE_SAMPLES[place]


def shape_of(place: int) -> str:
    """Return what the marks of the path at ``place`` are called."""
    return _SHAPES[place].replace("-", " ")


def frontier(
    paths: Sequence[Path],
    references: tuple[Rule | None, Rule | None],
    x: Axis,
    y: Axis,
    width: int,
) -> Spec:
    """Return a chart of paths through two numbers.

    Parameters
    ----------
    paths : sequence of Path
        At most :data:`MOST_LINES`.
    references : two Rules or None
        A vertical and a horizontal line to compare with.
    x, y : Axis
    width : int
    """
    x_of, y_of = on_axis(x), on_axis(y, vertical=True)
    plot, tall = width - 60, 330 if width == WIDE else 260
    layers = _references(references, x_of, y_of)
    for place, path in enumerate(paths):
        layers += _path(path, place, x_of, y_of)
    named = _named(paths, x, y, (plot, tall))
    text = {"type": "text", "dx": _GAP, "dy": -9, "align": "left", "fontSize": _LETTERS}
    text |= {"color": "currentColor", "stroke": PAPER, "strokeWidth": 5}
    at = {"x": x_of("x"), "y": y_of("y"), "text": {"field": "t"}}
    return {"width": plot, "height": tall, "layer": [*layers, layer(named, text, at)]}


def _named(paths: Sequence[Path], x: Axis, y: Axis, size: tuple[int, int]) -> list[Spec]:
    """Return the spots whose labels are written: ends of paths first, none over another."""
    ends = [spot for path in paths for spot in (path.spots[0], path.spots[-1])]
    between = [spot for path in paths for spot in path.spots[1:-1]]
    placed: list[tuple[float, float]] = []
    labels: list[Spec] = []
    for spot in [*ends, *between]:
        across, down = x.share(spot.x) * size[0], y.share(spot.y) * size[1]
        room = width_of(spot.label, _LETTERS) + _GAP
        free = all(abs(across - a) > room or abs(down - d) > _LINE for a, d in placed)
        if spot.label and free:
            placed.append((across, down))
            labels.append({"x": spot.x, "y": spot.y, "t": spot.label})
    return labels


def _path(path: Path, place: int, x: Encoding, y: Encoding) -> list[Spec]:
    # Without an order the line would run from left to right instead of by noise.
    data = [_datum(spot) | {"i": i} for i, spot in enumerate(path.spots)]
    order = {"field": "i", "type": "quantitative"}
    line = {"type": "line", "color": ACCENT, "strokeDash": DASHES[place], "strokeWidth": 1.6}
    rule = {"type": "rule", "strokeWidth": 1.4, "opacity": 0.55}
    point = {"type": "point", "shape": _SHAPES[place], "size": 75, "strokeWidth": 1.8, "opacity": 1}
    stroke = {"stroke": as_it_is("color")}
    at = {"x": x("x"), "y": y("y")}
    across = {"x": x("x0"), "x2": {"field": "x1"}, "y": y("y")}
    along = {"x": x("x"), "y": y("y0"), "y2": {"field": "y1"}}
    return [
        layer(data, line, at | {"order": order}),
        layer(data, rule, across | stroke),
        layer(data, rule, along | stroke),
        layer(data, point, at | stroke | {"fill": as_it_is("fill")}),
    ]


def _datum(spot: Spot) -> Spec:
    color = BEYOND if spot.outcome == "fail" else ACCENT
    return {
        "x": spot.x,
        "y": spot.y,
        "x0": spot.x_ends[0],
        "x1": spot.x_ends[1],
        "y0": spot.y_ends[0],
        "y1": spot.y_ends[1],
        "color": color,
        "fill": color if spot.outcome == "pass" else PAPER,
    }


def _references(
    references: tuple[Rule | None, Rule | None], x: Encoding, y: Encoding
) -> list[Spec]:
    return [
        layer([{name: rule.at}], rule_mark(rule) | {"opacity": 0.7}, {name: place(name)})
        for rule, name, place in zip(references, ("x", "y"), (x, y), strict=True)
        if rule is not None
    ]
