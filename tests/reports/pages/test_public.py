"""The page for the public: verdict, policy, claim, power and limits, and nothing else."""

import html
import re
from pathlib import Path

import pytest
from golden.results import recorded

from ldpaudit.commands.outputs import ReportOutputs
from ldpaudit.commands.run.work import render_again
from ldpaudit.errors import InputError
from ldpaudit.reports import Surroundings, render
from ldpaudit.reports.text.numbers import number
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult

NAMES = ("run-rr-all-audits", "run-rr-dishonest", "run-rr-policy", "run-double-rr", "run-laplace")


def public(result: AuditResult) -> str:
    page = render(result, "html", Surroundings(profile="public"))
    page = re.sub(r"(?s)<(style|head)\b.*?</\1>", " ", page)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.mark.parametrize("name", NAMES)
def test_no_measured_number_is_on_the_page(name: str) -> None:
    """Every number that was measured, but the power, is another than those that are shown."""
    result = recorded(name)
    text = public(result)
    printer = Printer(result)
    shown = {number(c.limit) for c in result.checks if c.limit is not None}
    shown |= {printer.claim}
    tokens = set(re.findall(r"[\d.,]*\d", text))
    for estimate in result.estimates:
        if estimate.section == "power" or estimate.kind == "exact":
            continue
        printed = re.findall(r"\d[\d.,]*\.\d{2,}", printer.quantity(estimate).text)
        assert not (set(printed) - shown) & tokens, estimate.id


@pytest.mark.parametrize("name", NAMES)
def test_what_is_on_the_page(name: str) -> None:
    result = recorded(name)
    text = public(result)
    for heading in ("The claim", "The policy", "What could have been missed", "Limits"):
        assert heading in text
    for check in result.checks:
        assert check.question in text
        assert check.reason not in text
    assert all(step not in text for step in result.next_steps)
    assert all(note.text not in text for note in result.notes)
    assert "Publish" not in text


def test_a_check_that_only_warns_is_said_to_have_failed_but_not_which() -> None:
    result = recorded("run-rr-all-audits")
    checks = tuple(
        c.model_copy(update={"verdict": "fail"}) if c.id == "identifiers" else c
        for c in result.checks
    )
    plain, warned = public(result), public(result.model_copy(update={"checks": checks}))
    assert "A check that decides nothing but warns has failed." in warned
    assert warned.replace("A check that decides nothing but warns has failed. ", "") == plain


def test_the_profile_changes_the_page_alone(tmp_path: Path) -> None:
    result = recorded("run-rr-dishonest")
    page = result.to_html(tmp_path / "page.html", profile="public")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert "Violation found" in page
    assert page != result.to_html()
    assert render(result, "json", Surroundings(profile="public")) == result.to_json()


def test_another_profile_is_refused() -> None:
    with pytest.raises(InputError, match="internal or public"):
        recorded("run-rr-dishonest").to_html(profile="press")  # type: ignore[arg-type]


def test_formats_with_measured_numbers_are_refused_beside_a_public_page(tmp_path: Path) -> None:
    stored = tmp_path / "result.json"
    recorded("run-rr-dishonest").to_json(stored)
    page, summary = tmp_path / "page.html", tmp_path / "summary.md"
    with pytest.raises(InputError, match="--markdown would hold what was measured"):
        render_again(stored, ReportOutputs(html=page, markdown=summary), profile="public")
    assert not page.exists()
    render_again(stored, ReportOutputs(html=page), profile="public")
    assert page.exists()
