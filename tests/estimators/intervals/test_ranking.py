import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm

from ldpaudit.estimators.intervals.ranking import (
    auc,
    auc_interval,
    auc_lower,
    auc_upper,
    tpr_at_fpr,
)

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


SAMPLES = {
    "balanced": (lambda rng: (rng.normal(1.2, 1, 150), rng.normal(0, 1, 150)), 0.8019),
    "chance": (lambda rng: (rng.normal(0, 1, 130), rng.normal(0, 1, 400)), 0.5),
    "nearly one": (lambda rng: (rng.normal(4, 1, 120), rng.normal(0, 1, 300)), 0.99766),
    "few positives": (lambda rng: (rng.normal(1, 1, 22), rng.normal(0, 1, 500)), 0.76025),
    "one side says it": (lambda rng: (rng.random(110) < 0.1, rng.random(300) < 0.0), 0.55),
    "ties": (
        lambda rng: (rng.choice(3, 140, p=[0.2, 0.3, 0.5]), rng.choice(3, 140, p=[0.5, 0.3, 0.2])),
        0.5 * 0.29 + 0.55,
    ),
}
"""Scores of positives and negatives, and the AUC of their laws."""


def misses(make, true, runs, alpha, seed):
    rng = np.random.default_rng(seed)
    missed = 0
    for _ in range(runs):
        positives, negatives = make(rng)
        low, high = auc_interval(np.float64(positives), np.float64(negatives), alpha)
        missed += not low <= true <= high
    return missed


@pytest.mark.parametrize("name", SAMPLES)
def test_auc_intervals_hold(name):
    make, true = SAMPLES[name]
    assert misses(make, true, 40, 0.1, 5) <= allowed(40, 0.1)


@pytest.mark.validate
@pytest.mark.parametrize("name", SAMPLES)
def test_auc_intervals_hold_over_many_samples(name):
    make, true = SAMPLES[name]
    assert misses(make, true, 1000, 0.1, 6) <= allowed(1000, 0.1)


def test_auc_intervals_are_narrower_than_those_that_ignore_the_variance():
    rng = np.random.default_rng(7)
    positives, negatives = rng.normal(1.5, 1, 100), rng.normal(0, 1, 900)
    low, high = auc_interval(positives, negatives, 0.05)
    value = auc(positives, negatives)
    wide = auc_upper(value, 100, 0.025) - auc_lower(value, 100, 0.025)
    assert low <= value <= high
    assert high - low < 0.75 * wide
    assert low > 0.7


def test_auc_intervals_of_few_rows_are_the_exact_ones():
    some = np.arange(6.0)
    assert auc_interval(some + 0.5, some, 0.1) == (
        auc_lower(auc(some + 0.5, some), 6, 0.05),
        auc_upper(auc(some + 0.5, some), 6, 0.05),
    )
    assert auc_interval(some[:0], some, 0.1) == (0.0, 1.0)
