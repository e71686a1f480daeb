"""A small result of every schema version, stored by the program of its time, in every format."""

import json
import math
from pathlib import Path

import pytest
from golden.results import NAMES, stored
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ldpaudit.cli.schemas import schema_of
from ldpaudit.errors import InputError
from ldpaudit.reports import render
from ldpaudit.result import (
    SCHEMA_VERSION,
    AuditResult,
    Curve,
    Estimate,
    Finding,
    Note,
    Score,
    readable,
)
from ldpaudit.result.earlier import EARLIER
from ldpaudit.result.harmless import NAME, as_identifier, brief, name, shown


def proportion(count, n, **more):
    return Estimate.model_validate(
        {
            "id": "attack.knn.accuracy",
            "kind": "certified",
            "value": count / n,
            "low": max(count / n - 0.01, 0.0),
            "high": min(count / n + 0.01, 1.0),
            "side": "two-sided",
            "level": 0.95,
            "unit": "proportion",
            "n": n,
            "count": count,
        }
        | more
    )


@pytest.mark.parametrize(
    "change",
    [
        {"value": math.nan},
        {"level": None},
        {"side": None},
        {"low": 0.9, "value": 0.5},
        {"id": "Attack Best"},
        {"kind": "proved"},
        {"rows": [1, 2]},
    ],
)
def test_a_malformed_estimate_is_refused(change):
    with pytest.raises(ValidationError):
        proportion(50, 100, **change)


def test_an_exactly_has_no_level():
    with pytest.raises(ValidationError, match="no level"):
        Estimate(id="mechanism.epsilon", kind="exact", value=1.0, level=0.95)


def test_a_curve_has_parts_of_one_length():
    with pytest.raises(ValidationError, match="one length"):
        Curve(id="mechanism.rdp", kind="exact", x=(1.0, 2.0), value=(0.1,))


def test_no_field_of_the_result_can_hold_rows():
    """Every array of the result is a curve or a histogram, both of which are aggregates."""
    from ldpaudit.result import AuditResult

    schema = json.dumps(AuditResult.model_json_schema())
    for word in ("row_id", "rows_", "scores", "cells", "records"):
        assert f'"{word}"' not in schema


SCORE = Score(subject="knn", measure="accuracy", row="Nearest neighbours", column="Accuracy")


def test_what_is_built_states_its_title_kind_and_side():
    exact = Estimate.exact("mechanism.epsilon", "Declared ε", 1.0, unit="nats")
    plain = Estimate.estimated("a.b", "B", 2.0, n=40)
    lower = Estimate.lower_bound("a.b", "B", 0.5, 0.95)
    upper = Estimate.upper_bound("a.b", "B", 0.5, 0.9, kind="estimated")
    both = Estimate.interval("a.b", "B", 0.5, (0.4, 0.7), 0.95, score=SCORE)
    assert (exact.kind, exact.side, exact.level) == ("exact", None, None)
    assert (exact.title, exact.unit) == ("Declared ε", "nats")
    assert (plain.kind, plain.side, plain.n) == ("estimated", None, 40)
    assert (lower.kind, lower.side, lower.low, lower.high) == ("certified", "lower", 0.5, None)
    assert (upper.kind, upper.side, upper.low, upper.high) == ("estimated", "upper", None, 0.5)
    assert (both.side, both.low, both.high, both.level) == ("two-sided", 0.4, 0.7, 0.95)
    assert SCORE.title == "Nearest neighbours: Accuracy"


def test_a_number_without_a_title_is_called_by_its_id():
    assert Estimate(id="plug-in.some_share", kind="exact", value=1).title == "Plug in some share"


def test_the_numbers_of_a_finding_get_its_section_unless_they_name_one():
    curve = Curve(id="mechanism.rdp", kind="exact", x=(2,), value=(1,), section="renyi")
    placed = Finding((Estimate.exact("a.b", "B", 1.0),), (curve,)).in_section("mechanism")
    assert [part.section for part in (*placed.estimates, *placed.curves)] == ["mechanism", "renyi"]


@given(st.integers(0, 12), st.integers(1, 12))
def test_counts_are_shown_as_they_are(count, others):
    estimate = proportion(count, count + others)
    assert (estimate.n, estimate.count) == (count + others, count)
    assert estimate.value == count / (count + others)


STORED = Path(__file__).parent / "stored"
VERSIONS = (*EARLIER, SCHEMA_VERSION)


def test_there_is_one_of_every_version():
    assert {path.stem.partition("-")[0] for path in STORED.iterdir()} == set(VERSIONS)
    for version in VERSIONS:
        stored = json.loads((STORED / f"{version}.json").read_text(encoding="utf-8"))
        assert stored["schema_version"] == version


@pytest.fixture(scope="module", params=VERSIONS)
def result(request):
    return AuditResult.from_json((STORED / f"{request.param}.json").read_text(encoding="utf-8"))


