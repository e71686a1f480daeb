"""A small result of every schema version, stored by the program of its time, in every format."""

import json
from pathlib import Path
from xml.etree.ElementTree import fromstring

import pytest

from ldpaudit.commands.schemas import schema_of
from ldpaudit.errors import InputError
from ldpaudit.reports import FORMATS, render
from ldpaudit.result import SCHEMA_VERSION, AuditResult
from ldpaudit.result.earlier import EARLIER

STORED = Path(__file__).parent / "stored"
VERSIONS = (*EARLIER, SCHEMA_VERSION)


def test_there_is_one_of_every_version() -> None:
    assert {path.stem.partition("-")[0] for path in STORED.iterdir()} == set(VERSIONS)
    for version in VERSIONS:
        stored = json.loads((STORED / f"{version}.json").read_text(encoding="utf-8"))
        assert stored["schema_version"] == version


@pytest.fixture(scope="module", params=VERSIONS)
def result(request: pytest.FixtureRequest) -> AuditResult:
    return AuditResult.from_json((STORED / f"{request.param}.json").read_text(encoding="utf-8"))


def test_it_is_read_and_says_the_same(result: AuditResult) -> None:
    texts = {name: render(result, name) for name in FORMATS}
    assert AuditResult.from_json(texts["json"]) == result
    assert result.estimate("mechanism.epsilon_lower") is not None
    for name in ("html", "markdown"):
        assert "The lower bound of the share lies above the limit".lower() in texts[name].lower()
    (run,) = json.loads(texts["sarif"])["runs"]
    (failed,) = (one for one in run["results"] if one["level"] == "error")
    assert failed["ruleId"] == "instance-loss-exceedance"
    assert fromstring(texts["junit"]).attrib["failures"] == "1"


@pytest.mark.parametrize(
    ("kind", "told", "rule", "failures"),
    [
        ("columns", "2 columns together claim ε = 1.2", "column-2/claimed-epsilon", 2),
        ("releases", "2 releases together claim ε = 0.500", "release-1/claimed-epsilon", 1),
    ],
)
def test_one_of_several_parts_says_the_same_in_every_format(
    kind: str, told: str, rule: str, failures: int
) -> None:
    text = (STORED / f"{SCHEMA_VERSION}-{kind}.json").read_text(encoding="utf-8")
    whole = AuditResult.from_json(text)
    texts = {name: render(whole, name) for name in FORMATS}
    assert AuditResult.from_json(texts["json"]) == whole
    assert len(whole.parts) == 2
    assert told in texts["html"]
    assert told in texts["markdown"]
    assert rule in texts["sarif"]
    assert int(fromstring(texts["junit"]).attrib["failures"]) == failures


def test_written_again_it_is_valid(result: AuditResult) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(json.loads(render(result, "json")), json.loads(schema_of("run")))


def test_one_whose_verdict_was_changed_is_refused() -> None:
    stored = json.loads((STORED / f"{SCHEMA_VERSION}.json").read_text(encoding="utf-8"))
    with pytest.raises(InputError, match="contradicts itself"):
        AuditResult.from_json(json.dumps(stored | {"verdict": "pass"}))


@pytest.mark.parametrize(
    "change", [{"labels": 1}, {"sentence": "No violation found: all is well."}], ids=str
)
def test_parts_that_are_taken_out_and_sentences_that_contradict_are_refused(change) -> None:
    stored = json.loads((STORED / "1.4-columns.json").read_text(encoding="utf-8"))
    stored |= {"verdict": "fail"}
    stored["labels"][0] |= {"verdict": "fail"}
    for part in (stored, stored["labels"][0]):
        part["checks"] = [one | {"verdict": "fail", "level": "error"} for one in part["checks"]]
        part["sentence"] = "Violation found: as made here."
    AuditResult.from_json(json.dumps(stored))
    stored |= {"labels": stored["labels"][:1]} if "labels" in change else change
    with pytest.raises(InputError, match="contradicts itself"):
        AuditResult.from_json(json.dumps(stored))
