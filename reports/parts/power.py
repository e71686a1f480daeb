"""What the audit could have detected: every number."""

from ldpaudit.reports.parts.part import Part, Section


def power_part(section: Section) -> Part:
    """Return the power of the audit's bounds."""
    return Part(
        "power",
        "Power",
        "If an audit finds nothing, what matters is what it could have found.",
        quantities=section.plain,
    )
