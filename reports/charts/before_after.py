"""Charts of labels before and after the noise: what columns explain of them, which became which."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Final

from ldpaudit.reports.charts.figure import (
    ACCENT,
    BEYOND,
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
    wrapped,
)
from ldpaudit.reports.charts.rows import Row, rows_chart
from ldpaudit.result import ColumnShare, ColumnShares, Confusion, ConfusionEntry
from ldpaudit.result.harmless import name as named
from ldpaudit.result.numbers import Direction, as_percent, number, percent, rows

MOST_COLUMNS: Final = 10
MOST_SIDE: Final = 6
"""Labels and outputs of a grid; larger tables are drawn as rows, the entries that differ most."""
_MOST_ENTRIES: Final = 12
_SHADES: Final = (0.85, 0.4)
"""How opaque the first group of labels is, and the second; a third is left blank."""
_WHOLE: Final = 0.1
"""From this share on, what a column explains is printed in whole percent: it is an estimate."""
_LEAST: Final = 5e-4
_ROOM: Final = 140
"""Pixels of a cell in which all of its words stand."""
_LEAST_ROOM: Final = 75
_HEAD: Final = 3
"""Lines of an output's name."""
_LINE: Final = 15
_TEXT: Final[Spec] = {"type": "text", "align": "left", "baseline": "middle"}


def columns_figure(
    shares: ColumnShares, place: str, title: str, chosen: Sequence[ColumnShare]
) -> Figure:
    """Return for some columns what they explain of true and of released labels."""
    body = tuple(
        (
            named(one.name),
            _percent(one.before),
            _percent(one.after),
            _by_bin(one.before_counts),
            _by_bin(one.after_counts),
        )
        for one in chosen
    )
    group = first_group(shares)
    heads = ("Column", "True labels", "Released labels")
    table = Table(
        (
            *heads,
            f"{group[:1].upper()}{group[1:]}, by bin: true labels",
            "The same: released labels",
        ),
        body,
        _left_out(shares, len(chosen)),
    )
    spoken = "; ".join(f"{row[0]}: {row[1]} before, {row[2]} after" for row in body[:MOST_COLUMNS])
    description = (
        "How much of the label each column explains: of true labels (a square) and of released "
        f"labels (a disc). {spoken}. In the small pictures bins of the column run from left to "
        f"right, as wide as they have rows; the lowest part of each is the share of rows {group}."
    )
    drawn = chosen[:MOST_COLUMNS]
    names = (f"{place}columns-explain", title, description)
    return Figure.of(names, partial(_columns, drawn), table)


def first_group(shares: ColumnShares) -> str:
    """Return what the lowest part of a small picture counts."""
    first = named(shares.groups[0])
    numbers = shares.groups[0] == "lowest third"
    return f"in the {first} of labels" if numbers else f"labelled {first}"


def _left_out(shares: ColumnShares, listed: int) -> str:
    sample = f"By estimate, from {rows(shares.rows)} rows."
    others = shares.columns - listed
    more = f" {rows(others)} other columns explain less of the true label." if others > 0 else ""
    return f"{sample}{more}"


def _by_bin(counts: Sequence[Sequence[int]]) -> str:
    return ", ".join(f"{100 * row[0] / max(sum(row), 1):.0f}" for row in counts) + " %"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= _WHOLE or share < _LEAST else f"{100 * share:.1f} %"


