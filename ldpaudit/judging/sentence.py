"""The verdict in one sentence, for somebody who has never heard of ε."""

import math
from collections.abc import Sequence
from dataclasses import replace

from ldpaudit.judging.advice import one_in
from ldpaudit.judging.checks.claimed_epsilon import is_conditional
from ldpaudit.judging.checks.interface import Case
from ldpaudit.judging.waivers import waived_words
from ldpaudit.mechanisms.capabilities import StagedLabel
from ldpaudit.receipt.words import sentence as replayed
from ldpaudit.result import Check, Verdict, holding_up
from ldpaudit.result.answers import VERDICTS, warnings_of
from ldpaudit.result.numbers import against, fold, folds, number, percent, rows, share_up
from ldpaudit.result.sentence import Sentence
from ldpaudit.result.stated import CLEAR_GROUP, CLEAR_SHARE, EXCESS, INSIDER, OUTSIDER

_CLAIM = "claimed-epsilon"
_ALONE = (
    "from this file alone, if each released label comes from the true label alone, as declared, "
    "and no column was computed from released labels,"
)


def sentence(verdict: Verdict, checks: Sequence[Check], case: Case) -> str:
    """Return the verdict in words, with what failed or is waived besides."""
    said = _verdict_of(verdict, checks, case)
    if verdict == "pass":
        said = with_prior(said, case.claim.epsilon, case.circumstances.prior_epsilon)
    warnings = warnings_of(checks)
    if warnings and verdict != "fail":  # Silence over a failed check would contradict the page.
        first, left = warnings[0], len(warnings) - 1
        sure = "" if first.confidence is None else f" (at {percent(first.confidence)} confidence)"
        more = f", and {left} more warning{'s' if left > 1 else ''}" if left else ""
        said = replace(said, warning=f"{first.reason}{sure}{more}")
    waived = [check for check in checks if check.waived]
    besides = [check for check in waived if check.level == "warn" or verdict != "pass"]
    if besides:
        first, others = besides[0], _more(len(besides) - 1, waived=True)
        said = replace(said, waived=f"{waived_words(first)}: {first.reason}{others}")
    return str(said)


def _verdict_of(verdict: Verdict, checks: Sequence[Check], case: Case) -> Sentence:
    """Return what the verdict is called, and why; what would have been noticed, if it is good."""
    grave = [c for c in holding_up(checks) if c.level == "error" and c.verdict == verdict]
    accepted = [check for check in checks if check.waived and check.level == "error"]
    if verdict == "fail":
        return Sentence(f"{VERDICTS[verdict]}: {violation(grave[0])}{_more(len(grave) - 1)}")
    if verdict == "inconclusive":
        reason = grave[0].reason if grave else "the policy has no check that can fail"
        return Sentence(f"{VERDICTS[verdict]}: {reason}")
    if accepted:
        what = f"{violation(accepted[0])}{_more(len(accepted) - 1, waived=True)}"
        return Sentence(f"{VERDICTS['fail']}, {waived_words(accepted[0])}: {what}")
    if case.circumstances.replay is not None and case.circumstances.proven:
        proof = replayed(case.circumstances.replay).removesuffix(".")
        return Sentence(proof, further=_exact(case))
    return _reassurance(f"{VERDICTS[verdict]}: ", checks, case)


def violation(
    check: Check,
    who: str = "the release claims",
    what: str = "a released label can shift the odds between two true labels",
) -> str:
    """Return what a failed check says: of the claimed ε, whose it is, and what that means."""
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
            f"{who} ε = {limit}, but {alone}at least ε = {observed} is certified (at {confidence} "
            f"confidence{_chance(check)}): {what} at least {shifted}, where at most {promised} was "
            "promised"
        )
    at_least = f"at least {observed} against {limit}, at {confidence} confidence"
    return f"{check.reason} ({at_least}{_chance(check)})"


