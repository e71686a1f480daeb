"""The checks of a policy: each a question, a limit and a test at any level."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from ldpaudit.judging.policy import ExceedanceSection, LimitSection, Policy, RenyiSection
from ldpaudit.mechanisms import Mechanism
from ldpaudit.reports.text.numbers import number
from ldpaudit.result import Curve, Estimate, Finding, Side, Verdict

POWER = "power.min_detectable_excess"
CONSISTENCY = ("mechanism.channel_consistency", "mechanism.marginal_consistency")
OTHER_PROOF = ("observational.epsilon_lower", "aggregates.epsilon_lower")
"""Bounds of ε where one released label depends on more than one true label; one in an audit."""
_POWER_UNKNOWN = (
    "how much this audit could miss is known only for labels that follow the claimed channel, and "
    "these do not"
)
RELEASE_ONLY_SHARE = 0.1
"""With true labels, the share of the error probability that the release-only bound gets."""


@dataclass(frozen=True)
class Evidence:
    """The findings of all audits, by id."""

    estimates: Mapping[str, Estimate]
    curves: Mapping[str, Curve]
    bounds: Mapping[str, Callable[[float], float]]

    def undetected_excess(self, alpha: float) -> float | None:
        """Return the smallest excess ε found with 90 % power at error probability ``alpha``.

        At the audit's own level where it cannot be computed for another; None where unknown.
        """
        power = self.estimates.get(POWER)
        if power is None:
            return None
        return self.bounds[POWER](alpha) if POWER in self.bounds else power.value

    @classmethod
    def collect(cls, findings: Iterable[Finding]) -> "Evidence":
        """Merge findings."""
        every = list(findings)
        return cls(
            {e.id: e for finding in every for e in finding.estimates},
            {c.id: c for finding in every for c in finding.curves},
            {key: bound for finding in every for key, bound in finding.bounds.items()},
        )


@dataclass(frozen=True)
class Outcome:
    """The answer of one check at one error probability."""

    verdict: Verdict
    observed: float | None = None
    reason: str = ""
    side: Side | None = None
    """Whether ``observed`` is a confidence bound, and which."""


@dataclass(frozen=True)
class Draft:
    """A check before its level is known."""

    id: str
    level: str
    question: str
    limit: float | None
    evidence: tuple[str, ...]
    test: Callable[[float], Outcome]
    """The outcome at a one-sided error probability; a failure at one stays one at a larger."""


def draft_checks(policy: Policy, claim: Mechanism, evidence: Evidence, rows: int) -> list[Draft]:
    """Return the checks of a policy in their order, those switched off left out."""
    drafts = []
    if policy.audit.min_rows is not None:
        drafts.append(_min_rows(policy.audit.min_rows, rows))
    checks = policy.checks
    if checks.claimed_epsilon is not None:
        excess = policy.audit.max_undetected_excess
        drafts.append(_claimed_epsilon(checks.claimed_epsilon.level, claim, evidence, excess))
    if checks.claimed_channel is not None and _has_channel(claim, evidence):
        drafts.append(_claimed_channel(checks.claimed_channel.level, evidence))
    if checks.instance_loss_exceedance is not None:
        drafts.append(_exceedance(checks.instance_loss_exceedance, evidence))
    if checks.label_inference_advantage is not None:
        drafts.append(_attack("advantage", checks.label_inference_advantage, evidence))
    if checks.label_inference_accuracy is not None:
        drafts.append(_attack("accuracy", checks.label_inference_accuracy, evidence))
    if checks.renyi_epsilon is not None:
        drafts.append(_renyi(checks.renyi_epsilon, evidence))
    return [draft for draft in drafts if draft.level != "off"]


def _has_channel(claim: Mechanism, evidence: Evidence) -> bool:
    """Return whether the claim is one about frequencies, also those of a numeric label's bins."""
    return claim.channel is not None or any(name in evidence.estimates for name in CONSISTENCY)


def _min_rows(least: int, rows: int) -> Draft:
    enough: Verdict = "pass" if rows >= least else "inconclusive"
    reason = "" if rows >= least else "the release has fewer rows than the policy asks for"
    question = "Has the release as many rows as the policy asks for?"
    outcome = Outcome(enough, float(rows), reason)
    return Draft("min-rows", "error", question, float(least), (), lambda _: outcome)


