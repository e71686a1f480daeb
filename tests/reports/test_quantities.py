import math
from collections.abc import Callable
from typing import Any

import pytest

from ldpaudit.reports.text.quantities import Printer, is_epsilon, mark_of
from ldpaudit.result import AuditResult, Estimate

Build = Callable[..., AuditResult]


def estimate(**fields: Any) -> Estimate:
    return Estimate.model_validate({"id": "a.b", "kind": "certified", "level": 0.95} | fields)


@pytest.mark.parametrize(
    ("fields", "text", "interval", "mark"),
    [
        ({"value": 0.96349, "side": "lower"}, "≥ 0.963", "", "lower"),
        ({"value": 0.96349, "low": 0.96349, "side": "lower"}, "≥ 0.963", "", "lower"),
        ({"value": 0.97, "low": 0.96349, "side": "lower"}, "0.97", "≥ 0.963", "lower"),
        ({"value": 2.00001, "side": "upper"}, "≤ 2.001", "", "upper"),
        (
            {"value": 0.84951, "low": 0.84649, "high": 0.85201, "side": "two-sided"},
            "0.850",
            "0.846 to 0.853",
            "interval",
        ),
        ({"value": 0.5, "kind": "exact", "level": None}, "0.5", "", "exact"),
        ({"value": math.inf, "kind": "exact", "level": None}, "∞", "", "exact"),
        (
            {"value": 1.5, "kind": "estimated", "low": 1.4, "side": "lower"},
            "1.5",
            "≥ 1.4",
            "estimated",
        ),
        ({"value": 1210.4, "unit": "rows", "side": "upper"}, "≤ 1,211", "", "upper"),
    ],
)
def test_texts(build: Build, fields: dict[str, Any], text: str, interval: str, mark: str) -> None:
    quantity = Printer(build("pass")).quantity(estimate(**fields))
    assert (quantity.text, quantity.interval, quantity.mark) == (text, interval, mark)


def test_words(build: Build) -> None:
    printer = Printer(build("pass"))
    lower = printer.quantity(estimate(value=1, side="lower", level=0.975))
    assert lower.words == "certified, 97.5\xa0%, lower bound"
    assert printer.quantity(estimate(value=1, kind="exact", level=None)).words == "exact"


def test_a_number_is_printed_with_the_digits_that_its_check_needs(build: Build) -> None:
    result = build("fail", measured=1.00004)
    printer = Printer(result)
    bound = result.estimate("mechanism.epsilon_lower")
    assert bound is not None
    assert printer.quantity(bound).text == "≥ 1.00004"
    assert printer.observed_and_limit(result.checks[0]) == ("1.00004", "1")


def test_the_claim_has_the_digits_that_tell_it_from_every_bound(build: Build) -> None:
    claim = math.log(199)
    assert Printer(build("pass", epsilon=claim)).claim == "5.293"
    assert Printer(build("pass", epsilon=claim, measured=claim - 1e-7)).claim == "5.293305"
    assert Printer(build("inconclusive", epsilon=None)).claim == ""
    assert Printer(build("inconclusive", epsilon=math.inf)).claim == "∞"


def test_checks_without_numbers(build: Build) -> None:
    result = build("inconclusive", epsilon=None)
    assert Printer(result).observed_and_limit(result.checks[0]) == ("–", "–")


def test_what_lies_on_the_axis_of_epsilon() -> None:
    assert is_epsilon(estimate(value=1, side="lower", axis="epsilon", unit="nats"))
    assert not is_epsilon(estimate(value=1, side="lower", unit="nats"))
    assert not is_epsilon(estimate(value=1, side="lower", axis="epsilon", unit="proportion"))


def test_marks_of_all_kinds_differ() -> None:
    marks = [
        mark_of(estimate(value=1, side="lower")),
        mark_of(estimate(value=1, side="upper")),
        mark_of(estimate(value=1, low=0, high=2, side="two-sided")),
        mark_of(estimate(value=1, kind="exact", level=None)),
        mark_of(estimate(value=1, kind="estimated")),
    ]
    assert len(set(marks)) == len(marks)
