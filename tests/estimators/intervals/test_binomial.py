"""Bounds of proportions: exact, as statsmodels has them, and for trials that are not alike."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from ldpaudit.arrays import FloatArray
from ldpaudit.estimators.intervals.binomial import (
    clopper_pearson,
    clopper_pearson_lower,
    clopper_pearson_upper,
    score_lower,
    trials_lower,
    trials_upper,
)


@given(st.integers(1, 10_000), st.data(), st.floats(1e-6, 0.4))
def test_the_bounds_invert_the_binomial_tail(n: int, data: st.DataObject, alpha: float) -> None:
    count = data.draw(st.integers(0, n))
    low, high = clopper_pearson_lower(count, n, alpha), clopper_pearson_upper(count, n, alpha)
    assert 0 <= low <= count / n <= high <= 1
    if count > 0:
        assert stats.binom.sf(count - 1, n, low) == pytest.approx(alpha, rel=1e-5)
    if count < n:
        assert stats.binom.cdf(count, n, high) == pytest.approx(alpha, rel=1e-5)


@pytest.mark.parametrize("most", [100, 10**6, 10**8])
def test_intervals_are_those_of_statsmodels(most: int) -> None:
    rng = np.random.default_rng(0)
    n = rng.integers(1, most, 300)
    count = rng.integers(0, n + 1)
    count[:9], count[-9:] = 0, n[-9:]
    expected = proportion_confint(count, n, 0.05, method="beta")
    np.testing.assert_allclose(clopper_pearson(count, n, 0.05), expected, rtol=1e-9, atol=1e-15)
    wilson = proportion_confint(count, n, 0.1, method="wilson")[0]
    np.testing.assert_allclose(score_lower(count, n, 0.05), wilson, rtol=1e-6, atol=1e-12)


def missed(limits: FloatArray, mean: float) -> float:
    """The most often that n trials of this mean end above: some certain, some never, some alike."""
    n = len(limits) - 1
    fewest = int(np.argmax(limits > mean * (1 + 1e-12)))
    certain, alike = np.meshgrid(np.arange(n), np.arange(1, n + 1))
    share = (mean * n - certain) / alike
    possible = (share >= 0) & (share <= 1) & (certain + alike <= n)
    tail = stats.binom.sf(fewest - 1 - certain, alike, np.clip(share, 0, 1))
    return float(tail[possible].max())


@pytest.mark.parametrize("n", [4, 20, 60])
@pytest.mark.parametrize("alpha", [0.6, 0.25, 0.025, 0.001])
def test_bounds_for_trials_that_are_not_alike_hold_in_the_worst_cases(n: int, alpha: float) -> None:
    """Hoeffding (1956): the extremes have trials that are certain, impossible, or alike."""
    limits = trials_lower(np.arange(n + 1), n, alpha)
    # Just below each possible value of the bound it is missed most often.
    assert max(missed(limits, float(m)) for m in limits[1:] * (1 - 1e-9)) <= alpha * (1 + 1e-6)


def test_one_success_is_where_clopper_pearson_fails() -> None:
    counts = np.arange(21)
    usual, ours = clopper_pearson_lower(counts, 20, 0.2), trials_lower(counts, 20, 0.2)
    mean = float(usual[1]) * (1 - 1e-9)
    assert missed(usual, mean) > 0.2 * 1.05
    assert missed(ours, mean) <= 0.2
    assert (ours[counts != 1] == usual[counts != 1]).all()
    assert trials_upper(counts, 20, 0.2) == pytest.approx(1 - ours[::-1])
