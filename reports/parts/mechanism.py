"""Claimed against measured ε: the bounds of all audits on one axis."""

from typing import Final

from ldpaudit.reports.charts.epsilon import epsilon_figure
from ldpaudit.reports.parts.part import Part, Section
from ldpaudit.reports.text.quantities import is_epsilon
from ldpaudit.reports.text.wording import missing

_EMPTY_CLAIMS: Final = {
    "": "Nothing was claimed, so there is no claim to test.",
    "∞": "The claim is ε = ∞: it promises nothing, so nothing could refute it.",
}


def mechanism_part(section: Section) -> Part:
    """Return the measured ε of every section, and how counts agree with the claim."""
    result, printer = section.result, section.printer
    measured = [e for e in result.estimates if is_epsilon(e) and e.kind != "exact"]
    others = [e for e in section.estimates if e.kind != "exact" and e not in measured]
    quantities = printer.quantities(measured)
    if quantities and printer.decisive is not None and printer.decisive not in quantities:
        quantities = (printer.decisive, *quantities)
    figures = (epsilon_figure(quantities, result, printer.claim),) if quantities else ()
    return Part(
        "epsilon",
        "Claimed against measured ε",
        "ε limits how much a released label can reveal about the true one. A certified lower bound "
        "means that the release leaks at least that much. The first bound decides the verdict: it "
        "is corrected for choosing among several. The others hold each at its own level, before "
        "that correction. Bounds below the claim prove nothing: they are what the audit found.",
        figures,
        printer.quantities(others),
        lead=_EMPTY_CLAIMS.get(printer.claim, ""),
        missing="" if quantities else missing(result.audits, "mechanism"),
    )