def _columns(chosen: Sequence[ColumnShare], width: int) -> Spec:
    """Return the chart: for each column a square, a disc, and two small pictures of bins."""
    wide = width == WIDE
    side, gap = (92, 12) if wide else (148, 12)
    plot = 300 if wide else width - 12
    left, right = (290, 2 * (side + gap)) if wide else (0, 0)
    labels = [wrapped(label, 24) for label in distinct(named(one.name) for one in chosen)]
    tall = [max(36, _LINE * len(label) + 8) + (0 if wide else 70) for label in labels]
    tops = list(accumulate(tall, initial=28 if wide else 34))
    largest = max([one.before for one in chosen] + [one.after for one in chosen])
    axis = Axis("share of the label that the column explains", 0.0, max(largest * 1.08, 0.01))
    percents = {"format": "%"} if axis.high >= 0.05 else {"format": ".1%"}
    x = _with_format(axis.on(), percents)
    scale = {"domain": [tops[-1], 0], "nice": False, "zero": False}
    y: Spec = {"field": "y", "type": "quantitative", "scale": scale, "axis": None}

    def at(pixels: float) -> float:
        return axis.high * pixels / plot

    lines: list[Spec] = []
    squares: list[Spec] = []
    discs: list[Spec] = []
    frames: list[Spec] = []
    texts: list[Spec] = []
    values: list[Spec] = []
    areas: list[list[Spec]] = [[] for _ in _SHADES]
    heads = [(0.0, 10.0, "□ true labels   ● released labels")]
    starts = (plot + gap, plot + 2 * gap + side) if wide else (0, side + gap)
    named_at = 10.0 if wide else tops[0] + tall[0] - 58.0  # Over the first two small pictures.
    heads += [(starts[0], named_at, "true"), (starts[1], named_at, "released")]
    for one, label, top, height in zip(chosen, labels, tops, tall, strict=False):
        middle = top + height / 2 if wide else top + _LINE * len(label) + 14
        value = f"{_percent(one.before)} → {_percent(one.after)}"
        squares.append({"x": one.before, "y": middle})
        discs.append({"x": one.after, "y": middle})
        lines.append({"x": one.before, "x2": one.after, "y": middle})
        begin = middle - _LINE * (len(label) - 1) / 2 if wide else top + 4
        texts += [
            {"x": at(-left), "y": begin + _LINE * i, "t": line} for i, line in enumerate(label)
        ]
        ends = {"x": at(-14), "y": middle} if wide else {"x": at(plot), "y": top + 4}
        values.append({**ends, "t": value})
        low, high = (top + height - 5, top + 5) if wide else (top + height - 16, top + height - 50)
        for start, counts in zip(starts, (one.before_counts, one.after_counts), strict=True):
            box = {"x": at(start), "x2": at(start + side), "y": low, "y2": high}
            frames.append(box)
            for drawn, points in zip(areas, _spines(counts, box), strict=True):
                drawn += [{**point, "k": f"{top}-{start}"} for point in points]
    base = {"x": x("x"), "y": y}
    frame: Spec = {"type": "rect", "color": PAPER, "stroke": "currentColor", "strokeOpacity": 0.35}
    if max(len(row) for one in chosen for row in one.before_counts) <= len(_SHADES):
        # What the first of two groups leaves is the second: it needs no line of its own.
        frame |= {"color": ACCENT, "fillOpacity": _SHADES[1]}
        areas = areas[:1]
    layers = [
        layer(frames, frame, base | _to("x2") | _to("y2")),
        layer(lines, {"type": "rule", "color": ACCENT, "strokeWidth": 1.6}, base | _to("x2")),
        layer(squares, _point("square", PAPER), base),
        layer(discs, _point("circle", ACCENT), base),
    ]
    for shade, points in zip(_SHADES, areas, strict=False):
        look = {"type": "area", "color": ACCENT, "opacity": shade}
        each = {"detail": {"field": "k", "type": "nominal"}}
        layers += [layer(points, look, base | _to("y2") | each)] if points else []
    words = {"text": {"field": "t"}}
    layers.append(layer(texts, _TEXT, base | words))
    layers.append(layer(values, _TEXT | {"align": "right"}, base | words))
    titles = [{"x": at(start), "y": high, "t": text} for start, high, text in heads]
    layers.append(layer(titles, _TEXT | {"fontSize": 12, "opacity": 0.8}, base | words))
    if wide:  # An invisible mark that keeps room for words and small pictures.
        room: Spec = {"x": {"value": -left}, "x2": {"value": plot + right}, "y": {"value": 0}}
        layers.append(layer([{}], {"type": "rule", "strokeOpacity": 0}, room))
    return {"width": plot, "height": tops[-1], "layer": layers}


def _with_format(encoding: Encoding, more: Spec) -> Encoding:
    def of(field: str) -> Spec:
        made = encoding(field)
        return made | {"axis": made["axis"] | more}

    return of


def _to(field: str) -> Spec:
    return {field: {"field": field}}


def _point(shape: str, fill: str) -> Spec:
    look = {"type": "point", "shape": shape, "size": 75, "opacity": 1, "strokeWidth": 1.8}
    return look | {"stroke": ACCENT, "fill": fill}


def _spines(counts: Sequence[Sequence[int]], box: Spec) -> list[list[Spec]]:
    """Return for the first two groups the upper and lower ends of their share, bin by bin."""
    total = sum(map(sum, counts))
    found: list[list[Spec]] = [[] for _ in _SHADES]
    start = box["x"]
    for row in counts:
        if not sum(row):
            continue
        end = start + (box["x2"] - box["x"]) * sum(row) / total
        step = (end - start) / 100  # Points of an area are ordered by x alone.
        below = 0.0
        for points, count in zip(found, row, strict=False):
            above = below + count / sum(row)
            ends = [box["y"] + (box["y2"] - box["y"]) * share for share in (above, below)]
            points += [{"x": x, "y": ends[0], "y2": ends[1]} for x in (start + step, end)]
            below = above
        start = end
    return found


