"""Which rows bounds may count: where rows share noise, one of each group."""

from ldpaudit.audits.interface import AuditContext
from ldpaudit.release import IndexArray


def counted_rows(context: AuditContext) -> IndexArray | None:  # noqa: ARG001
    """Return the rows that a bound may count, int64, in order; None for all of them."""
    return None


def clusters(context: AuditContext) -> IndexArray | None:
    """Return codes of rows that must be in one half, int64 (n,); None where each is on its own."""
    return context.release.groups
