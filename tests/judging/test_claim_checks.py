"""What the checks of a claim say, and what they leave out."""

from dataclasses import replace

import pytest
from judging.cases import case, evidence, judged, p_value

from ldpaudit.audits.epsilon_proofs import FEATURE_BLIND_TEST
from ldpaudit.judging.checks import claimed_epsilon, undetected_excess
from ldpaudit.judging.checks.interface import CLEAR_SHARE, POWER
from ldpaudit.judging.policy import default_policy
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import Estimate

CHANNEL = "mechanism.channel_consistency"


def test_no_group_is_named_where_none_was_found() -> None:
    refuted = p_value(FEATURE_BLIND_TEST, 1e-12)
    claim = RandomizedResponse.from_epsilon((0, 1), 0.3)
    draft = claimed_epsilon.draft(case(evidence(refuted, epsilon=0.1), claim=claim))
    assert draft is not None
    answer = draft.test(0.05)
    assert answer.verdict == "fail"
    assert "group" not in answer.reason


def test_the_check_points_to_the_power_where_it_is_known() -> None:
    known = evidence(Estimate.exact(POWER, "", 0.1, unit="nats"), epsilon=0.9)
    policy = default_policy()
    for found, ids in ((known, (POWER,)), (evidence(epsilon=0.9), ())):
        draft = undetected_excess.draft(case(found, _asking(policy)))
        assert draft is not None
        assert draft.evidence == ids
    assert judged(known).verdict != "fail"


def test_what_could_be_missed_is_said_at_the_level_of_the_claims_test() -> None:
    policy = _asking(default_policy())
    drafted = policy.checks.model_copy(update={"claimed_channel": policy.checks.claimed_epsilon})
    policy = policy.model_copy(update={"checks": drafted})
    share = Estimate.exact(CLEAR_SHARE, "", 0.1, unit="proportion")
    known = evidence(
        *(Estimate.exact(POWER, "", 0.1, unit="nats"), share, p_value(CHANNEL, 0.5)),
        epsilon=0.9,
    )
    found = dict.fromkeys((POWER, CLEAR_SHARE), lambda alpha: 0.005 / alpha)
    known = replace(known, bounds={**known.bounds, **found})
    result = judged(known, policy)
    checks = {check.id: check for check in result.checks}
    assert checks["claimed-epsilon"].confidence == pytest.approx(0.975)
    assert checks["undetected-excess"].observed == pytest.approx(0.2)
    assert checks["undetected-excess"].confidence is None
    assert "a true ε above 1.2" in result.sentence
    assert "in 20.00 % of the rows" in result.sentence


def _asking(policy):
    """The policy with a limit of what may go unnoticed."""
    from ldpaudit.judging.policy.sections import PowerSection

    section = PowerSection(max=policy.audit.max_undetected_excess)
    checks = policy.checks.model_copy(update={"undetected_excess": section})
    return policy.model_copy(update={"checks": checks})
