"""Can anybody compute the noise, from a common seed or a checksum of a column?"""

from typing import Final

from ldpaudit.judging.checks.interface import Answer, Case, Draft

P_VALUE: Final = "seeds.p_value"
QUESTION: Final = "Can anybody compute the noise, from a common seed or a checksum (p-value)?"
ERROR: Final = 1e-9
"""The error probability of this check alone. The right source leaves a p-value far below, so the
other checks need not share their level with it."""


def draft(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it or nothing was tried."""
    section, estimate = case.policy.checks.guessable_seed, case.evidence.estimates.get(P_VALUE)
    if section is None or estimate is None:
        return None
    if estimate.value <= ERROR and estimate.kind == "certified":
        reason = "anybody can compute the noise and recover every true label"
        answer = Answer("fail", estimate.value, reason)
    elif estimate.value <= ERROR:
        reason = (
            "the released labels follow numbers that anybody can compute: they are the noise, or, "
            "in simulated data, drew the true labels"
        )
        answer = Answer("inconclusive", estimate.value, reason)
    else:
        answer = Answer(
            "pass",
            estimate.value,
            "the noise does not come from any of the common seeds and checksums tried",
        )
    return Draft(
        "guessable-seed", section.level, QUESTION, None, (P_VALUE,), lambda _: answer, ERROR
    )