def confusion_figure(confusion: Confusion, place: str) -> Figure:
    """Return true against released labels, each pair against the claimed channel."""
    entries = confusion.entries
    body = tuple(
        (
            named(one.true),
            named(one.released),
            f"{rows(one.count)} of {rows(one.n)}",
            _share(one),
            *_against(one),
        )
        for one in entries
    )
    heads: tuple[str, ...] = ("True label", "Released as", "Rows", "Share")
    claimed = entries[0].expected is not None
    heads += ("Claimed", "Difference, percentage points") if claimed else ("Interval",)
    left = confusion.pairs - len(entries)
    which = "differ less from the claim" if claimed else "are less frequent"
    remark = f"Intervals: {percent(confusion.level)} for all pairs together ({confusion.kind})."
    remark += f" {rows(left)} other pairs {which}." if left else ""
    table = Table(heads, body, remark)
    outside = [one for one in entries if _outside(one)]
    spoken = "; ".join(
        f"true label {named(one.true)} was released as {named(one.released)} in {_share(one)}"
        + (f" of its rows, claimed {_exact(one.expected)}" if one.expected is not None else "")
        for one in _first(entries)
    )
    verdict = f"{len(outside)} of {len(entries)} differ by more than chance allows. "
    description = f"{spoken[:1].upper()}{spoken[1:]}. {verdict if claimed else ''}{remark}"
    names = (f"{place}confusion", "True and released labels", description)
    if confusion.labels <= MOST_SIDE and confusion.outputs <= MOST_SIDE and not left:
        return Figure.of(names, partial(_grid, entries), table)
    return Figure.of(names, _as_rows(entries, claimed=claimed), table)


def _share(one: ConfusionEntry) -> str:
    return as_percent(number(one.share))


def _exact(share: float) -> str:
    return as_percent(number(share))


def _points(share: float, direction: Direction = "nearest") -> str:
    """Return a difference of shares in percentage points, with its sign."""
    exact = 1000 * share
    tenths = round(exact)
    if direction != "nearest":
        tenths = math.floor(exact) if direction == "down" else math.ceil(exact)
    sign = "−" if tenths < 0 else "+" if tenths > 0 else ""
    return f"{sign}{abs(tenths) / 10:.1f}"


def _against(one: ConfusionEntry) -> tuple[str, ...]:
    if one.expected is None:
        return (f"{as_percent(number(one.low, 'down'))} to {as_percent(number(one.high, 'up'))}",)
    return _exact(one.expected), _difference(one)


def _difference(one: ConfusionEntry) -> str:
    assert one.difference is not None
    assert one.difference_low is not None
    assert one.difference_high is not None
    return f"{_points(one.difference)} ({_ends(one.difference_low, one.difference_high)})"


def _ends(low: float, high: float) -> str:
    return f"{_points(low, 'down')} to {_points(high, 'up')}"


def _outside(one: ConfusionEntry) -> int:
    """Return whether an interval lies above (1) or below (-1) the claim."""
    if one.difference_low is None or one.difference_high is None:
        return 0
    return int(one.difference_low > 0) - int(one.difference_high < 0)


def _first(entries: Sequence[ConfusionEntry]) -> list[ConfusionEntry]:
    """Return the entries that differ most from the claim for their intervals, or are frequent."""

    def weight(one: ConfusionEntry) -> tuple[int, float]:
        if one.difference is None:
            return 0, one.count
        return abs(_outside(one)), abs(one.difference) / max(one.high - one.low, 1e-12)

    return sorted(entries, key=weight, reverse=True)[:_MOST_ENTRIES]


