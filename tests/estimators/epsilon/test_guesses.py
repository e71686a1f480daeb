import math

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import binom

from ldpaudit.estimators.epsilon.guesses import (
    GuessCounts,
    delta_lower,
    detectable_epsilon,
    epsilon_lower,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower


def test_without_delta_it_is_the_one_run_bound() -> None:
    found = epsilon_lower(GuessCounts(1000, 400, 150), 0.05)
    expected = logit(clopper_pearson_lower(400, 550, 0.05))
    assert found.epsilon == pytest.approx(expected, rel=1e-12)


def test_a_leak_without_any_wrong_guess_is_as_large_as_the_sample_supports() -> None:
    # Right in all of r guesses: ℓ = α^{1/r}.
    level = 0.01 ** (1 / 5000)
    expected = math.log(level / (1 - level))
    assert epsilon_lower(GuessCounts(10_000, 5000, 0), 0.01).epsilon == pytest.approx(expected)


@pytest.mark.parametrize(("right", "wrong"), [(0, 0), (0, 50), (50, 50), (10, 400)])
def test_nothing_found_is_zero(right: int, wrong: int) -> None:
    assert epsilon_lower(GuessCounts(1000, right, wrong), 0.05, 1e-3).epsilon == 0


def test_delta_lowers_the_bound() -> None:
    counts = GuessCounts(100_000, 36_000, 13_000)
    bounds = [epsilon_lower(counts, 0.05, delta).epsilon for delta in (0, 1e-6, 1e-3, 0.1, 0.9)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[-1] == 0
    one_sided = GuessCounts(100_000, 36_000, 13_000, sides=1)
    assert epsilon_lower(one_sided, 0.05, 0.1).epsilon > bounds[3]


@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize("sides", [1, 2])
def test_levels_hold_at_the_boundary(delta: float, sides: int) -> None:
    # The worst (ε, δ)-DP law of guesses: a = e^ε b + δ·sides/2. False-alarm chance 1e-6.
    rng, runs, alpha, epsilon, n = np.random.default_rng(5), 4000, 0.05, 1.0, 2000
    b = 0.1
    a = math.exp(epsilon) * b + delta * sides / 2
    drawn = rng.multinomial(n, [a, b, 1 - a - b], size=runs)
    counts = [GuessCounts(n, int(r), int(w), sides) for r, w, _ in drawn]
    limit = binom.isf(1e-6, runs, alpha)
    above = sum(epsilon_lower(c, alpha, delta).epsilon > epsilon + 1e-9 for c in counts)
    assert above <= limit
    # And it is not idle: the bound comes near.
    assert np.mean([epsilon_lower(c, alpha, delta).epsilon for c in counts]) > 0.75
    if delta:
        found = [delta_lower(c, epsilon, alpha) for c in counts]
        assert sum(d > delta + 1e-9 for d in found) <= limit


def test_delta_is_found() -> None:
    assert delta_lower(GuessCounts(10**6, 300_000, 20_000), 1.0, 0.01) > 0.24
    assert delta_lower(GuessCounts(10**6, 20_000, 20_000), 1.0, 0.01) == 0


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_what_could_be_found_is_found_so_often(delta: float) -> None:
    counts, claim, alpha = GuessCounts(20_000, 3000, 2000), 1.0, 0.05
    epsilon = detectable_epsilon(counts, claim, alpha, delta)
    share = delta * 20_000 / 5000 / 0.97 if delta else 0.0
    odds = math.exp(epsilon)
    chance = (odds + share) / (1 + odds)
    right = np.arange(5001)
    refuted = np.array(
        [epsilon_lower(GuessCounts(20_000, r, 5000 - r), alpha, delta).epsilon > claim
         for r in range(3400, 4200)]
    )  # fmt: skip
    power = binom.pmf(right[3400:4200], 5000, chance) @ refuted + binom.sf(4199, 5000, chance)
    assert 0.88 < power < 0.93
    assert epsilon > claim


def test_too_few_guesses_find_nothing() -> None:
    assert detectable_epsilon(GuessCounts(100, 0, 0), 1.0, 0.05) == math.inf
    assert detectable_epsilon(GuessCounts(100, 4, 2), 5.0, 0.05) == math.inf
    assert detectable_epsilon(GuessCounts(100, 4, 2), 1.0, 0.05, 0.5) == math.inf
