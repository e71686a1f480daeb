"""The first screen: publish or not, why, what to do, when; and one number for one thing."""

import html
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.reports import render
from ldpaudit.reports.text import wording
from ldpaudit.reports.text.quantities import Printer
from ldpaudit.result import AuditResult
from ldpaudit.result.numbers import number


def audited(made: float, rows: int = 1500, seed: int = 1, **options: Any) -> AuditResult:
    """Audit a release that claims ε = 1."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, rows).astype(np.int32)
    released = RandomizedResponse.from_epsilon((0, 1), made).sample(truth, rng)
    frame = pd.DataFrame({"x": truth + rng.standard_normal(rows), "label": released})
    claim = {"name": "randomized-response", "epsilon": 1.0}
    chosen = {"only": ("mechanism", "power"), "truth": truth} | options
    return ldpaudit.audit(frame, mechanism=claim, rng=5, **chosen)


def words(page: str) -> str:
    page = re.sub(r"(?s)<(style|svg)\b.*?</\1>", " ", page)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


@pytest.fixture(scope="module")
def results() -> dict[str, AuditResult]:
    return {
        "publish": audited(1.0),
        "do not publish": audited(3.0),
        "not yet": audited(1.0, truth=None),
    }


@pytest.mark.parametrize(
    ("decision", "answer"), [("publish", "yes"), ("do not publish", "no"), ("not yet", "not yet")]
)
def test_the_first_screen(results: dict[str, AuditResult], decision: str, answer: str) -> None:
    result = results[decision]
    assert result.decision == decision
    text = words(render(result, "html"))
    start = text[: text.index("Claimed ε")]
    assert f"Publish: {answer} " in start
    assert f"Audited on {result.date}" in start
    assert 1 <= len(result.next_steps) <= 3
    for step in result.next_steps:
        assert step in start
    assert result.sentence.split(": ", 1)[1][1:] in start
    assert "Mean loss" not in text[: text.index("Checks")]


def test_an_earlier_result_gets_its_decision(results: dict[str, AuditResult]) -> None:
    stored = results["do not publish"].model_dump() | {"schema_version": "1.1"}
    for added in ("decision", "next_steps", "date"):
        del stored[added]
    result = AuditResult.model_validate(stored)
    assert (result.decision, result.next_steps, result.date) == ("do not publish", (), None)
    assert "Publish: no" in words(render(result, "html"))
    assert "Audited on" not in words(render(result, "html"))


@pytest.mark.parametrize("made", [1.0, 2.5])
@pytest.mark.parametrize("truth", [True, False])
def test_sentence_tile_chart_check_and_json_show_one_number(made: float, truth: bool) -> None:
    result = audited(made, seed=7) if truth else audited(made, seed=7, truth=None)
    check = next(c for c in result.checks if c.id == "claimed-epsilon")
    assert check.observed is not None
    printed = number(check.observed, "down")
    decisive = Printer(result).decisive
    assert decisive is not None
    assert decisive.text == f"≥ {printed}"
    text = words(render(result, "html"))
    assert f"Measured ε ≥ {printed} nats" in text
    assert f"claimed-epsilon {wording.VERDICTS[check.verdict]} {printed} " in text
    figure = text.split("Measured ε against the claim")[1].split("What attackers learn")[0]
    assert f"≥ {printed}" in figure
    if result.verdict != "inconclusive":
        assert f"at least ε = {printed}" in result.sentence
    for bound in result.estimates:
        if bound.axis == "epsilon" and bound.kind == "certified" and bound.value != check.observed:
            assert f"≥ {number(bound.value, 'down')}" in text
    if any(e.value != check.observed for e in result.estimates if e.id in check.evidence[:1]):
        assert "uncorrected" in text


def test_a_bound_that_decides_alone_is_not_called_uncorrected() -> None:
    text = words(render(audited(2.0, truth=None), "html"))
    assert ", uncorrected)" not in text
    assert "this decides" not in text
