import datetime
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.policy import Policy, default_policy, parse_policy
from ldpaudit.judging.verdict import Judgement, corrected_levels, judge
from ldpaudit.mechanisms import Mechanism, RandomizedResponse, UnknownMechanism
from ldpaudit.result import Check, Curve, Estimate, holding_up

TODAY = datetime.date(2026, 6, 1)
CLAIM = RandomizedResponse.from_epsilon((0, 1), 1.0)


def normal_bound(mean: float, sd: float) -> Callable[[float], float]:
    from scipy.stats import norm

    return lambda alpha: mean + sd * float(norm.ppf(alpha))


def power(excess: float) -> Estimate:
    return Estimate(id="power.min_detectable_excess", kind="exact", value=excess, unit="nats")


def evidence(
    epsilon: tuple[float, float] | None = None,
    excess: float | None = None,
    estimates: tuple[Estimate, ...] = (),
    curves: tuple[Curve, ...] = (),
) -> Evidence:
    every = estimates + ((power(excess),) if excess is not None else ())
    bounds = {} if epsilon is None else {"mechanism.epsilon_lower": normal_bound(*epsilon)}
    return Evidence({e.id: e for e in every}, {c.id: c for c in curves}, bounds)


def judged(found: Evidence, policy: Policy | None = None, claim: Mechanism = CLAIM) -> Judgement:
    return judge(policy or default_policy(), claim, found, rows=5000, sha256="0" * 64, today=TODAY)


def test_an_honest_release_passes_with_its_power_in_the_sentence() -> None:
    result = judged(evidence((1.0, 0.02), 0.1, (p_value(0.4),)))
    assert result.verdict == "pass"
    assert result.sentence.startswith("No violation found: nothing contradicts the claimed ε = 1, ")
    assert "a true ε above 1.1" in result.sentence


def test_a_leaking_release_fails_and_the_sentence_says_by_how_much() -> None:
    result = judged(evidence((3.0, 0.02), 0.1))
    assert result.verdict == "fail"
    assert "claims ε = 1, but at least ε = 2.9" in result.sentence


def test_a_narrow_violation_is_not_rounded_away() -> None:
    result = judged(evidence((1.0004, 1e-7), 0.1))
    assert result.verdict == "fail"
    assert "at least ε = 1.0003" in result.sentence


def test_too_little_power_is_inconclusive() -> None:
    result = judged(evidence((1.0, 0.5), 1.7))
    assert result.verdict == "inconclusive"
    assert "1.7" in result.sentence


def test_no_claim_is_inconclusive() -> None:
    result = judged(evidence((1.0, 0.5), 0.1), claim=UnknownMechanism())
    assert result.verdict == "inconclusive"
    assert "nothing was claimed, so nothing was judged" in result.sentence


def test_a_claim_of_infinity_is_inconclusive() -> None:
    assert judged(evidence((9.0, 0.1), 0.1), claim=RandomizedResponse((0, 1), 0.0)).verdict == (
        "inconclusive"
    )


def p_value(value: float) -> Estimate:
    return Estimate.model_validate(
        {
            "id": "mechanism.channel_consistency",
            "kind": "certified",
            "value": value,
            "side": "upper",
            "level": 0.95,
        }
    )


def test_a_warning_does_not_flip_the_verdict() -> None:
    result = judged(evidence((1.0, 0.02), 0.1, (p_value(1e-9),)))
    verdicts = {check.id: check.verdict for check in result.checks if check.evidence}
    assert verdicts == {"claimed-epsilon": "pass", "claimed-channel": "fail"}
    assert result.verdict == "pass"


def test_power_by_estimate_is_worth_nothing_once_the_channel_is_refuted() -> None:
    """It was estimated as if the claim were right about the release."""
    by_estimate = power(0.1).model_copy(update={"kind": "estimated"})

    def found(epsilon: float, p: float, bound: str = "release_only.epsilon_lower") -> Judgement:
        every = {e.id: e for e in (p_value(p), by_estimate)}
        return judged(Evidence(every, {}, {bound: normal_bound(epsilon, 0.02)}))

    result = found(1.0, 1e-9)
    assert result.verdict == "inconclusive"
    assert "known only for labels that follow the claimed channel" in result.sentence
    assert "would, by estimate" not in result.sentence
    assert found(1.0, 0.4).verdict == "pass"
    assert found(3.0, 1e-9).verdict == "fail"
    # With true labels it assumes nothing of this release.
    assert found(1.0, 1e-9, "mechanism.epsilon_lower").verdict == "pass"


EXCEEDANCE = 'schema = 1\n[checks.instance-loss-exceedance]\nat = 6.0\nmax = 0.05\nlevel = "error"'


