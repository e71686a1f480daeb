"""Was noise drawn for each row on its own?"""

from typing import Final

from ldpaudit.audits.assumptions.stated import SHARED_NOISE_TEST
from ldpaudit.judging.checks.interface import Answer, Case, Draft

QUESTION: Final = "Was noise drawn for each row on its own (p-value)?"


def draft(case: Case) -> Draft | None:
    """Return the check, None where it is not asked for or there are no true labels to test."""
    section, test = case.policy.checks.shared_noise, case.evidence.estimates.get(SHARED_NOISE_TEST)
    if section is None or test is None:
        return None

    def answer(alpha: float) -> Answer:
        if test.value <= alpha:
            return Answer("fail", test.value, "rows share noise: one row's noise tells another's")
        return Answer("pass", test.value, "no noise shared by rows was found")

    return Draft("shared-noise", section.level, QUESTION, None, (SHARED_NOISE_TEST,), answer)
