"""Parts of other packages in an audit: which took part, and which were not used."""

from collections.abc import Collection, Iterable, Iterator

from ldpaudit.attacks import ATTACKS
from ldpaudit.attacks.foreign import given_attacks
from ldpaudit.audits.interface import Plan
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.places import PLACES
from ldpaudit.plugins import given, refused, used
from ldpaudit.result import AuditRecord, Note, PlugIn, PlugInKind


def taking_part(
    claim: Mechanism,
    plan: Plan,
    records: Iterable[AuditRecord],
    scored: Collection[str],
    audits: Collection[str],
) -> tuple[PlugIn, ...]:
    """Return the parts of other packages, and the attacks that were given, that took part.

    Parameters
    ----------
    claim : Mechanism
    plan : Plan
    records : iterable of AuditRecord
    scored : collection of str
        The attacks that were scored.
    audits : collection of str
        The built-in audits.
    """
    names: dict[PlugInKind, Collection[str]] = {
        "attack": scored,
        "audit": {record.id for record in records if record.status in ("ran", "stopped")},
        "mechanism": {claim.name},
    }
    found = [part for kind in names for part in used(kind, names[kind], _built_in(kind, audits))]
    for name, one in zip(given_attacks(plan.attacks), plan.attacks, strict=True):
        if name in scored:
            place = one if isinstance(one, str) else f"{one.__module__}:{one.__qualname__}"
            found.append(given("attack", name, place))
    return tuple(found)


def refusals(audits: Collection[str]) -> Iterator[Note]:
    """Yield a warning for each plug-in that has the name of a built-in part."""
    kinds: tuple[PlugInKind, ...] = ("attack", "audit", "mechanism")
    for kind in kinds:
        for text in refused(kind, _built_in(kind, audits)):
            yield Note.warning("plug-ins", text)


def _built_in(kind: PlugInKind, audits: Collection[str]) -> Collection[str]:
    parts: dict[PlugInKind, Collection[str]]
    parts = {"attack": ATTACKS, "audit": audits, "mechanism": PLACES}
    return parts[kind]