def exceedance(value: float, low: float) -> Curve:
    return Curve(
        id="instance_loss.exceedance",
        kind="estimated",
        x=(0.0, 5.5, 6.0, 6.5),
        value=(1.0, value, value, value),
        low=(1.0, low, low, low),
        level=0.99,
    )


@pytest.mark.parametrize(
    ("value", "low", "verdict"),
    [(0.01, 0.0, "pass"), (0.2, 0.1, "fail"), (0.06, 0.01, "inconclusive")],
)
def test_exceedance(value: float, low: float, verdict: str) -> None:
    found = evidence(curves=(exceedance(value, low),))
    assert judged(found, parse_policy(EXCEEDANCE)).verdict == verdict


def test_both_metrics_must_lie_within_the_limit() -> None:
    near, far = exceedance(0.01, 0.0), exceedance(0.2, 0.1)
    learned = far.model_copy(update={"id": "instance_loss.exceedance_learned"})
    policy = parse_policy(EXCEEDANCE)
    assert judged(evidence(curves=(near, learned)), policy).verdict == "fail"
    unsure = exceedance(0.2, 0.0).model_copy(update={"id": "instance_loss.exceedance_learned"})
    assert judged(evidence(curves=(near, unsure)), policy).verdict == "inconclusive"


def test_exceedance_without_the_curve_is_inconclusive() -> None:
    assert judged(evidence(), parse_policy(EXCEEDANCE)).verdict == "inconclusive"


ADVANTAGE = "schema = 1\n[checks.label-inference-advantage]\nmax = 0.05"


def advantage(low: float, high: float, kind: str = "certified") -> Estimate:
    fields: dict[str, Any] = {
        "id": "attack.best.advantage",
        "kind": kind,
        "value": (low + high) / 2,
        "low": low,
        "high": high,
        "side": "two-sided",
        "level": 0.95,
    }
    return Estimate.model_validate(fields)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.0, 0.04, "pass"), (0.06, 0.09, "fail"), (0.04, 0.06, "inconclusive")],
)
def test_advantage(low: float, high: float, verdict: str) -> None:
    found = evidence(estimates=(advantage(low, high),))
    assert judged(found, parse_policy(ADVANTAGE)).verdict == verdict


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_limit_never_makes_a_verdict_worse(
    low: float, high: float, limit: float, more: float
) -> None:
    low, high = sorted((low, high))
    found = evidence(estimates=(advantage(low, high),))
    order = ("fail", "inconclusive", "pass")
    verdicts = []
    for most in sorted((limit, more)):
        policy = parse_policy(f"schema = 1\n[checks.label-inference-advantage]\nmax = {most!r}")
        verdicts.append(order.index(judged(found, policy).verdict))
    assert verdicts[0] <= verdicts[1]


def test_an_estimated_advantage_cannot_fail_or_pass() -> None:
    found = evidence(estimates=(advantage(0.2, 0.3, "estimated"),))
    assert judged(found, parse_policy(ADVANTAGE)).verdict == "inconclusive"


def test_too_few_rows_are_inconclusive() -> None:
    policy = parse_policy('schema = 1\nextends = "ldpaudit:default"\n[audit]\nmin_rows = 5001')
    assert judged(evidence((1.0, 0.02), 0.1, (p_value(0.4),)), policy).verdict == "inconclusive"


