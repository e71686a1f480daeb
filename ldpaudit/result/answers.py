"""What answers are called: a violation, a warning, or neither, in the same words everywhere."""

from collections.abc import Iterable
from typing import Final

from ldpaudit.result.audit_result import AuditResult
from ldpaudit.result.checks import Check, Verdict, holding_up
from ldpaudit.result.sentence import WARNING, Sentence

VERDICTS: Final[dict[Verdict, str]] = {
    "fail": "Violation found",
    "pass": "No violation found",
    "inconclusive": "Inconclusive",
}


def is_warning(check: Check) -> bool:
    """Return whether a check failed and does not decide the verdict."""
    return (check.level, check.verdict) == ("warn", "fail")


def answer_word(check: Check) -> str:
    """Return what the answer of a check is called, waived or not."""
    return WARNING if is_warning(check) else VERDICTS[check.verdict]


def warnings_of(checks: Iterable[Check]) -> list[Check]:
    """Return the checks whose answer is a warning that nobody has waived."""
    return [check for check in checks if is_warning(check) and not check.waived]


def with_reason(headline: str, result: AuditResult) -> str:
    """Return the headline of a result and the gravest check that is not met; no full stop."""
    first = next(iter(holding_up(result.checks)), None)
    if first is None:
        return headline
    if is_warning(first):
        return str(Sentence(headline, warning=first.reason)).removesuffix(".")
    return f"{headline}: {first.reason}"
