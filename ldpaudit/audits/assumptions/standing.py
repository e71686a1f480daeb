"""Which of a bound's assumptions still stand, and what the bound may be called."""

from ldpaudit.audits.assumptions.columns import uses_features
from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.assumptions.stated import FEATURE_BLIND, INDEPENDENT
from ldpaudit.audits.interface import AuditContext
from ldpaudit.result import Kind


def standing(context: AuditContext, *assumptions: str) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of a bound that rests on assumptions, and these, the refuted ones marked."""
    refuted = set()
    if uses_features(context):
        refuted.add(FEATURE_BLIND)
    if not counted(context).holds:
        refuted.add(INDEPENDENT)
    marked = tuple(f"{a} (refuted here)" if a in refuted else a for a in assumptions)
    return ("certified" if marked == assumptions else "estimated"), marked
