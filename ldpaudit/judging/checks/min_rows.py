"""Has the release as many rows as the policy asks for?"""

from ldpaudit.judging.checks.interface import Answer, Case, Draft
from ldpaudit.reports.text.numbers import rows
from ldpaudit.result import Verdict


def draft(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    least = case.policy.audit.min_rows
    if least is None:
        return None
    enough: Verdict = "pass" if case.rows >= least else "inconclusive"
    reason = f"{rows(case.rows)} rows, {rows(least)} needed"
    question = "Has the release as many rows as the policy asks for?"
    answer = Answer(enough, float(case.rows), reason)
    return Draft("min-rows", "error", question, float(least), (), lambda _: answer, counted=True)
