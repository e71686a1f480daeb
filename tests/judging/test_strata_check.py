"""A claim about each stratum: one check made of several, and what single checks leave out."""

from dataclasses import replace

import pytest
from judging.cases import case, evidence, judged, p_value

from ldpaudit.audits.epsilon_proofs import FEATURE_BLIND_TEST
from ldpaudit.judging.checks import claimed_epsilon, undetected_excess
from ldpaudit.judging.checks.interface import CLEAR_SHARE, POWER, Answer, Case, Draft
from ldpaudit.judging.checks.strata import draft_of_strata
from ldpaudit.judging.policy import default_policy
from ldpaudit.mechanisms import ByStratum, RandomizedResponse
from ldpaudit.result import Estimate, in_stratum

CHANNEL = "mechanism.channel_consistency"
LOW, HIGH = (RandomizedResponse.from_epsilon(("q", "r"), e) for e in (0.5, 2.0))
CLAIM = ByStratum(("n", "s"), (LOW, HIGH))


def of_strata(first: str, second: str, observed: float | None = None) -> tuple[Draft, list[float]]:
    """The check of two strata with these answers, and the error probabilities that were asked."""
    asked: list[float] = []
    names = [in_stratum(number, "power.min_detectable_excess") for number in (1, 2)]
    estimates = [Estimate.exact(name, "", 0.1, unit="nats") for name in names]
    whole = Case(default_policy(), CLAIM, evidence(*estimates), 5_000)

    def one(mine: Case) -> Draft:
        verdict = first if mine.claim is LOW else second
        assert set(mine.evidence.estimates) == {"power.min_detectable_excess"}

        def test(alpha: float) -> Answer:
            asked.append(alpha)
            return Answer(verdict, observed, "was looked at")

        ids = ("power.min_detectable_excess",)
        return Draft("claimed-epsilon", "fail", "?", mine.claim.epsilon, ids, test)

    found = draft_of_strata(whole, one)
    assert found is not None
    return found, asked


@pytest.mark.parametrize(
    ("first", "second", "verdict", "named"),
    [
        ("pass", "pass", "pass", "no stratum"),
        ("pass", "fail", "fail", "in stratum 2"),
        ("fail", "fail", "fail", "in stratum 1"),
        ("inconclusive", "fail", "fail", "in stratum 2"),
        ("pass", "inconclusive", "inconclusive", "in stratum 2"),
    ],
)
def test_one_answer_for_all(first: str, second: str, verdict: str, named: str) -> None:
    draft, asked = of_strata(first, second)
    answer = draft.test(0.04)
    assert answer.verdict == verdict
    assert answer.observed is None
    assert answer.reason.startswith(named)
    assert draft.fails(0.04) == (verdict == "fail")
    assert set(asked) == {0.02}


def test_a_failure_says_how_much_and_where() -> None:
    draft, _ = of_strata("pass", "fail", 2.5)
    assert draft.test(0.05).reason.endswith(": at least ε = 2.5, where 2 is claimed")
    assert draft.limit is None
    assert draft.evidence == tuple(
        in_stratum(number, "power.min_detectable_excess") for number in (1, 2)
    )
    draft, _ = of_strata("pass", "inconclusive", 2.5)
    assert draft.test(0.05).reason == "in stratum 2 was looked at"


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
