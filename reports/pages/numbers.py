"""The numbers of one section of a result, and tables of scores."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from ldpaudit.reports.charts.curves import curve_figure
from ldpaudit.reports.charts.figure import Cell, Figure, Rule, Table
from ldpaudit.reports.pages.page import Section
from ldpaudit.reports.text.quantities import Printer, Quantity, is_epsilon
from ldpaudit.result import AuditResult, Curve, Estimate, Histogram, Score
from ldpaudit.result.harmless import shown

REFERENCES: Final = ("prior", "features-only", "ceiling-estimate", "ceiling", "optimum")
"""What attacks are compared with; stored results may have an accuracy of ``ceiling``."""


MEANINGS: Final = {
    "prior": "the most frequent class for everyone, without any data about the person",
    "features-only": "what the features alone reveal to someone who knows true labels of other "
    "people but has no release; any gain beyond it comes from the release",
    "oracle": "an attacker who learns features and channel from true labels of other people: about "
    "the most that can be learnt from this many rows",
    "optimum": "what the best attack would reach on a release made as claimed, by the model of how "
    "labels depend on features",
    "ceiling-estimate": "what no attack can exceed if the claim holds and the model is right",
    "ceiling": "what no attack can exceed if the claim holds, by the same model",
}


_MOST_BOUNDS: Final = 6
_FIRST_BOUNDS: Final = (
    "mechanism.epsilon_lower",
    "mechanism.subgroup_epsilon_lower",
    "release_only.epsilon_lower",
    "mechanism.epsilon_observed",
)
_CURVES: Final = {
    "instance_loss.exceedance": "instance_loss.mean",
    "instance_loss.exceedance_learned": "instance_loss.mean_learned",
}
Scores = Mapping[str, Quantity]


@dataclass(frozen=True)
class Numbers:
    """The numbers of one section of a result; ``place`` begins the ids of its figures."""

    name: str
    result: AuditResult
    printer: Printer
    place: str = ""

    @cached_property
    def estimates(self) -> tuple[Estimate, ...]:
        """Its estimates, in the order of the result."""
        return tuple(e for e in self.result.estimates if e.section == self.name)

    @cached_property
    def curves(self) -> tuple[Curve, ...]:
        """Its curves."""
        return tuple(c for c in self.result.curves if c.section == self.name)

    @cached_property
    def histograms(self) -> tuple[Histogram, ...]:
        """Its histograms."""
        return tuple(h for h in self.result.histograms if h.section == self.name)

    @cached_property
    def scores(self) -> tuple[Quantity, ...]:
        """Its estimates that are scores of a table."""
        return self.printer.quantities(e for e in self.estimates if e.score is not None)

    @cached_property
    def plain(self) -> tuple[Quantity, ...]:
        """Its other estimates."""
        return self.printer.quantities(e for e in self.estimates if e.score is None)

    def found(self, ids: Iterable[str]) -> tuple[Quantity, ...]:
        """Return the numbers of some ids that the result has."""
        return self.printer.quantities(filter(None, map(self.result.estimate, ids)))

    def curve(
        self, curves: Sequence[Curve], title: str = "", **more: Sequence[Rule]
    ) -> Figure | None:
        """Return the picture of some curves."""
        text = title or shown(curves[0].title)
        return curve_figure(curves, self.printer, text, self.place, **more)

    def section(self, key: str, title: str, **fields: object) -> Section:
        """Return a section of the page with a key of its own."""
        return Section(f"{self.place}{key}", title, **fields)  # type: ignore[arg-type]


def first_bounds(numbers: Numbers) -> tuple[Quantity, ...]:
    """Return the bound that decides, and the strongest of each kind."""
    measured = [q for q in bounds_of(numbers) if math.isfinite(q.estimate.value)]
    by_id, decisive = {quantity.id: quantity for quantity in measured}, numbers.printer.decisive
    chosen = {} if decisive is None else {decisive.id: decisive}
    chosen |= {name: by_id[name] for name in _FIRST_BOUNDS if name in by_id}
    for quantity in measured:  # and the first of every further audit
        if all(quantity.estimate.section != one.estimate.section for one in chosen.values()):
            chosen[quantity.id] = quantity
    return tuple(chosen.values())[:_MOST_BOUNDS]


def bounds_of(numbers: Numbers) -> tuple[Quantity, ...]:
    """Return every ε that was measured, in any section; the one that decides first."""
    every = (e for e in numbers.result.estimates if is_epsilon(e) and e.kind != "exact")
    quantities, decisive = numbers.printer.quantities(every), numbers.printer.decisive
    if not quantities or decisive is None or decisive in quantities:
        return quantities
    return (decisive, *quantities)


def main_curve(numbers: Numbers) -> Curve | None:
    """Return J(τ): of its estimates the one with the larger mean, as each tends to be too low."""
    result = numbers.result
    found = [(result.estimate(m), result.curve(c)) for c, m in _CURVES.items()]
    curves = [(mean.value if mean else 0.0, curve) for mean, curve in found if curve]
    return max(curves, key=lambda pair: pair[0])[1] if curves else None


def score_table(
    quantities: Iterable[Quantity], first: str, rank: Callable[[str], int] | None = None
) -> Table:
    """Return scores as a table, its columns in the order of the row that has most of them.

    ``first`` is the header of the names; without a ``rank`` of a subject rows stand in the order
    of the result.
    """
    found: dict[tuple[str, str], dict[str, Quantity]] = {}
    for quantity in quantities:
        score = score_of(quantity)
        found.setdefault((score.subject, score.group), {})[score.measure] = quantity
    columns = {
        score_of(q).measure: score_of(q).column for row in found.values() for q in row.values()
    }
    measures = list(dict.fromkeys((*max(found.values(), key=len, default={}), *columns)))
    body: list[tuple[Cell, ...]] = []
    for key in sorted(found, key=lambda key: 0 if rank is None else rank(key[0])):
        cells = (found[key].get(measure, "–") for measure in measures)
        body.append((shown(score_of(next(reversed(found[key].values()))).row, 60), *cells))
    heads = (shown(columns[measure], 60) for measure in measures)
    return Table((first, *(head[:1].upper() + head[1:] for head in heads)), tuple(body))


def by_measure(quantities: Iterable[Quantity], measure: str) -> dict[str, Quantity]:
    """Return the scores of one measure on all rows, by the name of what is scored."""
    scored = ((score_of(quantity), quantity) for quantity in quantities)
    return {s.subject: q for s, q in scored if s.measure == measure and not s.group}


def score_of(quantity: Quantity) -> Score:
    """Return what a number is a score of; it is one."""
    assert quantity.estimate.score is not None
    return quantity.estimate.score


def row_of_score(quantity: Quantity) -> str:
    """Return what people call that which is scored."""
    return shown(score_of(quantity).row, 120)