def _grid(entries: Sequence[ConfusionEntry], width: int) -> Spec:
    """Return a grid of true labels by outputs; the fuller a cell, the more frequent it is."""
    down = list(dict.fromkeys(one.true for one in entries))
    over = list(dict.fromkeys(one.released for one in entries))
    wide, claimed = width == WIDE, entries[0].expected is not None
    left = 130 if wide else 70
    plot = min(width - left - 12, 190 * len(over))
    cell = plot / len(over)
    lines = 1 if cell < _LEAST_ROOM else 3 if claimed else 2
    tall = 14 + _LINE * lines + (6 if wide else 0)
    size = 12 if cell >= _ROOM else 10 if wide else 9
    over_names = [wrapped(one, max(5, int(cell / 7))) for one in distinct(map(named, over))]
    top = 25 + _LINE * min(max(map(len, over_names)), _HEAD)
    base: Spec = {
        "x": {"field": "x", "type": "quantitative", "scale": _fixed(0, plot), "axis": None},
        "y": {
            "field": "y",
            "type": "quantitative",
            "scale": _fixed(top + tall * len(down), 0),
            "axis": None,
        },
    }
    cells: list[Spec] = []
    bold: list[Spec] = []
    quiet: list[Spec] = []
    for one in entries:
        x, y = cell * over.index(one.released), top + tall * down.index(one.true)
        mark, outside = {1: " ▲", -1: " ▼", 0: ""}[_outside(one)], bool(_outside(one))
        ends = {"x": x + 2, "x2": x + cell - 2, "y": y + 2, "y2": y + tall - 2}
        cells.append(
            ends | {"p": round(0.04 + 0.36 * one.share, 3), "edge": BEYOND if outside else ACCENT}
        )
        texts = _words(one, cell)
        start = y + tall / 2 - _LINE * (len(texts) - 1) / 2
        for place, text in enumerate(texts):
            text_at = {"x": x + cell / 2, "y": start + _LINE * place}
            (quiet if place else bold).append(text_at | {"t": text + ("" if place else mark)})
    names: list[Spec] = [{"x": -left, "y": 26, "t": "true label"}]
    for i, name in enumerate(distinct(map(named, down))):
        parts = wrapped(name, 15 if wide else 8)[:3]
        names += [
            {"x": -left, "y": top + tall * (i + 0.5) + _LINE * (j - (len(parts) - 1) / 2), "t": t}
            for j, t in enumerate(parts)
        ]
    heads: list[Spec] = [
        {"x": cell * (i + 0.5), "y": 26 + _LINE * j, "t": text}
        for i, parts in enumerate(over_names)
        for j, text in enumerate(parts[:_HEAD])
    ]
    heads.append({"x": plot / 2, "y": 8, "t": "released as"})
    middle = _TEXT | {"align": "center"}
    rect = {"type": "rect", "color": ACCENT, "strokeWidth": 1.6}
    edges: Spec = {"fillOpacity": {"field": "p", "type": "quantitative", "scale": None}}
    edges |= {"stroke": as_it_is("edge")}
    words: Spec = {"text": {"field": "t"}}
    layers = [
        layer(cells, rect, base | _to("x2") | _to("y2") | edges),
        layer(bold, middle | {"fontWeight": "bold"}, base | words),
        layer(quiet, middle | {"fontSize": size, "opacity": 0.85}, base | words),
        layer(heads, middle | {"fontSize": 12}, base | words),
        layer(names, _TEXT | {"fontSize": 12}, base | words),
    ]
    return {"width": plot, "height": top + tall * len(down), "layer": layers}


def _fixed(low: float, high: float) -> Spec:
    return {"domain": [low, high], "nice": False, "zero": False}


def _words(one: ConfusionEntry, cell: float) -> list[str]:
    """Return the lines of a cell, the share first; in a narrow one it stands alone, in percent."""
    room = cell >= _ROOM
    low, high = one.difference_low, one.difference_high
    if cell < _LEAST_ROOM:
        return [f"{100 * one.share:.0f}"]
    if one.expected is None or low is None or high is None:
        low_text, high_text = _points(one.low, "down"), _points(one.high, "up")
        return [_share(one), f"{low_text} to {high_text} %".replace("+", "")]
    claim = f"claimed {_exact(one.expected)}" if room else f"claim {_exact(one.expected)}"
    ends = _ends(low, high)
    return [_share(one), claim, f"{ends} points" if room else ends]


def _as_rows(entries: Sequence[ConfusionEntry], *, claimed: bool) -> partial[Spec]:
    """Return the entries that differ most as rows of a chart."""
    found, drawn = _first(entries), []
    for one in found:
        label = f"{named(one.true)} → {named(one.released)}"
        if one.difference is None or one.difference_low is None or one.difference_high is None:
            drawn.append(Row(label, _share(one), "", "interval", one.share, one.low, one.high))
            continue
        text = f"{_share(one)}, claimed {_exact(one.expected or 0.0)}"
        drawn.append(
            Row(
                label,
                text,
                f"{_difference(one)} points",
                "interval",
                100 * one.difference,
                100 * one.difference_low,
                100 * one.difference_high,
                BEYOND if _outside(one) else ACCENT,
            )
        )
    reached = [e for row in drawn for e in (row.value, row.low, row.high) if e is not None]
    title = "difference from the claim, percentage points" if claimed else "share of the rows"
    axis = Axis.around(title, [*reached, 0.0], 0.06)
    rules = [Rule(0.0, "as claimed", "")] if claimed else []
    return partial(rows_chart, drawn, rules, axis)