def test_it_is_read_and_says_the_same(result):
    assert AuditResult.from_json(render(result, "json")) == result
    assert result.estimate("mechanism.epsilon_lower") is not None
    assert "the lower bound of the share lies above the limit" in render(result, "html").lower()


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("columns", "2 columns together claim ε = 1.2"),
        ("releases", "2 releases together claim ε = 0.500"),
    ],
)
def test_one_of_several_parts_says_the_same(kind, told):
    text = (STORED / f"{SCHEMA_VERSION}-{kind}.json").read_text(encoding="utf-8")
    whole = AuditResult.from_json(text)
    assert (AuditResult.from_json(render(whole, "json")), len(whole.parts)) == (whole, 2)
    assert told in render(whole, "html")


def test_written_again_it_is_valid(result):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(json.loads(render(result, "json")), json.loads(schema_of("run")))


def test_one_whose_verdict_was_changed_is_refused():
    stored = json.loads((STORED / f"{SCHEMA_VERSION}.json").read_text(encoding="utf-8"))
    with pytest.raises(InputError, match="contradicts itself"):
        AuditResult.from_json(json.dumps(stored | {"verdict": "pass"}))


@pytest.mark.parametrize(
    "change", [{"labels": 1}, {"sentence": "No violation found: all is well."}], ids=str
)
def test_parts_that_are_taken_out_and_sentences_that_contradict_are_refused(change):
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


PARTS = ("estimates", "curves", "histograms")
ADDED = ("title", "section", "axis", "score")
SINCE = ("synthetic.singling_out.", "synthetic.linkability.")
"""Scores that no earlier schema had."""


def earlier(name):
    result = stored(name)
    for part in PARTS:
        for number in result[part]:
            for key in ADDED:
                number.pop(key, None)
    return result | {"schema_version": "1.0"}


def test_an_audit_that_an_earlier_version_called_failed_was_stopped() -> None:
    stored = json.loads((STORED / "1.4.json").read_text(encoding="utf-8"))
    stored["audits"][0]["status"] = "failed"
    assert AuditResult.from_json(json.dumps(stored)).audits[0].status == "stopped"


@pytest.mark.parametrize("name", NAMES)
def test_every_number_states_its_title_and_section(name):
    for part in PARTS:
        for number in stored(name)[part]:
            assert number["section"], number["id"]
            assert number["title"] not in ("", readable(number["id"])), number["id"]


@pytest.mark.parametrize("name", NAMES)
def test_what_the_ids_say_is_what_numbers_now_state(name):
    text = json.dumps(earlier(name))
    result = AuditResult.from_json(text)
    assert result.schema_version == SCHEMA_VERSION
    for part in PARTS:
        for then, now in zip(getattr(result, part), stored(name)[part], strict=True):
            assert (then.id, then.section) == (now["id"], now["section"])
            if part != "histograms" and not then.id.startswith("aggregates."):
                assert then.axis == now["axis"], then.id
            if then.id.startswith(SINCE):
                continue
            score, stated = getattr(then, "score", None), now.get("score")
            assert (score is None) == (stated is None), then.id
            if score is not None and stated is not None:
                for key in ("subject", "measure", "group"):
                    assert getattr(score, key) == stated[key]


def test_it_is_shown_with_words_of_its_ids():
    result = AuditResult.from_json(json.dumps(earlier("run-rr-all-audits")))
    page = result.to_html()
    for words in ("Every score of every attack", "Features only", "Mechanism epsilon lower"):
        assert words in page
    assert AuditResult.from_json(result.to_json()) == result


@given(st.text(st.characters(exclude_categories=())))
def test_what_is_shown_is_on_one_line_and_can_be_written(text):
    visible = shown(text)
    visible.encode("utf-8")
    assert not set(visible) & set("\n\r\t\x00\u202e\u2066\u2028\x7f")


def test_hidden_marks_become_visible():
    assert (shown("a\u202eb"), shown("\x00"), shown("\ud800")) == ("a⟨202E⟩b", "⟨0000⟩", "⟨D800⟩")
    assert shown("two\r\nlines\tand tabs") == "two lines and tabs"
    assert shown("שלום <b>") == "שלום <b>"


def test_long_names_are_cut_and_say_so():
    assert name("x" * 10_000) == "x" * NAME + "… (10,000 characters)"
    assert (name("x" * NAME), brief("abcdef", 4)) == ("x" * NAME, "abc…")
    assert brief("abcd", 4) == "abcd"


def test_ids_of_the_page():
    assert as_identifier("mechanism.epsilon_lower.one-run") == "mechanism-epsilon_lower-one-run"


def test_completion_offers_the_fields_of_a_part_and_no_more():
    offered = dir(Note(audit="reading", text="A remark."))
    assert {"audit", "text", "level"} <= set(offered)
    assert not [name for name in offered if name.startswith(("_", "model_"))]
