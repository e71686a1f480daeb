"""Charts of intervals: claimed against measured ε, and attacks against their references."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Final, Literal, get_args

from ldpaudit.reports.charts import specifications as charts
from ldpaudit.reports.charts.interval_rows import intervals
from ldpaudit.reports.charts.measuring import distinct
from ldpaudit.reports.charts.row_words import Row
from ldpaudit.reports.charts.svg import Drawing
from ldpaudit.reports.text.harmless import NAME, shown
from ldpaudit.reports.text.quantities import Quantity

_SHORT: Final = {
    "prior": "majority",
    "features-only": "features",
    "ceiling": "ceiling",
    "ceiling-estimate": "ceiling",
    "optimum": "optimum",
}
MOST_MARKS: Final = 14
"""Rows of a chart; its table holds all."""

_MANY_ALIKE: Final = 12

Cell = str | Quantity
Group = tuple[str, Sequence[tuple[str, Quantity]]]
"""What is compared, and the numbers that are, by name."""
Sample = Literal[
    "line-0",
    "line-1",
    "line-2",
    "line-3",
    "line-4",
    "line-5",
    "rule-0",
    "rule-1",
    "rule-2",
    "rule-3",
]
"""A piece of a line as it is drawn: coloured for a curve, in the page's colour for a rule."""

LINE_SAMPLES: Final[tuple[Sample, ...]] = get_args(Sample)[:6]
"""By dash, what a curve's line looks like."""
_RULE_SAMPLES: Final[tuple[Sample, ...]] = get_args(Sample)[6:]


@dataclass(frozen=True)
class Table:
    """A table; ``remark`` says what it leaves out."""

    headers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    remark: str = ""

    @property
    def usual(self) -> str:
        """The most frequent kind, level and side, to print once under a long table; or empty."""
        words = Counter(c.words for row in self.rows for c in row if isinstance(c, Quantity))
        usual, times = words.most_common(1)[0] if words else ("", 0)
        return usual if times >= _MANY_ALIKE else ""

    @property
    def usual_mark(self) -> str:
        """The mark of the usual numbers."""
        cells = (c for row in self.rows for c in row if isinstance(c, Quantity))
        return next(c.mark for c in cells if c.words == self.usual)


@dataclass(frozen=True)
class Figure:
    """A chart, and its description and data for readers who cannot see it."""

    key: str
    title: str
    description: str
    drawing: Drawing
    table: Table
    legend: tuple[tuple[Sample, str], ...] = ()

    @classmethod
    def of(
        cls,
        names: tuple[str, str, str],
        build: Callable[[int], charts.Spec],
        table: Table,
        lines: Sequence[charts.Line] = (),
        rules: Sequence[charts.Rule] = (),
    ) -> "Figure":
        """Return a figure, drawn in both widths, with a legend of its lines and rules.

        Parameters
        ----------
        names : three str
            Key (unique on the page), title and description.
        build : function from a width in pixels to the chart
        table : Table
        lines, rules : sequences of Line and of Rule
        """
        key, title, description = names
        legend = [(LINE_SAMPLES[line.dash], line.label) for line in lines]
        legend += [(rule_sample(rule), rule.legend) for rule in rules]
        drawing = charts.draw(build, title, description, key)
        return cls(key, title, description, drawing, table, tuple(legend))


def rule_sample(rule: charts.Rule) -> Sample:
    """Return the sample of a rule."""
    return _RULE_SAMPLES[rule.dash]


def listed(quantities: Sequence[Quantity]) -> str:
    """Return numbers in words, for a description."""
    return "; ".join(f"{q.name}: {q.text} ({q.words})" for q in quantities[:MOST_MARKS]) + "."


