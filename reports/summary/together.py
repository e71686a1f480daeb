"""What several columns and releases of the same people reveal together."""

from typing import Final

from ldpaudit.reports.charts.curves import curve_figure
from ldpaudit.reports.parts.part import Section, drawn
from ldpaudit.reports.summary.told import Told
from ldpaudit.reports.text.harmless import shown
from ldpaudit.reports.text.quantities import is_epsilon

MOST: Final = 8
"""Numbers; the part at the end of the page has all."""


def together_told(section: Section) -> Told:
    """Return what was found of all parts together: remarks, and the numbers besides ε."""
    result, printer = section.result, section.printer
    remarks = [n for n in result.notes if n.audit == section.name and n.level == "info"]
    curves = [c for c in section.curves if c.kind == "certified" and len(c.x) > 2]
    figures = [curve_figure([curve], printer, shown(curve.title)) for curve in curves[:1]]
    others = [q for q in section.plain if not is_epsilon(q.estimate)]
    return Told(
        "together",
        "Everything of a person",
        tuple(dict.fromkeys(shown(note.text) for note in remarks)),
        drawn(figures),
        (*section.scores, *others)[:MOST],
        missing="" if others or remarks else "Not measured.",
        more=f"section-{section.name}",
    )
