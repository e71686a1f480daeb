"""What the presets ask for, on evidence made up, and on simulated releases."""

import pytest
from judging.cases import evidence, judged, p_value, power
from scipy.stats import binom

from benchmarks.verdicts import outcomes
from ldpaudit.errors import PolicyError
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.policy import PRESETS, load_policy, parse_policy, preset_text
from ldpaudit.judging.policy.sections import Policy
from ldpaudit.judging.verdict import Judgement
from ldpaudit.result import Curve, Estimate, decision_of

DEFAULT, STRICT, RESEARCH = (load_policy(name) for name in PRESETS)


def decided(found: Evidence, policy: Policy) -> tuple[str, str]:
    result = judged(found, policy)
    return result.verdict, decision_of(result.verdict, result.checks)


def by_preset(*found: Estimate, epsilon: float = 0.9) -> list[tuple[str, str]]:
    safe = Estimate.estimated("columns.indices", "", 0)
    told = Estimate.estimated("columns.told", "", 0.5)
    follows = p_value("mechanism.channel_consistency", 0.5)
    every = {e.id: e for e in (safe, told, follows, *found)}
    case = evidence(*every.values(), epsilon=epsilon)
    return [decided(case, policy) for policy in (DEFAULT, STRICT, RESEARCH)]


PASS, LOOK, FAIL = ("pass", "publish"), ("pass", "not yet"), ("fail", "do not publish")
OPEN = ("inconclusive", "not yet")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((power(0.1),), [PASS, PASS, PASS]),
        ((power(0.4),), [PASS, OPEN, PASS]),
        ((power(2.0),), [OPEN, OPEN, LOOK]),
        ((power(float("inf")),), [OPEN, OPEN, LOOK]),
        ((), [OPEN, OPEN, LOOK]),
        ((power(0.1), Estimate.estimated("columns.indices", "", 1)), [LOOK, FAIL, LOOK]),
        ((power(0.1), Estimate.estimated("columns.told", "", 0.96)), [PASS, FAIL, PASS]),
        ((power(0.1), Estimate.estimated("columns.told", "", 0.99)), [LOOK, FAIL, LOOK]),
        ((power(0.1), p_value("seeds.p_value", 1e-30)), [FAIL, FAIL, LOOK]),
        ((power(0.1), p_value("mechanism.rare_classes", 1e-9)), [FAIL, FAIL, LOOK]),
        ((power(0.1), p_value("mechanism.rare_classes", 0.004)), [FAIL, OPEN, LOOK]),
        ((power(0.1), p_value("mechanism.rare_classes", 0.012)), [OPEN, OPEN, PASS]),
        ((power(0.1), p_value("mechanism.rare_classes", 0.04)), [OPEN, OPEN, PASS]),
        ((power(0.1), p_value("mechanism.rare_classes", 0.06)), [PASS, PASS, PASS]),
        ((power(0.1), p_value("assumptions.shared_noise", 1e-9)), [LOOK, FAIL, LOOK]),
        ((power(0.1), p_value("mechanism.channel_consistency", 1e-9)), [LOOK, FAIL, LOOK]),
    ],
)
def test_what_each_preset_says(
    found: tuple[Estimate, ...], expected: list[tuple[str, str]]
) -> None:
    assert by_preset(*found) == expected


def test_a_refuted_claim_fails_under_each() -> None:
    assert by_preset(power(0.1), epsilon=3.0) == [FAIL] * 3


def test_what_a_weak_audit_missed_is_said_where_it_passes() -> None:
    weak = judged(evidence(power(2.0), epsilon=0.9), RESEARCH)
    assert "an excess of up to 2 over the claimed ε may be there" in weak.sentence
    blind = judged(evidence(power(float("inf")), epsilon=0.9), RESEARCH)
    assert "this audit would have noticed no excess, however large" in blind.sentence


def losses(at: float, share: float) -> Curve:
    x, shares = (0.0, at), (1.0, share)
    return Curve(
        id="instance_loss.exceedance", kind="estimated", x=x, value=shares, low=shares, level=0.999
    )


def asked(check: str, keys: str, *, curve: Curve | None = None, **scores: float) -> Judgement:
    policy = parse_policy(f"schema = 1\n[checks.{check}]\n{keys}")
    best = [
        Estimate.interval(f"attack.best.{name}", "", low + 0.01, (low, low + 0.02), 0.99)
        for name, low in scores.items()
    ]
    ceiling = Estimate.exact("attack.ceiling.advantage", "", 0.231)
    estimates = {e.id: e for e in (*best, ceiling)}
    bounds = {f"attack.best.{name}": lambda _, low=low: low for name, low in scores.items()}
    curves = {} if curve is None else {curve.id: curve}
    return judged(Evidence(estimates, curves, bounds), policy)


@pytest.mark.parametrize(("low", "verdict"), [(0.1, "pass"), (0.22, "inconclusive"), (0.3, "fail")])
def test_an_advantage_may_be_what_the_claim_allows(low: float, verdict: str) -> None:
    result = asked("label-inference-advantage", 'max = "claim"', advantage=low)
    assert result.verdict == verdict
    assert result.checks[0].limit == pytest.approx(0.231)


def test_a_loss_may_follow_the_claim() -> None:
    section, keys = "instance-loss-exceedance", 'at = "claim + 5"\nmax = 0.05'
    result = asked(section, keys, curve=losses(6.0, 0.2))
    assert result.verdict == "fail"
    assert "at least 6 nats" in result.checks[0].question
    assert asked(section, keys, curve=losses(6.0, 0.01)).verdict == "pass"
    assert asked(section, keys, curve=losses(5.9, 0.2)).verdict == "inconclusive"


def test_own_keys_win_one_by_one() -> None:
    policy = parse_policy(
        'schema = 1\nextends = "ldpaudit:strict"\n[audit]\nmin_rows = 50\n'
        '[checks.features-reveal-label]\nmax = 0.9\n[checks.composition]\nlevel = "off"\n'
    )
    assert policy.audit.confidence == 0.99
    assert policy.audit.min_rows == 50
    section = policy.checks.features_reveal_label
    assert section is not None
    assert (section.level, section.max) == ("error", 0.9)
    assert "composition" not in policy.checks.asked()


def test_a_preset_is_named_and_has_a_digest() -> None:
    assert [policy.name for policy in (DEFAULT, STRICT, RESEARCH)] == list(PRESETS)
    assert len({policy.sha256 for policy in (DEFAULT, STRICT, RESEARCH)}) == 3
    assert preset_text("strict") == preset_text("ldpaudit:strict")
    short = parse_policy('schema = 1\nextends = "strict"')
    assert (short.extends, short.checks) == ("ldpaudit:strict", STRICT.checks)
    with pytest.raises(PolicyError, match="did you mean 'ldpaudit:strict'"):
        load_policy("ldpaudit:strickt")


@pytest.mark.validate
@pytest.mark.parametrize("preset", PRESETS)
def test_honest_releases_pass_and_a_planted_leak_is_found(
    preset: str,
) -> None:
    given = (preset, 60, 4000, ("assumptions", "mechanism", "power", "seeds"))
    honest = list(outcomes("as declared", 1.0, *given))
    error = 1 - load_policy(preset).audit.confidence
    assert honest.count("fail") <= binom.isf(1e-6, 60, error)
    assert not any(outcome == "inconclusive" for outcome in honest)
    leaking = list(outcomes("noise of a larger ε", 1.0, *given))
    assert set(leaking) == {"fail"}
