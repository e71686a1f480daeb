"""Every check can fail and can pass, wherever it stands in a policy and whatever its confidence."""

import datetime

import numpy as np
import pytest
from scipy.stats import norm
from worlds import feature_table

from ldpaudit.audits.instance_loss.audit import AUDIT
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.errors import PolicyError
from ldpaudit.extras.kinds.mechanisms.gaussian import GaussianRR
from ldpaudit.judging.checks.interface import Circumstances, Evidence
from ldpaudit.judging.policy import Policy, check_names, default_policy, parse_policy
from ldpaudit.judging.verdict import judge
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Release, ReleasedLabels, TrueLabels
from ldpaudit.result import AuditRecord, Curve, Estimate, Finding

CLAIM = RandomizedResponse.from_epsilon((0, 1), 1.0)
NOISY = GaussianRR((0, 1), CLAIM.noise, 1.0, 10.0, 1.0, 1e-5)
SECTIONS = {
    "claimed-epsilon": {},
    "claimed-channel": {},
    "guessable-seed": {},
    "rare-classes": {},
    "feature-noise": {},
    "instance-loss-exceedance": {"at": 2.0, "max": 0.05},
    "label-inference-advantage": {"max": 0.05},
    "label-inference-accuracy": {"max": 0.8},
    "renyi-epsilon": {"alpha": 2.0, "max": 1.0},
}


def bound(mean):
    return lambda alpha: mean + 0.01 * float(norm.ppf(alpha))


def curve(identifier, x, low, value):
    lows, values = (low,) * len(x), (value,) * len(x)
    return Curve(id=identifier, kind="estimated", x=x, value=values, low=lows, level=0.99)


def excess(leaking, sound):
    name = "power.min_detectable_excess"
    return lambda leaks: Estimate.exact(name, "", leaking if leaks else sound, unit="nats")


def epsilon(leaks):
    found = {"mechanism.epsilon_lower": bound(2.0 if leaks else 0.9)}
    return Finding(estimates=(excess(0.1, 0.1)(leaks),), bounds=found)


def one(made):
    return lambda leaks: Finding(estimates=(made(leaks),))


def p_value(name):
    return one(lambda leaks: Estimate.upper_bound(name, "", 1e-30 if leaks else 0.4, 0.95))


def feature_noise(leaks):
    amount = Estimate.upper_bound("mechanism.feature_noise", "", 1e-30 if leaks else 0.4, 0.95)
    name = "mechanism.feature_curve_epsilon_lower"
    made = Estimate.lower_bound(name, "", 2.0 if leaks else 0.9, 0.95)
    return Finding(estimates=(amount, made), bounds={name: bound(made.value)})


def known(**values):
    """Return numbers, by name, where something leaks and where nothing does."""

    def found(leaks):
        made = (Estimate.estimated(name, "", v[not leaks]) for name, v in values.items())
        return Finding(estimates=tuple(made))

    return found


def exceedance(leaks):
    share = 0.9 if leaks else 0.01
    part = curve("instance_loss.exceedance", (0.0, 2.0), share - 0.01, share)
    learned = part.model_copy(update={"id": "instance_loss.exceedance_learned"})
    bounds = {c.bound_key(1): bound(share - 0.001) for c in (part, learned)}
    return Finding(curves=(part, learned), bounds=bounds)


def attack(measure, leaking, sound):
    def found(leaks):
        name, low = f"attack.best.{measure}", leaking if leaks else sound
        estimate = Estimate.interval(name, "", low + 0.01, (low, low + 0.02), 0.95)
        return Finding(estimates=(estimate,), bounds={name: bound(low)})

    return found


def renyi(leaks):
    value = 3.0 if leaks else 0.5
    low = curve("renyi.release", (1.5, 2.0), value - 0.1, value)
    estimate = curve("renyi.release.estimate", (1.5, 2.0), value, value)
    return Finding(curves=(low, estimate), bounds={low.bound_key(1): bound(value)})


FOUND = {
    "claimed-epsilon": epsilon,
    "undetected-excess": one(excess(2.0, 0.1)),
    "claimed-channel": p_value("mechanism.channel_consistency"),
    "rare-classes": p_value("mechanism.rare_classes"),
    "feature-noise": feature_noise,
    "features-reveal-label": known(
        **{"attack.features-only.auc": (1.0, 0.9), "columns.told": (0.7, 0.7)}
    ),
    "identifiers": known(**{"columns.indices": (0, 0), "columns.texts": (1, 0)}),
    "guessable-seed": p_value("seeds.p_value"),
    "shared-noise": p_value("assumptions.shared_noise"),
    "composition": one(
        lambda leaks: Estimate.exact("assumptions.composed_epsilon", "", 3.0 if leaks else 1.0)
    ),
    "instance-loss-exceedance": exceedance,
    "label-inference-advantage": attack("advantage", 0.2, 0.0),
    "label-inference-accuracy": attack("accuracy", 0.9, 0.6),
    "renyi-epsilon": renyi,
}


