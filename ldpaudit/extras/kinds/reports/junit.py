"""The checks of a result as JUnit XML, which Jenkins, GitLab and most pipelines read."""

import xml.etree.ElementTree as ET
from typing import Final

from ldpaudit.doors import AuditResult, Surroundings
from ldpaudit.reports.interface import NOWHERE
from ldpaudit.reports.text.answers import answer
from ldpaudit.reports.text.pieces import Piece, pieces
from ldpaudit.reports.text.wording import plugin_words, plugins_of, waiver_line
from ldpaudit.result import AuditRecord, Check
from ldpaudit.result.harmless import name, shown

_COUNTED: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def render(result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:
    """Return the XML, in ASCII: a case for each check, and for each audit that did not end."""
    # A check that decides is a failure where it fails, and an error where it stays open, unless the
    # exit status is 0 all the same. One that only warns, or is waived, is skipped.
    root = ET.Element("testsuites", name="ldpaudit")
    for piece in pieces(result):
        _add_suite(root, piece, surroundings)
    suites = root.findall("testsuite")
    shared = ("tests", "failures", "errors")
    root.attrib |= {key: str(sum(int(suite.attrib[key]) for suite in suites)) for key in shared}
    root.attrib["time"] = suites[0].attrib["time"]  # The first, of the node, has the time of all.
    return xml_text(root)


def xml_text(root: ET.Element) -> str:
    """Return XML as ASCII text."""
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
    return text.decode("ascii") + "\n"


def _add_suite(root: ET.Element, piece: Piece, around: Surroundings) -> None:
    suite = ET.SubElement(root, "testsuite", _attributes(piece))
    _add_properties(suite, piece.result)
    place = _class_name(piece)
    for check in piece.result.checks:
        _add_check(suite, place, check, answer(check, piece.printer), around)
    for record in piece.result.audits:
        if record.status == "stopped":
            _add_audit(suite, place, record)
    counts = {key: str(len(suite.findall(f"testcase/{tag}"))) for key, tag in _COUNTED.items()}
    suite.attrib.update({"tests": str(len(suite.findall("testcase")))} | counts)


def _attributes(piece: Piece) -> dict[str, str]:
    result = piece.result
    release = name(result.release.name)
    called = f"{release}, {piece.short}" if piece.key else release
    named = {"name": called, "time": f"{result.run.seconds:.3f}"}
    return named | ({"timestamp": f"{result.date}T00:00:00"} if result.date else {})


def _class_name(piece: Piece) -> str:
    """Return the group of the cases; a dot would begin a group within it."""
    release = name(piece.result.release.name).replace(".", "_")
    return ".".join(("ldpaudit", release, *filter(None, piece.key.split("/"))))


def _add_properties(suite: ET.Element, result: AuditResult) -> None:
    known = {
        "access": result.access,
        "decision": result.decision,
        "verdict": result.verdict,
        "sentence": shown(result.sentence, 1000),
        "ldpaudit_version": name(result.ldpaudit_version),
        "release_sha256": name(result.release.sha256 or ""),
        "policy_sha256": name(result.run.policy_sha256 or ""),
        "plugins": plugin_words(plugins_of(result)),
    }
    properties = ET.SubElement(suite, "properties")
    for key, value in known.items():
        if value:
            ET.SubElement(properties, "property", name=key, value=value)


def _add_check(
    suite: ET.Element, place: str, check: Check, words: str, around: Surroundings
) -> None:
    case = _case(suite, place, check.id, 0.0)
    outcome = _outcome(check, around)
    if outcome is None:
        ET.SubElement(case, "system-out").text = words
        return
    kind, start = outcome
    message = f"{start}{words}"
    if kind == "skipped":
        ET.SubElement(case, kind, message=message)
    else:
        asked = f"{shown(check.question)}\n{message}"
        ET.SubElement(case, kind, message=message, type=check.verdict).text = asked


def _outcome(check: Check, around: Surroundings) -> tuple[str, str] | None:
    """Return the element of a check that is not met, and how its message begins."""
    if check.verdict == "pass":
        return None
    if check.waived:
        words = waiver_line(check)
        return "skipped", f"{words[:1].upper()}{words[1:].rstrip('.')}. "
    if check.level == "warn":
        return "skipped", ""
    if check.verdict == "fail":
        return "failure", ""
    return ("skipped" if around.status == 0 else "error"), ""


def _add_audit(suite: ET.Element, place: str, record: AuditRecord) -> None:
    case = _case(suite, place, f"audit {record.id}", record.seconds)
    message = shown(record.reason) or f"the audit {record.status}"
    ET.SubElement(case, "error", message=message, type=record.status)


def _case(suite: ET.Element, place: str, title: str, seconds: float) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=place, name=title, time=f"{seconds:.3f}")
