"""Bounds of ε that audits of other packages certify."""

# Their error probability is no share of this report's: they refute no claim, and leave it open.

import math
from typing import Final

from ldpaudit.judging.checks.interface import Case
from ldpaudit.result import Estimate
from ldpaudit.result.dictionary import meaning
from ldpaudit.result.numbers import number, percent

_ROUNDING: Final = 1e-9
_ABOVE: Final = (
    "the audit {audit}, which is not one of ldpaudit's own, certifies ε = {bound} or more at "
    "{level} confidence, above the claim; its error is not part of this report's level"
)


def above_the_claim(case: Case) -> Estimate | None:
    """Return the largest certified bound of ε above the claim that no check counts, if any."""
    limit = case.claim.epsilon
    if limit is None or math.isinf(limit):
        return None
    found = [one for one in case.evidence.estimates.values() if _is_bound(one)]
    largest = max(found, key=_low, default=None)
    return None if largest is None or _low(largest) <= limit * (1 + _ROUNDING) else largest


def audit_of(bound: Estimate, case: Case) -> str:
    """Return the audit that found a bound: those of other packages begin its id with their name."""
    names = [record.id for record in case.circumstances.records]
    own = [name for name in names if bound.id.startswith(f"{name}.")]
    return max(own, key=len, default=bound.id.partition(".")[0])


def why_open(bound: Estimate, case: Case) -> str:
    """Return why such a bound leaves the claim open."""
    level = percent(bound.level or 0.0)
    audit, low = audit_of(bound, case), number(_low(bound), "down")
    return _ABOVE.format(audit=audit, bound=low, level=level)


def _is_bound(one: Estimate) -> bool:
    of_epsilon = one.axis == "epsilon" and one.kind == "certified" and one.low is not None
    return of_epsilon and one.unit == "nats" and meaning(one.id) is None


def _low(one: Estimate) -> float:
    return -math.inf if one.low is None else one.low
