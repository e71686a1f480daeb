"""Checks as programs in a pipeline show them: one grade and one plain sentence each."""

from typing import Final, Literal

from ldpaudit.reports.text.quantities import Printer
from ldpaudit.reports.text.wording import VERDICTS
from ldpaudit.result import Check
from ldpaudit.result.harmless import shown
from ldpaudit.result.numbers import percent

Grade = Literal["error", "warning", "note"]
"""How grave an answer is, in the words of compilers and linters."""

_BOUNDS: Final = {"lower": "at least ", "upper": "at most ", "two-sided": "", None: ""}


def grade(check: Check) -> Grade | None:
    """Return how grave the answer of a check is, waived or not; None where the check is met."""
    decides = check.level == "error"
    if check.verdict == "fail":
        return "error" if decides else "warning"
    if check.verdict == "inconclusive":
        return "warning" if decides else "note"
    return None


def asks_attention(check: Check) -> Grade | None:
    """Return how grave a check's answer is; None where it is met, or waived."""
    return None if check.waived else grade(check)


def answer(check: Check, printer: Printer) -> str:
    """Return the answer of a check as one sentence, with what was measured."""
    reason = shown(check.reason).rstrip(".") or VERDICTS[check.verdict].lower()
    start = "inconclusive: " if check.verdict == "inconclusive" else ""
    text = f"{start}{reason}{_measured(check, printer)}"
    return f"{text[:1].upper()}{text[1:]}."


def _measured(check: Check, printer: Printer) -> str:
    if check.observed is None and check.verdict == "inconclusive":
        return ""
    sure = "" if check.confidence is None else f"at {_level(check.confidence)} confidence"
    if check.observed is None or check.limit is None:
        return f" ({sure})" if sure else ""
    observed, limit = printer.observed_and_limit(check)
    found = f"{_BOUNDS[check.side]}{observed} against {limit}"
    return f" ({found}{', ' + sure if sure else ''})"


def _level(confidence: float) -> str:
    return percent(confidence) if 0 < confidence < 1 else str(confidence)
