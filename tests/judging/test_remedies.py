"""Each way to be inconclusive has its remedy, with numbers where they are known."""

import math
from typing import Any

import pytest
from judging.cases import CLAIM, bound, curve, evidence, judged, p_value, power, record

from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.checks.listing import audit_behind
from ldpaudit.judging.policy import Policy, check_names, parse_policy
from ldpaudit.judging.verdict import Judgement
from ldpaudit.mechanisms import RandomizedResponse, UnknownMechanism, from_declaration
from ldpaudit.release import Declaration
from ldpaudit.result import Estimate


def rows(name: str, value: float) -> Estimate:
    return Estimate.estimated(name, "", value, unit="rows")


def nats(name: str, value: float) -> Estimate:
    return Estimate.estimated(name, "", value, unit="nats")


def policy(text: str) -> Policy:
    return parse_policy(f"schema = 1\n{text}")


def outsider(*estimates: Estimate, **circumstances: Any) -> Judgement:
    found = Evidence(
        {e.id: e for e in (power(1.787, "estimated"), *estimates)},
        {},
        {"release_only.epsilon_lower": bound(0.3)},
    )
    return judged(found, truth=False, **circumstances)


def test_without_the_truth_the_step_says_what_it_would_find() -> None:
    result = outsider(nats("power.with_truth.min_detectable_excess", 0.0391))
    assert result.verdict == "inconclusive"
    assert result.next_steps[0] == (
        "Give the true labels (--truth): with them this audit would find an excess of 0.0391."
    )


def test_where_even_the_truth_is_too_little_the_step_says_how_many_rows() -> None:
    found = (
        nats("power.with_truth.min_detectable_excess", 0.9),
        rows("power.with_truth.rows_needed", 36_000),
    )
    assert (
        "and of the 0.5 that the policy allows with 41,000 rows" in outsider(*found).next_steps[0]
    )


def test_without_any_power_the_truth_is_still_asked_for() -> None:
    assert outsider().next_steps[0] == "Give the true labels (--truth)."
    unknown = Evidence({}, {}, {"release_only.epsilon_lower": bound(0.3)})
    skipped = (record("power", "no channel is declared that could be sharpened."),)
    result = judged(unknown, truth=False, records=skipped)
    assert "because the audit power did not run: no channel is declared" in result.sentence
    assert result.next_steps[0] == "Give the true labels (--truth)."


def test_an_insider_with_too_few_rows_is_told_how_many() -> None:
    result = judged(evidence(power(0.7), rows("power.rows_needed", 36_000), epsilon=0.9))
    assert result.next_steps[0] == (
        "Release more rows: it needs 41,000 in all, 36,000 more, to find an excess of 0.5."
    )
    assert "max_undetected_excess = 0.7 " in result.next_steps[1]


def test_no_number_of_rows_is_promised_where_none_suffices() -> None:
    result = judged(evidence(power(math.inf), rows("power.rows_needed", math.inf), epsilon=0.9))
    assert not any("in all" in step or "∞" in step for step in result.next_steps)


@pytest.mark.parametrize(
    ("option", "step"), [("--only", "Add --only power."), ("--skip", "Take --skip power away.")]
)
def test_an_audit_that_the_user_left_out_is_named(option: str, step: str) -> None:
    result = judged(evidence(epsilon=0.9), left_out={"power": option})
    assert result.sentence == (
        "Inconclusive: how much this audit could miss is not known, because the audit power was "
        f"left out ({option})."
    )
    assert result.next_steps == (step,)


def test_the_audit_behind_each_check_is_named() -> None:
    limits = policy(
        "[checks.instance-loss-exceedance]\nat = 6.0\nmax = 0.05\n"
        "[checks.label-inference-advantage]\nmax = 0.05\n[checks.renyi-epsilon]\nmax = 3.0"
    )
    audits = ("instance-loss", "label-inference", "renyi")
    result = judged(evidence(), limits, left_out=dict.fromkeys(audits, "--only"))
    for check, audit in zip(result.checks, audits, strict=True):
        assert f"because the audit {audit} was left out (--only)" in check.reason
    assert result.next_steps == tuple(f"Add --only {audit}." for audit in audits)


def test_without_a_bound_the_mechanism_audit_is_missing() -> None:
    result = judged(evidence(), left_out={"mechanism": "--only", "power": "--only"})
    assert result.next_steps == ("Add --only mechanism.",)


def test_nothing_claimed_and_an_infinite_claim() -> None:
    nothing = judged(evidence(power(0.1), epsilon=0.9), claim=UnknownMechanism())
    assert "--mechanism randomized-response --epsilon 1" in nothing.next_steps[0]
    infinite = judged(evidence(power(0.1), epsilon=9), claim=RandomizedResponse((0, 1), 0.0))
    assert "an infinite ε" in infinite.next_steps[0]


def test_a_mechanism_that_uses_features_needs_its_public_model() -> None:
    parameters = {"classes": [0, 1], "lambda": 0.3, "floor": 0.05}
    claim = from_declaration(Declaration("model-based-rr", parameters), (0, 1))
    step = judged(evidence(), claim=claim, truth=False).next_steps[0]
    assert "(--truth)" in step
    assert "(--public-posterior)" in step
    assert "--truth" not in judged(evidence(), claim=claim).next_steps[0]


def attack(value: float, low: float, high: float, kind: str = "certified") -> Estimate:
    fields = {"id": "attack.best.advantage", "kind": kind, "value": value, "low": low}
    return Estimate.model_validate(fields | {"high": high, "side": "two-sided", "level": 0.95})


ADVANTAGE = policy("[checks.label-inference-advantage]\nmax = 0.05")


