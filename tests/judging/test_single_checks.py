"""Words and limits of single checks."""

from dataclasses import replace

import pytest
from judging.cases import drafted, evidence, judged, p_value
from judging.test_node import node

from ldpaudit.judging.checks.interface import CLEAR_SHARE, POWER
from ldpaudit.judging.node import drafts_of
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.judging.policy.sections import ClaimSection, PowerSection
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import Estimate
from ldpaudit.result.stated import COMPOSED_EPSILON, FEATURE_BLIND_TEST

CHANNEL = "mechanism.channel_consistency"


def test_no_group_is_named_where_none_was_found() -> None:
    refuted = p_value(FEATURE_BLIND_TEST, 1e-12)
    claim = RandomizedResponse.from_epsilon((0, 1), 0.3)
    answer = drafted("claimed-epsilon", evidence(refuted, epsilon=0.1), claim=claim).test(0.05)
    assert answer.verdict == "fail"
    assert "group" not in answer.reason


def test_the_check_points_to_the_power_where_it_is_known() -> None:
    known = evidence(Estimate.exact(POWER, "", 0.1, unit="nats"), epsilon=0.9)
    policy = default_policy()
    for found, ids in ((known, (POWER,)), (evidence(epsilon=0.9), ())):
        assert drafted("undetected-excess", found, policy=_asking(policy)).evidence == ids
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


def _asking(policy: Policy) -> Policy:
    """The policy with a limit of what may go unnoticed."""
    section = PowerSection(max=policy.audit.max_undetected_excess)
    checks = policy.checks.model_copy(update={"undetected_excess": section})
    return policy.model_copy(update={"checks": checks})


def share(name: str, value: float, low: float | None = None) -> Estimate:
    return Estimate(id=name, kind="estimated", value=value, low=low, unit="proportion")


@pytest.mark.parametrize(("kind", "words"), [("exact", "people have"), ("estimated", "seem to")])
def test_whether_people_have_several_rows_is_said_as_it_is_known(kind: str, words: str) -> None:
    found = Estimate(id=COMPOSED_EPSILON, kind=kind, value=4.0, unit="nats")
    answer = drafted("composition", evidence(found)).test(0.05)
    assert answer.verdict == "fail"
    assert words in answer.reason


def test_the_largest_share_that_features_tell_is_observed() -> None:
    found = evidence(share("columns.told", 0.2), share("columns.position", 0.97))
    assert drafted("features-reveal-label", found).test(0.05).observed == 0.97


def test_a_node_that_declares_more_than_is_allowed() -> None:
    allowed = default_policy().model_copy(update={"claim": ClaimSection(epsilon=2.0)})
    mine = node(3.0, policy=allowed)
    draft = next(d for d in drafts_of(mine) if d.id == "claimed-epsilon")
    answer = draft.test(0.05)
    assert (answer.verdict, answer.observed) == ("fail", 3.0)
    assert "ε = 3 is declared, and the policy allows 2" in answer.reason
