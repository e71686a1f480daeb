"""Evidence made up for tests of verdicts and advice."""

import datetime

import numpy as np
from scipy.stats import norm

from ldpaudit.judging.checks.interface import Case, Circumstances, Evidence
from ldpaudit.judging.checks.listing import CHECKS
from ldpaudit.judging.policy import default_policy
from ldpaudit.judging.verdict import judge
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.result import AuditRecord, Curve, Estimate

TODAY = datetime.date(2026, 6, 1)
CLAIM = RandomizedResponse.from_epsilon((0, 1), 1.0)


def bound(mean, sd=0.02):
    """Return a lower bound by level, as a normal estimate gives it."""
    return lambda alpha: mean + sd * float(norm.ppf(alpha))


def p_value(name, value):
    return Estimate.upper_bound(name, "", value, 0.95)


def power(excess, kind="exact"):
    return Estimate(id="power.min_detectable_excess", kind=kind, value=excess, unit="nats")


def evidence(*estimates, epsilon=None, sd=0.02):
    bounds = {} if epsilon is None else {"mechanism.epsilon_lower": bound(epsilon, sd)}
    return Evidence({e.id: e for e in estimates}, {}, bounds)


def case(found, policy=None, claim=CLAIM, known=None):
    return Case(policy or default_policy(), claim, found, 5000, known or Circumstances())


def drafted(check, found, **options):
    """Return a check of made-up evidence before its level is known."""
    draft = CHECKS[check].draft(check, case(found, **options))
    assert draft is not None
    return draft


def judged(found, policy=None, claim=CLAIM, **circumstances):
    known = Circumstances(**circumstances)
    policy = policy or default_policy()
    return judge(policy, claim, found, rows=5000, sha256="0" * 64, today=TODAY, circumstances=known)


def record(audit, reason=""):
    return AuditRecord(id=audit, status="skipped" if reason else "ran", reason=reason)


def counted(matrix, rows=100_000):
    """Return the counts to expect of a channel, each label as frequent, int64 of shape (k, m)."""
    matrix = np.asarray(matrix)
    return np.round(rows / len(matrix) * matrix).astype(np.int64)


def curve(name, value, low):
    points = {"x": (0.0, 6.0), "value": (1.0, value), "low": (1.0, low), "level": 0.99}
    return Curve.model_validate({"id": name, "kind": "estimated", **points})
