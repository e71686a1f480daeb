"""Decision, sentence, p-value and the steps that follow: one answer for people in a hurry."""

import re
from dataclasses import replace

import pytest
from audits.assumptions.tables import release
from judging.cases import CLAIM, TODAY, drafted, evidence, judged, p_value, power
from scipy.stats import norm

import ldpaudit
from ldpaudit.errors import PolicyError
from ldpaudit.judging.advice import MOST, one_in
from ldpaudit.judging.checks.interface import Case, Circumstances
from ldpaudit.judging.checks.listing import draft_checks
from ldpaudit.judging.policy import STARTER, default_policy, parse_policy
from ldpaudit.judging.policy.sections import PowerSection
from ldpaudit.judging.verdict import judge
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import Check, Estimate, decision_of
from ldpaudit.result.stated import CLEAR_SHARE, COMPOSED_EPSILON, EXCESS, FEATURE_BLIND_TEST

CHANNEL = "mechanism.channel_consistency"


def answered(verdict, level="error", waived=False):
    fields = {"id": "claimed-epsilon", "question": "?", "limit": 1.0, "observed": 2.0}
    stated = {"verdict": verdict, "level": level, "waived": waived}
    return Check.model_validate(fields | stated)


def test_the_decision_follows_the_verdict():
    assert (decision_of("pass", []), decision_of("inconclusive", [])) == ("publish", "not yet")
    assert decision_of("fail", []) == "do not publish"


def test_a_failed_warning_has_to_be_looked_at_first():
    warned = answered("fail", "warn")
    assert decision_of("pass", [warned]) == "not yet"
    assert decision_of("fail", [warned]) == "do not publish"
    assert decision_of("pass", [answered("fail", "warn", waived=True)]) == "publish"
    assert decision_of("pass", [answered("inconclusive", "warn")]) == "publish"
    result = judged(evidence(power(0.1), p_value(CHANNEL, 1e-9), epsilon=1.0))
    assert result.verdict == "pass"
    assert "a waiver for this file" in result.next_steps[-1]


def test_a_release_to_publish_has_its_steps_too():
    result = judged(evidence(power(0.1), p_value(CHANNEL, 0.4), epsilon=1.0))
    assert "Publish this very file" in result.next_steps[0]
    assert "fresh noise" in result.next_steps[1]
    assert "still open: Remove the check" in result.next_steps[2]  # One that only warns.
    found = evidence(power(0.1), p_value(CHANNEL, 0.4), epsilon=1.0)
    assert "--truth" in judged(found, truth=False).next_steps[2]


def test_a_check_that_is_open_and_only_warns_has_its_step():
    asked = parse_policy(
        'schema = 1\nextends = "ldpaudit:default"\n[checks.instance-loss-exceedance]\n'
        'level = "warn"\nat = 6.0\nmax = 0.05\n'
    )
    result = judged(evidence(power(0.1), p_value(CHANNEL, 0.4), epsilon=1.0), asked)
    assert result.verdict == "pass"
    assert "For the check that is still open: " in result.next_steps[2]


@pytest.mark.parametrize("word", ["private", "safe", "anonymous", "guarantee"])
def test_nothing_is_promised(word):
    for found in (
        evidence(power(0.1), epsilon=1.0),
        evidence(power(0.1), epsilon=3.0),
        evidence(power(2.0), epsilon=1.0),
    ):
        result = judged(found)
        assert not re.search(rf"\b{word}", " ".join((result.sentence, *result.next_steps)))
        assert len(result.next_steps) <= MOST


def test_epsilon_is_explained_where_it_is_named():
    assert "odds between two true labels" in judged(evidence(power(0.1), epsilon=1.0)).sentence
    sentence = judged(evidence(power(0.1), epsilon=3.0)).sentence
    assert "at least 19.3-fold, where at most 2.72-fold was promised" in sentence


