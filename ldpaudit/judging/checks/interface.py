"""What every check is given, and what it gives: a test that can be asked at any level."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache

from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import Mechanism
from ldpaudit.release import DeclaredColumns
from ldpaudit.result import Curve, Estimate, Finding, Side, Verdict

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

    def curve_bound(self, curve: Curve, place: int, alpha: float) -> float:
        """Return a curve's lower bound at a grid point and error probability, −∞ if unknown."""
        key = curve.bound_key(place)
        if key in self.bounds:
            return self.bounds[key](alpha)
        low = curve.low[place] if curve.low is not None else -math.inf
        return low if alpha >= 1 - (curve.level or 1.0) - 1e-12 else -math.inf

    @classmethod
    def collect(cls, findings: Iterable[Finding]) -> "Evidence":
        """Merge findings; each bound is computed once a level."""
        every = list(findings)
        estimates = {e.id: e for finding in every for e in finding.estimates}
        bounds = {key: bound for finding in every for key, bound in finding.bounds.items()}
        curves = {c.id: c for finding in every for c in finding.curves}
        return cls(estimates, curves, {key: cache(bound) for key, bound in bounds.items()})


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
    declared : DeclaredColumns or None
        All private columns that the file declares, where others are not audited.
    by_strata : bool
        Whether each stratum is held against a claim of its own.
    """

    policy: Policy
    claim: Mechanism
    evidence: Evidence
    rows: int
    declared: DeclaredColumns | None = None
    by_strata: bool = False


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
