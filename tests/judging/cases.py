"""Evidence made up for tests of verdicts and advice."""

import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.stats import norm

from ldpaudit.judging.checks.interface import Case, Circumstances, Draft, Evidence
from ldpaudit.judging.checks.listing import CHECKS
from ldpaudit.judging.policy import Policy, default_policy
from ldpaudit.judging.verdict import Judgement, judge
from ldpaudit.mechanisms import Mechanism, RandomizedResponse
from ldpaudit.result import AuditRecord, Curve, Estimate

TODAY = datetime.date(2026, 6, 1)
CLAIM = RandomizedResponse.from_epsilon((0, 1), 1.0)


def bound(mean: float, sd: float = 0.02) -> Callable[[float], float]:
    """Return a lower bound by level, as a normal estimate gives it."""
    return lambda alpha: mean + sd * float(norm.ppf(alpha))


def p_value(name: str, value: float) -> Estimate:
    return Estimate.upper_bound(name, "", value, 0.95)


def power(excess: float, kind: Any = "exact") -> Estimate:
    return Estimate(id="power.min_detectable_excess", kind=kind, value=excess, unit="nats")


def evidence(*estimates: Estimate, epsilon: float | None = None, sd: float = 0.02) -> Evidence:
    bounds = {} if epsilon is None else {"mechanism.epsilon_lower": bound(epsilon, sd)}
    return Evidence({e.id: e for e in estimates}, {}, bounds)


def case(
    found: Evidence,
    policy: Policy | None = None,
    claim: Mechanism = CLAIM,
    known: Circumstances | None = None,
) -> Case:
    return Case(policy or default_policy(), claim, found, 5000, known or Circumstances())


def drafted(check: str, found: Evidence, **options: Any) -> Draft:
    """Return a check of made-up evidence before its level is known."""
    draft = CHECKS[check].draft(check, case(found, **options))
    assert draft is not None
    return draft


def judged(
    found: Evidence,
    policy: Policy | None = None,
    claim: Mechanism = CLAIM,
    **circumstances: Any,
) -> Judgement:
    known = Circumstances(**circumstances)
    policy = policy or default_policy()
    return judge(policy, claim, found, rows=5000, sha256="0" * 64, today=TODAY, known=known)


def record(audit: str, reason: str = "") -> AuditRecord:
    return AuditRecord(id=audit, status="skipped" if reason else "ran", reason=reason)


def counted(matrix: Any, rows: int = 100_000) -> np.ndarray:
    """Return the counts to expect of a channel, each label as frequent, int64 of shape (k, m)."""
    matrix = np.asarray(matrix)
    return np.round(rows / len(matrix) * matrix).astype(np.int64)


def curve(name: str, value: float, low: float) -> Curve:
    points = {"x": (0.0, 6.0), "value": (1.0, value), "low": (1.0, low), "level": 0.99}
    return Curve.model_validate({"id": name, "kind": "estimated", **points})
