"""The verdict in one sentence, for somebody who has never heard of ε."""

import math
from collections.abc import Sequence

from ldpaudit.audits.epsilon_proofs import OUTSIDER
from ldpaudit.judging.checks.interface import CLEAR_GROUP, CLEAR_SHARE, POWER, Case
from ldpaudit.judging.next_steps import one_in
from ldpaudit.judging.waivers import waived_words
from ldpaudit.reports.text.numbers import against, fold, folds, number, percent, rows, share_up
from ldpaudit.result import Check, Verdict, holding_up

_CLAIM = "claimed-epsilon"
_ALONE = (
    "from this file alone, if each released label comes from the true label alone, as declared, "
    "and no column was computed from released labels,"
)


def sentence(verdict: Verdict, checks: Sequence[Check], case: Case) -> str:
    """Return the verdict in words, with what failed or is waived besides."""
    return _verdict(verdict, checks, case) + _warned(verdict, checks) + _besides(verdict, checks)


def _verdict(verdict: Verdict, checks: Sequence[Check], case: Case) -> str:
    grave = [c for c in holding_up(checks) if c.level == "error" and c.verdict == verdict]
    if verdict == "fail":
        return f"Violation found: {_violation(grave[0])}{_more(len(grave) - 1)}."
    if verdict == "inconclusive":
        reason = grave[0].reason if grave else "the policy has no check that can fail"
        return f"Inconclusive: {reason}."
    waived = [check for check in checks if check.level == "error" and check.waived]
    if waived:
        what = f"{_violation(waived[0])}{_more(len(waived) - 1, waived=True)}"
        return f"Violation found, {waived_words(waived[0])}: {what}."
    return f"No violation found: {_reassurance(checks, case)}."


def _besides(verdict: Verdict, checks: Sequence[Check]) -> str:
    """Return the violations that are waived and that nothing before names."""
    levels = ("warn",) if verdict == "pass" else ("warn", "error")
    waived = [check for check in checks if check.waived and check.level in levels]
    if not waived:
        return ""
    first, others = waived[0], _more(len(waived) - 1, waived=True)
    return f" A violation is {waived_words(first)}: {first.reason}{others}."


def _violation(check: Check) -> str:
    if check.confidence is None:
        return check.reason
    confidence = percent(check.confidence)
    if check.observed is None or check.limit is None:
        return f"{check.reason} (at {confidence} confidence{_chance(check)})"
    observed, limit = against(check.observed, check.limit, "down")
    if check.id == _CLAIM:
        alone = f"{_ALONE} " if OUTSIDER in check.evidence else ""
        shifted, promised = folds(check.observed, check.limit)
        return (
            f"the release claims ε = {limit}, but {alone}at least ε = {observed} is certified (at "
            f"{confidence} confidence{_chance(check)}): a released label can shift the odds "
            f"between two true labels at least {shifted}, where at most {promised} was promised"
        )
    at_least = f"at least {observed} against {limit}, at {confidence} confidence"
    return f"{check.reason} ({at_least}{_chance(check)})"


def _chance(check: Check) -> str:
    """Return how often an honest release looks like this, where that is not hardly ever."""
    if check.p_value is None or not check.may_be_chance:
        return ""
    return f"; by chance at most one honest release in {one_in(check.p_value)} looks like this"


def _warned(verdict: Verdict, checks: Sequence[Check]) -> str:
    """Return the sentence's second half where a check failed that does not decide the verdict.

    A page that says "no violation found" over a failed check would contradict itself.
    """
    failed = [c for c in checks if c.level == "warn" and c.verdict == "fail" and not c.waived]
    if verdict == "fail" or not failed:
        return ""
    first, others = failed[0], _more(len(failed) - 1)
    sure = "" if first.confidence is None else f" (at {percent(first.confidence)} confidence)"
    return f" But a check that only warns failed: {first.reason}{sure}{others}."


def _more(others: int, *, waived: bool = False) -> str:
    if not others:
        return ""
    too = f" and {'are' if others > 1 else 'is'} waived, too" if waived else ""
    return f", and {others} more check{'s' if others > 1 else ''} failed{too}"


def _reassurance(checks: Sequence[Check], case: Case) -> str:
    claimed = next((c for c in checks if c.id == _CLAIM and c.verdict == "pass"), None)
    power, epsilon = case.evidence.estimates.get(POWER), case.claim.epsilon
    if claimed is None or epsilon is None or claimed.observed is None or power is None:
        return "every check of the policy is met"
    if power.value == 0:
        return "every row has the same released label, which reveals nothing about the true ones"
    observed, claimed_epsilon = against(claimed.observed, epsilon, "down")
    alpha = 1 - (claimed.confidence or 0.0)
    missed = case.evidence.undetected_excess(alpha)
    noticed = power.value if missed is None else missed
    how = "with 90 % probability" + ("" if power.kind == "exact" else " (by estimate)")
    text = (
        f"nothing contradicts the claimed ε = {claimed_epsilon}, which allows a released label to "
        f"shift the odds between two true labels at most {fold(epsilon)} (certified: at least ε = "
        f"{observed}); "
    )
    if math.isinf(noticed):
        return f"{text}but this audit would have noticed no excess, however large, {how}"
    return (
        f"{text}this audit would have noticed, {how}, a true ε above "
        f"{number(epsilon + noticed, 'up')}{_few_rows(case, alpha)}"
    )


def _few_rows(case: Case, alpha: float) -> str:
    """Return how few rows in the clear would have been found, where it is known."""
    share, group = (case.evidence.at(name, alpha) for name in (CLEAR_SHARE, CLEAR_GROUP))
    found = []
    if share is not None and math.isfinite(share):
        found.append(f"in {share_up(share)} of the rows")
    if group is not None and math.isfinite(group):
        found.append(f"in a group of {rows(group, 'up')} rows that features tell apart")
    return f", or true labels {', or '.join(found)}" if found else ""
