import json
import math
from collections.abc import Callable

import pytest

from ldpaudit.errors import InputError
from ldpaudit.reports import render
from ldpaudit.reports.json_report import JsonReport, as_json
from ldpaudit.result import AuditResult


def test_round_trip(any_result: AuditResult) -> None:
    text = render(any_result, "json")
    again = AuditResult.from_json(text)
    assert again == any_result
    assert render(again, "json") == text


def test_infinities_are_strings_and_floats_exact(build: Callable[..., AuditResult]) -> None:
    result = build("inconclusive", epsilon=math.inf)
    stored = json.loads(render(result, "json"))
    assert stored["mechanism"]["epsilon"] == "inf"
    values = {e["id"]: e["value"] for e in stored["estimates"]}
    assert values["mechanism.epsilon"] == "inf"
    assert values["mechanism.epsilon_lower.counts"] == 0.9761 * 0.975
    assert AuditResult.from_json(render(result, "json")).mechanism.epsilon == math.inf


def test_keys_are_sorted_and_text_is_ascii(any_result: AuditResult) -> None:
    text = render(any_result, "json")

    def check(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        assert keys == sorted(keys)
        return dict(pairs)

    json.loads(text, object_pairs_hook=check)
    assert text.isascii()
    assert text.endswith("}\n")


def test_nan_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        as_json({"value": math.nan})
    assert as_json([math.inf, -math.inf]) == '[\n  "inf",\n  "-inf"\n]\n'


@pytest.mark.parametrize("bad", ["nan", "NaN"])
def test_stored_nan_is_refused(build: Callable[..., AuditResult], bad: str) -> None:
    result = build("pass")
    stored = json.loads(render(result, "json"))
    stored["estimates"][0]["value"] = bad
    with pytest.raises(InputError, match="schema version"):
        AuditResult.from_json(json.dumps(stored))


def test_format_names() -> None:
    report = JsonReport()
    assert (report.name, report.suffix) == ("json", ".json")
