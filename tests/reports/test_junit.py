"""JUnit XML: what Jenkins and GitLab read, and nothing that their readers would trip over."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable

import pytest

from ldpaudit.reports import render
from ldpaudit.reports.interface import Surroundings
from ldpaudit.result import AuditRecord, AuditResult

ATTRIBUTES = {
    "testsuites": {"name", "tests", "failures", "errors", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
    "properties": set(),
    "property": {"name", "value"},
    "testcase": {"classname", "name", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}
"""Of each element those that the format of Ant, Jenkins and GitLab knows."""
CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["properties", "testcase"],
    "properties": ["property"],
    "testcase": ["skipped", "error", "failure", "system-out"],
}


def outcomes(result: AuditResult, around: Surroundings | None = None) -> dict[str, str]:
    root = ET.fromstring(render(result, "junit", around or Surroundings()))
    return {case.attrib["name"]: case[0].tag for case in root.iter("testcase")}


def test_it_has_the_form_of_the_format(any_result: AuditResult) -> None:
    text = render(any_result, "junit")
    root = ET.fromstring(text)
    assert text.isascii()
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= ATTRIBUTES[element.tag]
        tags = [child.tag for child in element]
        assert set(tags) <= set(CHILDREN.get(element.tag, []))
        assert tags == sorted(tags, key=CHILDREN.get(element.tag, []).index)
        for value in (element.text or "", *element.attrib.values()):
            assert not any("\u202a" <= letter <= "\u202e" for letter in value)
    for suite in root:
        the_counts_are_right(suite)
    for key in ("tests", "failures", "errors"):
        assert int(root.attrib[key]) == sum(int(suite.attrib[key]) for suite in root)


def the_counts_are_right(suite: ET.Element) -> None:
    cases = suite.findall("testcase")
    assert all(len(case) == 1 for case in cases)
    found = Counter(case[0].tag for case in cases)
    counted = {name: int(suite.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}
    assert counted == {
        "tests": len(cases),
        "failures": found["failure"],
        "errors": found["error"],
        "skipped": found["skipped"],
    }
    assert len({case.attrib["name"] for case in cases}) == len(cases)


def test_every_part_is_a_suite_of_its_own(nested: AuditResult) -> None:
    suites = list(ET.fromstring(render(nested, "junit")))
    assert [suite.attrib["name"].partition(", ")[2] for suite in suites] == [
        "",
        "release 1",
        "release 2",
        "release 2, column 1",
        "release 2, column income",
        "release 2, column 3",
    ]
    groups = {case.attrib["classname"] for case in suites[4].findall("testcase")}
    assert groups == {"ldpaudit.adult-rr_parquet.release-2.column-2"}
    assert suites[4].attrib["failures"] == "1"


def test_another_reader_reads_it(build: Callable[..., AuditResult]) -> None:
    junitparser = pytest.importorskip("junitparser", reason="junitparser is not installed")
    xml = junitparser.JUnitXml.fromstring(render(build("fail"), "junit").encode())
    (suite,) = xml
    assert suite.name == "adult-rr.parquet"
    assert (suite.tests, suite.failures, suite.skipped) == (3, 1, 1)
    assert [case.classname for case in suite] == ["ldpaudit.adult-rr_parquet"] * 3
    (failure,) = next(iter(suite)).result
    assert "1.947 against 1" in failure.message


def test_what_decides_fails_and_what_warns_is_skipped(build: Callable[..., AuditResult]) -> None:
    failed = outcomes(build("fail"))
    assert failed["claimed-epsilon"] == "failure"
    assert failed["instance-loss-exceedance"] == "skipped"  # Waived.
    assert failed["label-inference-advantage"] == "system-out"
    undecided = build("inconclusive")
    assert outcomes(undecided)["claimed-epsilon"] == "error"
    assert outcomes(undecided, Surroundings(status=0))["claimed-epsilon"] == "skipped"
    warns = undecided.checks[0].model_copy(update={"level": "warn"})
    only_warns = undecided.model_copy(update={"checks": (warns,)})
    assert outcomes(only_warns)["claimed-epsilon"] == "skipped"


def test_an_audit_that_failed_is_an_error(build: Callable[..., AuditResult]) -> None:
    result = build("pass")
    failed = AuditRecord(id="renyi", status="failed", reason="internal fault", seconds=1.5)
    found = outcomes(result.model_copy(update={"audits": (*result.audits, failed)}))
    assert found["audit renyi"] == "error"
    assert not any(name.startswith("audit") for name in outcomes(result))