def _chance(check: Check) -> str:
    """Return how often an honest release looks like this, where that is not hardly ever."""
    if check.p_value is None or not check.may_be_chance:
        return ""
    return f"; by chance at most one honest release in {one_in(check.p_value)} looks like this"


def _more(others: int, *, waived: bool = False) -> str:
    if not others:
        return ""
    too = f" and {'are' if others > 1 else 'is'} waived, too" if waived else ""
    return f", and {others} more check{'s' if others > 1 else ''} failed{too}"


def _exact(case: Case) -> str:
    """Return what the claim means for a release whose noise is proven."""
    epsilon = case.claim.epsilon
    if epsilon is None or math.isinf(epsilon):
        return ""
    return (
        f"So ε = {number(epsilon)} is exact: a released label can shift the odds between two true "
        f"labels at most {fold(epsilon, 'up')}."
    )


def with_prior(said: Sentence, epsilon: float | None, prior: float) -> Sentence:
    """Return a sentence that says what a release costs whose noise a private histogram designed.

    ``epsilon``: what is claimed of the labels; ``prior``: what the histogram cost; both in nats.
    """
    if prior == 0 or epsilon is None or math.isinf(epsilon):
        return said
    total = (
        f"A private histogram of the labels, by which the noise was designed, cost another ε = "
        f"{number(prior)}: together ε = {number(epsilon + prior, 'up')}."
    )
    return replace(said, further=f"{said.further} {total}".strip())


def _reassurance(start: str, checks: Sequence[Check], case: Case) -> Sentence:
    claimed = next((c for c in checks if c.id == _CLAIM and c.verdict == "pass"), None)
    power, epsilon = case.evidence.estimates.get(EXCESS), case.claim.epsilon
    if claimed is None or epsilon is None or claimed.observed is None or power is None:
        return Sentence(f"{start}every check of the policy is met")
    if power.value == 0:
        alike = "every row has the same released label, which reveals nothing about the true ones"
        return Sentence(f"{start}{alike}")
    observed, claimed_epsilon = against(claimed.observed, epsilon, "down")
    alpha = 1 - (claimed.confidence or 0.0)
    missed = case.evidence.undetected_excess(alpha)
    noticed = power.value if missed is None else missed
    by_counts = power.kind == "exact" or INSIDER in case.evidence.bounds
    how = "with 90 % probability" + ("" if by_counts else " (by estimate)")
    staged, where = case.claim.offers(StagedLabel), ""
    if staged is not None:
        where = f" in the first of {staged.stages} stages, the only one bounded"
    known = [name for name in claimed.evidence if name in case.evidence.bounds and name != EXCESS]
    sure = not known or any(not is_conditional(case.evidence, name) for name in known)
    kind = "certified" if sure else "estimated"
    if math.isinf(noticed):
        would_notice = f"but this audit would have noticed no excess, however large, {how}"
    else:
        above = f"{number(epsilon + noticed, 'up')}{_few_rows(case, alpha)}"
        would_notice = f"this audit would have noticed, {how}, a true ε above {above}"
    return Sentence(
        f"{start}nothing contradicts the claimed ε = {claimed_epsilon}{where}, which allows a "
        f"released label to shift the odds between two true labels at most {fold(epsilon, 'up')}",
        bound=f"{kind}: at least ε = {observed}",
        power=would_notice,
    )


def _few_rows(case: Case, alpha: float) -> str:
    """Return how few rows in the clear would have been found, where it is known."""
    share, group = (case.evidence.at(name, alpha) for name in (CLEAR_SHARE, CLEAR_GROUP))
    found = []
    if share is not None and math.isfinite(share):
        found.append(f"in {share_up(share)} of the rows")
    if group is not None and math.isfinite(group):
        found.append(f"in a group of {rows(group, 'up')} rows that one column sets apart")
    where = "standing in the clear in the label column"
    return f", or true labels {where}, {' or '.join(found)}" if found else ""
