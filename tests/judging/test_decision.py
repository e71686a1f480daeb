"""Decision, sentence, p-value and the steps that follow: one answer for people in a hurry."""

import re

import pytest
from judging.cases import evidence, judged, p_value, power
from scipy.stats import norm

from ldpaudit.judging.advice import MOST, one_in
from ldpaudit.judging.policy import STARTER, parse_policy
from ldpaudit.result import Check, decision_of

CHANNEL = "mechanism.channel_consistency"


def answered(verdict: str, level: str = "error", waived: bool = False) -> Check:
    fields = {"id": "claimed-epsilon", "question": "?", "limit": 1.0, "observed": 2.0}
    stated = {"verdict": verdict, "level": level, "waived": waived}
    return Check.model_validate(fields | stated)


def test_the_decision_follows_the_verdict() -> None:
    assert decision_of("pass", []) == "publish"
    assert decision_of("inconclusive", []) == "not yet"
    assert decision_of("fail", []) == "do not publish"


def test_a_failed_warning_has_to_be_looked_at_first() -> None:
    warned = answered("fail", "warn")
    assert decision_of("pass", [warned]) == "not yet"
    assert decision_of("fail", [warned]) == "do not publish"
    assert decision_of("pass", [answered("fail", "warn", waived=True)]) == "publish"
    assert decision_of("pass", [answered("inconclusive", "warn")]) == "publish"
    result = judged(evidence(power(0.1), p_value(CHANNEL, 1e-9), epsilon=1.0))
    assert result.verdict == "pass"
    assert "waive the check" in result.next_steps[-1]


def test_a_release_to_publish_has_its_steps_too() -> None:
    result = judged(evidence(power(0.1), p_value(CHANNEL, 0.4), epsilon=1.0))
    assert "Publish this very file" in result.next_steps[0]
    assert "fresh noise" in result.next_steps[1]
    assert len(result.next_steps) == 2
    found = evidence(power(0.1), p_value(CHANNEL, 0.4), epsilon=1.0)
    assert "--truth" in judged(found, truth=False).next_steps[2]


@pytest.mark.parametrize("word", ["private", "safe", "anonymous", "guarantee"])
def test_nothing_is_promised(word: str) -> None:
    for found in (
        evidence(power(0.1), epsilon=1.0),
        evidence(power(0.1), epsilon=3.0),
        evidence(power(2.0), epsilon=1.0),
    ):
        result = judged(found)
        assert not re.search(rf"\b{word}", " ".join((result.sentence, *result.next_steps)))
        assert len(result.next_steps) <= MOST


def test_epsilon_is_explained_where_it_is_named() -> None:
    assert "odds between two true labels" in judged(evidence(power(0.1), epsilon=1.0)).sentence
    sentence = judged(evidence(power(0.1), epsilon=3.0)).sentence
    assert "at least 19.3-fold, where at most 2.72-fold was promised" in sentence


@pytest.mark.parametrize("distance", [1.8, 2.0, 2.5, 3.0])
def test_the_p_value_is_the_smallest_level_that_fails(distance: float) -> None:
    """The bound at level α exceeds the claim from α = 1 − Φ(distance) on."""
    result = judged(evidence(power(0.1), epsilon=1.0 + 0.02 * distance, sd=0.02))
    check = result.checks[0]
    assert check.verdict == "fail"
    # The bound has a share of the error.
    assert check.p_value == pytest.approx(norm.sf(distance) / 0.8, rel=1e-6)


def test_the_p_value_holds_its_level_and_finds_a_leak() -> None:
    """Of 2,000 honest releases at most 5 % have p ≤ 0.05: above 155 has probability 1e-6."""
    import numpy as np

    rng = np.random.default_rng(8)
    p_values = []
    for error in rng.standard_normal(2000):
        check = judged(evidence(power(0.1), epsilon=1.0 + 0.02 * float(error))).checks[0]
        p_values.append(check.p_value)
    assert 20 <= sum(p is not None and p <= 0.05 for p in p_values) <= 155
    assert judged(evidence(power(0.1), epsilon=2.0)).checks[0].p_value == pytest.approx(1e-12)


def test_a_close_violation_says_how_often_chance_does_that() -> None:
    result = judged(evidence(power(0.1), epsilon=1.0 + 0.02 * 2.0))
    check = result.checks[0]
    assert check.p_value is not None
    assert f"at most one honest release in {one_in(check.p_value)} looks like" in result.sentence
    assert "confidence = 0.99" in result.next_steps[-1]
    assert "until one passes proves nothing" in result.next_steps[-1]
    clear = judged(evidence(power(0.1), epsilon=3.0))
    assert "by chance" not in clear.sentence
    assert "confidence = 0.99" not in " ".join(clear.next_steps)


def test_one_in_is_rounded_down() -> None:
    assert one_in(0.0299) == 33
    assert one_in(0.05) == 20


def test_a_check_that_does_not_fail_has_no_p_value() -> None:
    assert judged(evidence(power(0.1), epsilon=0.9)).checks[0].p_value is None


def test_gates_are_told_to_use_99_percent() -> None:
    assert parse_policy(STARTER).audit.confidence == 0.99


def test_a_claim_refuted_because_features_are_used_certifies_no_epsilon() -> None:
    found = evidence(p_value("assumptions.feature_blind", 1e-9), power(0.1), epsilon=3.0)
    result = judged(found)
    assert result.verdict == "fail"
    assert "the claim is refuted" in result.sentence
    assert "is certified" not in result.sentence
    assert "uses a feature" in result.next_steps[0]
