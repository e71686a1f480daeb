"""Metrics: what a column weighs, what is merged, and that no label takes part."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from worlds import feature_table

from ldpaudit.estimators.metric import (
    MAX_LEVELS,
    fit_metric,
    score_space,
)
from ldpaudit.release import Float32Array


def numbers(n: int, d: int, seed: int = 0) -> Float32Array:
    return np.random.default_rng(seed).standard_normal((n, d), dtype=np.float32)


def test_l2_does_not_depend_on_units() -> None:
    plain = numbers(500, 3)
    other = plain * np.array([1e-3, 1.0, 1e4], dtype=np.float32) + np.array([5, -7, 100], "f4")
    rng = np.random.default_rng
    points = [
        fit_metric(feature_table(x), rng=rng(0)).transform(feature_table(x)) for x in (plain, other)
    ]
    np.testing.assert_allclose(points[0], points[1], atol=2e-3)
    np.testing.assert_allclose(points[0].std(axis=0), 1, atol=0.01)


def test_many_levels_are_merged_and_projected() -> None:
    rng = np.random.default_rng(2)
    codes = rng.zipf(1.3, (5000, 2)).clip(max=3000).astype(np.int32)
    x = feature_table(numbers(5000, 3), codes)
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
