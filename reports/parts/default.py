"""The part of a section that needs no picture of its own: every curve, number and score."""

from ldpaudit.reports.charts.curves import (
    curve_figure,
    curve_table,
    histogram_figure,
    histogram_table,
)
from ldpaudit.reports.charts.intervals import Figure, Table
from ldpaudit.reports.parts.part import Part, Section, drawn
from ldpaudit.reports.parts.scores import score_table
from ldpaudit.reports.text.harmless import as_identifier, shown


def default_part(section: Section, title: str, intro: str) -> Part:
    """Return everything that a section holds; what cannot be drawn stands in a table."""
    figures: list[Figure | None] = []
    tables: list[tuple[str, Table]] = []
    if section.scores:
        tables.append(("Scores", score_table(section.scores, "")))
    for curve in section.curves:
        figures.append(curve_figure([curve], section.printer, shown(curve.title)))
        if figures[-1] is None:
            tables.append((shown(curve.title), curve_table([curve], section.printer)))
    for histogram in section.histograms:
        figures.append(histogram_figure(histogram, (), shown(histogram.title)))
        if figures[-1] is None:
            tables.append((shown(histogram.title), histogram_table(histogram)))
    key = f"section-{as_identifier(section.name)}"
    return Part(key, title, intro, drawn(figures), section.plain, tuple(tables))
