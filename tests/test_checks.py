"""Every check can fail and can pass, wherever it stands in a policy and whatever its confidence."""

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm
from worlds import feature_table

from ldpaudit.audits.instance_loss.audit import AUDIT
from ldpaudit.audits.interface import AuditContext, Plan
from ldpaudit.judging.checks.interface import Evidence
from ldpaudit.judging.policy import Policy, check_names
from ldpaudit.judging.verdict import Judgement, judge
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Release, ReleasedLabels, TrueLabels
from ldpaudit.result import Curve, Estimate, Finding

CLAIM = RandomizedResponse.from_epsilon((0, 1), 1.0)
SECTIONS: dict[str, dict[str, Any]] = {
    "claimed-epsilon": {},
    "claimed-channel": {},
    "guessable-seed": {},
    "rare-classes": {},
    "instance-loss-exceedance": {"at": 2.0, "max": 0.05},
    "label-inference-advantage": {"max": 0.05},
    "label-inference-accuracy": {"max": 0.8},
    "renyi-epsilon": {"alpha": 2.0, "max": 1.0},
}


def bound(mean: float) -> Callable[[float], float]:
    return lambda alpha: mean + 0.01 * float(norm.ppf(alpha))


def curve(identifier: str, x: tuple[float, ...], low: float, value: float) -> Curve:
    lows, values = (low,) * len(x), (value,) * len(x)
    return Curve(id=identifier, kind="estimated", x=x, value=values, low=lows, level=0.99)


def epsilon(leaks: bool) -> Finding:
    power = Estimate.exact("power.min_detectable_excess", "", 0.1, unit="nats")
    return Finding(
        estimates=(power,), bounds={"mechanism.epsilon_lower": bound(2.0 if leaks else 0.9)}
    )


def weak(leaks: bool) -> Finding:
    missed = 2.0 if leaks else 0.1
    return Finding(
        estimates=(Estimate.exact("power.min_detectable_excess", "", missed, unit="nats"),)
    )


def channel(leaks: bool) -> Finding:
    p_value = 1e-12 if leaks else 0.4
    name = "mechanism.channel_consistency"
    return Finding(estimates=(Estimate.upper_bound(name, "", p_value, 0.95),))


def rare(leaks: bool) -> Finding:
    p_value = 1e-12 if leaks else 0.4
    name = "mechanism.rare_classes"
    return Finding(estimates=(Estimate.upper_bound(name, "", p_value, 0.95),))


def seed(leaks: bool) -> Finding:
    p_value = 1e-30 if leaks else 0.4
    return Finding(estimates=(Estimate.upper_bound("seeds.p_value", "", p_value, 0.95),))


def shared(leaks: bool) -> Finding:
    p_value = 1e-12 if leaks else 0.4
    return Finding(estimates=(Estimate.upper_bound("assumptions.shared_noise", "", p_value, 0.95),))


def composition(leaks: bool) -> Finding:
    total = 3.0 if leaks else 1.0
    return Finding(estimates=(Estimate.exact("assumptions.composed_epsilon", "", total),))


def reveals(leaks: bool) -> Finding:
    shares = {"attack.features-only.auc": 1.0 if leaks else 0.9, "columns.told": 0.7}
    return Finding(estimates=tuple(Estimate.estimated(n, "", v) for n, v in shares.items()))


def identifiers(leaks: bool) -> Finding:
    counts = {"columns.indices": 0, "columns.texts": int(leaks)}
    return Finding(estimates=tuple(Estimate.estimated(n, "", v) for n, v in counts.items()))


def exceedance(leaks: bool) -> Finding:
    share = 0.9 if leaks else 0.01
    part = curve("instance_loss.exceedance", (0.0, 2.0), share - 0.01, share)
    learned = part.model_copy(update={"id": "instance_loss.exceedance_learned"})
    bounds = {c.bound_key(1): bound(share - 0.001) for c in (part, learned)}
    return Finding(curves=(part, learned), bounds=bounds)


def attack(measure: str, low: float) -> Finding:
    name = f"attack.best.{measure}"
    ends = (low, low + 0.02)
    estimate = Estimate.interval(name, "", low + 0.01, ends, 0.95)
    return Finding(estimates=(estimate,), bounds={name: bound(low)})


def renyi(leaks: bool) -> Finding:
    value = 3.0 if leaks else 0.5
    low = curve("renyi.release", (1.5, 2.0), value - 0.1, value)
    estimate = curve("renyi.release.estimate", (1.5, 2.0), value, value)
    return Finding(curves=(low, estimate), bounds={low.bound_key(1): bound(value)})


FOUND: dict[str, Callable[[bool], Finding]] = {
    "claimed-epsilon": epsilon,
    "undetected-excess": weak,
    "claimed-channel": channel,
    "rare-classes": rare,
    "features-reveal-label": reveals,
    "identifiers": identifiers,
    "guessable-seed": seed,
    "shared-noise": shared,
    "composition": composition,
    "instance-loss-exceedance": exceedance,
    "label-inference-advantage": lambda leaks: attack("advantage", 0.2 if leaks else 0.0),
    "label-inference-accuracy": lambda leaks: attack("accuracy", 0.9 if leaks else 0.6),
    "renyi-epsilon": renyi,
}


def judged(asked: list[str], leaking: list[str], confidence: float) -> Judgement:
    content = {
        "schema": 1,
        "audit": {"confidence": confidence, "max_undetected_excess": "any"},
        "checks": {name: SECTIONS.get(name, {}) for name in asked},
    }
    last = sorted(asked, key="undetected-excess".__eq__)  # Its power is the one that counts.
    evidence = Evidence.collect([FOUND[name](name in leaking) for name in last])
    today = datetime.date(2026, 6, 1)
    policy = Policy.model_validate(content)
    return judge(policy, CLAIM, evidence, rows=5000, sha256=None, today=today)


def companions(check: str, others: int) -> list[str]:
    """Return a policy's checks: ``check`` and so many others, the ones after it first."""
    names = list(FOUND)
    place = names.index(check)
    return (names[place:] + names[:place])[: others + 1]


def test_every_check_of_a_policy_is_tested_here() -> None:
    assert set(FOUND) == set(check_names())


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("others", range(len(FOUND)))
@pytest.mark.parametrize("check", list(FOUND))
def test_it_can_fail_and_pass(check: str, others: int, confidence: float) -> None:
    asked = companions(check, others)
    for leaking in ([check], asked):  # Alone, and as one of many.
        verdicts = {c.id: c.verdict for c in judged(asked, leaking, confidence).checks}
        assert verdicts[check] == "fail"
    clean = judged(asked, [], confidence)
    assert {c.verdict for c in clean.checks} == {"pass"}
    assert all(c.reason for c in clean.checks)
    rest = [name for name in asked if name != check]
    verdicts = {c.id: c.verdict for c in judged(asked, rest, confidence).checks}
    assert verdicts[check] == "pass"


def test_a_mean_loss_that_neighbours_miss_leaves_their_share_open() -> None:
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


def test_people_who_lose_too_much_are_found_at_any_confidence() -> None:
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
    assert bounds == sorted(bounds, reverse=True)
    assert finding.bounds[key](1e-12) == 0
