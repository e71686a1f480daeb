"""How large an excess of ε could this audit have missed?"""

import math

from ldpaudit.judging.checks.interface import POWER, Answer, Case, Draft
from ldpaudit.reports.text.numbers import number


def draft(case: Case) -> Draft | None:
    """Return the check, None where it is not asked for or no finite ε is claimed."""
    section, epsilon = case.policy.checks.undetected_excess, case.claim.epsilon
    if section is None or epsilon is None or math.isinf(epsilon) or case.by_strata:
        return None
    allowed = section.max.at(epsilon)
    question = "How large an excess over the claimed ε could this audit have missed?"
    ids = (POWER,) if POWER in case.evidence.estimates else ()
    limit = None if math.isinf(allowed) else allowed

    def test(alpha: float) -> Answer:
        return _answer(case.evidence.undetected_excess(alpha), allowed)

    return Draft(_ID, section.level, question, limit, ids, test, counted=True)


_ID = "undetected-excess"


def _answer(missed: float | None, allowed: float) -> Answer:
    if missed is None:
        return Answer("fail", None, "how much this audit could have missed is not known")
    if missed <= allowed:
        words = f"an excess of {number(missed, 'up')} or more would have been found"
        return Answer("pass", missed, words)
    if math.isinf(missed):
        return Answer("fail", missed, "this audit would have found no excess, however large")
    words = f"an excess of up to {number(missed, 'up')} over the claimed ε may be there"
    return Answer("fail", missed, f"{words} and not have been noticed")
