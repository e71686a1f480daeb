"""Was noise drawn for each row on its own?"""

from typing import Final

from ldpaudit.audits.assumptions.stated import AGREEMENT_TEST, SHARED_NOISE_TEST
from ldpaudit.judging.checks.interface import Answer, Case, Draft

QUESTION: Final = "Was noise drawn for each row on its own (p-value)?"

_WORDS: Final = {
    SHARED_NOISE_TEST: (
        "one row's noise reveals another's, or noise changes along the file",
        "no noise shared by rows was found, and none that changes along the file",
    ),
    AGREEMENT_TEST: (
        "in some part of the file released labels go with the features unlike elsewhere: noise may "
        "have been added there in another way",
        "released labels go with the features alike along the file; whether rows share noise is "
        "seen with true labels alone",
    ),
}
"""With true labels, and without: what is said where the p-value is small, and where it is not."""


def draft(case: Case) -> Draft | None:
    """Return the check, None where it is not asked for or nothing could be tested."""
    section, estimates = case.policy.checks.shared_noise, case.evidence.estimates
    found = [(name, *words) for name, words in _WORDS.items() if name in estimates]
    if section is None or not found:
        return None
    name, failed, passed = found[0]
    p_value = estimates[name].value

    def answer(alpha: float) -> Answer:
        if p_value <= alpha:
            return Answer("fail", p_value, failed)
        return Answer("pass", p_value, passed)

    return Draft("shared-noise", section.level, QUESTION, None, (name,), answer)
