"""The checks of a result as JUnit XML, which Jenkins, GitLab and most pipelines read."""

import xml.etree.ElementTree as ET
from typing import Final

from ldpaudit.reports.interface import NOWHERE, Surroundings
from ldpaudit.reports.text.answers import answer
from ldpaudit.reports.text.harmless import name, shown
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.reports.text.wording import waiver_line
from ldpaudit.result import AuditRecord, AuditResult, Check

_COUNTED: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}


class JUnitReport:
    """One test case for each check, and for each audit that did not come to its end."""

    @property
    def name(self) -> str:
        """The name in the contract."""
        return "junit"

    @property
    def suffix(self) -> str:
        """How the names of its files end."""
        return ".xml"

    def render(self, result: AuditResult, surroundings: Surroundings = NOWHERE) -> str:
        """Return the XML, in ASCII.

        A check that decides is a failure where it fails, and an error where it stays open, unless
        the exit status is 0 all the same. One that only warns, or is waived, is skipped.
        """
        root = ET.Element("testsuites", name="ldpaudit")
        suite = ET.SubElement(root, "testsuite", _attributes(result))
        _add_properties(suite, result)
        place, printer = _class_name(result), Printer(result)
        for check in result.checks:
            _add_check(suite, place, check, answer(check, printer), surroundings)
        for record in result.audits:
            if record.status in ("failed", "stopped"):
                _add_audit(suite, place, record)
        _count(root, suite)
        ET.indent(root)
        text: bytes = ET.tostring(root, encoding="us-ascii", xml_declaration=True)
        return text.decode("ascii") + "\n"


def _attributes(result: AuditResult) -> dict[str, str]:
    named = {"name": name(result.release.name), "time": f"{result.run.seconds:.3f}"}
    return named | ({"timestamp": f"{result.date}T00:00:00"} if result.date else {})


def _class_name(result: AuditResult) -> str:
    """Return the group of the cases; a dot would begin a group within it."""
    return f"ldpaudit.{name(result.release.name).replace('.', '_')}"


def _add_properties(suite: ET.Element, result: AuditResult) -> None:
    known = {
        "decision": result.decision,
        "verdict": result.verdict,
        "sentence": shown(result.sentence, 1000),
        "ldpaudit_version": name(result.ldpaudit_version),
        "release_sha256": name(result.release.sha256 or ""),
        "policy_sha256": name(result.run.policy_sha256 or ""),
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
        return "skipped", "Only warns. "
    if check.verdict == "fail":
        return "failure", ""
    return ("skipped" if around.status == 0 else "error"), ""


def _add_audit(suite: ET.Element, place: str, record: AuditRecord) -> None:
    case = _case(suite, place, f"audit {record.id}", record.seconds)
    message = shown(record.reason) or f"the audit {record.status}"
    ET.SubElement(case, "error", message=message, type=record.status)


def _case(suite: ET.Element, place: str, title: str, seconds: float) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=place, name=title, time=f"{seconds:.3f}")


def _count(root: ET.Element, suite: ET.Element) -> None:
    counts = {key: str(len(suite.findall(f"testcase/{tag}"))) for key, tag in _COUNTED.items()}
    suite.attrib.update({"tests": str(len(suite.findall("testcase")))} | counts)
    shared = ("tests", "failures", "errors", "time")
    root.attrib.update({key: suite.attrib[key] for key in shared})
