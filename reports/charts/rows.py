"""The chart of numbers in rows: a mark with its interval for each, against rules."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Final

from ldpaudit.reports.charts.figure import (
    ACCENT,
    BEYOND,
    DASHES,
    PAPER,
    WIDE,
    Axis,
    Encoding,
    Figure,
    Rule,
    Spec,
    Table,
    as_it_is,
    distinct,
    layer,
    rule_mark,
    wrapped,
)
from ldpaudit.reports.text.quantities import Mark, Quantity
from ldpaudit.result import AuditResult

MOST_MARKS: Final = 14
"""Rows of a chart; its table holds all."""
Group = tuple[str, Sequence[tuple[str, Quantity]]]
"""What is compared, and the numbers that are, by name."""
_SIDE: Final = 215
"""Pixels beside a wide chart: labels to the left, numbers to the right."""
_LINE: Final = 15
_LETTERS: Final = {True: 27, False: 40}
"""Letters of a line of a label in a wide chart, and in a narrow one."""
_SYMBOLS: Final[dict[Mark, str]] = {
    "exact": "diamond",
    "lower": "triangle-right",
    "upper": "triangle-left",
    "interval": "circle",
    "estimated": "circle",
}


@dataclass(frozen=True)
class Row:
    """A row of a chart: a number with its ends and its words, or the heading of a group."""

    label: str
    text: str = ""
    words: str = ""
    mark: Mark = "exact"
    value: float = math.nan
    low: float | None = None
    high: float | None = None
    color: str = ACCENT

    def stretch(self, axis: Axis) -> tuple[float, float]:
        """Return the ends of the line through the mark; a one-sided bound strikes out the rest."""
        if self.mark == "lower":
            return axis.low, self.value
        if self.mark == "upper":
            return self.value, axis.high
        low = self.value if self.low is None else self.low
        return low, self.value if self.high is None else self.high


def rows_chart(rows: Sequence[Row], rules: Sequence[Rule], axis: Axis, width: int) -> Spec:
    """Return a chart with a row for each number; a row is as tall as its words need."""
    # Wide: label, mark and number side by side. Narrow: label and number above the mark.
    wide = width == WIDE
    plot = width - 2 * _SIDE if wide else width - 12
    labels = [wrapped(row.label, _LETTERS[wide]) for row in rows]
    texts = [wrapped(row.text, 26 if wide else 40) for row in rows]
    words = [wrapped(row.words, 30) if row.words else [] for row in rows]
    beside = [
        len(label) == 1 and len(r.label) + len(r.text) < 40
        for r, label in zip(rows, labels, strict=False)
    ]
    if wide:
        tall = [max(len(a), len(b) + len(c)) for a, b, c in zip(labels, texts, words, strict=False)]
    else:
        tall = [
            len(a) + (0 if one else len(b))
            for a, b, one in zip(labels, texts, beside, strict=False)
        ]
    below = 12 if wide else 28
    tops = list(accumulate((_LINE * lines + below for lines in tall), initial=0))
    scale = {"domain": [tops[-1], 0], "nice": False, "zero": False}
    x, y = axis.on(), {"field": "y", "type": "quantitative", "scale": scale, "axis": None}
    data: list[Spec] = []
    for row, top, lines in zip(rows, tops, tall, strict=False):
        low, high = row.stretch(axis)
        height = _LINE * lines + below
        fill = PAPER if row.mark == "estimated" else row.color
        look = {"color": row.color, "fill": fill, "shape": _SYMBOLS[row.mark]}
        ends = {"x": row.value, "low": max(low, axis.low), "high": min(high, axis.high)}
        data.append(look | ends | {"y": top + height / 2 if wide else top + height - 18})
    layers = [
        *_tint(rules, x, axis, tops[-1]),
        *_rules(rules, axis, x, (plot + (_SIDE if wide else 0), tops[-1])),
    ]
    layers += _marks(rows, data, x, y)
    for row, top, lines, label, text, word, one in zip(
        rows, tops, tall, labels, texts, words, beside, strict=False
    ):
        middle = top + (_LINE * lines + below) / 2
        first = middle - _LINE * len(label) / 2 if wide else top + 2
        bold = {"fontWeight": "normal" if row.text else "bold"}
        layers.append(_text(label, -_SIDE if wide else 0, first, y, bold))
        if row.text and wide:
            first = middle - _LINE * (len(text) + len(word)) / 2
            layers.append(_text(text, plot + 20, first, y, {"fontWeight": "bold"}))
            quiet = {"fontSize": 11, "opacity": 0.8}
            layers.append(_text(word, plot + 20, first + _LINE * len(text), y, quiet))
        elif row.text:
            bold = {"fontWeight": "bold", "align": "right" if one else "left"}
            at = (plot, top + 2) if one else (0, top + 2 + _LINE * len(label))
            layers.append(_text(text, *at, y, bold))
    if wide:  # An invisible mark that keeps room for the columns of words.
        room: Spec = {"x": {"value": -_SIDE}, "x2": {"value": plot + _SIDE}, "y": {"value": 0}}
        layers.append(layer([{}], {"type": "rule", "strokeOpacity": 0}, room))
    return {"width": plot, "height": tops[-1], "layer": layers}


def _text(lines: Sequence[str], at: float, top: float, y: Spec, look: Spec) -> Spec:
    """Return words in lines, from ``at`` pixels from the left, the first with its top there."""
    mark = {"type": "text", "align": "left", "baseline": "top", "lineHeight": _LINE} | look
    mark |= {"stroke": PAPER, "strokeWidth": 4}
    return layer(
        [{"t": lines, "y": top}], mark, {"x": {"value": at}, "y": y, "text": {"field": "t"}}
    )


def _marks(rows: Sequence[Row], data: Sequence[Spec], x: Encoding, y: Spec) -> list[Spec]:
    """Return the marks of all rows: the line through each, its ends, and its symbol."""
    pairs = [(r, datum) for r, datum in zip(rows, data, strict=False) if math.isfinite(r.value)]
    guessed = [datum for row, datum in pairs if row.mark == "estimated"]
    sure = [datum for row, datum in pairs if row.mark != "estimated"]
    capped = [d | {"x": d[end]} for d in (*sure, *guessed) for end in ("low", "high")]
    capped = [datum for datum in capped if datum["shape"] == "circle"]
    color, ends = as_it_is("color"), {"x": x("low"), "x2": {"field": "high"}, "y": y}
    solid = {"type": "rule", "strokeWidth": 2.2, "opacity": 0.7}
    dotted = {"type": "rule", "strokeWidth": 1.6, "strokeDash": DASHES[2]}
    tick = {"type": "tick", "orient": "vertical", "size": 10, "thickness": 1.6}
    mark = {"type": "point", "size": 75, "opacity": 1, "strokeWidth": 1.8}
    look = {"shape": as_it_is("shape"), "fill": as_it_is("fill"), "stroke": color}
    layers = [
        layer(sure, solid, ends | {"stroke": color}),
        layer(guessed, dotted, ends | {"stroke": color}),
        layer(capped, tick, {"x": x("x"), "y": y, "color": color}),
        layer((*sure, *guessed), mark, {"x": x("x"), "y": y, **look}),
    ]
    return [each for each in layers if each["data"]["values"]]


def _rules(rules: Sequence[Rule], axis: Axis, x: Encoding, size: tuple[float, float]) -> list[Spec]:
    """Return vertical rules, each label on a line of its own above the rows."""
    (room, height), lines, labels, above = size, [], [], -6
    for rule in sorted(rules, key=lambda r: abs(axis.share(r.at) - 0.5)):
        top = above - 10 if rule.label else -16
        ends = {"x": x("x"), "y": {"value": top}, "y2": {"value": height}}
        lines.append(layer([{"x": rule.at}], rule_mark(rule), ends))
        if rule.label:
            right = axis.share(rule.at) > 0.5
            look = {"align": "right", "dx": -5} if right else {"align": "left", "dx": 5}
            look |= {"type": "text", "fontSize": 12, "stroke": PAPER, "strokeWidth": 4}
            share = max(axis.share(rule.at), 1 - axis.share(rule.at))
            text = wrapped(rule.label, round(room * share / 8))
            above -= _LINE * (len(text) - 1)
            look |= {"lineHeight": _LINE}
            place = {"x": x("x"), "y": {"value": above}, "text": {"field": "t"}}
            labels.append(layer([{"x": rule.at, "t": text}], look, place))
            above -= _LINE + 1
    return lines + labels


def _tint(rules: Sequence[Rule], x: Encoding, axis: Axis, height: float) -> list[Spec]:
    data = [{"x": rule.at, "x2": axis.high} for rule in rules if rule.forbidden_beyond]
    place = {"x": x("x"), "x2": {"field": "x2"}, "y": {"value": 0}, "y2": {"value": height}}
    return [layer(data, {"type": "rect", "color": BEYOND, "opacity": 0.1}, place)] if data else []


def row_of(label: str, quantity: Quantity) -> Row:
    """Return the row of a number."""
    text = " · ".join(filter(None, (quantity.text, quantity.interval)))
    e = quantity.estimate
    return Row(label, text, quantity.words, quantity.mark, e.value, e.low, e.high)


def listed(quantities: Sequence[Quantity]) -> str:
    """Return numbers in words, for a description."""
    return "; ".join(f"{q.name}: {q.text} ({q.words})" for q in quantities[:MOST_MARKS]) + "."


def group_figure(
    titles: tuple[str, str, str],
    groups: Sequence[Group],
    table: Table,
    rules: Sequence[Rule] = (),
) -> Figure:
    """Return numbers with their intervals, each in a row of its own, in groups.

    ``titles`` are the key, the title, and what the axis shows. As many groups are drawn as there
    is room for; a name of "" gives a group no heading. Rules outside the axis are left out.
    """
    key, title, axis_title = titles
    rows: list[Row] = []
    spoken: list[str] = []
    numbers: list[Quantity] = []
    for heading, members in groups:
        if numbers and len(numbers) + len(members) > MOST_MARKS:
            break
        rows += [Row(heading)] if heading else []
        labels = distinct(name for name, _ in members[:MOST_MARKS])
        rows += [row_of(label, q) for label, (_, q) in zip(labels, members, strict=False)]
        numbers += [q for _, q in members[:MOST_MARKS]]
        named = ((": ".join(filter(None, (heading, name))), q) for name, q in members)
        spoken += [f"{name}: {q.text} ({q.words})" for name, q in named]
    axis = _axis(axis_title, numbers, rules)
    inside = [rule for rule in rules if axis.low <= rule.at <= axis.high]
    names = (key, title, f"{'; '.join(spoken[:MOST_MARKS])}.")
    return Figure.of(names, partial(rows_chart, rows, inside, axis), table, rules=inside)


def _axis(title: str, numbers: Sequence[Quantity], rules: Sequence[Rule]) -> Axis:
    ends = [end for q in numbers for end in q.ends]
    ends = [end for end in (*ends, *(rule.at for rule in rules)) if math.isfinite(end)]
    if numbers[0].estimate.unit != "proportion":
        return Axis.around(title, ends)
    low, high = math.floor((min(ends) - 0.01) * 20), math.ceil((max(ends) + 0.01) * 20)
    return Axis(title, max(low / 20, 0.0), min(high / 20, 1.0))


def epsilon_figure(
    quantities: Sequence[Quantity], result: AuditResult, claim: str, place: str = ""
) -> Figure:
    """Return claimed against measured ε, every method on one axis."""
    claimed = result.mechanism.epsilon
    limits = [claimed] if claimed is not None and math.isfinite(claimed) else []
    drawn = [q for q in quantities if math.isfinite(q.estimate.value)][:MOST_MARKS]
    ends = [end for q in drawn for end in q.ends[1 if q.estimate.low is not None else 0 :]]
    largest = max([*filter(math.isfinite, ends), *limits, 0.1])
    rules = [Rule(limit, f"claimed ε = {claim}", "", 0, True) for limit in limits]
    refuted = any(c.id == "claimed-epsilon" and c.verdict == "fail" for c in result.checks)
    labels = distinct(q.name for q in drawn)
    rows = [_epsilon_row(*pair, claimed, refuted) for pair in zip(labels, drawn, strict=True)]
    description = (
        f"{f'The claim is ε = {claim} nats.' if claim else 'Nothing was claimed.'} "
        f"{listed(quantities)} A mark to the right of the claim refutes it where the check at the "
        "corrected level says so; one to the left proves nothing."
    )
    names = (f"{place}epsilon", "Measured ε against the claim", description)
    table = Table(("Method", "ε (nats)"), tuple((q.name, q) for q in quantities))
    return Figure.of(
        names, partial(rows_chart, rows, rules, Axis("ε (nats)", 0.0, largest * 1.12)), table
    )


def _epsilon_row(label: str, quantity: Quantity, claimed: float | None, refuted: bool) -> Row:
    """Return a row; a bound counts as beyond the claim only if the corrected check failed."""
    above = claimed is not None and quantity.estimate.value > claimed
    beyond = above and quantity.mark == "lower" and refuted
    remark = " · above the claim" if beyond else " · above, uncorrected" if above else ""
    if above and quantity.mark != "lower":
        remark = " · above, not certified"
    row = row_of(label, quantity)
    return replace(
        row,
        text=f"{quantity.text}{remark}",
        # "≥" says that it is a lower bound; all of the words are in the table.
        words=quantity.words.replace(", lower bound, uncorr", ", uncorr"),
        value=max(row.value, 0.0),
        color=BEYOND if beyond else ACCENT,
    )
