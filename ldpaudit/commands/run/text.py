"""What ``ldpaudit run`` prints."""

from collections.abc import Iterator, Mapping
from typing import Final

from ldpaudit.commands.shell import Said
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

_PROGRAM: Final = "ldpaudit "
# Audits of special releases: only the result says that they do not apply to others.
SPECIAL = frozenset({"numeric-inference", "aggregates", "synthetic"})


def said_of(
    result: AuditResult, *, quiet: bool, typed: Mapping[str, str] | None = None
) -> Iterator[Said]:
    """Yield the decision, the verdict, what to do next and the checks; quiet: in one line.

    ``typed``: what stands for a result's placeholders in commands, as it was typed.
    """
    steps = []
    for step in result.next_steps:
        before, command, rest = step.partition(_PROGRAM)
        typed_words = f"{command}{rest}".split(" ") if command else [rest]
        steps.append(before + " ".join((typed or {}).get(word, word) for word in typed_words))
    publish = publish_line(result)
    if quiet:
        step = f" Next: {steps[0]}" if steps else ""
        yield one_line(f"{publish} {result.sentence}{step}")
        return
    judged = f"Audited on {result.date}, judged by {policy_words(result.run)}."
    yield from (result.access, f"{publish} {judged}" if result.date else publish)
    yield one_line(result.sentence)
    yield from (("" if n else "next", f"{n + 1}. {step}") for n, step in enumerate(steps))
    for piece in worst_first(result):
        known = (f"{name[:1].lower()}{name[1:]} {text}" for name, text in piece.found.items())
        yield piece.result.verdict, "; ".join((f"{piece.title}: {piece.claimed}", *known))
    # The checks of the whole, and of its parts those that are not met, each alike once.
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
    yield from (("correction", correction) for correction in correction_lines(result))
    every = pieces(result)
    records = [one for piece in every for one in piece.result.audits]
    left_out = [r for r in records if r.status != "ran" and r.id not in SPECIAL]
    yield from dict.fromkeys(
        (record.status, f"{record.id}: {record.reason}") for record in left_out
    )
    if others := plugin_words(plugins_of(result)):
        yield "plug-ins", f"parts of others took part: {others}"
    if assumed := assumptions_of_bounds(result):
        yield "certified", f"assumes: {assumed}"
    for note in result.notes:
        if note.audit == "person" and note.level == "info":
            yield "found", note.text
    warned: dict[str, list[Piece]] = {}
    for piece in every:
        for note in piece.result.notes:
            if note.level == "warning":
                warned.setdefault(note.text, []).append(piece)
    for text, of in warned.items():
        which = named(of)
        yield "warning", text if not of[0].key else f"{which[:1].upper()}{which[1:]}: {text}"
