"""The checks of a policy and their answers, as plain values for the page."""

from collections.abc import Collection
from dataclasses import dataclass

from ldpaudit.reports.pages.common import Pair
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.harmless import as_identifier, shown
from ldpaudit.reports.text.numbers import number, percent
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult, Check

MOST_EVIDENCE = 60
"""Numbers behind a check that the page names."""


@dataclass(frozen=True)
class CheckRow:
    """A check and its answer."""

    check: Check
    question: str
    observed: str
    limit: str
    answer: str
    reason: str
    waiver: str
    confidence: str
    p_value: str
    evidence: tuple[Pair, ...]
    """Page id and name of each number that it rests on."""


def check_rows(
    result: AuditResult, printer: Printer, pictures: Collection[str]
) -> tuple[CheckRow, ...]:
    """Return the checks of a result; ``pictures`` are the keys of the page's figures."""
    return tuple(_row(result, printer, check, pictures) for check in result.checks)


def _row(
    result: AuditResult, printer: Printer, check: Check, pictures: Collection[str]
) -> CheckRow:
    observed, limit = printer.observed_and_limit(check)
    evidence = tuple(
        (_place(result, i, pictures), shown(result.title(i)))
        for i in check.evidence[:MOST_EVIDENCE]
    )
    return CheckRow(
        check,
        shown(check.question),
        observed,
        limit,
        wording.VERDICTS[check.verdict],
        shown(check.reason),
        wording.waiver_line(check),
        "" if check.confidence is None else _confidence(check.confidence),
        "" if check.p_value is None else number(check.p_value),
        evidence,
    )


def _place(result: AuditResult, identifier: str, pictures: Collection[str]) -> str:
    """Return the page id of a number or curve; empty if the page has none."""
    if result.estimate(identifier):
        return f"n-{as_identifier(identifier)}"
    key = as_identifier(identifier)
    return f"figure-{key}" if key in pictures else ""


def _confidence(level: float) -> str:
    return percent(level) if 0 < level < 1 else number(level)
