"""Judging the findings of an audit by a policy: checks, the verdict and its sentence."""

# The checks of level ``error`` form one family, and those of level ``warn`` another: within each
# the confidence of the policy holds for all violations claimed together (Holm's step-down procedure
# by default). A check fails when its certified bound, at the corrected level, lies beyond the
# limit.

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass

from ldpaudit.judging.advice import CLAIM_CHECKS, missing_audit, next_steps
from ldpaudit.judging.checks.interface import Case, Circumstances, Draft, Evidence
from ldpaudit.judging.checks.listing import draft_checks
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.sentence import sentence
from ldpaudit.judging.waivers import apply_waivers
from ldpaudit.mechanisms import Mechanism
from ldpaudit.result import (
    Check,
    CheckLevel,
    Family,
    Note,
    Verdict,
    decision_of,
    verdict_of,
)
from ldpaudit.result.numbers import percent

_SMALLEST_ALPHA = 1e-12
_LEVELS: tuple[CheckLevel, ...] = ("error", "warn")
_REFUTED = (
    "The declared mechanism is refuted, at {confidence} confidence. Numbers marked exact describe "
    "the declaration, not what was done; do not rely on estimates that assume the declaration."
)


@dataclass(frozen=True)
class Judgement:
    """The checks and what follows from them."""

    verdict: Verdict
    sentence: str
    next_steps: tuple[str, ...]
    checks: tuple[Check, ...]
    notes: tuple[Note, ...] = ()
    families: tuple[Family, ...] = ()


@dataclass(frozen=True)
class Answered:
    """The checks of a policy, answered by the evidence."""

    case: Case
    checks: tuple[Check, ...]
    notes: tuple[Note, ...]
    families: tuple[Family, ...]

    def judgement(self, verdict: Verdict, sentence: str, next_steps: Sequence[str]) -> Judgement:
        """Return the judgement that follows."""
        steps = tuple(next_steps)
        return Judgement(verdict, sentence, steps, self.checks, self.notes, self.families)


def judge(
    policy: Policy,
    claim: Mechanism,
    evidence: Evidence,
    *,
    rows: int,
    sha256: str | None,
    today: datetime.date,
    circumstances: Circumstances | None = None,
) -> Judgement:
    """Judge the evidence by the policy; parameters as of :func:`answered`."""
    case = Case(policy, claim, evidence, rows, circumstances or Circumstances())
    found = answered(case, sha256, today)
    verdict = verdict_of(found.checks)
    words = sentence(verdict, found.checks, case)
    steps = next_steps(decision_of(verdict, found.checks), case, found.checks)
    return found.judgement(verdict, words, steps)


def answered(case: Case, sha256: str | None, today: datetime.date) -> Answered:
    """Return the answers of the checks that a policy asks.

    ``sha256``, ``today``: the release's digest and the date: waivers hold for one release until
    they expire. How the release was audited matters where audits were left out or stopped.
    """
    policy = case.policy
    checks, families = decided(draft_checks(case), policy)
    checks = [_as_audited(check, case) for check in checks]
    checks, notes = apply_waivers(checks, policy.waivers, sha256, today)
    refuted = [
        check.confidence
        for check in checks
        if check.verdict == "fail" and check.id in CLAIM_CHECKS and check.confidence is not None
    ]
    if refuted:  # By the least certain refutation.
        notes.append(Note.warning("policy", _REFUTED.format(confidence=percent(min(refuted)))))
    return Answered(case, tuple(checks), tuple(notes), tuple(families))


def _as_audited(check: Check, case: Case) -> Check:
    """Return a check that names the audit that is missing, and does not pass where one stopped."""
    # A violation stays one: its bound holds at the level that was set before the audit began.
    # Proven noise does not answer what an audit that was stopped would have found of the features.
    stopped = case.circumstances.stopped
    audit = missing_audit(case, check) if check.verdict == "inconclusive" else None
    absence = None if audit is None else case.circumstances.absence(audit)
    if absence is not None:
        alone = audit in {record.id for record in stopped}
        reason = absence if alone else f"{check.reason}, because {absence}"
        return check.model_copy(update={"reason": reason})
    judges = check.confidence is not None or check.id == "claimed-epsilon"
    if not stopped or not judges or check.verdict != "pass":
        return check
    names = ", ".join(record.id for record in stopped)
    why = f"but not all audits could look: {stopped[0].reason} before {names} ended"
    changed = {"verdict": "inconclusive", "reason": f"{check.reason}, {why}"}
    return check.model_copy(update=changed)


def decided(drafts: Sequence[Draft], policy: Policy) -> tuple[list[Check], list[Family]]:
    """Return the answers of checks, in their order, and how they share the error probability."""
    audit, answers, families = policy.audit, {}, []
    for level in _LEVELS:
        tests = [draft for draft in drafts if draft.level == level and not draft.no_test]
        family = [draft for draft in tests if not draft.own_error]
        p_values = [_p_value(draft, 1 - audit.confidence) for draft in family]
        levels = corrected_levels(p_values, 1 - audit.confidence, audit.correction)
        for draft, alpha, p_value in zip(family, levels, p_values, strict=True):
            answers[draft.id] = _check(draft, alpha, p_value)
        for draft in tests:
            if alone := draft.own_error:
                answers[draft.id] = _check(draft, alone, _p_value(draft, alone))
        if family:
            shared = {"correction": audit.correction, "confidence": audit.confidence}
            families.append(Family(level=level, checks=len(family), **shared))
    claimed = answers.get("claimed-epsilon")
    # What could have been missed is said at the level at which the claim is tested.
    sure = audit.confidence if claimed is None or claimed.confidence is None else claimed.confidence
    answers |= {draft.id: _check(draft, 1 - sure) for draft in drafts if draft.no_test}
    return [answers[draft.id] for draft in drafts], families


def _p_value(draft: Draft, alpha: float) -> float:
    """Return the smallest error probability, up to ``alpha``, at which the check fails; else 1."""
    if not draft.fails(alpha):
        return 1.0
    low, high = math.log(_SMALLEST_ALPHA), math.log(alpha)
    if draft.fails(_SMALLEST_ALPHA):
        return _SMALLEST_ALPHA
    for _ in range(30):
        middle = (low + high) / 2
        if draft.fails(math.exp(middle)):
            high = middle
        else:
            low = middle
    return math.exp(high)


def corrected_levels(p_values: list[float], alpha: float, correction: str) -> list[float]:
    """Return the error probability at which each check is to be answered."""
    # Holm (1979): the i-th smallest p-value is compared with alpha/(m − i + 1), until one is above.
    m = left = len(p_values)
    if correction != "holm":
        return [alpha if correction == "none" else alpha / m for _ in p_values]
    levels = [0.0] * m
    for place in sorted(range(m), key=p_values.__getitem__):
        levels[place] = alpha / left
        left -= p_values[place] <= alpha / left
    return levels


def _check(draft: Draft, alpha: float, p_value: float = 1.0) -> Check:
    """Return a check at an error probability."""
    answer = draft.test(alpha)
    return Check(
        id=draft.id,
        question=draft.question,
        limit=draft.limit,
        observed=answer.observed,
        side=answer.side,
        verdict=answer.verdict,
        level="warn" if draft.level == "warn" else "error",
        confidence=None if draft.no_test else 1 - alpha,
        p_value=p_value if p_value < 1 else None,
        reason=answer.reason,
        evidence=draft.evidence,
    )
