"""Sums of different coins: exact tails, and bounds of a shift that hold and have power."""

import functools

import numpy as np
import pytest
from scipy.special import logit

from ldpaudit.estimators.intervals.binomial import (
    ShiftedCoins,
    clopper_pearson_lower,
    shift_lower,
)


def test_tails_are_exact_up_to_the_rounding_of_odds_and_never_too_small():
    p = np.random.default_rng(0).uniform(0, 1, 300)
    pmf = functools.reduce(np.convolve, np.stack([1 - p, p], axis=1))
    up, down = ShiftedCoins.of(p, up=True), ShiftedCoins.of(p, up=False)
    for count in (0, 100, 130, 150, 170, 200, 300):
        upper, lower = pmf[count:].sum(), pmf[: count + 1].sum()
        assert upper - 1e-12 <= up.at_least(count, 0.0) <= 1.3 * upper + 1e-11
        assert lower - 1e-12 <= down.at_most(count, 0.0) <= 1.3 * lower + 1e-11


@pytest.mark.parametrize(("correct", "n"), [(100, 100), (700, 1000), (5100, 10_000)])
def test_a_shift_of_even_odds_is_the_one_run_bound(correct: int, n: int):
    expected = max(float(logit(clopper_pearson_lower(correct, n, 0.05))), 0)
    assert shift_lower(np.full(n, 0.5), correct, 0.05) == pytest.approx(expected, abs=2e-4)
