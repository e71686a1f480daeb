"""Audits of datasets released with privatized labels.

``ldpaudit.audit(release)`` answers how much a release gives away about each person's label.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ldpaudit.api import audit as audit
    from ldpaudit.errors import LdpAuditError as LdpAuditError
    from ldpaudit.mechanisms import RandomizedResponse as RandomizedResponse
    from ldpaudit.result import AuditResult as AuditResult

__version__ = "0.1.0"
__all__ = ["AuditResult", "LdpAuditError", "RandomizedResponse", "__version__", "audit"]

_HOMES = {
    "audit": "ldpaudit.api",
    "AuditResult": "ldpaudit.result",
    "LdpAuditError": "ldpaudit.errors",
    "RandomizedResponse": "ldpaudit.mechanisms",
}


def __getattr__(name: str) -> Any:
    """Import the public names when they are first used: ``--help`` needs none of them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(_HOMES[name]), name)
