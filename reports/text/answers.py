"""Checks as programs in a pipeline show them: one grade and one plain sentence, GitHub's lines."""

from collections.abc import Iterator
from typing import Final, Literal

from ldpaudit.reports.interface import Surroundings
from ldpaudit.reports.text.pieces import every_answer
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult, Check
from ldpaudit.result.answers import VERDICTS, answer_word
from ldpaudit.result.harmless import name, shown
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
    word, reason = answer_word(check), shown(check.reason).rstrip(".")
    # Where a check fails that decides, and where one is met, the format's own sign says so.
    bare = reason and word in (VERDICTS["fail"], VERDICTS["pass"])
    text = reason if bare else f"{word}{': ' if reason else ''}{reason}"
    return f"{text[:1].upper()}{text[1:]}{_measured(check, printer)}."


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


_COMMANDS: Final = {"error": "error", "warning": "warning", "note": "notice"}
_DECISIONS: Final = {"publish": "notice", "not yet": "warning", "do not publish": "error"}
_DATA: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final = {**_DATA, ":": "%3A", ",": "%2C"}


def annotations(result: AuditResult, surroundings: Surroundings) -> Iterator[str]:
    """Yield one workflow command for each check that failed or stayed open and is not waived."""
    for piece, check in every_answer(result):
        level = asks_attention(check)
        if level is None:
            continue
        place = surroundings.place(check.id, name(result.release.name))
        where = f"file={_escaped(shown(place.file), _PROPERTY)},line={place.line}"
        title = _escaped(f"ldpaudit: {piece.of_check(check)}", _PROPERTY)
        text = _escaped(answer(check, piece.printer), _DATA)
        yield f"::{_COMMANDS[level]} {where},title={title}::{text}"


def of_decision(result: AuditResult, text: str) -> str:
    """Return a workflow command that shows a text about the decision, and nothing else."""
    return f"::{_DECISIONS[result.decision]} title=ldpaudit::{_escaped(text, _DATA)}"


def _escaped(text: str, codes: dict[str, str]) -> str:
    return "".join(codes.get(letter, letter) for letter in text)
