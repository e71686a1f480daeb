import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ldpaudit.result import Curve, Estimate, Finding, Score


def proportion(count: int, n: int, **more: Any) -> Estimate:
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
def test_a_malformed_estimate_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        proportion(50, 100, **change)


def test_an_exactly_has_no_level() -> None:
    with pytest.raises(ValidationError, match="no level"):
        Estimate(id="mechanism.epsilon", kind="exact", value=1.0, level=0.95)


def test_a_curve_has_parts_of_one_length() -> None:
    with pytest.raises(ValidationError, match="one length"):
        Curve(id="mechanism.rdp", kind="exact", x=(1.0, 2.0), value=(0.1,))


def test_no_field_of_the_result_can_hold_rows() -> None:
    """Every array of the result is a curve or a histogram, both of which are aggregates."""
    from ldpaudit.result import AuditResult

    schema = json.dumps(AuditResult.model_json_schema())
    for word in ("row_id", "rows_", "scores", "cells", "records"):
        assert f'"{word}"' not in schema


SCORE = Score(subject="knn", measure="accuracy", row="Nearest neighbours", column="Accuracy")


def test_what_is_built_states_its_title_kind_and_side() -> None:
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


def test_a_number_without_a_title_is_called_by_its_id() -> None:
    assert Estimate(id="plug-in.some_share", kind="exact", value=1).title == "Plug in some share"


def test_the_numbers_of_a_finding_get_its_section_unless_they_name_one() -> None:
    curve = Curve(id="mechanism.rdp", kind="exact", x=(2,), value=(1,), section="renyi")
    placed = Finding((Estimate.exact("a.b", "B", 1.0),), (curve,)).in_section("mechanism")
    assert [part.section for part in (*placed.estimates, *placed.curves)] == ["mechanism", "renyi"]


@given(st.integers(0, 12), st.integers(1, 12))
def test_counts_are_shown_as_they_are(count: int, others: int) -> None:
    estimate = proportion(count, count + others)
    assert (estimate.n, estimate.count) == (count + others, count)
    assert estimate.value == count / (count + others)