def judged(asked, leaking, confidence):
    content = {
        "schema": 1,
        "audit": {"confidence": confidence, "max_undetected_excess": "any"},
        "checks": {name: SECTIONS.get(name, {}) for name in asked},
    }
    last = sorted(asked, key="undetected-excess".__eq__)  # Its power is the one that counts.
    evidence = Evidence.collect([FOUND[name](name in leaking) for name in last])
    today = datetime.date(2026, 6, 1)
    policy = Policy.model_validate(content)
    return judge(policy, NOISY, evidence, rows=5000, sha256=None, today=today)


def companions(check, others):
    """Return a policy's checks: ``check`` and so many others, the ones after it first."""
    names = list(FOUND)
    place = names.index(check)
    return (names[place:] + names[:place])[: others + 1]


def test_every_check_of_a_policy_is_tested_here():
    # A replay that passes answers the other checks of the noise: tests/extras/receipt.
    assert set(FOUND) | {"replay"} == set(check_names())


@pytest.mark.parametrize("confidence", [0.9, 0.99])
@pytest.mark.parametrize("check", list(FOUND))
def test_it_can_fail_and_pass(check, confidence):
    for others in range(len(FOUND)):
        asked = companions(check, others)
        rest = [name for name in asked if name != check]
        for leaking in ([check], asked, rest):  # Alone, as one of many, and not.
            verdicts = {c.id: c.verdict for c in judged(asked, leaking, confidence).checks}
            assert verdicts[check] == ("fail" if check in leaking else "pass"), asked
        clean = judged(asked, [], confidence).checks
        assert {(c.verdict, bool(c.reason)) for c in clean} == {("pass", True)}, asked


@pytest.mark.parametrize("own", ["power", "mechanism", ""])
@pytest.mark.parametrize(
    ("low", "details", "status"),
    [
        (9.0, {}, "inconclusive"),
        (1.01, {}, "inconclusive"),
        (1.0, {}, "pass"),
        (0.5, {}, "pass"),
        (9.0, {"kind": "estimated"}, "pass"),
        (9.0, {"axis": None}, "pass"),
        (9.0, {"unit": "1"}, "pass"),
    ],
)
def test_a_bound_of_another_package_above_the_claim_leaves_it_open(own, low, details, status):
    details = {"unit": "nats", "axis": "epsilon"} | details
    foreign = Estimate.lower_bound("my-audit.bound", "", low, 0.95, **details)
    found = {"power": epsilon, "mechanism": lambda _: Finding(bounds=epsilon(False).bounds)}
    own_numbers = found.get(own, lambda _: Finding())(False)
    evidence = Evidence.collect([own_numbers, Finding(estimates=(foreign,))])
    audit = {"confidence": 0.95, "max_undetected_excess": "any"}
    policy = Policy.model_validate({"schema": 1, "audit": audit, "checks": {"claimed-epsilon": {}}})
    today = datetime.date(2026, 6, 1)
    records = (AuditRecord(id="my-audit", status="ran", reason="", seconds=0.0),)
    circumstances = Circumstances(
        records=records, left_out=dict.fromkeys(("mechanism", "power"), "--only")
    )
    judgement = judge(
        *(policy, CLAIM, evidence),
        rows=5000,
        sha256=None,
        today=today,
        circumstances=circumstances,
    )
    (check,) = judgement.checks
    if not own and status == "pass":
        status = "inconclusive"  # Nothing of this package bounds ε.
        assert (
            check.reason == "no audit could bound ε from below, because the audit mechanism "
            "was left out (--only)"
        )
    elif status == "inconclusive":
        assert "the audit my-audit, which is not one of ldpaudit's own, certifies" in check.reason
        assert check.reason.endswith("its error is not part of this report's level")
        assert "my-audit.bound" in check.evidence
        assert "--skip my-audit" in judgement.next_steps[0]
    assert check.verdict == status


