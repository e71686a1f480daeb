"""The checks of a result as SARIF 2.1.0, which code scanning of GitHub and others reads."""

import hashlib
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

from ldpaudit.doors import AuditResult, Surroundings
from ldpaudit.extras.kinds.reports.marked import marked
from ldpaudit.reports.interface import NOWHERE
from ldpaudit.reports.text.answers import answer, grade
from ldpaudit.reports.text.pieces import Piece, every_answer, pieces
from ldpaudit.reports.text.wording import (
    audit_name,
    plugin_words,
    plugins_of,
    waiver_line,
)
from ldpaudit.result import Check
from ldpaudit.result.answers import VERDICTS, answer_word
from ldpaudit.result.harmless import name, shown
from ldpaudit.work.documents import as_json

SCHEMA: Final = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_SEPARATORS: Final = re.compile("[-_/]")
_LONGEST: Final = 1000
"""Characters of a rule's text; GitHub takes 1,024."""


def render(result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:
    """Return the SARIF log, in ASCII: a rule for each check, a result for each that is not met."""
    runs = [_run(result, surroundings)]
    return as_json({"$schema": SCHEMA, "version": "2.1.0", "runs": runs})


def _run(result: AuditResult, around: Surroundings) -> dict[str, Any]:
    return {
        "tool": {"driver": _driver(result, around)} | _extensions(result),
        "automationDetails": {"id": f"ldpaudit/{uri(name(result.release.name))}/"},
        "invocations": [_invocation(result, around)],
        "originalUriBaseIds": {
            "%SRCROOT%": {"description": _text("The folder that the audit was started in.")}
        },
        "columnKind": "unicodeCodePoints",
        "results": list(_results(result, around)),
        "properties": {
            "access": result.access,
            "decision": result.decision,
            "verdict": result.verdict,
            "sentence": shown(result.sentence, _LONGEST),
            "nextSteps": [shown(step) for step in result.next_steps],
        },
    }


def _driver(result: AuditResult, around: Surroundings) -> dict[str, Any]:
    return {
        "name": "ldpaudit",
        "fullName": "ldpaudit, an auditor of releases with privatized labels",
        "version": name(result.ldpaudit_version),
        "rules": [_rule(piece, check, around) for piece, check in every_answer(result)],
    }


def _extensions(result: AuditResult) -> dict[str, Any]:
    """Return the parts of others that took part."""
    parts = [
        {"name": f"{part.kind} {name(part.name)}", "fullName": plugin_words([part])}
        | ({"version": name(part.version)} if part.version else {})
        for part in plugins_of(result)
    ]
    return {"extensions": parts} if parts else {}


def _rule(piece: Piece, check: Check, around: Surroundings) -> dict[str, Any]:
    rule = piece.of_check(check)
    question = _of(piece, shown(check.question) or check.id)
    explained = shown(around.explanations.get(check.id, question), _LONGEST)
    more = f"Run “ldpaudit policy explain {check.id}” for when this check fails and passes."
    level = "error" if check.level == "error" else "warning"
    return {
        "id": rule,
        "name": "".join(part.capitalize() for part in _SEPARATORS.split(rule)),
        "shortDescription": _text(question),
        "fullDescription": _text(explained),
        "help": _text(f"{explained} {more}")
        | {"markdown": f"{marked(explained)}\n\n{marked(more)}"},
        "defaultConfiguration": {"level": level},
        "properties": {
            "tags": ["privacy", "differential-privacy"],
            "precision": "high",
            "problem.severity": level,
        },
    }


def _results(result: AuditResult, around: Surroundings) -> Iterator[dict[str, Any]]:
    for index, (piece, check) in enumerate(every_answer(result)):
        if (level := grade(check)) is None:
            continue
        yield {
            "ruleId": piece.of_check(check),
            "ruleIndex": index,
            "level": level,
            "message": _text(_of(piece, answer(check, piece.printer))),
            "locations": [_location(check, result, around)],
            "partialFingerprints": {"primaryLocationLineHash": _fingerprint(piece, check, result)},
            "properties": {
                "verdict": answer_word(check),
                "observed": check.observed,
                "limit": check.limit,
                "confidence": check.confidence,
            },
        } | _suppressions(check)


def _location(check: Check, result: AuditResult, around: Surroundings) -> dict[str, Any]:
    place = around.place(check.id, name(result.release.name))
    artifact = {"uri": uri(place.file), "uriBaseId": "%SRCROOT%"}
    return {"physicalLocation": {"artifactLocation": artifact, "region": {"startLine": place.line}}}


def _suppressions(check: Check) -> dict[str, Any]:
    if not check.waived:
        return {}
    accepted = {"kind": "external", "status": "accepted", "justification": waiver_line(check)}
    return {"suppressions": [accepted]}


def _of(piece: Piece, text: str) -> str:
    """Return a text with the part that it is of before it."""
    return f"{piece.short[:1].upper()}{piece.short[1:]}. {text}" if piece.key else text


def _fingerprint(piece: Piece, check: Check, result: AuditResult) -> str:
    """Return what stays the same from run to run: of which check, for which released file."""
    said = f"{piece.of_check(check)}\n{name(result.release.name)}"
    return f"{hashlib.sha256(said.encode()).hexdigest()[:16]}:1"


def _invocation(result: AuditResult, around: Surroundings) -> dict[str, Any]:
    return {
        "executionSuccessful": True,
        "exitCode": around.exit_status(result),
        "exitCodeDescription": f"{VERDICTS[result.verdict]}.",
        "toolExecutionNotifications": list(_notifications(result)),
    }


def _notifications(result: AuditResult) -> Iterator[dict[str, Any]]:
    for piece in pieces(result):
        for record in piece.result.audits:
            if record.status == "stopped":
                words = f"{audit_name(record.id)}: {record.status}. {shown(record.reason)}"
                yield {"level": "error", "message": _text(_of(piece, words.strip()))}
        for note in piece.result.notes:
            if note.level == "warning":
                words = f"{shown(audit_name(note.audit))}: {shown(note.text)}"
                yield {"level": "warning", "message": _text(_of(piece, words))}


def _text(text: str) -> dict[str, str]:
    return {"text": text}


def uri(file: str) -> str:
    """Return the name of a file as a URI."""
    return quote(file.encode("utf-8", "replace"), safe="/")
