"""Every measured ε, and how counts agree with the claim."""

from ldpaudit.reports.charts.intervals import Table
from ldpaudit.reports.parts.part import Part, Section
from ldpaudit.reports.text.quantities import Quantity, is_epsilon


def mechanism_part(section: Section) -> Part:
    """Return the measured ε of every section, and how counts agree with the claim."""
    measured = measured_epsilon(section)
    others = [e for e in section.estimates if not is_epsilon(e) and e.kind != "exact"]
    table = Table(("Method", "ε (nats)"), tuple((q.name, q) for q in measured))
    return Part(
        "epsilon",
        "Every bound of ε",
        "The first bound decides the verdict: it is corrected for choosing among several. The "
        "others hold each at its own level, before that correction.",
        quantities=section.printer.quantities(others),
        tables=(("Claimed against measured ε", table),) if measured else (),
    )


def measured_epsilon(section: Section) -> tuple[Quantity, ...]:
    """Return every ε that was measured, in any section; the one that decides first."""
    printer = section.printer
    measured = (e for e in section.result.estimates if is_epsilon(e) and e.kind != "exact")
    quantities = printer.quantities(measured)
    decisive = printer.decisive
    if not quantities or decisive is None or decisive in quantities:
        return quantities
    return (decisive, *quantities)
