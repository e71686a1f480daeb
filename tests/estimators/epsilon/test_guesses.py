"""Bounds from guesses, and what they would find, by trying every count."""

import math

import pytest
from scipy.stats import binom, binomtest

from ldpaudit.estimators.epsilon.guesses import (
    GuessCounts,
    detectable_epsilon,
    epsilon_lower,
)


def lower(count: int, n: int, alpha: float) -> float:
    return float(binomtest(count, n).proportion_ci(1 - 2 * alpha, "exact").low)


@pytest.mark.parametrize(("claim", "alpha", "delta"), [(1.0, 0.05, 0.0), (0.3, 0.02, 1e-3)])
def test_the_detectable_epsilon_is_found_with_the_stated_power(
    claim: float, alpha: float, delta: float
) -> None:
    n, candidates = 300, 900
    exceeding = [
        right
        for right in range(n + 1)
        if epsilon_lower(GuessCounts(candidates, right, n - right), alpha, delta).epsilon > claim
    ]
    found = detectable_epsilon(GuessCounts(candidates, n, 0), claim, alpha, delta, 0.8)
    # Shifted by what δ adds: a/s ≤ q + d(1 − q).
    share = delta * 2 / (2 * lower(n, candidates, alpha / 10)) if delta else 0.0
    q = 1 / (1 + math.exp(-found))
    assert binom.sf(min(exceeding) - 1, n, q + share * (1 - q)) == pytest.approx(0.8)
