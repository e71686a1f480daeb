import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ldpaudit.result import SMALLEST_CELL, Curve, Estimate, Histogram


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
    # The printed numbers lie on a grid of ten rows, so several counts look the same.
    for end in (estimate.value, estimate.low, estimate.high):
        assert end is not None
        steps = end * n / SMALLEST_CELL
        assert math.isclose(steps, round(steps), abs_tol=1e-6) or end in (0.0, 1.0)


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
    assert bound.low == pytest.approx(2.34)
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


def test_an_exact_number_has_no_level() -> None:
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
