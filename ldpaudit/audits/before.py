"""Which columns of a release were there before the noise, as far as is known."""

from collections.abc import Collection

from ldpaudit.audits.interface import AuditContext


def before(context: AuditContext) -> tuple[int, ...]:
    """Return the places of arrays, numeric ones first, of columns from before the noise."""
    width = context.release.features.width
    return tuple(sorted(place for place in context.release.before if place < width))


def unknown(context: AuditContext) -> tuple[int, ...]:
    """Return the places of all other arrays: they may be computed from released labels."""
    known = context.release.before
    return tuple(j for j in range(context.release.features.width) if j not in known)


def names(context: AuditContext, places: Collection[int]) -> tuple[str, ...]:
    """Return the columns of the file that arrays come from, each once, in the file's order."""
    asked = frozenset(places)
    columns = (one for one in context.release.columns if not asked.isdisjoint(one.arrays))
    return tuple(one.name for one in columns)
