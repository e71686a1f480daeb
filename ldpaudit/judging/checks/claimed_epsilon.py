"""Does the release leak more about a label than the claimed ε?"""

import math

from ldpaudit.judging.checks.claimed_channel import CONSISTENCY
from ldpaudit.judging.checks.interface import POWER, Answer, Case, Draft, Evidence
from ldpaudit.reports.text.numbers import number

OTHER_PROOF = ("observational.epsilon_lower", "aggregates.epsilon_lower")
"""Bounds of ε where one released label depends on more than one true label; one in an audit."""
RELEASE_ONLY_SHARE = 0.1
"""With true labels, the share of the error probability that the release-only bound gets."""
_POWER_UNKNOWN = (
    "how much this audit could miss is known only for labels that follow the claimed channel, and "
    "these do not"
)


def draft(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    section, evidence = case.policy.checks.claimed_epsilon, case.evidence
    if section is None:
        return None
    limit, allowed = case.claim.epsilon, case.policy.audit.max_undetected_excess
    proofs = _proofs(evidence)

    def test(alpha: float) -> Answer:
        if limit is None:
            return Answer("inconclusive", None, "nothing was claimed, so nothing was judged")
        if math.isinf(limit):
            return Answer("inconclusive", None, "the claim promises nothing: its ε is infinite")
        if not proofs:
            return Answer("inconclusive", None, "no audit could bound ε from below")
        bound = _best_bound(proofs, evidence, alpha)
        if bound > limit:
            return Answer("fail", bound, "a certified lower bound lies above the claim", "lower")
        weakness = _weakness(evidence, allowed, alpha)
        if weakness is not None:
            return Answer("inconclusive", bound, weakness, "lower")
        return Answer("pass", bound, "no certified lower bound lies above the claim", "lower")

    ids = proofs + ((POWER,) if POWER in evidence.estimates else ())
    question = "Does the release leak more about a label than the claimed ε?"
    return Draft("claimed-epsilon", section.level, question, limit, ids, test)


def _proofs(evidence: Evidence) -> tuple[str, ...]:
    ids = ("mechanism.epsilon_lower", "release_only.epsilon_lower")
    proofs = tuple(i for i in ids if i in evidence.bounds)
    # Mechanisms that use the features, or bags, have neither.
    return proofs or tuple(i for i in OTHER_PROOF if i in evidence.bounds)


def _best_bound(proofs: tuple[str, ...], evidence: Evidence, alpha: float) -> float:
    shares = (1 - RELEASE_ONLY_SHARE, RELEASE_ONLY_SHARE) if len(proofs) > 1 else (1.0,)
    return max(evidence.bounds[i](alpha * share) for i, share in zip(proofs, shares, strict=True))


def _weakness(evidence: Evidence, allowed: float, alpha: float) -> str | None:
    """Return why not having found a violation says too little, None where it says enough."""
    power = evidence.estimates.get(POWER)
    if power is None:
        return "how much this audit could miss is not known"
    if power.kind == "estimated" and _channel_is_refuted(evidence, alpha):
        return _POWER_UNKNOWN
    missed = evidence.undetected_excess(alpha)
    return _too_weak(missed, allowed) if missed is not None and missed > allowed else None


def _channel_is_refuted(evidence: Evidence, alpha: float) -> bool:
    tests = (evidence.estimates.get(name) for name in CONSISTENCY)
    return any(test is not None and test.value <= alpha for test in tests)


def _too_weak(missed: float, allowed: float) -> str:
    if math.isinf(missed):
        return "no excess, however large, would have been found with 90 % probability"
    return (
        f"an excess of up to {number(missed, 'up')} nats could have gone unnoticed, and the policy "
        f"allows {number(allowed)}"
    )
