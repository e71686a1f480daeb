"""What charts share: tables, figures, axes, lines and rules, in the words of Vega-Lite."""

# Colours mean nothing by themselves: each kind of number has its own shape or dash, and every chart
# is read with its table. The two colours are of middle lightness, so that both stand out on white
# and on near-black, and differ for colour-blind eyes; all else is the page's own colour.

import json
import math
import textwrap
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Literal, TypeAlias, TypeVar

from markupsafe import Markup

from ldpaudit.reports.charts.svg import Drawing, inline_svg
from ldpaudit.reports.text.quantities import Quantity
from ldpaudit.result.numbers import number

Spec: TypeAlias = dict[str, Any]
"""A Vega-Lite specification or a part of one, as JSON."""
Encoding: TypeAlias = Callable[[str], Spec]
"""From the name of a field to its place on an axis."""
Cell = str | Quantity
Dash = Literal[0, 1, 2, 3, 4, 5]
T = TypeVar("T")

WIDE: Final = 820
NARROW: Final = 320
ACCENT: Final = "#3a7fc4"
BEYOND: Final = "#d0662f"
PAPER: Final = "Canvas"
"""A system colour, so that hollow marks stay hollow without a style sheet."""
DASHES: Final[tuple[tuple[int, ...], ...]] = (
    *((1, 0), (6, 4), (2, 3), (10, 4, 2, 4), (14, 3), (1, 6)),
)
FAR_APART: Final = 100.0
"""Numbers whose ratio reaches this are drawn on a logarithmic axis."""
_DECADES: Final = 1000.0
"""From this ratio of its ends on, a logarithmic axis counts in powers of ten, else of two."""
_MANY_ALIKE: Final = 12
_TITLE: Final = 44
"""Letters of a line of an axis title."""
_QUIET: Final = {"Color": "currentColor", "FontSize": 12, "Opacity": 0.8}
_AXIS: Final = {f"{part}{look}": v for part in ("label", "title") for look, v in _QUIET.items()}
_CONFIG: Final[Spec] = {
    "background": "transparent",
    "font": "sans-serif",
    "padding": 6,
    "view": {"stroke": None},
    "text": {"color": "currentColor", "fontSize": 13, "limit": 0},
    "axis": _AXIS
    | {"titleFontWeight": "normal", "gridColor": "currentColor", "gridOpacity": 0.1}
    | {"domain": False, "ticks": False, "labelPadding": 6, "titlePadding": 8, "labelLimit": 0},
}