@settings(max_examples=40)
@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=8))
@example([0.0125, 0.02, 0.03, 0.01])
@example([0.03, 0.012, 0.9, 0.0125])
@example([0.05, 0.05])
@example([0.0, 1.0, 0.5])
@pytest.mark.parametrize("correction", ["holm", "bonferroni"])
def test_what_statsmodels_rejects_is_rejected(correction: str, p_values: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    levels = corrected_levels(p_values, 0.05, correction)
    ours = [p <= level for p, level in zip(p_values, levels, strict=True)]
    assert ours == list(multipletests(p_values, 0.05, method=correction)[0])


def test_the_family_wise_error_holds() -> None:
    """Two true claims, 2,000 audits: more than 155 false alarms have probability below 1e-6."""
    rng = np.random.default_rng(5)
    policy = parse_policy(
        'schema = 1\nextends = "ldpaudit:default"\n[checks.claimed-channel]\nlevel = "error"'
    )
    wrong = 0
    for _ in range(2000):
        mean = 1.0 + 0.02 * rng.standard_normal()
        found = evidence((mean, 0.02), 0.1, (p_value(float(rng.uniform(1e-12, 1))),))
        wrong += judged(found, policy).verdict == "fail"
    assert wrong <= 155
    assert wrong >= 20  # the levels are used up, not thrown away


def test_an_infinite_bound_fails_every_claim() -> None:
    found = Evidence({}, {}, {"mechanism.epsilon_lower": lambda _: math.inf})
    assert judged(found).verdict == "fail"


def test_a_refuted_claim_is_said_beside_what_rests_on_it() -> None:
    notes = judged(evidence((3.0, 0.02), 0.1)).notes
    assert any("declared mechanism is refuted" in note.text for note in notes)
    assert not judged(evidence((1.0, 0.02), 0.1, (p_value(0.4),))).notes


def test_a_failed_warning_is_in_the_sentence_with_its_confidence() -> None:
    found = judged(evidence((1.0, 0.02), 0.1, (p_value(0.013),)))
    assert found.verdict == "pass"
    assert "But a check that only warns failed: the released labels do not" in found.sentence
    assert found.sentence.endswith("(at 95 % confidence).")
    assert "refuted, at 95 % confidence" in found.notes[0].text


def test_the_sentence_of_a_violation_says_nothing_of_warnings() -> None:
    found = judged(evidence((3.0, 0.02), 0.1, (p_value(1e-9),)))
    assert found.verdict == "fail"
    assert "only warns" not in found.sentence


def test_power_is_asked_at_the_corrected_level() -> None:
    """Two checks of level error: each is answered at half the error probability."""
    policy = parse_policy(
        'schema = 1\nextends = "ldpaudit:default"\n[checks.claimed-channel]\nlevel = "error"'
    )
    found = evidence((1.0, 0.02), 0.1, (p_value(0.4),))
    power_at = {"power.min_detectable_excess": lambda alpha: 0.1 if alpha > 0.03 else 0.9}
    corrected = Evidence(found.estimates, found.curves, {**found.bounds, **power_at})
    assert judged(corrected).verdict == "pass"
    result = judged(corrected, policy)
    assert result.verdict == "inconclusive"
    assert "0.9" in result.sentence


def test_labels_that_depend_on_features_refute_the_claim_without_a_number() -> None:
    """Bounds that need a feature-blind channel are not called certified then."""
    test = Estimate.upper_bound("assumptions.feature_blind", "", 1e-9, 0.95)
    result = judged(evidence((3.0, 0.02), 0.1, (test,)))
    assert result.verdict == "fail"
    assert "the claim is refuted: the released label depends on the features" in result.sentence
    assert "certified" not in result.sentence
    withheld = judged(Evidence({test.id: test}, {}, {}))
    assert withheld.verdict == "fail"


def test_a_doubt_about_the_features_is_no_violation() -> None:
    test = Estimate.upper_bound("assumptions.feature_blind", "", 0.03, 0.95)
    assert judged(evidence((1.0, 0.02), 0.1, (p_value(0.4), test))).verdict == "pass"
    assert judged(Evidence({test.id: test}, {}, {})).verdict == "inconclusive"


def test_with_true_labels_the_release_alone_decides_nothing() -> None:
    bounds = {
        "mechanism.epsilon_lower": normal_bound(1.0, 0.02),
        "release_only.epsilon_lower": normal_bound(5.0, 0.02),
    }
    found = evidence(None, 0.1, (p_value(0.4),))
    assert judged(Evidence(found.estimates, {}, bounds)).verdict == "pass"
    alone = {"release_only.epsilon_lower": bounds["release_only.epsilon_lower"]}
    assert judged(Evidence(found.estimates, {}, alone)).verdict == "fail"


@pytest.mark.parametrize(
    "name", ["mechanism.subgroup_epsilon_lower", "mechanism.shared_noise_epsilon_lower"]
)
def test_every_bound_from_true_labels_can_refute_the_claim(name: str) -> None:
    bounds = {"mechanism.epsilon_lower": normal_bound(0.9, 0.02), name: normal_bound(3.0, 0.02)}
    found = evidence(None, 0.1, (p_value(0.4),))
    result = judged(Evidence(found.estimates, {}, bounds))
    assert result.verdict == "fail"
    assert name in result.checks[0].evidence


def test_of_equally_grave_checks_one_that_may_be_chance_comes_last() -> None:
    common = {"question": "?", "limit": None, "observed": None, "verdict": "fail", "level": "error"}
    by_chance = Check(id="claimed-epsilon", **common, confidence=0.95, p_value=1 / 165)
    sure = Check(id="guessable-seed", **common, confidence=1 - 1e-9, p_value=1e-12)
    warned = sure.model_copy(update={"id": "identifiers", "level": "warn"})
    found = holding_up([warned, by_chance, sure])
    assert [check.id for check in found] == ["guessable-seed", "claimed-epsilon", "identifiers"]


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "none"])
def test_a_policy_without_a_test_of_a_level_is_judged(correction: str) -> None:
    policy = parse_policy(
        f'schema = 1\n[audit]\ncorrection = "{correction}"\n[checks.claimed-epsilon]\n'
    )
    assert judged(evidence((1.0, 0.02), 0.1), policy).verdict == "pass"
