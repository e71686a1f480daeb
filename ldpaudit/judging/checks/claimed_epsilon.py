"""Does the release leak more about a label than the claimed ε?"""

import math
from collections.abc import Mapping

from ldpaudit.audits.assumptions.stated import (
    CHANGED_ROWS,
    DOUBTFUL_COLUMNS,
    DOUBTFUL_ROWS,
    FEATURE_BLIND_TEST,
    SELECTED,
    SHARED_WITH_OTHERS,
)
from ldpaudit.audits.epsilon_proofs import (
    INSIDER_SHARES,
    SHARED_NOISE,
    SUBGROUPS,
    shares,
)
from ldpaudit.judging.checks.claimed_channel import CONSISTENCY
from ldpaudit.judging.checks.declared_epsilon import beyond_the_policy
from ldpaudit.judging.checks.interface import POWER, Answer, Case, Draft, Evidence
from ldpaudit.reports.text.numbers import number

DECLARED = "mechanism.epsilon"
_ID = "claimed-epsilon"
_QUESTION = "Does the release leak more about a label than the claimed ε?"
_REFUTED = (
    "the claim is refuted: the released label depends on the features, or on the row's place in "
    "the file, and not on the true label alone, as the declared mechanism would have it"
)
_IN_DOUBT = (
    "the released label may depend on the features, and where it does none of this audit's bounds "
    "of ε holds"
)
_DOUBTS = {
    SELECTED: (
        "the labels were changed after the noise: rows were left out or repeated because of their "
        "released label. The counts fit the claim with the shares of released labels changed, "
        "which reveals nothing more of the true ones"
    ),
    CHANGED_ROWS: (
        "the labels were changed after the noise: a rule on features seems to have overwritten "
        "some of them, whatever the true label was. That reveals nothing, but those rows are not "
        "as declared"
    ),
    DOUBTFUL_COLUMNS: (
        "a column says more of the released label than the true one explains, and these rows do "
        "not show whether it was computed from the released label, which gives nothing away, or "
        "used by the mechanism, which refutes the claim"
    ),
    DOUBTFUL_ROWS: (
        "rows that are alike have alike noise, and these rows do not show whether they are one "
        "person's, whose answer was remembered, or the released label depends on the features, "
        "which refutes the claim"
    ),
}
_SHARE_IF_CHANGED = 0.1
_SHARES_NOISE = (
    "the claim is refuted: rows of different people share noise, so whoever knows one of their "
    "labels reads the noise of the others"
)
_POWER_UNKNOWN = (
    "how much this audit could miss is known only for labels that follow the claimed channel, and "
    "these do not"
)


def draft(case: Case) -> Draft | None:
    """Return the check, None where the policy does not ask for it."""
    section = case.policy.checks.claimed_epsilon
    if section is None:
        return None
    beyond = _declares_too_much(case, section.level)
    return beyond if beyond is not None or case.by_strata else _draft(case)


def _draft(case: Case) -> Draft | None:
    section, evidence = case.policy.checks.claimed_epsilon, case.evidence
    assert section is not None
    limit, allowed = case.claim.epsilon, case.policy.audit.max_undetected_excess
    proofs = shares(_found(evidence))

    def failure(alpha: float) -> Answer | None:
        if CHANGED_ROWS in evidence.estimates:
            # Which rows bounds leave out was decided by their released labels.
            alpha *= _SHARE_IF_CHANGED
        if limit is None or math.isinf(limit) or not proofs:
            return None
        bound = _best_bound(proofs, evidence, alpha)
        if _is_refuted(proofs, evidence, alpha, bound is not None and bound > limit):
            return Answer("fail", None, _REFUTED + _in_a_group(proofs, evidence, alpha, limit))
        if bound is not None and bound > limit:
            return Answer("fail", bound, "a certified lower bound lies above the claim", "lower")
        return Answer("fail", None, _SHARES_NOISE) if _shares_noise(evidence, alpha) else None

    def test(alpha: float) -> Answer:
        if limit is None:
            return Answer("inconclusive", None, "nothing was claimed, so nothing was judged")
        if math.isinf(limit):
            return Answer("inconclusive", None, "the claim promises nothing: its ε is infinite")
        if not proofs:
            return Answer("inconclusive", None, "no audit could bound ε from below")
        failed, bound = failure(alpha), _best_bound(proofs, evidence, alpha)
        if failed is not None:
            return failed
        if bound is None:
            return Answer("inconclusive", None, _IN_DOUBT)
        weakness = _weakness(evidence, allowed.at(limit), alpha)
        if weakness is not None:
            return Answer("inconclusive", bound, weakness, "lower")
        return Answer("pass", bound, "no certified lower bound lies above the claim", "lower")

    ids = (*proofs, POWER) if POWER in evidence.estimates else tuple(proofs)
    return Draft(_ID, section.level, _QUESTION, limit, ids, test, failure=failure)