@pytest.mark.parametrize("distance", [1.8, 2.0, 2.5, 3.0])
def test_the_p_value_is_the_smallest_level_that_fails(distance):
    """The bound at level α exceeds the claim from α = 1 − Φ(distance) on."""
    result = judged(evidence(power(0.1), epsilon=1.0 + 0.02 * distance, sd=0.02))
    check = result.checks[0]
    assert check.verdict == "fail"
    # The bound has a share of the error.
    assert check.p_value == pytest.approx(norm.sf(distance) / 0.8, rel=1e-6)


def test_the_p_value_holds_its_level_and_finds_a_leak():
    """Of 1,000 honest releases at most 5 % have p ≤ 0.05: above 87 has probability 1e-6."""
    import numpy as np

    rng = np.random.default_rng(8)
    p_values = []
    for error in rng.standard_normal(1000):
        check = judged(evidence(power(0.1), epsilon=1.0 + 0.02 * float(error))).checks[0]
        p_values.append(check.p_value)
    assert 10 <= sum(p is not None and p <= 0.05 for p in p_values) <= 87
    assert judged(evidence(power(0.1), epsilon=2.0)).checks[0].p_value == pytest.approx(1e-12)


def test_a_close_violation_says_how_often_chance_does_that():
    result = judged(evidence(power(0.1), epsilon=1.0 + 0.02 * 2.0))
    check = result.checks[0]
    assert check.p_value is not None
    assert f"at most one honest release in {one_in(check.p_value)} looks like" in result.sentence
    assert "confidence = 0.99" in result.next_steps[-1]
    assert "until one passes proves nothing" in result.next_steps[-1]
    clear = judged(evidence(power(0.1), epsilon=3.0))
    assert "by chance" not in clear.sentence
    assert "confidence = 0.99" not in " ".join(clear.next_steps)


def test_one_in_is_rounded_down():
    assert (one_in(0.0299), one_in(0.05)) == (33, 20)


def test_a_check_that_does_not_fail_has_no_p_value():
    assert judged(evidence(power(0.1), epsilon=0.9)).checks[0].p_value is None


def test_gates_are_told_to_use_99_percent():
    assert parse_policy(STARTER).audit.confidence == 0.99


def test_a_claim_refuted_because_features_are_used_certifies_no_epsilon():
    found = evidence(p_value("assumptions.feature_blind", 1e-9), power(0.1), epsilon=3.0)
    result = judged(found)
    assert result.verdict == "fail"
    assert "the claim is refuted" in result.sentence
    assert "is certified" not in result.sentence
    assert "uses a feature" in result.next_steps[0]


FILE = "0" * 64
LEAKING = evidence(power(0.1), epsilon=3.0)
HONEST = evidence(power(0.1), p_value("mechanism.channel_consistency", 0.4), epsilon=1.0)


def waiver(expires="2026-06-01", check="claimed-epsilon", file=FILE):
    return f"""
[[waivers]]
check = "{check}"
release_sha256 = "{file}"
reason = "accepted by the board"
approved_by = "A. Smith"
expires = {expires}
"""


def policy(*waivers, more=""):
    return parse_policy(f'schema = 1\nextends = "ldpaudit:default"\n{more}{"".join(waivers)}')


def decided(found, asked, file=FILE, **known):
    return judge(asked, CLAIM, found, rows=5000, sha256=file, today=TODAY, **known)


def warnings(judgement):
    return [n.text for n in judgement.notes if n.level == "warning" and "waiver" in n.text]


def test_a_waived_violation_stays_one_in_every_form():
    result = decided(LEAKING, policy(waiver()))
    (check,) = (check for check in result.checks if check.id == "claimed-epsilon")
    assert check.verdict == "fail"
    assert check.waived
    assert check.waiver.model_dump() == {
        "approved_by": "A. Smith",
        "reason": "accepted by the board",
        "expires": "2026-06-01",
    }
    assert (result.verdict, decision_of(result.verdict, result.checks)) == ("pass", "publish")
    start = "Violation found, waived until 2026-06-01 by A. Smith: the release claims ε = 1, but"
    assert result.sentence.startswith(start)
    assert "No violation" not in result.sentence


