import json
import math
from collections.abc import Callable

import pytest

from ldpaudit.errors import InputError
from ldpaudit.reports import render
from ldpaudit.result import AuditResult
from ldpaudit.work.documents import as_json


def test_round_trip_with_sorted_keys_in_ascii(any_result: AuditResult) -> None:
    text = render(any_result, "json")
    again = AuditResult.from_json(text)
    assert again == any_result
    assert render(again, "json") == text == any_result.to_json()

    def check(pairs: list[tuple[str, object]]) -> dict[str, object]:
        keys = [key for key, _ in pairs]
        assert keys == sorted(keys)
        return dict(pairs)

    json.loads(text, object_pairs_hook=check)
    assert text.isascii()
    assert text.endswith("}\n")


def test_infinities_are_strings_and_floats_exact(build: Callable[..., AuditResult]) -> None:
    result = build("inconclusive", epsilon=math.inf)
    stored = json.loads(render(result, "json"))
    assert stored["mechanism"]["epsilon"] == "inf"
    values = {e["id"]: e["value"] for e in stored["estimates"]}
    assert values["mechanism.epsilon"] == "inf"
    assert values["mechanism.epsilon_lower.counts"] == 0.9761 * 0.975
    assert AuditResult.from_json(render(result, "json")).mechanism.epsilon == math.inf


@pytest.mark.parametrize("bad", ["nan", "NaN"])
def test_nan_is_refused(build: Callable[..., AuditResult], bad: str) -> None:
    with pytest.raises(ValueError, match="JSON"):
        as_json({"value": float(bad)})
    assert as_json([math.inf, -math.inf]) == '[\n  "inf",\n  "-inf"\n]\n'
    stored = json.loads(render(build("pass"), "json"))
    stored["estimates"][0]["value"] = bad
    with pytest.raises(InputError, match="schema version"):
        AuditResult.from_json(json.dumps(stored))
