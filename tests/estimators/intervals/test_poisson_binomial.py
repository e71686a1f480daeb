"""Sums of different coins: exact tails, and bounds of a shift that hold and have power."""

import functools
import math

import numpy as np
import pytest
from scipy.special import expit, logit

from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.estimators.intervals.poisson_binomial import (
    ShiftedCoins,
    shift_lower,
    shift_upper,
)


def test_tails_are_exact_up_to_the_rounding_of_odds_and_never_too_small():
    p = np.random.default_rng(0).uniform(0, 1, 300)
    pmf = functools.reduce(np.convolve, np.stack([1 - p, p], axis=1))
    up, down = ShiftedCoins.of(p, up=True), ShiftedCoins.of(p, up=False)
    for count in (0, 100, 130, 150, 170, 200, 300):
        upper, lower = pmf[count:].sum(), pmf[: count + 1].sum()
        assert upper - 1e-12 <= up.at_least(count, 0.0) <= 1.3 * upper + 1e-11
        assert lower - 1e-12 <= down.at_most(count, 0.0) <= 1.3 * lower + 1e-11


def test_a_shift_of_even_odds_is_the_one_run_bound():
    for correct, n in ((100, 100), (700, 1000), (5100, 10_000)):
        level = float(clopper_pearson_lower(correct, n, 0.05))
        expected = math.log(level / (1 - level))
        assert shift_lower(np.full(n, 0.5), correct, 0.05) == pytest.approx(
            max(expected, 0), abs=2e-4
        )


def test_extremes():
    assert shift_lower(np.full(50, 0.5), 10, 0.05) == 0.0
    assert shift_lower(np.zeros(50), 1, 0.05) == math.inf
    assert shift_upper(np.full(50, 0.5), 50, 0.05) == math.inf
    assert shift_lower(np.ones(50), 50, 0.05) == 0.0
    assert shift_upper(np.full(50, 0.5), 10, 0.05) < 0
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        shift_lower(np.array([0.5, np.nan]), 1, 0.05)


def test_bounds_fall_with_the_error_probability():
    p = np.random.default_rng(1).beta(2, 5, 400)
    bounds = [shift_lower(p, 200, alpha) for alpha in (1e-6, 1e-3, 0.01, 0.05, 0.2)]
    assert bounds == sorted(bounds)


def guesses(seed, epsilon, n=150):
    rng = np.random.default_rng(seed)
    eta = rng.beta(2, 5, n)
    truth = rng.random(n) < eta
    kept = rng.random(n) < expit(epsilon)
    guess = np.where(kept, truth, ~truth)
    return np.where(guess, eta, 1 - eta), int((guess == truth).sum())


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_the_shift_is_missed_no_more_often_than_allowed_and_nearly_reached(epsilon):
    """Of 40 samples more than 8 misses at 5 % have a probability below 2e-4."""
    lower, upper = zip(
        *((shift_lower(*pair, 0.05), shift_upper(*pair, 0.05)) for pair in made(epsilon)),
        strict=True,
    )
    assert sum(bound > epsilon for bound in lower) <= 8
    assert sum(bound < epsilon for bound in upper) <= 8
    assert np.median(lower) >= epsilon - 0.6
    assert np.median(upper) <= epsilon + 0.6


def made(epsilon):
    return [guesses(seed, epsilon) for seed in range(40)]


@pytest.mark.validate
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_the_level_is_held_over_many_samples(epsilon):
    """Of 600 samples more than 52 misses at 5 % have a probability below 1e-4."""
    pairs = [guesses(seed, epsilon) for seed in range(600)]
    assert sum(shift_lower(*pair, 0.05) > epsilon for pair in pairs) <= 52


def test_rounded_odds_are_on_the_safe_side():
    p = np.array([0.0, 1e-14, 0.2, 0.5, 0.999, 1.0])
    up, down = ShiftedCoins.of(p, up=True), ShiftedCoins.of(p, up=False)
    with np.errstate(divide="ignore"):
        true = np.sort(logit(p))
    assert (np.repeat(up.odds, up.counts.astype(int)) >= true).all()
    assert (np.repeat(down.odds, down.counts.astype(int)) <= true).all()
