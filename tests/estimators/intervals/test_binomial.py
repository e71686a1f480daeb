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


def test_the_ends_are_exact() -> None:
    assert clopper_pearson_lower(0, 10, 0.05) == 0
    assert clopper_pearson_upper(10, 10, 0.05) == 1
    assert clopper_pearson_lower(10, 10, 0.05) == pytest.approx(0.05**0.1)


def test_parity_with_scipy() -> None:
    for count, n in [(3, 10), (0, 7), (7, 7), (500, 1000)]:
        expected = stats.binomtest(count, n).proportion_ci(0.95, method="exact")
        low, high = clopper_pearson(count, n, 0.05)
        assert (low, high) == (pytest.approx(expected.low), pytest.approx(expected.high))


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.99])
def test_exact_coverage(p: float) -> None:
    # Summed over all outcomes, so there is no chance of a false alarm.
    n, alpha = 60, 0.05
    counts = np.arange(n + 1)
    missed = clopper_pearson_lower(counts, n, alpha) > p
    assert stats.binom.pmf(counts, n, p)[missed].sum() <= alpha


def test_it_works_at_a_hundred_million_rows() -> None:
    low, high = clopper_pearson(31_415_926, 100_000_000, 1e-5)
    assert 0.3139 < low < 0.31415926 < high < 0.3144


def test_intervals_are_those_of_statsmodels() -> None:
    rng = np.random.default_rng(0)
    n = rng.integers(1, 10**6, 500)
    count = rng.integers(0, n + 1)
    count[:9], count[-9:] = 0, n[-9:]
    low, high = proportion_confint(count, n, 0.05, method="beta")
    ours = clopper_pearson(count, n, 0.05)
    np.testing.assert_allclose(ours, (low, high), rtol=1e-12, atol=1e-15)


def missed(limits: FloatArray, mean: float) -> float:
    """The most often that n trials of this mean end above: some certain, some never, some alike."""
    n = len(limits) - 1
    fewest = int(np.argmax(limits > mean * (1 + 1e-12)))
    certain, alike = np.meshgrid(np.arange(n), np.arange(1, n + 1))
    share = (mean * n - certain) / alike
    possible = (share >= 0) & (share <= 1) & (certain + alike <= n)
    tail = stats.binom.sf(fewest - 1 - certain, alike, np.clip(share, 0, 1))
    return float(tail[possible].max())


def test_bounds_for_trials_that_are_not_alike_hold_in_the_worst_cases() -> None:
    """Hoeffding (1956): the extremes have trials that are certain, impossible, or alike."""
    for n in (4, 20, 60):
        for alpha in (0.6, 0.25, 0.025, 0.001):
            limits = trials_lower(np.arange(n + 1), n, alpha)
            # Just below each possible value of the bound it is missed most often.
            means = limits[1:] * (1 - 1e-9)
            assert max(missed(limits, float(mean)) for mean in means) <= alpha * (1 + 1e-6)


def test_one_success_is_where_clopper_pearson_fails() -> None:
    counts = np.arange(21)
    usual = clopper_pearson_lower(counts, 20, 0.2)
    mean = float(usual[1]) * (1 - 1e-9)
    assert missed(usual, mean) > 0.2 * 1.05
    assert missed(trials_lower(counts, 20, 0.2), mean) <= 0.2


def test_bounds_for_trials_are_clopper_pearsons_elsewhere() -> None:
    counts = np.array([0, 2, 5, 20])
    assert (trials_lower(counts, 20, 0.05) == clopper_pearson_lower(counts, 20, 0.05)).all()
    assert trials_lower(1, 20, 0.05) == pytest.approx(0.0025)
    assert trials_upper(19, 20, 0.05) == pytest.approx(0.9975)
    assert trials_upper(7, 20, 0.05) == pytest.approx(1 - trials_lower(13, 20, 0.05))
    assert trials_lower(0, 0, 0.05) == 0
