"""Judging the findings of an audit by a policy: checks, the verdict and its sentence.

The checks of level ``error`` form one family, and those of level ``warn`` another: within each the
confidence of the policy holds for all violations claimed together (Holm's step-down procedure by
default). A check fails when its certified bound, at the corrected level, lies beyond the limit.
"""

import datetime
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ldpaudit.judging.checks.interface import Case, Draft, Evidence
from ldpaudit.judging.checks.listing import draft_checks, not_looked_for
from ldpaudit.judging.circumstances import Circumstances
from ldpaudit.judging.next_steps import CLAIM_CHECKS, next_steps
from ldpaudit.judging.node_words import of_strata
from ldpaudit.judging.policy import Policy
from ldpaudit.judging.remedies import Open
from ldpaudit.judging.sentence import sentence
from ldpaudit.judging.waivers import apply_waivers
from ldpaudit.mechanisms import Mechanism
from ldpaudit.reports.text.numbers import percent
from ldpaudit.result import (
    AuditResult,
    Check,
    CheckLevel,
    Family,
    Note,
    Verdict,
    decision_of,
    overall,
    verdict_of,
)

_SMALLEST_ALPHA = 1e-12
_LEVELS: tuple[CheckLevel, ...] = ("error", "warn")
_REFUTED = (
    "The declared mechanism is refuted, at {confidence} confidence. Numbers marked exact are of "
    "the declaration, not of what was done, and estimates that take the declaration for true are "
    "not to be relied on."
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


def judge(
    policy: Policy,
    claim: Mechanism,
    evidence: Evidence,
    *,
    rows: int,
    sha256: str | None,
    today: datetime.date,
    known: Circumstances | None = None,
    strata: Sequence[AuditResult] = (),
) -> Judgement:
    """Judge the evidence by the policy.

    Parameters
    ----------
    policy : Policy
    claim : Mechanism
        What the release declares.
    evidence : Evidence
    rows : int
        The release's number of rows.
    sha256, today : str or None, datetime.date
        The release's digest and the date: waivers hold for one release until they expire.
    known : Circumstances, optional
        How the release was audited: advice depends on it, the verdict does where audits were left
        out or stopped.
    strata : sequence of AuditResult
        Each judged by its own claim, where a column has several channels.
    """
    known = known or Circumstances()
    case = Case(policy, claim, evidence, rows, known.columns, by_strata=bool(strata))
    drafts = draft_checks(case)
    drafts += _not_looked_for(policy, {draft.id for draft in drafts}, known)
    checks, families = decided(drafts, policy)
    checks = [_unless_stopped(_explained(check, case, known), known) for check in checks]
    checks, notes = apply_waivers(checks, policy.waivers, sha256, today)
    notes += _refutation(checks)
    verdict = overall(checks, strata)
    decision = decision_of(verdict, [*checks, *(c for part in strata for c in part.checks)])
    own = verdict_of(checks) if any(c.level == "error" for c in checks) or not strata else "pass"
    # Where the strata decide, its own checks say nothing.
    mine = decision_of(own, checks) == decision
    said = sentence(verdict, checks, case) if own == verdict else ""
    steps = next_steps(decision, case, known, checks) if mine else ()
    if strata:
        said, steps = of_strata(said, steps, verdict, decision, checks, strata)
    return Judgement(
        verdict,
        said,
        steps,
        tuple(checks),
        tuple(notes),
        tuple(families),
    )


def _not_looked_for(
    policy: Policy, drafted: Collection[str], known: Circumstances
) -> Iterator[Draft]:
    """Yield what a stated policy asks for and an audit that was left out could have answered.

    Without a policy, whoever leaves an audit out asks no question that it answers.
    """
    for name in policy.checks.asked() if policy.sha256 is not None else ():
        section = getattr(policy.checks, name.replace("-", "_"))
        could = known.truth or name != "shared-noise"
        draft = not_looked_for(name, section.level, known.left_out)
        if draft is not None and name not in drafted and could:
            yield draft


def decided(drafts: Sequence[Draft], policy: Policy) -> tuple[list[Check], list[Family]]:
    """Return the answers of checks, in their order, and how they share the error probability."""
    checks: list[Check] = []
    families: list[Family] = []
    for level in _LEVELS:
        tests = [draft for draft in drafts if draft.level == level and not draft.counted]
        checks += _decide(tests, 1 - policy.audit.confidence, policy.audit.correction)
        families += _family(level, [test for test in tests if not test.own_error], policy)
    claimed = [check.confidence for check in checks if check.id == "claimed-epsilon"]
    # What could have been missed is said at the level at which the claim is tested.
    tested = 1 - min((c for c in claimed if c is not None), default=policy.audit.confidence)
    checks += [_check(draft, tested) for draft in drafts if draft.counted]
    order = {draft.id: position for position, draft in enumerate(drafts)}
    return sorted(checks, key=lambda check: order[check.id]), families


def _family(level: CheckLevel, tests: list[Draft], policy: Policy) -> list[Family]:
    """Return how checks of one level share the error probability; nothing where there are none."""
    audit = policy.audit
    stated = {"level": level, "checks": len(tests), "correction": audit.correction}
    return [Family(**stated, confidence=audit.confidence)] if tests else []


def _explained(check: Check, case: Case, known: Circumstances) -> Check:
    """Return a check whose reason names the audit that is missing, if one is."""
    if check.verdict != "inconclusive":
        return check
    return check.model_copy(update={"reason": Open(check, case, known).reason})


def _unless_stopped(check: Check, known: Circumstances) -> Check:
    """Return a check that is not passed where an audit was stopped: it may lack numbers.

    A violation stays one: its bound holds at the level that was set before the audit began.
    """
    if not known.stopped or check.confidence is None or check.verdict != "pass":
        return check
    first = known.stopped[0]
    names = ", ".join(record.id for record in known.stopped)
    reason = f"{check.reason}, but not all audits could look: {first.reason} before {names} ended"
    return check.model_copy(update={"verdict": "inconclusive", "reason": reason})


def _decide(family: list[Draft], alpha: float, correction: str) -> list[Check]:
    """Answer a family of checks at a family-wise error probability."""
    alone = [_check(d, d.own_error, _p_value(d, d.own_error)) for d in family if d.own_error]
    family = [draft for draft in family if not draft.own_error]
    p_values = [_p_value(draft, alpha) for draft in family]
    levels = corrected_levels(p_values, alpha, correction)
    return alone + [_check(*each) for each in zip(family, levels, p_values, strict=True)]


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
    """Return the error probability at which each check is to be answered.

    Holm (1979): the i-th smallest p-value is compared with alpha/(m − i + 1), until one is above.
    """
    m = len(p_values)
    if correction == "none":
        return [alpha] * m
    if correction == "bonferroni":
        return [alpha / m] * m
    levels, left = [0.0] * m, m
    for position in sorted(range(m), key=lambda i: p_values[i]):
        levels[position] = alpha / left
        if p_values[position] <= alpha / left:
            left -= 1
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
        confidence=None if draft.counted else 1 - alpha,
        p_value=p_value if p_value < 1 else None,
        reason=answer.reason,
        evidence=draft.evidence,
    )


def _refutation(checks: list[Check]) -> list[Note]:
    """Return a warning of a refuted claim, with the confidence of the least certain refutation."""
    failed = [
        check.confidence or 0.0
        for check in checks
        if check.verdict == "fail" and check.id in CLAIM_CHECKS and check.confidence is not None
    ]
    if not failed:
        return []
    return [Note.warning("policy", _REFUTED.format(confidence=percent(min(failed))))]
