"""Parts of other packages in an audit: which took part, and which were not used."""

from collections.abc import Collection, Iterable, Iterator

from ldpaudit.attacks import taken_names
from ldpaudit.attacks.foreign import given_attacks
from ldpaudit.audits.interface import Plan
from ldpaudit.audits.listing import BUILT_IN
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.places import PLACES, SHORT
from ldpaudit.plugins import given, refused, used
from ldpaudit.result import AuditRecord, Note, PlugIn, PlugInKind


def taking_part(
    claim: Mechanism,
    plan: Plan,
    records: Iterable[AuditRecord],
    scored: Collection[str],
) -> tuple[PlugIn, ...]:
    """Return the parts of other packages, and the attacks that were given, that took part.

    Parameters
    ----------
    claim : Mechanism
    plan : Plan
    records : iterable of AuditRecord
    scored : collection of str
        The attacks that were scored.
    """
    names: dict[PlugInKind, Collection[str]] = {
        "attack": scored,
        "audit": {record.id for record in records if record.status in ("ran", "stopped")},
        "mechanism": {claim.name},
    }
    found = [part for kind in names for part in used(kind, names[kind], _built_in()[kind])]
    for name, one in zip(given_attacks(plan.attacks), plan.attacks, strict=True):
        place = one if isinstance(one, str) else f"{one.__module__}:{one.__qualname__}"
        found.append(given("attack", name, place))
    return tuple(found)


def refusals() -> Iterator[Note]:
    """Yield a warning for each plug-in that has the name of a built-in part."""
    for kind, names in _built_in().items():
        for text in refused(kind, names):
            yield Note.warning("plug-ins", text)


def _built_in() -> dict[PlugInKind, Collection[str]]:
    mechanisms = PLACES.keys() | SHORT.keys()
    return {"attack": taken_names(), "audit": BUILT_IN, "mechanism": mechanisms}
