"""What every check is given, and what it gives: a test that can be asked at any level."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from ldpaudit.judging.policy import Policy
from ldpaudit.mechanisms import Mechanism
from ldpaudit.mechanisms.channel import Channel, ChannelFamily
from ldpaudit.receipt.found import Replay
from ldpaudit.release import DeclaredColumns, IndexArray
from ldpaudit.release.declaration import FaultOfMaking
from ldpaudit.result import AuditRecord, Curve, Estimate, Finding, Side, Verdict
from ldpaudit.result.stated import EXCESS


@dataclass(frozen=True)
class Evidence:
    """The findings of all audits, by id."""

    estimates: Mapping[str, Estimate]
    curves: Mapping[str, Curve]
    bounds: Mapping[str, Callable[[float], float]]

    def undetected_excess(self, alpha: float) -> float | None:
        """Return the smallest excess ε found with 90 % power at error probability ``alpha``."""
        return self.at(EXCESS, alpha)

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
class Circumstances:
    """How a release was audited: advice depends on it."""

    truth: bool = True
    """Whether the true labels were given."""
    public_model: bool = False
    """Whether the probabilities of the claim's public model were given."""
    counts: IndexArray | None = None
    """Rows by true and released label, int64 of shape (k, m)."""
    channel: Channel | None = None
    """The claimed one, in the order of the release's labels."""
    family: ChannelFamily | None = None
    """The claimed mechanism at another ε in nats, of a mechanism on numbers."""
    unrelated: bool = False
    """Whether true and released labels are as if they had nothing to do with each other."""
    records: tuple[AuditRecord, ...] = ()
    """The audits that were asked for."""
    left_out: Mapping[str, Literal["--only", "--skip"]] = field(default_factory=dict)
    """The audits that were not asked for, and the option that left each out."""
    holds_truth: bool = False
    """Whether the true labels are in the release itself."""
    declared: bool = True
    """Whether the file itself declares the claim."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """What of the file no audit looked at, and how to change that before it is published."""
    advisable: bool = False
    """Whether ``ldpaudit advise`` can take the release with its true labels."""
    columns: DeclaredColumns | None = None
    """All private columns that the file declares, where others are not audited."""
    prior_epsilon: float = 0.0
    """What a private histogram of the labels, by which the noise was designed, cost, in nats."""
    faults_of_making: tuple[FaultOfMaking, ...] = ()
    """How the release was made, as its file declares, where that breaks its promise."""
    named_as_truth: tuple[int, ...] = ()
    """Which of the file's columns, from 1, are features and have the private column's name."""
    replay: Replay | None = None
    """What drawing the noise again found; None where that was not tried."""
    concerns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names of the columns that may lead back to a person, by the estimate that counts them."""
    noise_step: str = ""
    """What to look at first by what was found of the noise."""
    columns_step: str = ""
    """What to look at first about columns in doubt."""
    changed_by: str = ""
    """The columns that fix released labels, in words."""
    may_be_made: bool = True
    """Whether one of them may be computed from released labels."""

    @property
    def proven(self) -> bool:
        """Whether every released label is what the declared mechanism draws: no test is needed."""
        return self.replay is not None and self.replay.proven

    def absence(self, audit: str) -> str | None:
        """Return why an audit has no numbers, or only a part of them; None if it ran."""
        if audit in self.left_out:
            return f"the audit {audit} was left out ({self.left_out[audit]})"
        for record in self.records:
            if record.id == audit and record.status != "ran":
                did = "was stopped" if record.status == "stopped" else "did not run"
                return f"the audit {audit} {did}: {record.reason.rstrip('.')}"
        return None

    @property
    def stopped(self) -> tuple[AuditRecord, ...]:
        """The audits that ended before they were done."""
        return tuple(record for record in self.records if record.status == "stopped")


@dataclass(frozen=True)
class Case:
    """Everything that a check of a column, and advice about it, may look at."""

    policy: Policy
    claim: Mechanism
    """What the release declares."""
    evidence: Evidence
    rows: int
    """The release's number of rows."""
    circumstances: Circumstances = Circumstances()
    by_strata: bool = False
    """Whether each stratum has a claim of its own."""


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
    """A check before its level is known: ``id`` to ``evidence`` are those of the check."""

    id: str
    level: str
    question: str
    limit: float | None
    evidence: tuple[str, ...]
    test: Callable[[float], Answer]
    """The answer at a one-sided error probability; a failure at one stays one at a larger."""
    own_error: float | None = None
    """The error probability of a check that takes no part in the correction for several."""
    no_test: bool = False
    """Whether it says what is there, as it was counted or measured, and tests nothing.

    It takes no share of the error probability then, and has no confidence.
    """
    failure: Callable[[float], Answer | None] | None = None
    """The answer where it is a failure, without the cost of the answer where it is none."""

    def fails(self, alpha: float) -> bool:
        """Return whether the check fails at a one-sided error probability."""
        if self.failure is not None:
            return self.failure(alpha) is not None
        return self.test(alpha).verdict == "fail"


Test = Callable[[float], Answer]


def drafted(
    test: Test | Answer,
    evidence: tuple[str, ...] = (),
    limit: float | None = None,
    question: str = "",
    *,
    no_test: bool = False,
    failure: Callable[[float], Answer | None] | None = None,
) -> Draft:
    """Return a check whose row of the table adds its name, its level and what is left open here.

    ``test``: the answer by error probability, or the same one at each.
    """
    asked = (lambda _: test) if isinstance(test, Answer) else test
    return Draft("", "", question, limit, evidence, asked, no_test=no_test, failure=failure)
