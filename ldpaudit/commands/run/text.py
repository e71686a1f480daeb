"""What ``ldpaudit run`` prints."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ldpaudit.reports.text.pieces import Piece, every_answer, named, pieces, worst_first
from ldpaudit.reports.text.wording import (
    assumptions_of_bounds,
    correction_lines,
    plugin_words,
    plugins_of,
    policy_words,
    publish_line,
    waiver_line,
)
from ldpaudit.result import AuditResult
from ldpaudit.result.harmless import one_line
from ldpaudit.terminal import say

_PROGRAM: Final = "ldpaudit "
SPECIAL = frozenset({"numeric-inference", "aggregates", "synthetic"})
"""Audits of special releases: only the result says that they do not apply to others."""


def print_summary(
    result: AuditResult, *, quiet: bool, typed: Mapping[str, str] | None = None
) -> None:
    """Print the decision, the verdict, what to do next and the checks; quiet: in one line.

    ``typed``: what stands for a result's placeholders in commands, as it was typed.
    """
    steps = [_filled(step, typed or {}) for step in result.next_steps]
    publish = publish_line(result)
    if quiet:
        step = f" Next: {steps[0]}" if steps else ""
        say(one_line(f"{publish} {result.sentence}{step}"))
        return
    say(result.access)
    judged = f"Audited on {result.date}, judged by {policy_words(result.run)}."
    say(f"{publish} {judged}" if result.date else publish)
    say(one_line(result.sentence))
    for position, step in enumerate(steps, 1):
        _line("next" if position == 1 else "", f"{position}. {step}")
    for piece in worst_first(result):
        _line(piece.result.verdict, _in_a_line(piece))
    for verdict, text in _checks(result):
        _line(verdict, text)
    for correction in correction_lines(result):
        _line("correction", correction)
    every = pieces(result)
    for status, text in dict.fromkeys(line for piece in every for line in _not_run(piece)):
        _line(status, text)
    if others := plugin_words(plugins_of(result)):
        _line("plug-ins", f"parts of others took part: {others}")
    if assumed := assumptions_of_bounds(result):
        _line("certified", f"rests on: {assumed}")
    for note in result.notes:
        if note.audit == "person" and note.level == "info":
            _line("found", note.text)
    for text, of in _warnings(every).items():
        which = named(of)
        _line("warning", text if not of[0].key else f"{which[:1].upper()}{which[1:]}: {text}")


def _checks(result: AuditResult) -> Iterator[tuple[str, str]]:
    """Yield the checks of the whole, and of its parts those that are not met, each alike once."""
    alike: dict[tuple[str, str, str], list[Piece]] = {}
    for piece, check in every_answer(result):
        waived = f" ({words})" if (words := waiver_line(check)) else ""
        if not piece.key:
            yield check.verdict, f"{check.id}: {check.reason}{waived}"
        elif check.verdict != "pass":
            found = (check.verdict, check.id, f"{check.reason}{waived}")
            alike.setdefault(found, []).append(piece)
    for (verdict, identifier, reason), of in alike.items():
        yield verdict, f"{identifier} of {named(of)}: {reason}"


def _in_a_line(piece: Piece) -> str:
    """Return a column or a release in one line: its claim, and what was measured."""
    known = (f"{name[:1].lower()}{name[1:]} {text}" for name, text in piece.found.items())
    return "; ".join((f"{piece.title}: {piece.claimed}", *known))


def _not_run(piece: Piece) -> Iterator[tuple[str, str]]:
    for record in piece.result.audits:
        if record.status != "ran" and record.id not in SPECIAL:
            yield record.status, f"{record.id}: {record.reason}"


def _warnings(every: Sequence[Piece]) -> dict[str, list[Piece]]:
    """Return each warning, and the parts that it is of."""
    told: dict[str, list[Piece]] = {}
    for piece in every:
        for note in piece.result.notes:
            if note.level == "warning":
                told.setdefault(note.text, []).append(piece)
    return told


def _filled(step: str, typed: Mapping[str, str]) -> str:
    """Return a step with the names that its command was given in place of the placeholders."""
    before, command, rest = step.partition(_PROGRAM)
    words = f"{command}{rest}".split(" ")
    return before + " ".join(typed.get(word, word) for word in words) if command else step


def _line(word: str, text: str) -> None:
    say(f"  {word:<12} {one_line(text)}")
