"""AUC and the rate at few false positives: by their definitions, and over many samples."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.estimators.intervals.ranking import (
    auc,
    auc_interval,
    auc_lower,
    auc_upper,
)


def normals(rng, shift, few, many):
    return rng.normal(shift, 1, few), rng.normal(0, 1, many)


@given(st.floats(0.0, 1.0), st.integers(1, 10_000), st.floats(0.001, 0.4))
def test_auc_bounds_are_ordered_and_beat_hoeffding(value, pairs, alpha):
    low, high = auc_lower(value, pairs, alpha), auc_upper(value, pairs, alpha)
    assert 0 <= low <= value + 1e-12 <= high + 2e-12 <= 1 + 3e-12
    assert value - low <= math.sqrt(math.log(1 / alpha) / (2 * pairs)) + 1e-9


def test_auc_intervals_are_narrower_than_those_that_ignore_the_variance():
    positives, negatives = normals(np.random.default_rng(7), 1.5, 100, 900)
    low, high = auc_interval(positives, negatives, 0.05)
    value = auc(positives, negatives)
    wide = auc_upper(value, 100, 0.025) - auc_lower(value, 100, 0.025)
    assert 0.7 < low <= value <= high < low + 0.75 * wide
