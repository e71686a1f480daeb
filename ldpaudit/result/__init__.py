"""The one result object: what an audit found, its JSON form, and its redaction.

In: numbers that audits computed. Out: frozen types of which no field can hold a row, a cell, a row
id or a per-row score; every number carries its title, section and unit.
"""

from ldpaudit.result.audit_result import (
    SCHEMA_VERSION,
    AuditRecord,
    AuditResult,
    Check,
    CheckLevel,
    Decision,
    Family,
    MechanismInfo,
    PlugIn,
    PlugInKind,
    Profile,
    ReleaseInfo,
    RunInfo,
    Verdict,
    Waived,
    decision_of,
    holding_up,
    overall,
    verdict_of,
)
from ldpaudit.result.curve import Curve, Histogram
from ldpaudit.result.estimate import (
    Details,
    Estimate,
    Frozen,
    Kind,
    Number,
    Score,
    Side,
    Titled,
    Unit,
    readable,
)
from ldpaudit.result.finding import Finding, Note, as_counted, in_stratum, together
from ldpaudit.result.hiding import SMALLEST_CELL

__all__ = [
    "SCHEMA_VERSION",
    "SMALLEST_CELL",
    "AuditRecord",
    "AuditResult",
    "Check",
    "CheckLevel",
    "Curve",
    "Decision",
    "Details",
    "Estimate",
    "Family",
    "Finding",
    "Frozen",
    "Histogram",
    "Kind",
    "MechanismInfo",
    "Note",
    "Number",
    "PlugIn",
    "PlugInKind",
    "Profile",
    "ReleaseInfo",
    "RunInfo",
    "Score",
    "Side",
    "Titled",
    "Unit",
    "Verdict",
    "Waived",
    "as_counted",
    "decision_of",
    "holding_up",
    "in_stratum",
    "overall",
    "readable",
    "together",
    "verdict_of",
]
