"""What every check is given, and what it gives: a test that can be asked at any level."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial

from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import Mechanism
from ldpaudit.result import Check, Curve, Estimate, Finding, Side, Verdict, as_counted
from ldpaudit.result.hiding import NATS, is_clearly_above, just_above, lower_bound, p_value_up

POWER = "power.min_detectable_excess"
CLEAR_GROUP, CLEAR_SHARE = "power.smallest_clear_group", "power.smallest_clear_share"


@dataclass(frozen=True)
class Evidence:
    """The findings of all audits, by id."""

    estimates: Mapping[str, Estimate]
    curves: Mapping[str, Curve]
    bounds: Mapping[str, Callable[[float], float]]

    def undetected_excess(self, alpha: float) -> float | None:
        """Return the smallest excess ε found with 90 % power at error probability ``alpha``."""
        return self.at(POWER, alpha)

    def at(self, name: str, alpha: float) -> float | None:
        """Return a number at error probability ``alpha``.

        At the audit's own level where it cannot be computed for another; None where unknown.
        """
        estimate = self.estimates.get(name)
        if estimate is None:
            return None
        return self.bounds[name](alpha) if name in self.bounds else estimate.value

    def counted(self, name: str) -> float:
        """Return a share as counted, also where its estimate hides it."""
        exact = self.bounds.get(as_counted(name))
        return self.estimates[name].value if exact is None else exact(1.0)

    def curve_bound(self, curve: Curve, place: int, alpha: float) -> float:
        """Return a curve's lower bound at a grid point and error probability, −∞ if unknown."""
        key = curve.bound_key(place)
        if key in self.bounds:
            return self.bounds[key](alpha)
        low = curve.low[place] if curve.low is not None else -math.inf
        return low if alpha >= 1 - (curve.level or 1.0) - 1e-12 else -math.inf

    @classmethod
    def collect(cls, findings: Iterable[Finding], claimed: float | None = None) -> "Evidence":
        """Merge findings; bounds of ε from small counts are rounded, as the estimates are.

        One that lies above the ``claimed`` ε stays above it. Each bound is computed once a level.
        """
        every = list(findings)
        estimates = {e.id: e for finding in every for e in finding.estimates}
        bounds = {key: bound for finding in every for key, bound in finding.bounds.items()}
        for key in bounds.keys() & estimates.keys():
            if estimates[key].suppressed and estimates[key].unit == "nats":
                bounds[key] = partial(_rounded, bounds[key], claimed)
                estimates[key] = _above(claimed, estimates[key], bounds[key])
        curves = {c.id: c for finding in every for c in finding.curves}
        return cls(estimates, curves, {key: cache(bound) for key, bound in bounds.items()})

    def shown(self, check: Check) -> Check:
        """Return a check as it may be shown: what rests on small counts is rounded to be safe."""
        behind = [self.estimates[i] for i in check.evidence if i in self.estimates]
        small = [estimate for estimate in behind if estimate.suppressed]
        if not small:
            return check
        fields: dict[str, float] = {}
        if check.p_value is not None:
            most = 1.0 if check.confidence is None else 1 - check.confidence
            fields["p_value"] = max(min(p_value_up(check.p_value), most), check.p_value)
        first, observed = small[0], check.observed
        if check.side == "lower" and first.unit == "proportion" and observed is not None:
            least = min(observed, -1.0 if first.low is None else first.low)
            over = check.limit is not None and least <= check.limit < observed
            fields["observed"] = just_above(check.limit or 0.0, observed) if over else least
        return check.model_copy(update=fields)


def _above(claimed: float | None, estimate: Estimate, bound: Callable[[float], float]) -> Estimate:
    """Return a rounded lower bound as just above the claim where its bound is."""
    if claimed is None or estimate.side != "lower" or estimate.level is None:
        return estimate
    value = bound(1 - estimate.level)
    if value <= claimed or is_clearly_above(estimate.value, claimed):
        return estimate
    return estimate.model_copy(update={"value": value, "low": value})


def _rounded(bound: Callable[[float], float], claimed: float | None, alpha: float) -> float:
    return lower_bound(bound(alpha), NATS, claimed)


@dataclass(frozen=True)
class Case:
    """Everything that a check may look at.

    Attributes
    ----------
    policy : Policy
    claim : Mechanism
        What the release declares.
    evidence : Evidence
    rows : int
        The release's number of rows.
    """

    policy: Policy
    claim: Mechanism
    evidence: Evidence
    rows: int


@dataclass(frozen=True)
class Answer:
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
    test: Callable[[float], Answer]
    """The answer at a one-sided error probability; a failure at one stays one at a larger."""
    own_error: float | None = None
    """The error probability of a check that takes no part in the correction for several."""
    counted: bool = False
    """Whether it says what is there, as counted or measured: it takes no share of the error
    probability and has no confidence."""
    failure: Callable[[float], Answer | None] | None = None
    """The answer where it is a failure, without the cost of the answer where it is none."""

    def fails(self, alpha: float) -> bool:
        """Return whether the check fails at a one-sided error probability."""
        if self.failure is not None:
            return self.failure(alpha) is not None
        return self.test(alpha).verdict == "fail"
