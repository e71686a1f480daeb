"""Checks as lines that GitHub turns into remarks beside the file of the policy."""

from collections.abc import Iterator
from typing import Final

from ldpaudit.reports.interface import Surroundings
from ldpaudit.reports.text.answers import answer, asks_attention
from ldpaudit.reports.text.pieces import every_answer
from ldpaudit.result import AuditResult
from ldpaudit.result.harmless import name, shown

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
