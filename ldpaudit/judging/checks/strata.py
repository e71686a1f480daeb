"""A claim about each stratum: each is judged by the same check, at an equal share of the error."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ldpaudit.judging.checks.interface import Answer, Case, Draft, Evidence
from ldpaudit.reports.text.numbers import against
from ldpaudit.result import in_stratum

_NUMBERED: Final = re.compile(r"stratum-(\d+)\.(.+)")


def cases_of_strata(case: Case) -> dict[int, Case]:
    """Return what there is about each stratum that has rows, by its number from 1."""
    every, numbers = case.evidence, set[int]()
    for identifier in every.estimates:
        found = _NUMBERED.fullmatch(identifier)
        if found:
            numbers.add(int(found[1]))
    policy = case.policy.model_copy(update={"claim": None})
    claims = case.claim.by_stratum
    return {
        number: replace(case, policy=policy, claim=claims[number - 1], evidence=_of(every, number))
        for number in sorted(numbers)
    }


def _of(evidence: Evidence, number: int) -> Evidence:
    prefix = in_stratum(number, "")
    estimates, bounds = evidence.estimates.items(), evidence.bounds.items()
    return Evidence(
        {key.removeprefix(prefix): e for key, e in estimates if key.startswith(prefix)},
        {},
        {key.removeprefix(prefix): b for key, b in bounds if key.startswith(prefix)},
    )


def draft_of_strata(case: Case, draft_one: Callable[[Case], Draft | None]) -> Draft | None:
    """Return the check of all strata together, made of the same check of each.

    Parameters
    ----------
    case : Case
    draft_one : callable
        Gives the check of one stratum.
    """
    drafts = {
        number: drawn
        for number, one in cases_of_strata(case).items()
        if (drawn := draft_one(one)) is not None
    }
    if not drafts:
        return draft_one(case)
    share = 1 / len(drafts)

    def answers(alpha: float) -> dict[int, Answer]:
        return {number: one.test(alpha * share) for number, one in drafts.items()}

    def failure(alpha: float) -> Answer | None:
        for number, one in drafts.items():
            if one.fails(alpha * share):
                return _said(number, one.test(alpha * share), one)
        return None

    def test(alpha: float) -> Answer:
        failed = failure(alpha)
        if failed is not None:
            return failed
        found = answers(alpha)
        open_ones = [(n, a) for n, a in found.items() if a.verdict == "inconclusive"]
        if open_ones:
            number, answer = open_ones[0]
            return _said(number, answer, drafts[number])
        return Answer("pass", None, "no stratum is shown to leak more than is claimed of it")

    first = next(iter(drafts.values()))
    ids = tuple(in_stratum(number, one) for number, d in drafts.items() for one in d.evidence)
    return replace(first, limit=None, evidence=ids, test=test, failure=failure)


def _said(number: int, answer: Answer, draft: Draft) -> Answer:
    """Return the answer of one stratum for all: its numbers are in words, as limits differ."""
    numbers = ""
    if answer.verdict == "fail" and answer.observed is not None and draft.limit is not None:
        observed, limit = against(answer.observed, draft.limit, "down")
        numbers = f": at least ε = {observed}, where {limit} is claimed"
    return Answer(answer.verdict, None, f"in stratum {number} {answer.reason}{numbers}")
