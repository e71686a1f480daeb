"""Bounds from guesses, and what they would find, by trying every count."""

import math

import pytest
from scipy.stats import binom, binomtest

from ldpaudit.estimators.epsilon.guesses import (
    GuessCounts,
    delta_lower,
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


def test_too_few_guesses_detect_nothing() -> None:
    assert detectable_epsilon(GuessCounts(10, 0, 0), 1.0, 0.05) == math.inf
    assert detectable_epsilon(GuessCounts(10, 3, 0), 1.0, 0.05) == math.inf
    # 0.7^n is below 0.05 from n = 9 on.
    claim = math.log(0.7 / 0.3)
    assert detectable_epsilon(GuessCounts(90, 8, 0), claim, 0.05) == math.inf
    assert math.isfinite(detectable_epsilon(GuessCounts(90, 9, 0), claim, 0.05))


@pytest.mark.parametrize("sides", [1, 2])
def test_bounds_of_epsilon_and_delta(sides: int) -> None:
    counts = GuessCounts(1_000, 500, 100, sides)
    level = lower(500, 600, 0.05)
    found = epsilon_lower(counts, 0.05)
    assert found.epsilon == pytest.approx(math.log(level / (1 - level)))
    assert found.n == 1_000
    level, guessed = lower(500, 600, 0.045), lower(600, 1_000, 0.005)
    share = 0.01 * sides / (2 * guessed)
    expected = math.log((level - share) / (1 - level))
    assert epsilon_lower(counts, 0.05, 0.01).epsilon == pytest.approx(expected)
    wrong = float(binomtest(100, 1_000).proportion_ci(0.95, "exact").high)
    delta = (lower(500, 1_000, 0.025) - math.exp(0.7) * wrong) * 2 / sides
    assert delta_lower(counts, 0.7, 0.05) == pytest.approx(delta)
    assert delta_lower(counts, 9.0, 0.05) == 0.0


def test_no_guess_bounds_nothing() -> None:
    assert epsilon_lower(GuessCounts(50, 0, 0), 0.05).epsilon == 0.0
    assert epsilon_lower(GuessCounts(50, 50, 0), 0.05, 0.999).epsilon == 0.0
