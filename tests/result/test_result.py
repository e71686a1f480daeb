import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ldpaudit.result import SMALLEST_CELL, Curve, Estimate, Finding, Histogram, Score


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


@given(st.integers(20, 5000), st.data())
def test_no_small_count_can_be_read_off(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, SMALLEST_CELL - 1) | st.integers(n - 9, n - 1))
    estimate = proportion(count, n)
    assert estimate.suppressed
    assert estimate.count is None
    assert estimate.n is None
    # The printed numbers lie on steps that do not depend on how many people are behind them.
    for end in (estimate.value, estimate.low, estimate.high):
        assert end is not None
        assert math.isclose(end * 2, round(end * 2)) or n >= 1000
        assert math.isclose(end * 10, round(end * 10))


@given(st.integers(20, 5000), st.data())
def test_rounding_of_a_small_cell_only_widens_the_interval(n: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, SMALLEST_CELL - 1))
    estimate = proportion(count, n)
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low <= max(count / n - 0.01, 0.0) + 1e-12
    assert estimate.high >= min(count / n + 0.01, 1.0) - 1e-12


def test_large_cells_and_empty_ones_stay() -> None:
    for count in (0, 10, 50, 90, 100):
        assert proportion(count, 100).count == count


def test_a_bound_from_a_small_cell_rounds_to_the_safe_side() -> None:
    bound = Estimate.model_validate(
        {
            "id": "mechanism.epsilon_lower",
            "kind": "certified",
            "value": 2.3456,
            "low": 2.3456,
            "side": "lower",
            "level": 0.95,
            "unit": "nats",
            "smallest_cell": 4,
        }
    )
    assert bound.low == pytest.approx(2.3)
    assert bound.value == bound.low


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


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12))
def test_histogram_bins_are_merged_until_none_is_small(counts: list[int]) -> None:
    histogram = Histogram(
        id="instance_loss.histogram",
        kind="estimated",
        edges=tuple(float(i) for i in range(len(counts) + 1)),
        counts=tuple(counts),
    )
    assert not any(0 < count < SMALLEST_CELL for count in histogram.counts)
    if sum(counts) >= SMALLEST_CELL:
        assert sum(histogram.counts) == sum(counts)
    assert len(histogram.edges) == len(histogram.counts) + 1
    assert (histogram.edges[0], histogram.edges[-1]) == (0.0, float(len(counts)))


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


@given(st.integers(1, SMALLEST_CELL - 1), st.sampled_from(["proportion", "nats"]))
def test_what_is_built_is_redacted(cell: int, unit: Any) -> None:
    more = {"unit": unit, "n": 1000, "smallest_cell": cell}
    built = (
        Estimate.estimated("a.b", "B", 0.1234, **more),
        Estimate.lower_bound("a.b", "B", 0.1234, 0.95, **more),
        Estimate.upper_bound("a.b", "B", 0.1234, 0.95, **more),
        Estimate.interval("a.b", "B", 0.1234, (0.1111, 0.1357), 0.95, **more),
    )
    for estimate in built:
        assert estimate.suppressed
        assert estimate.n is None
        assert estimate.value in (pytest.approx(0.1), pytest.approx(0.2))
        assert "smallest_cell" not in estimate.model_dump()
    assert Estimate.estimated("a.b", "B", 0.1234, smallest_cell=10).value == 0.1234


def test_a_number_without_a_title_is_called_by_its_id() -> None:
    assert Estimate(id="plug-in.some_share", kind="exact", value=1).title == "Plug in some share"


def test_the_numbers_of_a_finding_get_its_section_unless_they_name_one() -> None:
    curve = Curve(id="mechanism.rdp", kind="exact", x=(2,), value=(1,), section="renyi")
    placed = Finding((Estimate.exact("a.b", "B", 1.0),), (curve,)).in_section("mechanism")
    assert [part.section for part in (*placed.estimates, *placed.curves)] == ["mechanism", "renyi"]