def test_a_waiver_makes_no_claim_true():
    result = decided(LEAKING, policy(waiver()))
    assert "claim is refuted" in result.next_steps[0]
    assert "with its declaration" not in " ".join(result.next_steps)
    assert any("refuted" in note.text for note in result.notes)


def test_it_counts_on_its_last_day_and_no_longer():
    assert decided(LEAKING, policy(waiver("2026-06-01"))).verdict == "pass"
    late = decided(LEAKING, policy(waiver("2026-05-31")))
    assert late.verdict == "fail"
    assert warnings(late) == [
        "The waiver of claimed-epsilon expired on 2026-05-31 and counts no more."
    ]


@pytest.mark.parametrize(
    ("found", "asked", "file", "why"),
    [
        (LEAKING, policy(waiver(file="1" * 64)), FILE, "another file"),
        (LEAKING, policy(waiver()), None, "table in memory"),
        (HONEST, policy(waiver()), FILE, "the check passes"),
        (evidence(power(2.0), epsilon=1.0), policy(waiver()), FILE, "is inconclusive"),
        (HONEST, policy(waiver(check="shared-noise")), FILE, "nothing to answer"),
    ],
)
def test_an_unused_waiver_says_why(found, asked, file, why):
    result = decided(found, asked, file)
    (warning,) = warnings(result)
    assert why in warning
    assert not any(check.waived for check in result.checks)


def test_only_the_named_check_is_waived():
    leaking = evidence(power(0.1), p_value("seeds.p_value", 1e-30), epsilon=3.0)
    result = decided(leaking, policy(waiver()))
    assert result.verdict == "fail"
    assert "anybody can compute the noise" in result.sentence
    assert "A violation is waived until 2026-06-01 by A. Smith" in result.sentence


def test_a_waiver_never_answers_what_is_inconclusive():
    found = evidence(power(0.1), epsilon=3.0)
    result = decided(found, policy(waiver(), more="[audit]\nmin_rows = 9000\n"))
    assert result.verdict == "inconclusive"
    assert decision_of(result.verdict, result.checks) == "not yet"
    assert "waived until" in result.sentence


def test_a_waived_warning_is_published_by_waiver():
    found = evidence(power(0.1), p_value("mechanism.channel_consistency", 1e-9), epsilon=1.0)
    without = decided(found, policy())
    assert decision_of(without.verdict, without.checks) == "not yet"
    result = decided(found, policy(waiver(check="claimed-channel")))
    assert decision_of(result.verdict, result.checks) == "publish"
    assert result.sentence.startswith("No violation found: nothing contradicts the claimed ε")
    assert "A violation is waived until 2026-06-01 by A. Smith: the released" in result.sentence


def test_of_two_waivers_the_longer_one_is_shown():
    result = decided(LEAKING, policy(waiver("2026-07-01"), waiver("2026-06-02")))
    assert "waived until 2026-07-01" in result.sentence
    assert not warnings(result)


def test_no_group_is_named_where_none_was_found():
    refuted = p_value(FEATURE_BLIND_TEST, 1e-12)
    claim = RandomizedResponse.from_epsilon((0, 1), 0.3)
    answer = drafted("claimed-epsilon", evidence(refuted, epsilon=0.1), claim=claim).test(0.05)
    assert answer.verdict == "fail"
    assert "group" not in answer.reason


def test_the_check_points_to_the_power_where_it_is_known():
    known = evidence(Estimate.exact(EXCESS, "", 0.1, unit="nats"), epsilon=0.9)
    policy = default_policy()
    for found, ids in ((known, (EXCESS,)), (evidence(epsilon=0.9), ())):
        assert drafted("undetected-excess", found, policy=_asking(policy)).evidence == ids
    assert judged(known).verdict != "fail"


