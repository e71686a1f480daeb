"""What ``ldpaudit run`` prints."""

from collections.abc import Iterator

from ldpaudit.reports.text.harmless import one_line
from ldpaudit.reports.text.pieces import Piece, every_answer, pieces, worst_first
from ldpaudit.reports.text.wording import (
    assumptions_of_bounds,
    correction_lines,
    policy_words,
    publish_line,
    waiver_line,
)
from ldpaudit.result import AuditResult
from ldpaudit.terminal import say

SPECIAL = frozenset({"numeric-inference", "aggregates", "synthetic"})
"""Audits of special releases: only the result says that they do not apply to others."""


def print_summary(result: AuditResult, *, quiet: bool) -> None:
    """Print the decision, the verdict, what to do next and the checks; quiet: in one line."""
    publish = publish_line(result)
    if quiet:
        step = f" Next: {result.next_steps[0]}" if result.next_steps else ""
        say(one_line(f"{publish} {result.sentence}{step}"))
        return
    judged = f"Audited on {result.date}, judged by {policy_words(result.run)}."
    say(f"{publish} {judged}" if result.date else publish)
    say(one_line(result.sentence))
    for position, step in enumerate(result.next_steps, 1):
        _line("next" if position == 1 else "", f"{position}. {step}")
    for piece in worst_first(result):
        _line(piece.result.verdict, _in_a_line(piece))
    _print_checks(result)
    for correction in correction_lines(result):
        _line("correction", correction)
    every = pieces(result)
    for status, text in dict.fromkeys(line for piece in every for line in _not_run(piece)):
        _line(status, text)
    if assumed := assumptions_of_bounds(result):
        _line("certified", f"rests on: {assumed}")
    for warning in dict.fromkeys(text for piece in every for text in _warnings(piece)):
        _line("warning", warning)


def _print_checks(result: AuditResult) -> None:
    """Print the checks of the whole, and of its parts those that are not met."""
    for piece, check in every_answer(result):
        if not piece.key or check.verdict != "pass":
            waived = f" ({words})" if (words := waiver_line(check)) else ""
            _line(check.verdict, f"{piece.of_check(check)}: {check.reason}{waived}")


def _in_a_line(piece: Piece) -> str:
    """Return a column or a release in one line: its claim, and what was measured."""
    known = (f"{name[:1].lower()}{name[1:]} {text}" for name, text in piece.found.items())
    return "; ".join((f"{piece.title}: {piece.claimed}", *known))


def _not_run(piece: Piece) -> Iterator[tuple[str, str]]:
    for record in piece.result.audits:
        if record.status != "ran" and record.id not in SPECIAL:
            yield record.status, f"{record.id}: {record.reason}"


def _warnings(piece: Piece) -> Iterator[str]:
    before = f"{piece.title}: " if piece.key else ""
    yield from (f"{before}{n.text}" for n in piece.result.notes if n.level == "warning")


def _line(word: str, text: str) -> None:
    say(f"  {word:<12} {one_line(text)}")
