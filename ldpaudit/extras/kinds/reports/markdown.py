"""A result on half a page of Markdown: for the summary of a pipeline, or a merge request."""

from collections.abc import Iterator
from typing import Final

from ldpaudit.doors import AuditResult, Surroundings
from ldpaudit.extras.kinds.reports.marked import marked, quoted_name
from ldpaudit.reports.interface import NOWHERE
from ldpaudit.reports.text.pieces import every_answer, table_of, worst_first
from ldpaudit.reports.text.quantities import Printer, Quantity
from ldpaudit.reports.text.wording import (
    PROVEN,
    headline,
    plugin_words,
    plugins_of,
    policy_words,
    publish_line,
    waiver_line,
)
from ldpaudit.result import Check
from ldpaudit.result.answers import answer_word
from ldpaudit.result.numbers import counted_as, rows

_MOST_CHECKS: Final = 20
_MOST_PARTS: Final = 12
_MOST_WARNINGS: Final = 5
_ATTACKS: Final = (
    ("attack.best.accuracy", "Strongest attack: labels guessed right"),
    ("attack.features-only.accuracy", "The features alone: labels guessed right"),
    ("attack.prior.accuracy", "The most frequent label for everyone: right"),
    ("numeric.best.mse", "Strongest attack: squared error"),
    ("numeric.features-only.mse", "The features alone: squared error"),
    ("numeric.prior.mse", "The same guess for everyone: squared error"),
)
"""Attacks, each beside what is known without the release."""


def render(result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:  # noqa: ARG001
    """Return decision, reason, next steps, checks and the few numbers that matter."""
    # Fewer than 60 lines, none of which a name could turn into markup.
    return "\n".join(
        (
            f"*{marked(result.access)}*",
            "",
            f"## Privacy audit of {quoted_name(result.release.name)}",
            "",
            f"**{publish_line(result)}** {marked(result.sentence)}",
            *_steps(result),
            *_parts(result),
            *_checks(result),
            *_numbers(result, Printer(result)),
            *_warnings(result),
            *_plugins(result),
            "",
            _origin(result),
            "",
        )
    )


def _steps(result: AuditResult) -> Iterator[str]:
    if result.next_steps:
        yield from ("", "Next:", "")
    for position, step in enumerate(result.next_steps, 1):
        yield f"{position}. {marked(step)}"


def _parts(result: AuditResult) -> Iterator[str]:
    parts = worst_first(result)
    if not parts:
        return
    headers, table = table_of(parts)
    yield from ("", f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}")
    for cells in table[:_MOST_PARTS]:
        yield f"| {' | '.join(marked(cell, 300) for cell in cells)} |"
    if len(table) > _MOST_PARTS:
        yield f"| … and {len(table) - _MOST_PARTS} more |{' |' * (len(headers) - 1)}"


def _checks(result: AuditResult) -> Iterator[str]:
    """Yield the checks of the node, and those that a part does not meet."""
    asked = [(p, c) for p, c in every_answer(result) if not p.key or c.verdict != "pass"]
    if asked:
        yield from ("", "| Check | Answer | Measured | Limit | Why |", "|---|---|---|---|---|")
    for piece, check in asked[:_MOST_CHECKS]:
        numbers = _observed(check, piece.printer)
        cells = (f"`{piece.of_check(check)}`", _answer(check), *numbers, marked(check.reason, 300))
        yield f"| {' | '.join(cells)} |"
    if len(asked) > _MOST_CHECKS:
        yield f"| … and {len(asked) - _MOST_CHECKS} more | | | | |"


def _observed(check: Check, printer: Printer) -> tuple[str, str]:
    """Return what was measured, and its limit; a test without a limit gives a p-value."""
    observed, limit = printer.observed_and_limit(check)
    tested = check.limit is None and check.observed is not None and check.confidence is not None
    return (f"p = {observed}" if tested else observed), limit


def _answer(check: Check) -> str:
    word = answer_word(check)
    word = f"**{word}**" if check.verdict == "fail" else word
    if check.waived:
        return f"{word}, {marked(waiver_line(check), 300)}"
    return word


def _numbers(result: AuditResult, printer: Printer) -> Iterator[str]:
    lines = list(_measured(result, printer))
    if lines:
        yield from ("", "| Measured | Value | How sure |", "|---|---|---|", *lines)


def _measured(result: AuditResult, printer: Printer) -> Iterator[str]:
    if printer.claim:
        yield f"| ε that is claimed (nats) | {printer.claim} | as declared |"
    if printer.measured is not None:
        yield _line("ε that was measured (nats)", printer.measured)
    for identifier, words in _ATTACKS:
        estimate = result.estimate(identifier)
        if estimate is not None:
            yield _line(words, printer.quantity(estimate))


def _line(words: str, quantity: Quantity) -> str:
    ends = f" ({quantity.interval})" if quantity.interval else ""
    return f"| {words} | {quantity.text}{ends} | {quantity.words} |"


def _warnings(result: AuditResult) -> Iterator[str]:
    texts = list(dict.fromkeys(note.text for note in result.notes if note.level == "warning"))
    if texts:
        yield from ("", "Warnings:", "")
    yield from (f"- {marked(text, 400)}" for text in texts[:_MOST_WARNINGS])
    if len(texts) > _MOST_WARNINGS:
        yield f"- … and {len(texts) - _MOST_WARNINGS} more, in the report."


def _plugins(result: AuditResult) -> Iterator[str]:
    if others := plugin_words(plugins_of(result)):
        yield from ("", f"Parts of others took part: {marked(others, 400)}.")


def _origin(result: AuditResult) -> str:
    judged = f"the policy {marked(policy_words(result.run), 200)}"
    when = f", {result.date}" if result.date else ""
    what = counted_as(result.mechanism.name)
    proven = headline(result) == PROVEN
    limit = "An audit can refute a claim; it cannot prove one."
    limit = "That is proven of the noise, not of what features reveal." if proven else limit
    return (
        f"{rows(result.release.rows)} {what}, judged by {judged}{when}, ldpaudit "
        f"{marked(result.ldpaudit_version, 40)}. {limit}"
    )
