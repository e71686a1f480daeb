"""Tiles and parts of a page, and the section of a result that a part shows."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.result import AuditResult, Curve, Estimate, Histogram


@dataclass(frozen=True)
class Tile:
    """One of the few numbers at the top of a page."""

    label: str
    text: str
    words: str = ""
    mark: str = ""
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """One part of a page; ``missing`` says why it holds no number."""

    key: str
    title: str
    intro: str
    figures: tuple[Figure, ...] = ()
    quantities: tuple[Quantity, ...] = ()
    tables: tuple[tuple[str, Table], ...] = ()
    lead: str = ""
    missing: str = ""


@dataclass(frozen=True)
class Section:
    """The numbers of one section of a result."""

    name: str
    result: AuditResult
    printer: Printer

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


def drawn(figures: Sequence[Figure | None]) -> tuple[Figure, ...]:
    """Return the figures that could be drawn."""
    return tuple(figure for figure in figures if figure is not None)
