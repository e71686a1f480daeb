import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ldpaudit.estimators.binomial import (
    clopper_pearson,
    clopper_pearson_lower,
    clopper_pearson_upper,
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
