"""What the audit could have detected."""

from ldpaudit.reports.parts.part import Part, Section
from ldpaudit.reports.text.numbers import number, rows
from ldpaudit.reports.text.wording import missing
from ldpaudit.result import Estimate


def power_part(section: Section) -> Part:
    """Return the power of the audit's bounds."""
    result = section.result
    return Part(
        "power",
        "What this audit could have detected",
        "If an audit finds nothing, what matters is what it could have found.",
        quantities=section.plain,
        lead=_lead(result.estimate("power.min_detectable_excess"), result.release.rows),
        missing="" if section.plain else missing(result.audits, "power"),
    )


def _lead(excess: Estimate | None, n: int) -> str:
    if excess is None:
        return ""
    if excess.value == float("inf"):
        return "Not even a large excess over the claim would have been found reliably."
    size = number(excess.value, "up")
    condition = ", if the assumptions listed for that hold" if excess.kind == "estimated" else ""
    return (
        f"With these {rows(n)} rows, a release that leaks {size} nats more than it claims is found "
        f"with 90 % probability{condition}. A smaller excess may have gone unseen."
    )