def attack_figure(attacks: Sequence[Quantity], references: Sequence[Quantity]) -> Figure:
    """Return accuracies, each with its interval, against the references as rules."""
    drawn = attacks[:MOST_MARKS]
    numbers = [end for q in drawn for end in q.ends]
    numbers += [q.estimate.value for q in references]
    low = math.floor((min(numbers) - 0.02) * 20) / 20
    high = math.ceil((max(numbers) + 0.02) * 20) / 20
    axis = charts.Axis("accuracy", max(low, 0.0), min(high, 1.0))
    dashes: tuple[charts.Dash, ...] = (1, 2, 3, 0)
    rules = [
        charts.Rule(q.estimate.value, _SHORT[_subject(q)], f"{_row_name(q)}: {q.text}", dash)
        for q, dash in zip(references, dashes, strict=False)
    ]
    description = f"References: {listed(references)} Attacks: {listed(drawn)}"
    labels = distinct(_row_name(attack) for attack in drawn)
    rows = [_row(label, attack) for label, attack in zip(labels, drawn, strict=True)]
    cells = tuple((_row_name(q), q) for q in (*attacks, *references))
    table = Table(("Attack or reference", "Accuracy"), cells)
    names = ("attacks", "Accuracy of each attack, with its interval", description)
    return Figure.of(names, partial(intervals, rows, rules, axis), table, rules=rules)


def _subject(quantity: Quantity) -> str:
    score = quantity.estimate.score
    return "" if score is None else score.subject


def _row_name(quantity: Quantity) -> str:
    score = quantity.estimate.score
    return quantity.name if score is None else shown(score.row, NAME)


def interval_figure(
    key: str,
    title: str,
    axis_title: str,
    named: Sequence[tuple[str, Quantity]],
    table: Table,
    rules: Sequence[charts.Rule] = (),
) -> Figure:
    """Return numbers with their intervals, each in a row of its own, named.

    The other parameters are those of :func:`group_figure`.
    """
    return group_figure((key, title, axis_title), [("", named)], table, rules)


def group_figure(
    titles: tuple[str, str, str],
    groups: Sequence[Group],
    table: Table,
    rules: Sequence[charts.Rule] = (),
) -> Figure:
    """Return numbers with their intervals, each in a row of its own, in groups.

    Parameters
    ----------
    titles : three str
        The key, unique on the page, the title, and what the axis shows.
    groups : sequence of Group
        As many as there is room for; a name of "" gives a group no heading.
    table : Table
        What the chart shows, and what it has no room for.
    rules : sequence of Rule
        Vertical lines to compare with; those outside the axis are left out.
    """
    key, title, axis_title = titles
    drawn = _with_room(groups)
    rows = [row for group in drawn for row in _group_rows(*group)]
    axis = _axis(axis_title, [q for _, members in drawn for _, q in members], rules)
    inside = [rule for rule in rules if axis.low <= rule.at <= axis.high]
    description = "; ".join(
        f"{': '.join(filter(None, (heading, name)))}: {q.text} ({q.words})"
        for heading, members in drawn
        for name, q in members
    )
    names = (key, title, f"{description}.")
    return Figure.of(names, partial(intervals, rows, inside, axis), table, rules=inside)


def _with_room(groups: Sequence[Group]) -> list[Group]:
    """Return the first groups that a chart has room for, at least one."""
    marks = list(accumulate(len(members) for _, members in groups))
    drawn = list(groups[: max(1, bisect_right(marks, MOST_MARKS))])
    return [(name, members[:MOST_MARKS]) for name, members in drawn]


def _group_rows(heading: str, members: Sequence[tuple[str, Quantity]]) -> list[Row]:
    labels = distinct(name for name, _ in members)
    return [
        _row(label, quantity, heading="" if place else heading)
        for place, (label, (_, quantity)) in enumerate(zip(labels, members, strict=True))
    ]


def _axis(title: str, quantities: Sequence[Quantity], rules: Sequence[charts.Rule]) -> charts.Axis:
    ends = [end for q in quantities for end in q.ends]
    ends = [end for end in (*ends, *(rule.at for rule in rules)) if math.isfinite(end)]
    if quantities[0].estimate.unit == "proportion":
        low = math.floor((min(ends) - 0.01) * 20) / 20
        high = math.ceil((max(ends) + 0.01) * 20) / 20
        return charts.Axis(title, max(low, 0.0), min(high, 1.0))
    return charts.Axis.around(title, ends)


def _row(name: str, quantity: Quantity, heading: str = "") -> Row:
    estimate = quantity.estimate
    return Row(
        label=name,
        text=" · ".join(part for part in (quantity.text, quantity.interval) if part),
        words=quantity.words,
        mark=quantity.mark,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        heading=heading,
    )
