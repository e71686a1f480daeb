"""Is the best label-inference attack's advantage, or its accuracy, above a limit?"""

import math
from collections.abc import Callable

from ldpaudit.audits.assumptions.stated import NOT_INDEPENDENT
from ldpaudit.judging.checks.interface import Answer, Case, Draft, Evidence
from ldpaudit.judging.policy.limits import CLAIM
from ldpaudit.result import Estimate

_SHARED = "rows share noise, so no certified interval holds for the attack's score"
_NO_CLAIM = "nothing was claimed that the limit could follow"
_CEILING = "attack.ceiling.advantage"
"""The most that the claimed ε allows."""
_ASSUMED = "the attack could be scored only under the claim's own assumption"


def draft_advantage(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    section = case.policy.checks.label_inference_advantage
    if section is None:
        return None
    limit = _claimed_limit(case.evidence) if section.max == CLAIM else float(section.max)
    return _draft("advantage", section.level, limit, case.evidence)


def _claimed_limit(evidence: Evidence) -> float | None:
    """Return the most that the claimed ε allows, None where no ε is claimed."""
    allowed = evidence.estimates.get(_CEILING)
    return None if allowed is None else allowed.value


def draft_accuracy(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    section = case.policy.checks.label_inference_accuracy
    if section is None:
        return None
    return _draft("accuracy", section.level, section.max, case.evidence)


def _draft(what: str, level: str, limit: float | None, evidence: Evidence) -> Draft:
    name = f"attack.best.{what}"
    estimate = evidence.estimates.get(name)
    question = f"Is the best label-inference attack's {what} above the limit?"
    test = _against(limit, what, evidence, estimate)
    ids = (name,) if estimate else ()
    return Draft(f"label-inference-{what}", level, question, limit, ids, test)


def _against(
    limit: float | None, what: str, evidence: Evidence, estimate: Estimate | None
) -> Callable[[float], Answer]:
    def test(alpha: float) -> Answer:
        if estimate is None or estimate.low is None or estimate.high is None:
            return Answer("inconclusive", None, "no attack could be scored against true labels")
        if limit is None:
            return Answer("inconclusive", estimate.value, _NO_CLAIM)
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