def _claimed_epsilon(level: str, claim: Mechanism, evidence: Evidence, excess: float) -> Draft:
    limit = claim.epsilon
    ids = ("mechanism.epsilon_lower", "release_only.epsilon_lower")
    proofs = tuple(i for i in ids if i in evidence.bounds)
    # Mechanisms that use the features, or bags, have neither.
    proofs = proofs or tuple(i for i in OTHER_PROOF if i in evidence.bounds)
    power = evidence.estimates.get(POWER)

    def test(alpha: float) -> Outcome:
        if limit is None:
            return Outcome("inconclusive", None, "nothing was claimed, so nothing was judged")
        if math.isinf(limit):
            return Outcome("inconclusive", None, "the claim promises nothing: its ε is infinite")
        if not proofs:
            return Outcome("inconclusive", None, "no audit could bound ε from below")
        bound = _best_bound(proofs, evidence, alpha)
        if bound > limit:
            return Outcome("fail", bound, "a certified lower bound lies above the claim", "lower")
        if power is None:
            return Outcome(
                "inconclusive", bound, "how much this audit could miss is not known", "lower"
            )
        if power.kind == "estimated" and _channel_is_refuted(evidence, alpha):
            return Outcome("inconclusive", bound, _POWER_UNKNOWN, "lower")
        missed = evidence.undetected_excess(alpha)
        if missed is not None and missed > excess:
            return Outcome("inconclusive", bound, _too_weak(missed, excess), "lower")
        return Outcome("pass", bound, "no certified lower bound lies above the claim", "lower")

    power_id = (POWER,) if power else ()
    question = "Does the release leak more about a label than the claimed ε?"
    return Draft("claimed-epsilon", level, question, limit, proofs + power_id, test)


def _channel_is_refuted(evidence: Evidence, alpha: float) -> bool:
    tests = (evidence.estimates.get(name) for name in CONSISTENCY)
    return any(test is not None and test.value <= alpha for test in tests)


def _too_weak(missed: float, allowed: float) -> str:
    if math.isinf(missed):
        return "no excess, however large, would have been found with 90 % probability"
    return (
        f"an excess of up to {number(missed, 'up')} nats could have gone unnoticed, and the policy "
        f"allows {number(allowed)}"
    )


def _best_bound(proofs: tuple[str, ...], evidence: Evidence, alpha: float) -> float:
    shares = (1 - RELEASE_ONLY_SHARE, RELEASE_ONLY_SHARE) if len(proofs) > 1 else (1.0,)
    return max(evidence.bounds[i](alpha * share) for i, share in zip(proofs, shares, strict=True))


def _claimed_channel(level: str, evidence: Evidence) -> Draft:
    name = next((i for i in CONSISTENCY if i in evidence.estimates), None)

    def test(alpha: float) -> Outcome:
        if name is None:
            return Outcome("inconclusive", None, "no audit compared the counts with the claim")
        p_value = evidence.estimates[name].value
        if p_value <= alpha:
            return Outcome("fail", p_value, "the released labels do not follow the claimed channel")
        return Outcome("pass", p_value, "the released labels agree with the claimed channel")

    question = "Are the released labels distributed as the claimed mechanism makes them (p-value)?"
    return Draft("claimed-channel", level, question, None, (name,) if name else (), test)


def _exceedance(section: ExceedanceSection, evidence: Evidence) -> Draft:
    names = ("instance_loss.exceedance", "instance_loss.exceedance_learned")
    curves = [evidence.curves[name] for name in names if name in evidence.curves]

    def test(alpha: float) -> Outcome:
        points = [_bounded_point(curve, section.at) for curve in curves]
        shares = [point for point in points if point is not None]
        if not shares:
            return Outcome("inconclusive", None, "the instance-based loss was not estimated there")
        low, value = max(low for low, _ in shares), max(value for _, value in shares)
        # One bound per metric: together they may err as often as both.
        error = sum(1 - (curve.level or 0.0) for curve in curves)
        if low > section.max and alpha >= error - 1e-12:
            reason = "the lower bound of the share lies above the limit"
            return Outcome("fail", low, reason, "lower")
        if max(low, value) <= section.max:
            return Outcome("pass", value, "the estimated share lies within the limit")
        return Outcome("inconclusive", value, "the share's estimate straddles the limit")

    question = f"Is the share of people whose loss is at least {number(section.at)} nats too large?"
    ids = tuple(curve.id for curve in curves)
    return Draft("instance-loss-exceedance", section.level, question, section.max, ids, test)


