"""Judging the findings of an audit by a policy: checks, the verdict and its sentence.

The checks of level ``error`` form one family, and those of level ``warn`` another: within each the
confidence of the policy holds for all violations claimed together (Holm's step-down procedure by
default). A check fails when its certified bound, at the corrected level, lies beyond the limit.
"""

import datetime
import math
from dataclasses import dataclass

from ldpaudit.judging.checks.interface import POWER, Draft, Evidence
from ldpaudit.judging.checks.listing import draft_checks
from ldpaudit.judging.policy import Policy, Waiver
from ldpaudit.mechanisms import Mechanism
from ldpaudit.reports.text.numbers import against, number, percent
from ldpaudit.result import Check, Note, Verdict

_SMALLEST_ALPHA = 1e-12
_CLAIM_CHECKS = ("claimed-epsilon", "claimed-channel", "guessable-seed")
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
    checks: tuple[Check, ...]
    notes: tuple[Note, ...] = ()


def judge(
    policy: Policy,
    claim: Mechanism,
    evidence: Evidence,
    *,
    rows: int,
    sha256: str | None,
    today: datetime.date,
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
    """
    drafts = draft_checks(policy, claim, evidence, rows)
    checks: list[Check] = []
    for level in ("error", "warn"):
        family = [draft for draft in drafts if draft.level == level]
        checks += _decide(family, 1 - policy.audit.confidence, policy.audit.correction)
    order = {draft.id: position for position, draft in enumerate(drafts)}
    checks.sort(key=lambda check: order[check.id])
    checks, notes = _apply_waivers(checks, policy.waivers, sha256, today)
    notes += _refutation(checks)
    verdict = _overall(checks)
    sentence = _sentence(verdict, checks, claim, evidence) + _warned(verdict, checks)
    return Judgement(verdict, sentence, tuple(checks), tuple(notes))


def _decide(family: list[Draft], alpha: float, correction: str) -> list[Check]:
    """Answer a family of checks at a family-wise error probability."""
    alone = [_check(draft, draft.own_error) for draft in family if draft.own_error is not None]
    family = [draft for draft in family if draft.own_error is None]
    levels = corrected_levels([_p_value(draft, alpha) for draft in family], alpha, correction)
    return alone + [_check(draft, level) for draft, level in zip(family, levels, strict=True)]


def _p_value(draft: Draft, alpha: float) -> float:
    """Return the smallest error probability, up to ``alpha``, at which the check fails; else 1."""
    if draft.test(alpha).verdict != "fail":
        return 1.0
    low, high = math.log(_SMALLEST_ALPHA), math.log(alpha)
    if draft.test(_SMALLEST_ALPHA).verdict == "fail":
        return _SMALLEST_ALPHA
    for _ in range(30):
        middle = (low + high) / 2
        if draft.test(math.exp(middle)).verdict == "fail":
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


def _check(draft: Draft, alpha: float) -> Check:
    answer = draft.test(alpha)
    return Check(
        id=draft.id,
        question=draft.question,
        limit=draft.limit,
        observed=answer.observed,
        side=answer.side,
        verdict=answer.verdict,
        level="warn" if draft.level == "warn" else "error",
        confidence=1 - alpha,
        reason=answer.reason,
        evidence=draft.evidence,
    )


def _apply_waivers(
    checks: list[Check], waivers: tuple[Waiver, ...], sha256: str | None, today: datetime.date
) -> tuple[list[Check], list[Note]]:
    notes = []
    for waiver in waivers:
        matches = [
            i
            for i, check in enumerate(checks)
            if check.id == waiver.check
            and check.verdict == "fail"
            and waiver.release_sha256 == sha256
        ]
        if waiver.expires < today:
            notes.append(Note.warning("policy", f"The waiver of {waiver.check} has expired."))
        elif not matches:
            notes.append(Note.warning("policy", f"The waiver of {waiver.check} was not needed."))
        else:
            for i in matches:
                checks[i] = checks[i].model_copy(update={"waived": True})
    return checks, notes


def _refutation(checks: list[Check]) -> list[Note]:
    """Return a warning of a refuted claim, with the confidence of the least certain refutation."""
    failed = [
        check.confidence or 0.0
        for check in checks
        if check.verdict == "fail" and check.id in _CLAIM_CHECKS
    ]
    if not failed:
        return []
    return [Note.warning("policy", _REFUTED.format(confidence=percent(min(failed))))]


def _overall(checks: list[Check]) -> Verdict:
    errors = [check for check in checks if check.level == "error"]
    grave = [check for check in errors if not check.waived]
    if any(check.verdict == "fail" for check in grave):
        return "fail"
    if not errors or any(check.verdict == "inconclusive" for check in grave):
        return "inconclusive"
    return "pass"


def _sentence(verdict: Verdict, checks: list[Check], claim: Mechanism, evidence: Evidence) -> str:
    grave = [c for c in checks if c.level == "error" and not c.waived and c.verdict == verdict]
    if verdict == "fail":
        return f"Violation found: {_violation(grave[0])}{_more(len(grave) - 1)}."
    if verdict == "inconclusive":
        reason = grave[0].reason if grave else "the policy has no check that can fail"
        return f"Inconclusive: {reason}."
    waived = sum(check.waived for check in checks)
    if waived:
        return f"No violation found that is not waived ({waived} waived, see the checks)."
    return f"No violation found: {_reassurance(claim, checks, evidence)}."


def _violation(check: Check) -> str:
    if check.observed is None or check.limit is None:
        return check.reason
    observed, limit = against(check.observed, check.limit, "down")
    confidence = percent(check.confidence or 0.0)
    if check.id == "claimed-epsilon":
        return (
            f"the release claims ε = {limit}, but at least ε = {observed} is certified "
            f"(at {confidence} confidence)"
        )
    return f"{check.reason} (at least {observed} against {limit}, at {confidence} confidence)"


def _warned(verdict: Verdict, checks: list[Check]) -> str:
    """Return the sentence's second half where a check failed that does not decide the verdict.

    A page that says "no violation found" over a failed check would contradict itself.
    """
    failed = [c for c in checks if c.level == "warn" and c.verdict == "fail" and not c.waived]
    if verdict == "fail" or not failed:
        return ""
    first, others = failed[0], _more(len(failed) - 1)
    sure = percent(first.confidence or 0.0)
    return f" But a check that only warns failed: {first.reason} (at {sure} confidence){others}."


def _more(others: int) -> str:
    return f", and {others} more check{'s' if others > 1 else ''} failed" if others else ""


def _reassurance(claim: Mechanism, checks: list[Check], evidence: Evidence) -> str:
    claimed = next((c for c in checks if c.id == "claimed-epsilon" and c.verdict == "pass"), None)
    power = evidence.estimates.get(POWER)
    if claimed is None or claim.epsilon is None or claimed.observed is None or power is None:
        return "every check of the policy is met"
    observed, claimed_epsilon = against(claimed.observed, claim.epsilon, "down")
    missed = evidence.undetected_excess(1 - (claimed.confidence or 0.0))
    noticed = number(power.value if missed is None else missed, "up")
    how = "would" if power.kind == "exact" else "would, by estimate,"
    return (
        f"the claimed ε = {claimed_epsilon} is not refuted (certified so far: at least "
        f"{observed}); an excess of {noticed} or more {how} have been found with 90 % probability"
    )