@dataclass(frozen=True)
class Table:
    """A table; ``remark`` says what it leaves out."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    remark: str = ""

    @property
    def usual(self) -> Quantity | None:
        """A number of the most frequent kind, to say once under a long table what all are."""
        cells = [c for row in self.rows for c in row if isinstance(c, Quantity)]
        words, times = next(iter(Counter(c.words for c in cells).most_common(1)), ("", 0))
        many = times >= _MANY_ALIKE
        return next((c for c in cells if many and c.words == words), None)


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
    whole: bool = False  # Between whole numbers there is nothing: no tick stands there.

    @classmethod
    def around(cls, title: str, values: Iterable[float], pad: float = 0.1) -> "Axis":
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

    def on(self, *, vertical: bool = False) -> Encoding:
        """Return the encoding of fields on this axis."""
        scale: Spec = {"domain": [self.low, self.high], "nice": False, "zero": False}
        ticks: Spec = {"tickCount": 5, "labelFlush": False, "labelOverlap": True}
        ticks["labelSeparation"] = 6
        if self.whole:
            ticks["tickMinStep"] = 1
        if vertical:
            ticks |= {"titleAngle": 0, "titleAlign": "left", "titleAnchor": "end"}
            ticks |= {"titleX": 0, "titleY": -10, "titleBaseline": "bottom"}
        if self.logarithmic:
            scale["type"] = "log"
            powers = _powers(self.low, self.high)
            texts = json.dumps([number(power) for power in powers])
            ticks |= {"values": powers, "labelExpr": f"{texts}[indexof({powers}, datum.value)]"}
        place = {"type": "quantitative", "title": wrapped(self.title, _TITLE)}
        return lambda field: {"field": field, **place, "scale": scale, "axis": ticks}


@dataclass(frozen=True)
class Figure:
    """A chart, and its description and data for readers who cannot see it."""

    key: str
    title: str
    description: str
    build: Callable[[int], Spec]
    """Its Vega-Lite specification, by its width."""
    table: Table
    legend: tuple[tuple[str, str], ...] = ()
    """Samples, such as ``"line-1"`` for a curve's dash and ``"rule-2"`` for a rule's, in words."""
    small: bool = False
    """Whether it is shown in the narrow width alone."""

    @classmethod
    def of(
        cls,
        names: tuple[str, str, str],
        build: Callable[[int], Spec],
        table: Table,
        lines: Sequence[Line] = (),
        rules: Sequence[Rule] = (),
    ) -> "Figure":
        """Return a figure with a legend of its lines and rules.

        ``names`` are its key, unique on the page, its title and its description.
        """
        legend = [(f"line-{line.dash}", line.label) for line in lines]
        legend += [(f"rule-{rule.dash}", rule.legend) for rule in rules if rule.legend]
        return cls(*names, build, table, tuple(legend))

    def specification(self, width: int) -> Spec:
        """Return the chart in the words of Vega-Lite."""
        return self.build(width) | {"config": _CONFIG}

    @cached_property
    def drawing(self) -> Drawing:
        """The chart in both widths, or in the narrow one alone."""
        wide, narrow = f"{self.key}-w", f"{self.key}-n"
        small = partial(inline_svg, self.specification(NARROW), self.title, "", narrow, twin=wide)
        if self.small:
            return Drawing(Markup(), small(hidden=False))
        words = self.title, self.description
        return Drawing(inline_svg(self.specification(WIDE), *words, wide), small())


def drawn(figures: Iterable[Figure | None]) -> tuple[Figure, ...]:
    """Return the figures that could be drawn."""
    return tuple(figure for figure in figures if figure is not None)


def far_apart(values: Sequence[float]) -> bool:
    """Return whether some of these numbers could not be told apart on a linear axis."""
    return min(values) > 0 and max(values) / min(values) >= FAR_APART


def layer(data: Iterable[Spec], mark: str | Spec, encoding: Spec) -> Spec:
    """Return a layer that holds its own data."""
    mark = {"type": mark} if isinstance(mark, str) else mark
    return {"data": {"values": list(data)}, "mark": mark, "encoding": encoding}


def as_it_is(field: str) -> Spec:
    """Return the encoding of a field that holds the colour or the shape itself."""
    return {"field": field, "type": "nominal", "scale": None}


def rule_mark(rule: Rule) -> Spec:
    """Return the look of a rule."""
    style = {"strokeWidth": 1.6, "strokeDash": DASHES[rule.dash], "opacity": 0.7}
    return {"type": "rule", "color": "currentColor", **style}


def wrapped(text: str, letters: int) -> list[str]:
    """Return a text in lines of at most so many letters, at least one; wide letters count more."""
    wide = sum(letter in "mwMW@" or unicodedata.east_asian_width(letter) in "WF" for letter in text)
    room = letters * len(text) / (len(text) + 1.2 * wide or 1)
    return textwrap.wrap(text, max(8, round(room))) or [""]


def distinct(labels: Iterable[str]) -> list[str]:
    """Return the labels, those that read alike numbered: no two rows are called the same."""
    taken: dict[str, None] = {}
    for label in labels:
        shown, count = label, 1
        while shown in taken:
            count += 1
            shown = f"{label} ({count})"
        taken[shown] = None
    return list(taken)


def thinned(values: Sequence[T], most: int) -> tuple[T, ...]:
    """Return at most so many of the values, evenly spread, the last among them."""
    if len(values) <= most:
        return tuple(values)
    step = math.ceil((len(values) - 1) / (most - 1))
    return (*values[:-1:step], values[-1])


def _powers(low: float, high: float) -> list[float]:
    """Return the powers of ten on an axis, of two on a short one; at most about ten of them."""
    base = 10.0 if high / low >= _DECADES else 2.0
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    return [base**power for power in range(first, last + 1, 1 + (last - first) // 10)]
