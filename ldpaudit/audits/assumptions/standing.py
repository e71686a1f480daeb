"""Which of a bound's assumptions still stand, and what the bound may be called."""

import math
from dataclasses import replace
from typing import Any

from ldpaudit.audits.assumptions.afterwards import selected
from ldpaudit.audits.assumptions.columns import uses_features
from ldpaudit.audits.assumptions.rows import counted
from ldpaudit.audits.assumptions.stated import (
    FEATURE_BLIND,
    INDEPENDENT,
    NOT_INDEPENDENT,
    REFUTED,
    UNSELECTED,
)
from ldpaudit.audits.interface import AuditContext
from ldpaudit.result import Finding, Kind


def standing(context: AuditContext, *assumptions: str) -> tuple[Kind, tuple[str, ...]]:
    """Return the kind of a bound that rests on assumptions, and these, the refuted ones marked."""
    refuted = set()
    if uses_features(context):
        refuted.add(FEATURE_BLIND)
    if not counted(context).holds:
        refuted.add(INDEPENDENT)
    if selected(context):
        refuted.add(UNSELECTED)
    marked = tuple(a + REFUTED if a in refuted else a for a in assumptions)
    return ("certified" if marked == assumptions else "estimated"), marked


def as_it_stands(context: AuditContext, finding: Finding) -> Finding:
    """Return what was found by counting every row of a context: estimates where rows share noise.

    No check may fail by them.
    """
    if counted(context).rows is None and counted(context).holds:
        return finding
    return replace(
        finding,
        estimates=tuple(_estimated(one) for one in finding.estimates),
        curves=tuple(_estimated(one) for one in finding.curves),
        bounds=dict.fromkeys(finding.bounds, lambda _: -math.inf),
    )


def _estimated(one: Any) -> Any:
    if one.kind != "certified":
        return one
    kept = tuple(text for text in one.assumptions if text != INDEPENDENT)
    return one.model_copy(update={"kind": "estimated", "assumptions": (*kept, NOT_INDEPENDENT)})
