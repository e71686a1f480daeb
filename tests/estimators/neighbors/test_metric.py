"""Metrics: what a column weighs, what is merged, and that no label takes part."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.errors import InputError
from ldpaudit.estimators.metric import (
    MAX_LEVELS,
    MetricName,
    fit_metric,
    score_space,
)
from ldpaudit.release import FeatureTable, Float32Array, IntArray


def table(numeric: Float32Array | None = None, categorical: IntArray | None = None) -> FeatureTable:
    n = len(numeric) if numeric is not None else len(categorical if categorical is not None else ())
    numbers = np.zeros((n, 0), dtype=np.float32) if numeric is None else numeric
    codes = np.zeros((n, 0), dtype=np.int32) if categorical is None else categorical
    sizes = tuple(int(column.max(initial=-1)) + 1 for column in codes.T)
    return FeatureTable(numbers, codes, sizes, numbers.shape[1] + codes.shape[1])


def numbers(n: int, d: int, seed: int = 0) -> Float32Array:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def test_l2_does_not_depend_on_units() -> None:
    plain = numbers(500, 3)
    other = plain * np.array([1e-3, 1.0, 1e4], dtype=np.float32) + np.array([5, -7, 100], "f4")
    rng = np.random.default_rng
    points = [fit_metric(table(x), rng=rng(0)).transform(table(x)) for x in (plain, other)]
    np.testing.assert_allclose(points[0], points[1], atol=2e-3)
    np.testing.assert_allclose(points[0].std(axis=0), 1, atol=0.01)


def test_raw_is_the_numbers_themselves() -> None:
    x = numbers(100, 3) * 1000
    metric = fit_metric(table(x), "raw", rng=np.random.default_rng(0))
    np.testing.assert_array_equal(metric.transform(table(x)), x)
    assert "as they are" in metric.description


def test_two_levels_are_as_far_apart_as_two_numbers_on_average() -> None:
    codes = np.random.default_rng(1).integers(0, 4, (300, 1)).astype(np.int32)
    metric = fit_metric(table(categorical=codes), rng=np.random.default_rng(0))
    points = metric.transform(table(categorical=codes)).astype(np.float64)
    squares = ((points[:, None] - points[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(squares, 2.0 * (codes != codes.T))


def test_missing_numbers_get_the_median_and_a_mark() -> None:
    x = numbers(200, 2)
    x[::5, 0] = np.nan
    metric = fit_metric(table(x), rng=np.random.default_rng(0))
    points = metric.transform(table(x))
    assert metric.dimensions == points.shape[1] == 3
    np.testing.assert_array_equal(points[:, 2], np.isnan(x[:, 0]))
    assert len(np.unique(points[::5, 0])) == 1
    assert np.isfinite(points).all()
    assert "mark for missing" in metric.description


def test_a_missing_category_is_a_level() -> None:
    codes = np.array([[0], [1], [-1], [-1]], dtype=np.int32)
    metric = fit_metric(table(categorical=codes), rng=np.random.default_rng(0))
    points = metric.transform(table(categorical=codes))
    assert len(np.unique(points, axis=0)) == 3
    np.testing.assert_array_equal(points[2], points[3])


@pytest.mark.parametrize("name", ["l2", "raw"])
def test_nothing_but_constants_is_refused(name: MetricName) -> None:
    constant = table(np.ones((10, 2), dtype=np.float32), np.zeros((10, 1), dtype=np.int32))
    with pytest.raises(InputError, match="distinguishes rows"):
        fit_metric(constant, name, rng=np.random.default_rng(0))


def test_an_outlier_does_not_outweigh_everything() -> None:
    x = numbers(1000, 2)
    x[0, 0] = 1e6
    points = fit_metric(table(x), rng=np.random.default_rng(0)).transform(table(x))
    assert np.abs(points).max() <= 5


def test_many_levels_are_merged_and_projected() -> None:
    rng = np.random.default_rng(2)
    codes = rng.zipf(1.3, (5000, 2)).clip(max=3000).astype(np.int32)
    x = table(numbers(5000, 3), codes)
    wide = fit_metric(x, rng=np.random.default_rng(0), max_dimensions=1000)
    assert wide.dimensions <= MAX_LEVELS + 2 + 3
    assert "rare levels merged" in wide.description
    narrow = fit_metric(x, rng=np.random.default_rng(0))
    assert narrow.transform(x).shape == (5000, narrow.dimensions) == (5000, 64)
    assert "64 principal components" in narrow.description


@given(st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_score_space_is_blind_to_the_order_of_classes(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    posterior = rng.dirichlet(np.full(k, 0.7), 20)
    points = [score_space(posterior[:, order]) for order in (np.arange(k), rng.permutation(k))]
    assert points[0].shape == (20, k - 1)
    a, b = (np.linalg.norm(p[:, None] - p[None], axis=2) for p in points)
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3)


def test_binary_scores_are_log_odds() -> None:
    posterior = np.array([[0.75, 0.25], [0.5, 0.5], [1.0, 0.0]])
    expected = np.array([[-np.log(3)], [0.0], [np.log(1e-6)]])
    np.testing.assert_allclose(score_space(posterior), expected, rtol=1e-6)
