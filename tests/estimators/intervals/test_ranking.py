"""AUC and the rate at few false positives: by their definitions, and over many samples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, norm

from ldpaudit.estimators.intervals.ranking import (
    _loose_rank,
    _strict_rank,
    auc,
    auc_interval,
    auc_lower,
    auc_upper,
    tpr_at_fpr,
)


def allowed(runs, alpha):
    """Of misses; a false alarm has a probability of 1e-6."""
    return binom.isf(1e-6, runs, alpha)


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
    assert value - low <= math.sqrt(math.log(1 / alpha) / (2 * pairs)) + 1e-9


@pytest.mark.parametrize(
    ("value", "pairs", "least"), [(0.9, 500, 0.85), (1, 500, 0.99), (0.5, 0, 0)]
)
def test_auc_bound_finds_a_ranking_attack(value, pairs, least):
    assert auc_lower(value, pairs, 0.025) >= least


def normals(shift, few, many):
    return lambda rng: (rng.normal(shift, 1, few), rng.normal(0, 1, many))


SAMPLES = {
    "few of either": (normals(1, 30, 90), norm.cdf(1 / math.sqrt(2))),
    "balanced": (normals(1.2, 150, 150), 0.8019),
    "chance": (normals(0, 130, 400), 0.5),
    "nearly one": (normals(4, 120, 300), 0.99766),
    "few positives": (normals(1, 22, 500), 0.76025),
    "one side says it": (lambda rng: (rng.random(110) < 0.1, rng.random(300) < 0.0), 0.55),
    "ties": (
        lambda rng: (rng.choice(3, 140, p=[0.2, 0.3, 0.5]), rng.choice(3, 140, p=[0.5, 0.3, 0.2])),
        0.5 * 0.29 + 0.55,
    ),
}
"""Scores of positives and negatives, and the AUC of their laws."""


def misses(name, runs, alpha=0.1):
    (make, true), rng = SAMPLES[name], np.random.default_rng(5)
    drawn = ([np.float64(side) for side in make(rng)] for _ in range(runs))
    ends = [auc_interval(*sides, alpha) for sides in drawn]
    return sum(not low <= true <= high for low, high in ends)


@pytest.mark.parametrize("name", SAMPLES)
def test_auc_intervals_hold(name):
    assert misses(name, 40) <= allowed(40, 0.1)


@pytest.mark.validate
@pytest.mark.parametrize("name", SAMPLES)
def test_auc_intervals_hold_over_many_samples(name):
    assert misses(name, 1000) <= allowed(1000, 0.1)


def test_auc_intervals_are_narrower_than_those_that_ignore_the_variance():
    positives, negatives = normals(1.5, 100, 900)(np.random.default_rng(7))
    low, high = auc_interval(positives, negatives, 0.05)
    value = auc(positives, negatives)
    wide = auc_upper(value, 100, 0.025) - auc_lower(value, 100, 0.025)
    assert 0.7 < low <= value <= high < low + 0.75 * wide


@pytest.mark.parametrize(("few", "many"), [(6, 6), (12, 90), (0, 6)])
def test_auc_intervals_of_few_rows_are_the_exact_ones(few, many):
    positives, negatives = normals(1, few, many)(np.random.default_rng(2))
    value = auc(positives, negatives)
    expected = auc_lower(value, few, 0.05), auc_upper(value, few, 0.05)
    assert auc_interval(positives, negatives, 0.1) == expected


def test_a_rate_is_counted_above_thresholds() -> None:
    positives, negatives = normals(1, 80, 300)(np.random.default_rng(0))
    found, ranked = tpr_at_fpr(positives, negatives, 0.1, 0.2), np.sort(negatives)[::-1]
    sure = int((positives > ranked[_strict_rank(300, 0.1, 0.05) - 1]).sum())
    most = int((positives >= ranked[_loose_rank(300, 0.1, 0.05) - 1]).sum())
    assert found.value == (positives > ranked[30]).mean()
    assert found.low == pytest.approx(binomtest(sure, 80).proportion_ci(0.9, "exact").low)
    assert found.high == pytest.approx(binomtest(most, 80).proportion_ci(0.9, "exact").high)


TIES = [0.7, 0.28, 0.02]
RATES = {
    **{
        f"normal {few} {many}": (normals(2, few, many), norm.sf(norm.isf(0.01) - 2))
        for few, many in ((60, 400), (200, 3000), (20, 50))
    },
    # Among negatives 2 % score 2, so the best threshold of at most 1 % names nobody.
    "ties": (lambda rng: (rng.choice(3, size=100), rng.choice(3, size=2000, p=TIES)), 0.0),
}


@pytest.mark.parametrize("name", RATES)
def test_true_positive_rate_interval_holds(name):
    (make, true), rng = RATES[name], np.random.default_rng(2)
    found = [tpr_at_fpr(*make(rng), 0.01, 0.1) for _ in range(300)]
    assert all(one.low <= one.value <= one.high for one in found)
    assert sum(not one.low <= true <= one.high for one in found) <= allowed(300, 0.1)
