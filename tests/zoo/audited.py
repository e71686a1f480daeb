"""Auditing a release of the zoo, and what its result says about the fault."""

import dataclasses
import re
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

import ldpaudit
from ldpaudit.judging.policy import DEFAULT, Policy, preset
from ldpaudit.options import AuditOptions
from ldpaudit.result import AuditResult
from zoo.specimen import Fault, Trace

SLOW = ("renyi", "instance-loss", "label-inference", "numeric-inference", "synthetic")
"""Audits that measure how much is lost and judge no claim; left out unless asked for."""
_OPTIONS = {field.name for field in dataclasses.fields(AuditOptions)}


@dataclass(frozen=True)
class Outcome:
    """How an audit of a release ended.

    Attributes
    ----------
    verdict, decision : str
    facts : tuple of str
        Checks that failed, ``fail:CHECK``, and warnings, ``warning:AUDIT: TEXT``.
    named : bool
        Whether a fact names the fault.
    """

    verdict: str
    decision: str
    sentence: str
    facts: tuple[str, ...]
    named: bool

    @property
    def accused(self) -> bool:
        """Whether the exit status is 1."""
        return self.verdict == "fail"

    @property
    def found(self) -> bool:
        """Whether somebody who reads the result knows that something is wrong."""
        return self.accused or self.named


def facts_of(result: AuditResult) -> tuple[str, ...]:
    failed = [f"fail:{check.id}" for check in result.checks if check.verdict == "fail"]
    warned = [f"warning:{n.audit}: {n.text}" for n in result.notes if n.level == "warning"]
    return (*failed, *warned)


def audit(
    fault: Fault,
    n: int,
    seed: int,
    truth: bool,
    *,
    only: Collection[str] = (),
    skip: Collection[str] = SLOW,
    confidence: float = 0.95,
) -> Outcome:
    """Make a release of the fault and audit it by the default policy at a confidence."""
    rng = np.random.default_rng([seed, n, *fault.id.encode()])
    specimen = fault.make(n, rng)
    options = {key: value for key, value in specimen.options.items() if key in _OPTIONS}
    if truth and "before" in specimen.options:
        options["before"] = specimen.options["before"]
    if "group" in specimen.options and "group" not in options:
        options["drop"] = [specimen.options["group"]]
    result = ldpaudit.audit(
        specimen.table,
        truth=specimen.truth if truth else None,
        only=only,
        skip=() if only else [name for name in skip if name not in fault.needs],
        policy=Policy.model_validate(preset(DEFAULT) | {"audit": {"confidence": confidence}}),
        threads=1,
        rng=seed,
        **options,
    )
    trace = fault.insider if truth else fault.outsider
    facts = facts_of(result)
    return Outcome(result.verdict, result.decision, result.sentence, facts, names(facts, trace))


def names(facts: Collection[str], trace: Trace) -> bool:
    """Return whether one of the facts is among those by which the fault is found."""
    return any(re.fullmatch(sign, fact, re.DOTALL) for sign in trace.signs for fact in facts)
