"""Audits of datasets released with privatized labels.

In: a release, with or without its true labels. Out: how much it gives away about each person's
label, whether that is what was promised, and how sure that is: ``ldpaudit.audit(release)``.
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
