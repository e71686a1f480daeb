"""Is one person's label released several times, each time with fresh noise?"""

from typing import Final

from ldpaudit.audits.assumptions.stated import COMPOSED_EPSILON
from ldpaudit.judging.checks.interface import Answer, Case, Draft
from ldpaudit.reports.text.numbers import number

QUESTION: Final = "Is one person's label released several times, each time with fresh noise?"


def draft(case: Case) -> Draft | None:
    """Return the check, None where it is not asked for or no person has several rows."""
    section = case.policy.checks.composition
    composed = case.evidence.estimates.get(COMPOSED_EPSILON)
    if section is None or composed is None:
        return None
    limit = case.claim.epsilon
    seem = "have" if composed.kind == "exact" else "seem to have"
    reason = (
        f"people {seem} several rows, each with fresh noise: for some the claim adds up to "
        f"ε = {number(composed.value, 'up')}"
    )
    answer = Answer("fail", composed.value, reason)
    if limit is not None and composed.value <= limit:
        answer = Answer("pass", composed.value, "no person's rows add up to more than is claimed")
    ids = (COMPOSED_EPSILON,)
    return Draft("composition", section.level, QUESTION, limit, ids, lambda _: answer, counted=True)
