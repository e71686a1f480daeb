"""What would answer a check that is inconclusive, with numbers where they are known.

A remedy is read off what is missing: an audit that was left out, true labels, a claim, rows,
seconds for attacks. Numbers come from the estimates of the audit itself.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from ldpaudit.audits.assumptions.stated import (
    CHANGED_ROWS,
    COUNTED_ROWS,
    DOUBTFUL_COLUMNS,
    DOUBTFUL_ROWS,
    FEATURE_BLIND_TEST,
    SELECTED,
)
from ldpaudit.judging.causes import SHARED
from ldpaudit.judging.checks.interface import POWER, Case
from ldpaudit.judging.checks.listing import audit_behind
from ldpaudit.judging.circumstances import Circumstances
from ldpaudit.reports.text.numbers import number, rows
from ldpaudit.result import Check

WITH_TRUTH = "power.with_truth.min_detectable_excess"
ROWS_WITH_TRUTH = "power.with_truth.rows_needed"
ROWS_NEEDED = "power.rows_needed"
BUDGET_NEEDED = "attack.budget_needed"
_CLAIM = "claimed-epsilon"
_REFUTED = "known only for labels that follow"
_IN_DOUBT = "may depend on the features"
_MOST_ROWS = 1e9


@dataclass(frozen=True)
class Open:
    """A check that is inconclusive, and all that may say why."""

    check: Check
    case: Case
    known: Circumstances

    def remedies(self) -> Iterator[str]:
        """Yield what to do about it, the best first."""
        audit, left_out = self.missing, self.known.left_out
        if audit is not None and audit in left_out:
            added = left_out[audit] == "--only"
            yield f"Add --only {audit}." if added else f"Take --skip {audit} away."
        else:
            yield from _REMEDIES.get(self.check.id, _other)(self)

    @property
    def missing(self) -> str | None:
        """The audit without whose numbers it is inconclusive; None where all are there."""
        audit = self._of_claim() if self.check.id == _CLAIM else audit_behind(self.check.id)
        if audit is None or (self.check.evidence and self.check.id != _CLAIM):
            return None
        return None if self.known.absence(audit) is None else audit

    def _of_claim(self) -> str | None:
        epsilon = self.case.claim.epsilon
        if epsilon is None or math.isinf(epsilon):
            return None
        if not self.bounded:
            return "mechanism"
        return None if any(one.endswith(POWER) for one in self.check.evidence) else "power"

    @property
    def bounded(self) -> bool:
        """Whether there is a bound of ε."""
        return bool(set(self.check.evidence) - {POWER, FEATURE_BLIND_TEST})

    @property
    def reason(self) -> str:
        """Why it is inconclusive, with the audit that is missing."""
        if self.missing in {record.id for record in self.known.stopped}:
            return self.known.absence(str(self.missing)) or ""
        because = "" if self.missing is None else f", because {self.known.absence(self.missing)}"
        return self.check.reason + because


_DOUBTS = {
    SELECTED: (
        "Audit the file from before rows were filtered, balanced or repeated by their released "
        "label, and release that one; or declare the channel of the rows kept (--channel)."
    ),
    CHANGED_ROWS: (
        "Audit the file from before the rule was applied, and release that one; whoever needs the "
        "rule can apply it to the released labels. Or declare one channel for each group (--by)."
    ),
    DOUBTFUL_COLUMNS: (
        "Audit without the columns that were computed from the released label (--drop); the "
        "release code tells which they are."
    ),
    DOUBTFUL_ROWS: (
        "Name the column that tells whose row it is (--group); if every row is a person of its "
        "own, look where the release code uses a feature."
    ),
}
Remedy = Callable[[Open], Iterator[str]]


def _claimed_epsilon(question: Open) -> Iterator[str]:
    check, case, known = question.check, question.case, question.known
    if case.claim.epsilon is None:
        yield (
            "State what was promised, for instance --mechanism randomized-response --epsilon 1, or "
            "declare it in the file."
        )
    elif math.isinf(case.claim.epsilon):
        yield (
            "Check the declaration: an infinite ε means that labels may be released as they are. "
            "State the finite ε that the release was made with (--epsilon)."
        )
    elif case.claim.traits.label_depends_on_features and not question.bounded:
        yield from _for_features(case, known)
    elif _REFUTED in check.reason:
        yield "Find out why the labels do not follow the claimed channel; the claim may be wrong."
        yield from _truth(case, known)
    elif _IN_DOUBT in check.reason:
        yield (
            "Find out whether the release code uses the features. If it does, declare a mechanism "
            "that does, such as model-based-rr; if not, audit a release with more rows."
        )
    elif not known.truth:
        yield from _truth(case, known)
    elif doubts := _DOUBTS.keys() & case.evidence.estimates.keys():
        yield from (_DOUBTS[name] for name in sorted(doubts))
    elif question.missing is not None:
        yield from _without_audit(question.missing, known)
    else:
        yield from _more_rows(case, 1 - (check.confidence or case.policy.audit.confidence))


def _for_features(case: Case, known: Circumstances) -> Iterator[str]:
    """Yield what helps where the mechanism uses features, so that counts of labels say nothing."""
    given = [] if known.truth else ["the true labels (--truth)"]
    if "public model" in case.claim.traits.needs:
        given.append("the public model that the mechanism used (--public-posterior)")
    else:
        given.append("public rows with labels (--public)")
    yield f"Give {' and '.join(given)}: the mechanism uses the features."


def _truth(case: Case, known: Circumstances) -> Iterator[str]:
    """Yield what the true labels would add."""
    if known.truth:
        return
    found, allowed = case.evidence.estimates.get(WITH_TRUTH), _allowed(case)
    text = "Give the true labels (--truth)"
    if found is None or math.isinf(found.value):
        yield f"{text}."
    elif found.value <= allowed:
        yield f"{text}: with them this audit would find an excess of {number(found.value, 'up')}."
    else:
        more = case.evidence.estimates.get(ROWS_WITH_TRUTH)
        needed = "" if more is None else _in_all(case.rows, more.value, allowed)
        yield (
            f"{text}: with them this audit would find an excess of {number(found.value, 'up')}"
            f"{needed}."
        )
    yield "Who does not hold the true labels can ask the publisher for the audit with them."
    more = case.evidence.estimates.get(ROWS_NEEDED)
    if more is not None and 0 < more.value < _MOST_ROWS:
        needed = rows(case.rows + more.value)
        yield f"From the release alone {needed} rows in all would do, by estimate."


def _given(why: str) -> str:
    return f"Give the true labels (--truth): {why}."


def _in_all(have: int, more: float, allowed: float) -> str:
    if not 0 < more < _MOST_ROWS:
        return ""
    return f", and of the {number(allowed)} that the policy allows with {rows(have + more)} rows"


def _allowed(case: Case) -> float:
    return case.policy.audit.max_undetected_excess.or_default().at(case.claim.epsilon or 0.0)


def _more_rows(case: Case, alpha: float) -> Iterator[str]:
    more, allowed = case.evidence.at(ROWS_NEEDED, alpha), _allowed(case)
    finite = more is not None and 0 < more < _MOST_ROWS
    if COUNTED_ROWS in case.evidence.estimates:
        yield SHARED
        if more is not None and finite:
            yield (
                f"Or release {rows(more)} more rows with noise of their own, to find an "
                f"excess of {number(allowed)}."
            )
    elif more is not None and finite:
        yield (
            f"Release more rows: it needs {rows(case.rows + more)} in all, "
            f"{rows(more)} more, to find an excess of {number(allowed)}."
        )
    missed = case.evidence.undetected_excess(alpha)
    if missed is not None and math.isfinite(missed):
        yield (
            "Or accept, before looking at another result, that more goes unnoticed: "
            f"max_undetected_excess = {number(missed, 'up', 2)} in the policy."
        )


def _attack(question: Open) -> Iterator[str]:
    check, case, known = question.check, question.case, question.known
    estimate = case.evidence.estimates.get(next(iter(check.evidence), ""))
    if not known.truth:
        yield _given("attacks are scored against them")
        return
    if estimate is None:
        yield from _without_audit("label-inference", known)
        return
    if estimate.low is None or estimate.high is None or check.limit is None:
        return
    budget = case.evidence.estimates.get(BUDGET_NEEDED)
    if budget is not None:
        yield f"Let all attacks run: --budget {rows(budget.value, 'up')}."
    above = estimate.value > check.limit
    half = estimate.value - estimate.low if above else estimate.high - estimate.value
    yield from _narrower(case.rows, half, abs(estimate.value - check.limit))


def _narrower(have: int, half: float, gap: float) -> Iterator[str]:
    """Yield how many rows make an interval of half that width end before the limit."""
    # The width of an interval falls with the root of the rows.
    needed = math.inf if gap <= 0 else have * (1.05 * half / gap) ** 2
    if have < needed < _MOST_ROWS:
        step = 10 ** (math.floor(math.log10(needed)) - 1)
        text = rows(math.ceil(needed / step) * step)
        yield f"Release more rows: with about {text} in all the interval would end at the limit."
    else:
        yield "The number lies too close to the limit for any number of rows: decide by its size."


def _exceedance(question: Open) -> Iterator[str]:
    if not question.check.evidence:
        yield from _without_audit("instance-loss", question.known)
    else:
        yield (
            "Look at more people (--queries all), or release more rows: the estimate is above the "
            "limit, but its lower bound is not yet."
        )


def _renyi(question: Open) -> Iterator[str]:
    if not question.check.evidence:
        yield from _without_audit("renyi", question.known)
    else:
        yield "Release more rows, or ask for a smaller order (alpha in the policy)."


def _without_audit(audit: str, known: Circumstances) -> Iterator[str]:
    if not known.truth:
        yield _given(f"the audit {audit} needs them here")
    elif why := known.absence(audit):
        yield f"Give the audit {audit} what it lacks, or take its check out of the policy: {why}."


def _min_rows(question: Open) -> Iterator[str]:
    least = rows(question.check.limit or 0)
    yield f"Release at least {least} rows, or lower min_rows in the policy."


def _reveal(question: Open) -> Iterator[str]:
    if question.known.truth:
        yield from _without_audit("label-inference", question.known)
        yield "Take the check out of the policy if nothing tells labels in features of this kind."
    else:
        yield _given("what features tell is measured against them")


def _weak(question: Open) -> Iterator[str]:
    if question.known.truth:
        yield from _more_rows(question.case, 1 - question.case.policy.audit.confidence)
    yield from _truth(question.case, question.known)
    yield "Release more rows, or accept that the audit may miss that much."


def _identifiers(_: Open) -> Iterator[str]:
    yield (
        "Look for ids, free text and dates in the table that the file was made from, and take "
        'the check out of the policy: [checks.identifiers] with level = "off".'
    )


def _channel(_: Open) -> Iterator[str]:
    yield "State the whole channel (--channel FILE), so that its counts can be compared."


def _rare(_: Open) -> Iterator[str]:
    yield (
        "Look in the release code at how the rare class that the check names is treated. If like "
        "the others, it is chance, as in one honest release in 20; classes with more people, "
        "merged before the noise, leave less to chance."
    )


def _other(question: Open) -> Iterator[str]:
    if not question.known.truth:
        yield _given("with them the audit knows more")


_REMEDIES: Mapping[str, Remedy] = {
    _CLAIM: _claimed_epsilon,
    "claimed-channel": _channel,
    "rare-classes": _rare,
    "features-reveal-label": _reveal,
    "identifiers": _identifiers,
    "instance-loss-exceedance": _exceedance,
    "label-inference-advantage": _attack,
    "label-inference-accuracy": _attack,
    "renyi-epsilon": _renyi,
    "min-rows": _min_rows,
    "undetected-excess": _weak,
}
