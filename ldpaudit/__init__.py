"""Audits of datasets released with privatized labels.

In: a release, with or without its true labels. Out: how much it reveals about each person's
label, whether that is what was promised, and how sure that is: ``ldpaudit.audit(release)``.
"""

from typing import TYPE_CHECKING

from ldpaudit.lazy import exported

if TYPE_CHECKING:
    from ldpaudit import attacks as attacks
    from ldpaudit import datasets as datasets
    from ldpaudit import learners as learners
    from ldpaudit import mechanisms as mechanisms
    from ldpaudit import reports as reports
    from ldpaudit import synthesis as synthesis
    from ldpaudit.api import audit as audit
    from ldpaudit.calls import advise as advise
    from ldpaudit.calls import compare as compare
    from ldpaudit.calls import describe as describe
    from ldpaudit.calls import privatize as privatize
    from ldpaudit.calls import sweep as sweep
    from ldpaudit.errors import InputError as InputError
    from ldpaudit.errors import LdpAuditError as LdpAuditError
    from ldpaudit.mechanisms import RandomizedResponse as RandomizedResponse
    from ldpaudit.models_as_releases.audit import audit_model as audit_model
    from ldpaudit.models_as_releases.predictions import audit_predictions as audit_predictions
    from ldpaudit.result import AuditResult as AuditResult
    from ldpaudit.result.comparison import Comparison as Comparison

__version__ = "0.1.0"
__all__ = [
    "AuditResult",
    "Comparison",
    "InputError",
    "LdpAuditError",
    "RandomizedResponse",
    "__version__",
    "advise",
    "attacks",
    "audit",
    "audit_model",
    "audit_predictions",
    "compare",
    "datasets",
    "describe",
    "learners",
    "mechanisms",
    "privatize",
    "reports",
    "sweep",
    "synthesis",
]

_lazily, _listed = exported(
    __name__,
    {
        "api": ("audit",),
        "calls": ("advise", "compare", "describe", "privatize", "sweep"),
        "errors": ("InputError", "LdpAuditError"),
        "mechanisms": ("RandomizedResponse",),
        "models_as_releases.audit": ("audit_model",),
        "models_as_releases.predictions": ("audit_predictions",),
        "result": ("AuditResult",),
        "result.comparison": ("Comparison",),
    },
    ("attacks", "datasets", "learners", "mechanisms", "reports", "synthesis"),
)
__getattr__ = _lazily
__dir__ = _listed
