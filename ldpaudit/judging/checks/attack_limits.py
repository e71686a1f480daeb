"""Is the best label-inference attack's advantage, or its accuracy, above a limit?"""

import math
from collections.abc import Callable

from ldpaudit.audits.assumptions.stated import NOT_INDEPENDENT
from ldpaudit.judging.checks.interface import Answer, Case, Draft, Evidence
from ldpaudit.judging.policy import LimitSection
from ldpaudit.result import Estimate

_SHARED = "rows share noise, so no certified interval holds for the attack's score"
_ASSUMED = "the attack could be scored only under the claim's own assumption"


def draft_advantage(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    section = case.policy.checks.label_inference_advantage
    return None if section is None else _draft("advantage", section, case.evidence)


def draft_accuracy(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    section = case.policy.checks.label_inference_accuracy
    return None if section is None else _draft("accuracy", section, case.evidence)


def _draft(what: str, section: LimitSection, evidence: Evidence) -> Draft:
    name = f"attack.best.{what}"
    estimate = evidence.estimates.get(name)
    question = f"Is the best label-inference attack's {what} above the limit?"
    test = _against(section.max, what, evidence, estimate)
    ids = (name,) if estimate else ()
    return Draft(f"label-inference-{what}", section.level, question, section.max, ids, test)


def _against(
    limit: float, what: str, evidence: Evidence, estimate: Estimate | None
) -> Callable[[float], Answer]:
    def test(alpha: float) -> Answer:
        if estimate is None or estimate.low is None or estimate.high is None:
            return Answer("inconclusive", None, "no attack could be scored against true labels")
        if estimate.kind != "certified":
            shared = NOT_INDEPENDENT in estimate.assumptions
            return Answer("inconclusive", estimate.value, _SHARED if shared else _ASSUMED)
        low = _lower_end(estimate, evidence, alpha)
        if low > limit:
            return Answer("fail", low, f"the best attack's {what} lies above the limit", "lower")
        if estimate.high <= limit:
            return Answer("pass", estimate.value, f"the best attack's {what} is within the limit")
        return Answer("inconclusive", estimate.value, "the interval straddles the limit")

    return test


def _lower_end(estimate: Estimate, evidence: Evidence, alpha: float) -> float:
    assert estimate.low is not None
    if estimate.id in evidence.bounds:
        return evidence.bounds[estimate.id](alpha)
    certified = alpha >= (1 - (estimate.level or 1.0)) / 2
    return estimate.low if certified else -math.inf
