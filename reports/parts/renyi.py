"""Rényi divergences by order, and δ(ε)."""

from ldpaudit.reports.charts.renyi import renyi_figures
from ldpaudit.reports.parts.part import Part, Section, drawn


def renyi_part(section: Section) -> Part:
    """Return the claimed, bounded and estimated Rényi divergences."""
    figures = renyi_figures(section.curves, section.result.mechanism.epsilon, section.printer)
    return Part(
        "renyi",
        "Rényi curve",
        "The Rényi divergence of order α measures how far apart the outputs for two true labels "
        "can be; it grows with α. An exact curve is computed from the declaration alone and rises "
        "to ε. Released rows hold features as well as the label, so their curve may lie far above "
        "ε. Only a certified lower bound is proof; estimates end where there are too few rows to "
        "support them.",
        drawn(figures),
        section.plain,
    )
