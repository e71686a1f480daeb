import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from ldpaudit.estimators.intervals.ranking import auc, auc_lower, auc_upper, tpr_at_fpr

FALSE_ALARM = 1e-6
"""The probability that a validity test fails by chance."""


def allowed(runs, alpha):
    return binom.isf(FALSE_ALARM, runs, alpha)


def test_auc_counts_pairs():
    rng = np.random.default_rng(0)
    positives, negatives = rng.integers(0, 5, 40), rng.integers(0, 4, 30)
    pairs = positives[:, None] - negatives[None, :]
    expected = np.mean((pairs > 0) + 0.5 * (pairs == 0))
    assert auc(positives, negatives) == pytest.approx(expected)
    assert auc(positives[:0], negatives) == 0.5


@given(st.floats(0.0, 1.0), st.integers(1, 10_000), st.floats(0.001, 0.4))
def test_auc_bounds_are_ordered_and_beat_hoeffding(value, pairs, alpha):
    low, high = auc_lower(value, pairs, alpha), auc_upper(value, pairs, alpha)
    assert 0 <= low <= value + 1e-12 <= high + 2e-12 <= 1 + 3e-12
    hoeffding = math.sqrt(math.log(1 / alpha) / (2 * pairs))
    assert value - low <= hoeffding + 1e-9


def test_auc_bounds_hold():
    rng, runs, alpha = np.random.default_rng(1), 500, 0.1
    true = norm.cdf(1 / math.sqrt(2))
    missed = 0
    for _ in range(runs):
        value = auc(rng.normal(1, 1, 30), rng.normal(0, 1, 90))
        missed += not auc_lower(value, 30, alpha / 2) <= true <= auc_upper(value, 30, alpha / 2)
    assert missed <= allowed(runs, alpha)


def test_auc_bound_finds_a_ranking_attack():
    assert auc_lower(0.9, 500, 0.025) > 0.85
    assert auc_lower(1.0, 500, 0.025) > 0.99


@pytest.mark.parametrize("shape", [(60, 400), (200, 3000), (20, 50)])
def test_true_positive_rate_interval_holds(shape):
    rng, runs, alpha = np.random.default_rng(2), 400, 0.1
    true = norm.sf(norm.isf(0.01) - 2)
    missed = 0
    for _ in range(runs):
        found = tpr_at_fpr(rng.normal(2, 1, shape[0]), rng.normal(0, 1, shape[1]), 0.01, alpha)
        assert found.low <= found.value <= found.high
        missed += not found.low <= true <= found.high
    assert missed <= allowed(runs, alpha)


def test_true_positive_rate_with_ties_holds():
    # Among negatives 2 % score 2, so the best threshold of at most 1 % names nobody.
    rng, runs, alpha = np.random.default_rng(3), 300, 0.1
    missed = 0
    for _ in range(runs):
        negatives = rng.choice(3, size=2000, p=[0.7, 0.28, 0.02])
        missed += tpr_at_fpr(rng.choice(3, size=100), negatives, 0.01, alpha).low > 0
    assert missed <= allowed(runs, alpha)


def test_true_positive_rate_finds_a_sharp_attack():
    rng = np.random.default_rng(4)
    found = tpr_at_fpr(rng.normal(6, 1, 500), rng.normal(0, 1, 5000), 0.01, 0.05)
    assert found.low > 0.95


def test_empty_sides_say_nothing():
    some = np.arange(5.0)
    assert (tpr_at_fpr(some, some[:0], 0.01, 0.05).low, auc_lower(0.5, 0, 0.05)) == (0.0, 0.0)
    assert tpr_at_fpr(some[:0], some, 0.01, 0.05).high == 1.0
