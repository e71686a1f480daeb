"""Is the noise that of a common random generator with a seed that can be guessed?"""

from typing import Final

from ldpaudit.judging.checks.interface import Answer, Case, Draft

P_VALUE: Final = "seeds.p_value"
QUESTION: Final = "Is the noise that of a seed that can be guessed (p-value)?"
ERROR: Final = 1e-9
"""The error probability of this check alone. A right seed leaves a p-value far below, so the other
checks need not share their level with it."""


def draft(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it or no seed was tried."""
    section, estimate = case.policy.checks.guessable_seed, case.evidence.estimates.get(P_VALUE)
    if section is None or estimate is None:
        return None
    if estimate.value <= ERROR and estimate.kind == "certified":
        reason = "the noise is that of a seed that can be guessed: every true label can be redone"
        answer = Answer("fail", estimate.value, reason)
    elif estimate.value <= ERROR:
        reason = (
            "the released labels follow a random generator with a seed that can be guessed: it "
            "drew the noise, or, in simulated data, the true labels"
        )
        answer = Answer("inconclusive", estimate.value, reason)
    else:
        answer = Answer("pass", estimate.value, "none of the seeds that were tried gives the noise")
    return Draft(
        "guessable-seed", section.level, QUESTION, None, (P_VALUE,), lambda _: answer, ERROR
    )
