"""What the core asks of this package's audits that are registered as those of others are."""

from collections.abc import Iterable, Iterator

from ldpaudit.audits.interface import AuditContext, BuiltIn, Dependence, Part
from ldpaudit.plugins import loaded, ours


def registered_audits() -> Iterator[BuiltIn]:
    """Yield our audits that are no part of the core."""
    for point in ours("audit").values():
        yield loaded("audit", point, BuiltIn)


def power_of_registered(context: AuditContext) -> Iterable[Part] | None:
    """Return what the audit that bounds ε could have found; None where the core's audits do."""
    answers = (audit.power(context) for audit in registered_audits())
    return next((answer for answer in answers if answer is not None), None)


def dependence_of_registered(context: AuditContext) -> Dependence | None:
    """Return how far what was released depends on the true labels; None where no audit knows."""
    answers = (audit.dependence(context) for audit in registered_audits())
    return next((answer for answer in answers if answer is not None), None)


def parts_within(name: str, context: AuditContext) -> Iterator[Part]:
    """Yield what registered audits find that are a part of an audit of the core."""
    for audit in registered_audits():
        if audit.within == name and audit.unavailable(context) is None:
            yield from audit.parts(context)
