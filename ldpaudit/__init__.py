"""Audits of datasets released with privatized labels.

In: a release, with or without its true labels. Out: how much it reveals about each person's
label, whether that is what was promised, and how sure that is: ``ldpaudit.audit(release)``.
"""

from ldpaudit.lazy import exported
from ldpaudit.version import __version__

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
        "extras.choose.calls": ("advise", "describe", "sweep"),
        "extras.compare.calls": ("compare",),
        "extras.compare.comparison": ("Comparison",),
        "extras.probe.models.audit": ("audit_model",),
        "extras.probe.models.predictions": ("audit_predictions",),
        "extras.release.calls": ("privatize",),
        "errors": ("InputError", "LdpAuditError"),
        "mechanisms": ("RandomizedResponse",),
        "result": ("AuditResult",),
    },
    ("attacks", "datasets", "learners", "mechanisms", "reports", "synthesis"),
)
__getattr__ = _lazily
__dir__ = _listed
