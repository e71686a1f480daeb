"""What ``ldpaudit run`` prints."""

from ldpaudit.reports.text.harmless import one_line
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
    for check in result.checks:
        waived = f" ({words})" if (words := waiver_line(check)) else ""
        _line(check.verdict, f"{check.id}: {check.reason}{waived}")
    for correction in correction_lines(result):
        _line("correction", correction)
    for record in result.audits:
        if record.status != "ran" and record.id not in SPECIAL:
            _line(record.status, f"{record.id}: {record.reason}")
    if assumed := assumptions_of_bounds(result):
        _line("certified", f"rests on: {assumed}")
    for note in result.notes:
        if note.level == "warning":
            _line("warning", note.text)


def _line(word: str, text: str) -> None:
    say(f"  {word:<12} {one_line(text)}")