def test_a_bound_of_another_package_refutes_nothing_and_hides_no_violation():
    foreign = Estimate.lower_bound("my-audit.bound", "", 9.0, 0.95, unit="nats", axis="epsilon")
    evidence = Evidence.collect([epsilon(True), Finding(estimates=(foreign,))])
    policy = Policy.model_validate({"schema": 1, "checks": {"claimed-epsilon": {}}})
    (check,) = judge(
        *(policy, CLAIM, evidence), rows=5000, sha256=None, today=datetime.date(2026, 6, 1)
    ).checks
    assert (check.verdict, check.reason) == (
        "fail",
        "a certified lower bound lies above the claim",
    )


def test_a_mean_loss_that_neighbours_miss_leaves_their_share_open():
    means = {"instance_loss.mean": 0.40, "instance_loss.mean_learned": 0.41}
    check = "instance-loss-exceedance"
    for certified, verdict in ((0.42, "pass"), (0.52, "inconclusive")):  # .11 nats / 2 = 5.5 %
        found = exceedance(False)
        more = [Estimate.estimated(name, "", value) for name, value in means.items()]
        more.append(Estimate.lower_bound("instance_loss.mean_lower", "", certified, 0.95))
        policy = Policy.model_validate({"schema": 1, "checks": {check: SECTIONS[check]}})
        evidence = Evidence.collect([found, Finding(estimates=tuple(more))])
        today = datetime.date(2026, 6, 1)
        judgement = judge(policy, CLAIM, evidence, rows=5000, sha256=None, today=today)
        assert judgement.checks[0].verdict == verdict


def test_people_who_lose_too_much_are_found_at_any_confidence():
    """A real audit: labels all but told by the features, six checks, confidence 0.99."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 4000).astype(np.int32)
    points = (rng.normal(size=(4000, 2)) + 6 * truth[:, None]).astype(np.float32)
    release = Release(
        features=feature_table(points),
        released=ReleasedLabels(CLAIM.sample(truth, rng)),
        outputs=(0, 1),
        classes=(0, 1),
        truth=TrueLabels(truth),
    )
    finding = AUDIT.run(AuditContext(release, CLAIM, Plan(seed=1, confidence=0.99)))
    others = [FOUND[name](False) for name in FOUND if name != "instance-loss-exceedance"]
    content = {"schema": 1, "audit": {"confidence": 0.99}, "checks": SECTIONS}
    today = datetime.date(2026, 6, 1)
    judgement = judge(
        Policy.model_validate(content),
        CLAIM,
        Evidence.collect([finding, *others]),
        rows=4000,
        sha256=None,
        today=today,
    )
    verdicts = {c.id: c.verdict for c in judgement.checks}
    assert verdicts["instance-loss-exceedance"] == "fail"
    key = next(c for c in finding.curves if c.id == "instance_loss.exceedance").bound_key(0)
    bounds = [finding.bounds[key](alpha) for alpha in (0.05, 0.01, 1e-4)]
    assert (bounds, finding.bounds[key](1e-12)) == (sorted(bounds, reverse=True), 0)


def allowed(text):
    return parse_policy(
        f"schema = 1\n[checks.claimed-epsilon]\n[audit]\nmax_undetected_excess = {text}"
    ).audit.max_undetected_excess


def test_nats_or_a_share_of_the_claim():
    assert (allowed("0.5").at(8.0), allowed("1").at(0.1)) == (0.5, 1.0)
    assert (allowed('"50%"').at(8.0), allowed('"50 %"').at(0.1)) == (4.0, pytest.approx(0.05))


def test_the_larger_of_two_and_none_at_all():
    assert [allowed('[0.25, "25%"]').at(epsilon) for epsilon in (0.1, 1.0, 4.0)] == [0.25, 0.25, 1]
    assert allowed('"any"').at(1.0) == float("inf")
    assert allowed('"any"').or_default() == default_policy().audit.max_undetected_excess


def test_without_it_the_limit_makes_sense_for_small_and_large_claims():
    usual = default_policy().audit.max_undetected_excess
    assert [usual.at(epsilon) for epsilon in (0.1, 1.0, 2.0, 8.0)] == [0.5, 0.5, 1.0, 4.0]


@pytest.mark.parametrize(
    "text",
    ["0", "-1", '"0%"', '"half"', "true", '"-5%"', "inf", "nan", "[1]", "[1, 2, 3]", '[0, "5%"]'],
)
def test_anything_else_is_one_clear_line(text):
    with pytest.raises(PolicyError, match="nats above 0") as caught:
        allowed(text)
    assert "\n" not in str(caught.value)
