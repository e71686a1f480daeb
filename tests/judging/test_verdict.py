"""The verdict: what fails, passes and stays open, at which level, and what the sentence says."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from judging.cases import bound, curve, evidence, judged, p_value, power

from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.policy import parse_policy
from ldpaudit.judging.verdict import corrected_levels
from ldpaudit.mechanisms import RandomizedResponse, UnknownMechanism
from ldpaudit.result import Check, Estimate, holding_up

DEFAULT = 'schema = 1\nextends = "ldpaudit:default"\n'
BOTH_DECIDE = f'{DEFAULT}[checks.claimed-channel]\nlevel = "error"'
LOWER, ALONE = "mechanism.epsilon_lower", "release_only.epsilon_lower"


def channel(value):
    return p_value("mechanism.channel_consistency", value)


def blind(value):
    return p_value("assumptions.feature_blind", value)


HONEST = evidence(power(0.1), channel(0.4), epsilon=1.0)
LEAKING = evidence(power(0.1), epsilon=3.0)
VERDICTS = {
    "honest": (HONEST, {}, "pass", "nothing contradicts the claimed ε = 1, "),
    "its power": (HONEST, {}, "pass", "a true ε above 1.1"),
    "leaking": (LEAKING, {}, "fail", "claims ε = 1, but at least ε = 2.9"),
    "narrowly": (evidence(power(0.1), epsilon=1.0004, sd=1e-7), {}, "fail", "ε = 1.0003"),
    "little power": (evidence(power(1.7), epsilon=1.0, sd=0.5), {}, "inconclusive", "1.7"),
    "no claim": (
        evidence(power(0.1), epsilon=1.0, sd=0.5),
        {"claim": UnknownMechanism()},
        "inconclusive",
        "nothing was claimed, so nothing was judged",
    ),
    "ε = ∞": (
        evidence(power(0.1), epsilon=9.0),
        {"claim": RandomizedResponse((0, 1), 0.0)},
        "inconclusive",
        "",
    ),
    "few rows": (
        HONEST,
        {"policy": parse_policy(f"{DEFAULT}[audit]\nmin_rows = 5001")},
        "inconclusive",
        "",
    ),
    "infinite bound": (Evidence({}, {}, {LOWER: lambda _: math.inf}), {}, "fail", ""),
    "depends on features": (
        evidence(power(0.1), blind(1e-9), epsilon=3.0),
        {},
        "fail",
        "the claim is refuted: the noise depends on the features",
    ),
    "without a number": (evidence(blind(1e-9)), {}, "fail", ""),
    "a doubt": (evidence(power(0.1), channel(0.4), blind(0.03), epsilon=1.0), {}, "pass", ""),
    "unknown columns": (
        evidence(power(0.1), p_value("assumptions.unknown_columns", 1.0), epsilon=0.9),
        {},
        "inconclusive",
        "columns speak against the claim",
    ),
    "a doubt alone": (evidence(blind(0.03)), {}, "inconclusive", ""),
}  # fmt: skip
"""Evidence, policy or claim, verdict, and words of the sentence."""


@pytest.mark.parametrize("case", VERDICTS)
def test_verdicts(case):
    found, options, verdict, said = VERDICTS[case]
    result = judged(found, **options)
    assert result.verdict == verdict
    assert said in result.sentence
    assert ("certified" in result.sentence) <= (case != "depends on features")


def test_a_warning_does_not_flip_the_verdict_and_is_in_the_sentence_with_its_confidence():
    result = judged(evidence(power(0.1), channel(0.013), epsilon=1.0))
    verdicts = {check.id: check.verdict for check in result.checks if check.evidence}
    assert verdicts == {"claimed-epsilon": "pass", "claimed-channel": "fail"}
    assert result.verdict == "pass"
    assert " Warning: the released labels do not" in result.sentence
    assert result.sentence.endswith("(at 95 % confidence).")
    assert "refuted, at 95 % confidence" in result.notes[0].text
    violation = judged(evidence(power(0.1), channel(1e-9), epsilon=3.0))
    assert (violation.verdict, "Warning" in violation.sentence) == ("fail", False)


def test_power_by_estimate_is_worth_nothing_once_the_channel_is_refuted():
    """It was estimated as if the claim were right about the release."""

    def found(epsilon, p, name=ALONE):
        every = {e.id: e for e in (channel(p), power(0.1, "estimated"))}
        return judged(Evidence(every, {}, {name: bound(epsilon)}))

    result = found(1.0, 1e-9)
    assert result.verdict == "inconclusive"
    assert "known only for labels that follow the claimed channel" in result.sentence
    assert "would, by estimate" not in result.sentence
    # With true labels it assumes nothing of this release.
    others = (found(1.0, 0.4), found(3.0, 1e-9), found(1.0, 1e-9, LOWER))
    assert [one.verdict for one in others] == ["pass", "fail", "pass"]


EXCEEDANCE = parse_policy(
    'schema = 1\n[checks.instance-loss-exceedance]\nat = 6.0\nmax = 0.05\nlevel = "error"'
)
NEAR, LEARNED = "instance_loss.exceedance", "instance_loss.exceedance_learned"


@pytest.mark.parametrize(
    ("curves", "verdict"),
    [
        ([curve(NEAR, 0.01, 0.0)], "pass"),
        ([curve(NEAR, 0.2, 0.1)], "fail"),
        ([curve(NEAR, 0.06, 0.01)], "inconclusive"),
        # Both metrics must lie within the limit.
        ([curve(NEAR, 0.01, 0.0), curve(LEARNED, 0.2, 0.1)], "fail"),
        ([curve(NEAR, 0.01, 0.0), curve(LEARNED, 0.2, 0.0)], "inconclusive"),
        ([], "inconclusive"),
    ],
)
def test_exceedance(curves, verdict):
    assert judged(Evidence({}, {c.id: c for c in curves}, {}), EXCEEDANCE).verdict == verdict


def advantage(low, high):
    return Estimate.interval("attack.best.advantage", "", (low + high) / 2, (low, high), 0.95)


@pytest.mark.parametrize(
    ("low", "high", "kind", "verdict"),
    [
        (0.0, 0.04, "certified", "pass"),
        (0.06, 0.09, "certified", "fail"),
        (0.04, 0.06, "certified", "inconclusive"),
        (0.2, 0.3, "estimated", "inconclusive"),
    ],
)
def test_advantage(low, high, kind, verdict):
    policy = parse_policy("schema = 1\n[checks.label-inference-advantage]\nmax = 0.05")
    found = evidence(advantage(low, high).model_copy(update={"kind": kind}))
    assert judged(found, policy).verdict == verdict


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_limit_never_makes_a_verdict_worse(low, high, limit, more):
    found, verdicts = evidence(advantage(*sorted((low, high)))), []
    for most in sorted((limit, more)):
        policy = parse_policy(f"schema = 1\n[checks.label-inference-advantage]\nmax = {most!r}")
        verdicts.append(("fail", "inconclusive", "pass").index(judged(found, policy).verdict))
    assert verdicts[0] <= verdicts[1]


@settings(max_examples=40)
@given(st.lists(st.floats(1e-9, 1), min_size=1, max_size=8))
@example([0.0125, 0.02, 0.03, 0.01])
@example([0.03, 0.012, 0.9, 0.0125])
@example([0.05, 0.05])
@example([0.0, 1.0, 0.5])
def test_holm_rejects_what_closed_testing_does(p_values):
    """Holm (1979): every intersection that a hypothesis is part of is rejected by Bonferroni."""
    numbers = range(len(p_values))
    sets = [s for size in numbers for s in combinations(numbers, size + 1)]
    bad = [s for s in sets if min(p_values[i] for i in s) > 0.05 / len(s)]
    closed = [not any(i in s for s in bad) for i in numbers]
    alone = [p <= 0.05 / len(p_values) for p in p_values]
    for correction, expected in (("holm", closed), ("bonferroni", alone)):
        levels = corrected_levels(p_values, 0.05, correction)
        ours = [p <= level for p, level in zip(p_values, levels, strict=True)]
        assert ours == expected, correction


def test_the_family_wise_error_holds():
    """Two true claims, 1,000 audits: 20 to 90 false alarms but for a probability of 1e-7."""
    rng, policy, wrong = np.random.default_rng(5), parse_policy(BOTH_DECIDE), 0
    for _ in range(1000):
        mean, p = 1.0 + 0.02 * rng.standard_normal(), float(rng.uniform(1e-12, 1))
        found = evidence(power(0.1), channel(p), epsilon=mean)
        wrong += judged(found, policy).verdict == "fail"
    assert 20 <= wrong <= 90  # The levels are used up, not thrown away.


def test_a_refuted_claim_is_said_beside_what_rests_on_it():
    assert any("declared mechanism is refuted" in note.text for note in judged(LEAKING).notes)
    assert not judged(HONEST).notes


def test_power_is_asked_at_the_corrected_level():
    """Two checks of level error: each is answered at half the error probability."""
    power_at = {"power.min_detectable_excess": lambda alpha: 0.1 if alpha > 0.03 else 0.9}
    found = Evidence(HONEST.estimates, {}, {**HONEST.bounds, **power_at})
    assert judged(found).verdict == "pass"
    result = judged(found, parse_policy(BOTH_DECIDE))
    assert (result.verdict, "0.9" in result.sentence) == ("inconclusive", True)


@pytest.mark.parametrize(
    ("bounds", "verdict"),
    [
        ({LOWER: 1.0, ALONE: 5.0}, "pass"),  # With true labels the release alone decides nothing.
        ({ALONE: 5.0}, "fail"),
        ({LOWER: 0.9, "mechanism.subgroup_epsilon_lower": 3.0}, "fail"),
        ({LOWER: 0.9, "mechanism.shared_noise_epsilon_lower": 3.0}, "fail"),
    ],
)
def test_which_bounds_can_refute_the_claim(bounds, verdict):
    known = {name: bound(mean) for name, mean in bounds.items()}
    result = judged(Evidence(HONEST.estimates, {}, known))
    assert result.verdict == verdict
    assert verdict == "pass" or [*bounds][-1] in result.checks[0].evidence


def test_of_equally_grave_checks_one_that_may_be_chance_comes_last():
    common = {"question": "?", "limit": None, "observed": None, "verdict": "fail", "level": "error"}
    by_chance = Check(id="claimed-epsilon", **common, confidence=0.95, p_value=1 / 165)
    sure = Check(id="guessable-seed", **common, confidence=1 - 1e-9, p_value=1e-12)
    warned = sure.model_copy(update={"id": "identifiers", "level": "warn"})
    assert holding_up([warned, by_chance, sure]) == [sure, by_chance, warned]


@pytest.mark.parametrize("correction", ["holm", "bonferroni", "none"])
def test_a_policy_without_a_test_of_a_level_is_judged(correction):
    policy = f'schema = 1\n[audit]\ncorrection = "{correction}"\n[checks.claimed-epsilon]\n'
    found = evidence(power(0.1), epsilon=1.0)
    assert judged(found, parse_policy(policy)).verdict == "pass"


def noted(name, value=1.0):
    return Estimate.estimated(name, "", value)


CHANGED, SELECTED = "assumptions.changed_rows", "assumptions.selected"
READINGS = {
    "no name": ({}, "either a rule overwrote labels after the noise, or features were computed"),
    "a column": ({"changed_by": "column 'roll'"}, "or column 'roll' was computed from the"),
    "columns": ({"changed_by": "columns 'a', 'b'"}, "or columns 'a', 'b' were computed from the"),
    "from before": ({"changed_by": "column 'age'", "may_be_made": False}, "a rule seems to have"),
}


@pytest.mark.parametrize("known", READINGS)
def test_labels_that_columns_fix_are_read_both_ways_unless_these_were_there_before(known):
    circumstances, words = READINGS[known]
    result = judged(evidence(power(0.1), noted(CHANGED, 300), epsilon=0.9), **circumstances)
    assert result.verdict == "inconclusive"
    assert words in result.sentence
    assert ("either" in result.sentence) == (known != "from before")
    by = circumstances.get("changed_by", "features")
    assert by in result.next_steps[0]


def test_a_selection_is_what_the_counts_look_like():
    result = judged(evidence(power(0.1), noted(SELECTED), epsilon=0.9))
    assert "as if rows had been left out or repeated" in result.sentence


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("name", ["columns.told", "columns.deciding", "attack.features-only.auc"])
def test_without_true_labels_what_columns_reveal_is_of_the_released_ones(name, truth):
    found = evidence(power(0.1), noted(name, 1.0), epsilon=0.9)
    check = next(c for c in judged(found, truth=truth).checks if c.id == "features-reveal-label")
    assert check.verdict == "fail"
    assert ("released labels" in check.reason) == (not truth)
    assert ("unless columns were computed from the released" in check.reason) == (not truth)


def test_one_persons_rows_reveal_no_label():
    found = evidence(power(0.1), noted("columns.one_label", 0.8), epsilon=0.9)
    check = next(c for c in judged(found).checks if c.id == "features-reveal-label")
    assert check.verdict == "fail"
    words = "rows with equal values of one column, at least 80 % of the rows, have one label"
    assert words in check.reason
    assert "protects little" not in check.reason


def test_shares_that_are_lower_bounds_are_at_least_that():
    found = evidence(power(0.1), noted("columns.read_off", 0.1999), epsilon=0.9)
    check = next(c for c in judged(found).checks if c.id == "features-reveal-label")
    assert "at least 19 % of the people" in check.reason