def _bounded_point(curve: Curve, at: float) -> tuple[float, float] | None:
    """Return the lower bound and the value of a curve at ``at``, None where it has none."""
    position = _grid_point(curve, at)
    if position is None or curve.low is None:
        return None
    return curve.low[position], curve.value[position]


def _grid_point(curve: Curve, at: float) -> int | None:
    """Return the first grid point at or above ``at``: J falls, so its bound is the safe one."""
    return next((i for i, x in enumerate(curve.x) if x >= at - 1e-9), None)


def _attack(what: str, section: LimitSection, evidence: Evidence) -> Draft:
    name = f"attack.best.{what}"
    estimate = evidence.estimates.get(name)

    def test(alpha: float) -> Outcome:
        if estimate is None or estimate.low is None or estimate.high is None:
            return Outcome("inconclusive", None, "no attack could be scored against true labels")
        if estimate.kind != "certified":
            reason = "the attack could be scored only under the claim's own assumption"
            return Outcome("inconclusive", estimate.value, reason)
        low = _two_sided_end(estimate, evidence, name, alpha)
        if low > section.max:
            return Outcome("fail", low, f"the best attack's {what} lies above the limit", "lower")
        if estimate.high <= section.max:
            return Outcome("pass", estimate.value, f"the best attack's {what} is within the limit")
        return Outcome("inconclusive", estimate.value, "the interval straddles the limit")

    question = f"Is the best label-inference attack's {what} above the limit?"
    ids = (name,) if estimate else ()
    return Draft(f"label-inference-{what}", section.level, question, section.max, ids, test)


def _two_sided_end(estimate: Estimate, evidence: Evidence, name: str, alpha: float) -> float:
    assert estimate.low is not None
    if name in evidence.bounds:
        return evidence.bounds[name](alpha)
    certified = alpha >= (1 - (estimate.level or 1.0)) / 2
    return estimate.low if certified else -math.inf


def _renyi(section: RenyiSection, evidence: Evidence) -> Draft:
    curve = evidence.curves.get("renyi.release")
    estimate = evidence.curves.get("renyi.release.estimate")

    def test(alpha: float) -> Outcome:
        at = None if curve is None else _order_at_most(curve, section.alpha)
        if curve is None or at is None:
            return Outcome("inconclusive", None, "the Rényi divergence was not audited there")
        low = _renyi_bound(curve, at, evidence, alpha)
        if low > section.max:
            return Outcome("fail", low, "the certified lower bound lies above the limit", "lower")
        above = None if estimate is None else _grid_point(estimate, section.alpha)
        if estimate is None or above is None:
            reason = "the rows cannot support an estimate at this order"
            return Outcome("inconclusive", low, reason, "lower")
        if estimate.value[above] <= section.max:
            return Outcome("pass", estimate.value[above], "the estimate lies within the limit")
        return Outcome("inconclusive", estimate.value[above], "the estimate straddles the limit")

    question = f"Is the Rényi divergence at order {number(section.alpha)} above the limit?"
    ids = tuple(part.id for part in (curve, estimate) if part is not None)
    return Draft("renyi-epsilon", section.level, question, section.max, ids, test)


def _order_at_most(curve: Curve, order: float) -> int | None:
    """Return the last grid point at or below ``order``: D grows, so its lower bound is safe."""
    return max((i for i, x in enumerate(curve.x) if x <= order + 1e-9), default=None)


def _renyi_bound(curve: Curve, at: int, evidence: Evidence, alpha: float) -> float:
    key = f"{curve.id}@{curve.x[at]:g}"
    if key in evidence.bounds:
        return evidence.bounds[key](alpha)
    low = curve.low[at] if curve.low is not None else -math.inf
    return low if alpha >= 1 - (curve.level or 1.0) - 1e-12 else -math.inf
