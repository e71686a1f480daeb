"""Audits of datasets released with privatized labels.

``ldpaudit.audit(release)`` answers how much a release gives away about each person's label.
"""

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit.api import audit as audit
    from ldpaudit.errors import LdpAuditError as LdpAuditError
    from ldpaudit.mechanisms import RandomizedResponse as RandomizedResponse
    from ldpaudit.result import AuditResult as AuditResult

__version__ = "0.1.0"
__all__ = ["AuditResult", "LdpAuditError", "RandomizedResponse", "__version__", "audit"]

__getattr__ = exported(
    __name__,
    {
        "api": ("audit",),
        "result": ("AuditResult",),
        "errors": ("LdpAuditError",),
        "mechanisms": ("RandomizedResponse",),
    },
)
