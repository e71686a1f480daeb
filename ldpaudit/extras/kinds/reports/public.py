"""The public form of a result for pipelines: made of that form alone, never of a whole result."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any, Final

from ldpaudit.extras.kinds.reports.junit import xml_text
from ldpaudit.extras.kinds.reports.marked import marked, quoted_name
from ldpaudit.extras.kinds.reports.sarif import SCHEMA, uri
from ldpaudit.reports.public_forms import SEEN, parts_of, policy_line, publish_line, question_line
from ldpaudit.result.harmless import name
from ldpaudit.result.public import PublicResult
from ldpaudit.work.documents import as_json

_LEVELS: Final = {"not yet": "warning", "do not publish": "error"}


def markdown(result: PublicResult) -> str:
    """Return the public form on half a page of Markdown."""
    return "\n".join(_in_markdown(result))


def _in_markdown(result: PublicResult) -> Iterator[str]:
    yield from (f"*{marked(result.access)}*", "")
    yield f"## Privacy audit of {quoted_name(result.released.release.name)}"
    yield from ("", f"**{publish_line(result)}** {result.sentence}", "")
    for title, claim, _, power in parts_of(result):
        yield f"- {marked(' '.join(filter(None, (f'{title}:' if title else '', claim, power))))}"
    yield from ("", marked(f"{SEEN[result.truth]} {policy_line(result)}"), "")
    yield from (f"- {marked(question_line(q), 400)}" for q in result.questions)
    when = f"{result.date}, " if result.date else ""
    yield from ("", f"{when}ldpaudit {marked(result.ldpaudit_version, 40)}", "")


def sarif(result: PublicResult) -> str:
    """Return the public form as a SARIF log: the decision, and nothing where it is to publish."""
    return as_json({"$schema": SCHEMA, "version": "2.1.0", "runs": [_sarif_run(result)]})


def _sarif_run(result: PublicResult) -> dict[str, Any]:
    level, text = _LEVELS.get(result.decision), f"{publish_line(result)} {result.sentence}"
    rule = {"id": "decision", "shortDescription": {"text": "Whether to publish the release."}}
    driver = {"name": "ldpaudit", "version": name(result.ldpaudit_version), "rules": [rule]}
    place = {"artifactLocation": {"uri": uri(name(result.released.release.name))}}
    found = {"ruleId": "decision", "ruleIndex": 0, "level": level, "message": {"text": text}}
    found |= {"locations": [{"physicalLocation": place | {"region": {"startLine": 1}}}]}
    return {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [found] if level else [],
        "properties": {"decision": result.decision},
    }


def junit(result: PublicResult) -> str:
    """Return the public form as JUnit XML: the decision is its only case."""
    root = ET.Element("testsuites", name="ldpaudit")
    release = name(result.released.release.name)
    failed, open_ = result.decision == "do not publish", result.decision == "not yet"
    counts = {"tests": "1", "failures": str(int(failed)), "skipped": str(int(open_))}
    suite = ET.SubElement(root, "testsuite", {"name": release, "errors": "0"} | counts)
    place = f"ldpaudit.{release.replace('.', '_')}"
    case = ET.SubElement(suite, "testcase", classname=place, name="decision")
    text = f"{publish_line(result)} {result.sentence}"
    if failed or open_:
        ET.SubElement(case, "failure" if failed else "skipped", message=text)
    else:
        ET.SubElement(case, "system-out").text = text
    return xml_text(root)
