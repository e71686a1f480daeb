"""Stored results of every version say the same to pipelines as on their page."""

import json
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from ldpaudit.reports import render
from ldpaudit.result import SCHEMA_VERSION, AuditResult

STORED = Path(__file__).parents[3] / "result" / "stored"
VERSIONS = sorted(path.stem for path in STORED.glob("[0-9].[0-9].json"))


def stored(name):
    return AuditResult.from_json((STORED / f"{name}.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("version", VERSIONS)
def test_it_says_the_same(version):
    result = stored(version)
    markdown = render(result, "markdown").lower()
    assert "the lower bound of the share lies above the limit" in markdown
    (run,) = json.loads(render(result, "sarif"))["runs"]
    (failed,) = (one for one in run["results"] if one["level"] == "error")
    assert failed["ruleId"] == "instance-loss-exceedance"
    assert fromstring(render(result, "junit")).attrib["failures"] == "1"


@pytest.mark.parametrize(
    ("kind", "told", "rule", "failures"),
    [
        ("columns", "2 columns together claim ε = 1.2", "column-2/claimed-epsilon", "2"),
        ("releases", "2 releases together claim ε = 0.500", "release-1/claimed-epsilon", "1"),
    ],
)
def test_each_part_is_there(kind, told, rule, failures):
    whole = stored(f"{SCHEMA_VERSION}-{kind}")
    assert told in render(whole, "markdown")
    assert rule in render(whole, "sarif")
    assert fromstring(render(whole, "junit")).attrib["failures"] == failures