def _declares_too_much(case: Case, level: str) -> Draft | None:
    """Return a check that fails whatever was measured: more is declared than the policy allows."""
    beyond = beyond_the_policy(case.policy.claim, case.claim.epsilon, "", case.declared)
    if beyond is None:
        return None
    ids = (DECLARED,) if DECLARED in case.evidence.estimates else ()
    return Draft(_ID, level, _QUESTION, beyond.limit, ids, lambda _: beyond.answer, counted=True)


def _found(evidence: Evidence) -> set[str]:
    tests = {FEATURE_BLIND_TEST} & evidence.estimates.keys()
    return set(evidence.bounds) | tests


def _best_bound(proofs: Mapping[str, float], evidence: Evidence, alpha: float) -> float | None:
    bounds = [(evidence.bounds[i], part) for i, part in proofs.items() if i in evidence.bounds]
    return max((bound(alpha * part) for bound, part in bounds), default=None)


def _is_refuted(
    proofs: Mapping[str, float], evidence: Evidence, alpha: float, exceeded: bool
) -> bool:
    """Return whether the released label is shown to depend on the features.

    The bounds of ε then miss their assumption. Where one of them exceeds the claim, the claim is
    refuted either way, and the test only decides how to put it.
    """
    if FEATURE_BLIND_TEST not in proofs:
        return False
    share = 1.0 if exceeded else proofs[FEATURE_BLIND_TEST]
    return evidence.estimates[FEATURE_BLIND_TEST].value <= alpha * share


def _shares_noise(evidence: Evidence, alpha: float) -> bool:
    """Return whether rows of different people are shown to share noise."""
    test = evidence.estimates.get(SHARED_WITH_OTHERS)
    return test is not None and test.value <= alpha * INSIDER_SHARES[SHARED_NOISE] / 2


def _in_a_group(proofs: Mapping[str, float], evidence: Evidence, alpha: float, limit: float) -> str:
    """Return how much more a group of rows seems to give away than claimed, if one was found.

    What it gives away for certain is not known: the channel may use features within the group.
    """
    bound = evidence.bounds.get(SUBGROUPS)
    found = 0.0 if bound is None else bound(alpha * proofs[SUBGROUPS])
    if found <= limit:
        return ""
    return (
        "; in one group of rows labels come through as at "
        f"ε = {number(found, 'down')} or more, if one channel served the whole group"
    )


def _weakness(evidence: Evidence, allowed: float, alpha: float) -> str | None:
    """Return why not having found a violation says too little, None where it says enough."""
    for name, doubt in _DOUBTS.items():
        if name in evidence.estimates:
            return doubt
    power = evidence.estimates.get(POWER)
    if power is None and math.isinf(allowed):
        return None
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
        return (
            "the audit is too weak: no excess over the claimed ε, however large, would have been "
            "found with 90 % probability"
        )
    return (
        f"the audit is too weak: an excess of up to {number(missed, 'up')} over the claimed ε "
        f"could have gone unnoticed, and the policy allows {number(allowed)}"
    )
