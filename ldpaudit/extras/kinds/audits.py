"""The audits of rare kinds: when each applies; what it computes is imported when it runs."""

from collections.abc import Iterable
from typing import Final

from ldpaudit.audits.interface import AuditContext, BuiltIn, Part
from ldpaudit.mechanisms.capabilities import PublicModelLabel


def _observational(context: AuditContext) -> Iterable[Part]:
    from ldpaudit.extras.kinds.observational.audit import observational_parts

    return observational_parts(context)


def _power_of_observational(context: AuditContext) -> Iterable[Part] | None:
    from ldpaudit.extras.kinds.observational.evidence import observational_power

    modelled = context.claim.offers(PublicModelLabel) is not None
    return observational_power(context) if modelled else None


OBSERVATIONAL: Final = BuiltIn(
    "observational",
    _observational,
    needs=("truth", "labels", "rows"),
    power=_power_of_observational,
)