def test_an_interval_that_straddles_needs_rows() -> None:
    """Four times nearer to the limit than it is wide: 16 times the rows, and a tenth more."""
    result = judged(evidence(attack(0.04, 0.0, 0.08)), ADVANTAGE)
    assert result.next_steps == (
        "Release more rows: with about 89,000 in all the interval would end at the limit.",
    )
    close = judged(evidence(attack(0.05, 0.0, 0.1)), ADVANTAGE)
    assert "too close to the limit" in close.next_steps[0]


def test_attacks_left_out_for_the_budget_are_counted_in_seconds() -> None:
    needed = Estimate.estimated("attack.budget_needed", "", 117.2)
    result = judged(evidence(attack(0.04, 0.0, 0.08), needed), ADVANTAGE)
    assert result.next_steps[0] == "Let all attacks run: --budget 118."


def test_attacks_scored_under_the_claim_need_the_truth() -> None:
    result = judged(evidence(attack(0.2, 0.1, 0.3, "estimated")), ADVANTAGE, truth=False)
    assert result.next_steps == (
        "Give the true labels (--truth): attacks are scored against them.",
    )


def test_loss_and_divergence_between_their_bounds() -> None:
    limits = policy("[checks.instance-loss-exceedance]\nat = 6.0\nmax = 0.05")
    found = evidence()
    both = Evidence(
        found.estimates,
        {"instance_loss.exceedance": curve("instance_loss.exceedance", 0.06, 0.01)},
        {},
    )
    assert "--queries all" in judged(both, limits).next_steps[0]
    renyi = policy("[checks.renyi-epsilon]\nmax = 3.0")
    wide = Evidence({}, {"renyi.release": curve("renyi.release", 1.0, 1.0)}, {})
    assert "more rows" in judged(wide, renyi).next_steps[0]


def test_the_least_number_of_rows_is_said_whether_met_or_not() -> None:
    few = judged(evidence(), policy("[audit]\nmin_rows = 6000"))
    assert few.sentence == "Inconclusive: 5,000 rows, 6,000 needed."
    assert few.next_steps[0].startswith("Release at least 6,000 rows")
    enough = judged(evidence(), policy("[audit]\nmin_rows = 1000"))
    assert enough.checks[0].reason == "5,000 rows, 1,000 needed"


def test_a_refuted_channel_behind_the_power_is_looked_into() -> None:
    found = (power(0.1, "estimated"), p_value("mechanism.channel_consistency", 1e-9))
    result = judged(evidence(*found, epsilon=0.9))
    assert result.verdict == "inconclusive"
    assert result.next_steps[0].startswith("Find out why the labels do not follow")


def test_doubt_about_features_asks_to_look_at_the_code() -> None:
    found = Evidence(
        {"assumptions.feature_blind": p_value("assumptions.feature_blind", 0.03)}, {}, {}
    )
    result = judged(found)
    assert result.verdict == "inconclusive"
    assert "whether the release code uses the features" in result.next_steps[0]


def test_every_inconclusive_verdict_has_a_step() -> None:
    for claim in (CLAIM, UnknownMechanism(), RandomizedResponse((0, 1), 0.0)):
        for truth in (False, True):
            for found in (evidence(), evidence(epsilon=0.9), evidence(power(2.0), epsilon=0.9)):
                result = judged(found, claim=claim, truth=truth)
                assert result.verdict == "inconclusive"
                assert result.next_steps


@pytest.mark.parametrize("check", check_names())
@pytest.mark.parametrize("truth", [False, True])
def test_every_check_without_evidence_has_a_reason_and_a_step_of_its_own(
    check: str, truth: bool
) -> None:
    limits = {
        "instance-loss-exceedance": "at = 6.0\nmax = 0.1",
        "label-inference-advantage": "max = 0.1",
        "label-inference-accuracy": "max = 0.1",
        "renyi-epsilon": "max = 1.0",
    }
    asked = policy(f"[checks.{check}]\n{limits.get(check, '')}")
    lacking = record(audit_behind(check) or "mechanism", "The reason.")
    result = judged(evidence(), asked, truth=truth, records=(lacking,))
    if result.checks and result.checks[0].verdict == "inconclusive":
        assert result.checks[0].reason
        assert not result.next_steps[0].startswith("Read in the report")


def test_an_outsider_learns_how_many_rows_would_do_alone() -> None:
    steps = outsider(rows("power.rows_needed", 36_000)).next_steps
    assert "From the release alone 41,000 rows in all would do, by estimate." in steps


def test_where_rows_share_noise_that_is_looked_for_first() -> None:
    found = (power(0.7), rows("power.rows_needed", 300), rows("assumptions.counted_rows", 400))
    steps = judged(evidence(*found, epsilon=0.9)).next_steps
    assert steps[0].startswith("Look for noise that rows share")
    assert "300 more rows with noise of their own" in steps[1]


def test_an_audit_that_lacks_something_besides_the_truth_says_what() -> None:
    asked = policy('[checks.renyi-epsilon]\nlevel = "error"\nalpha = 2.0\nmax = 3.0\n')
    lacking = record("renyi", "The Rényi audit needs at least 400 rows.")
    result = judged(evidence(power(0.1), epsilon=1.0), asked, truth=True, records=(lacking,))
    assert result.verdict == "inconclusive"
    assert "at least 400 rows" in result.next_steps[0]


def test_a_policy_without_a_check_is_told_how_to_get_one() -> None:
    warns = policy('[checks.claimed-epsilon]\nlevel = "warn"')
    result = judged(evidence(power(0.1), epsilon=1.0), warns)
    assert result.verdict == "inconclusive"
    assert "ldpaudit:default" in result.next_steps[0]