def test_what_could_be_missed_is_said_at_the_level_of_the_claims_test():
    policy = _asking(default_policy())
    drafted = policy.checks.model_copy(update={"claimed_channel": policy.checks.claimed_epsilon})
    policy = policy.model_copy(update={"checks": drafted})
    share = Estimate.exact(CLEAR_SHARE, "", 0.1, unit="proportion")
    known = evidence(
        *(Estimate.exact(EXCESS, "", 0.1, unit="nats"), share, p_value(CHANNEL, 0.5)),
        epsilon=0.9,
    )
    found = dict.fromkeys((EXCESS, CLEAR_SHARE), lambda alpha: 0.005 / alpha)
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
    section = PowerSection(max=policy.audit.max_undetected_excess)
    checks = policy.checks.model_copy(update={"undetected_excess": section})
    return policy.model_copy(update={"checks": checks})


def share(name, value, low=None):
    return Estimate(id=name, kind="estimated", value=value, low=low, unit="proportion")


@pytest.mark.parametrize(("kind", "words"), [("exact", "people have"), ("estimated", "seem to")])
def test_whether_people_have_several_rows_is_said_as_it_is_known(kind, words):
    found = Estimate(id=COMPOSED_EPSILON, kind=kind, value=4.0, unit="nats")
    answer = drafted("composition", evidence(found)).test(0.05)
    assert answer.verdict == "fail"
    assert words in answer.reason


def test_the_largest_share_that_features_tell_is_observed():
    found = evidence(share("columns.told", 0.2), share("columns.position", 0.97))
    assert drafted("features-reveal-label", found).test(0.05).observed == 0.97


BASE = 'schema = 1\nextends = "ldpaudit:default"\n'


def audited(policy, *, truth=True, **options):
    frame, labels = release("none", 1, 1000)
    options = {"only": ("mechanism",), **options}
    frame = frame.drop(columns="home")
    return ldpaudit.audit(
        frame, labels if truth else None, "rr", epsilon=1.0, policy=policy, threads=1, **options
    )


def test_a_declared_epsilon_above_the_policys_is_a_violation_whatever_was_measured():
    result = audited(parse_policy(f"{BASE}[claim]\nepsilon = 0.9\n"))
    assert result.verdict == "fail"
    assert result.sentence.startswith(
        "Violation found: ε = 1 is declared, and the policy allows 0.9."
    )
    assert result.next_steps[0].startswith("Release with ε = 0.9 or less")
    assert not any("refuted" in note.text for note in result.notes)


def test_a_declared_epsilon_below_the_policys_is_held_against_the_release_itself():
    result = audited(parse_policy(f"{BASE}[claim]\nepsilon = 2.0\n"), only=("mechanism", "power"))
    assert result.mechanism.epsilon == pytest.approx(1)
    assert result.verdict != "fail"


@pytest.mark.parametrize(
    "check",
    ["instance-loss-exceedance]\nat = 6.0\nmax = 0.05", "label-inference-advantage]\nmax = 0.1"],
)
def test_a_policy_of_which_no_check_could_run(check):
    policy = parse_policy(f"schema = 1\n[checks.{check}\n")
    with pytest.raises(PolicyError, match="No check of the policy could run") as raised:
        audited(policy, truth=False)
    assert "left out" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("name", ["columns.told", "attack.features-only.auc"])
@pytest.mark.parametrize("truth", [False, True])
def test_without_true_labels_only_what_was_looked_at_is_said(name, truth):
    seen = Circumstances(truth=truth)
    case = Case(default_policy(), CLAIM, evidence(share(name, 0.2, 0.1)), 100, seen)
    found = next(one for one in draft_checks(case) if one.id == "features-reveal-label")
    assert ("by the released labels" in found.test(0.05).reason) == (not truth)
