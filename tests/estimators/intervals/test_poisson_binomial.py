"""Sums of different coins: exact tails, and bounds of a shift that hold and have power."""

import functools
import math

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom

from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import (
    ShiftedCoins,
    clopper_pearson_lower,
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


@pytest.mark.parametrize(("correct", "n"), [(100, 100), (700, 1000), (5100, 10_000)])
def test_a_shift_of_even_odds_is_the_one_run_bound(correct: int, n: int):
    expected = max(float(logit(clopper_pearson_lower(correct, n, 0.05))), 0)
    assert shift_lower(np.full(n, 0.5), correct, 0.05) == pytest.approx(expected, abs=2e-4)


def test_extremes():
    even = np.full(50, 0.5)
    assert (shift_lower(even, 10, 0.05), shift_lower(np.ones(50), 50, 0.05)) == (0.0, 0.0)
    assert shift_lower(np.zeros(50), 1, 0.05) == shift_upper(even, 50, 0.05) == math.inf
    assert shift_upper(even, 10, 0.05) < 0
    with pytest.raises(InputError, match=r"\[0, 1\]"):
        shift_lower(np.array([0.5, np.nan]), 1, 0.05)


def test_bounds_fall_with_the_error_probability():
    p = np.random.default_rng(1).beta(2, 5, 400)
    bounds = [shift_lower(p, 200, alpha) for alpha in (1e-6, 1e-3, 0.01, 0.05, 0.2)]
    assert bounds == sorted(bounds)


def bounds_of(epsilon, runs, n=150):
    """Return lower and upper bounds of shifts by ε, (runs, 2)."""
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        eta = rng.beta(2, 5, n)
        truth = rng.random(n) < eta
        guess = np.where(rng.random(n) < expit(epsilon), truth, ~truth)
        known = np.where(guess, eta, 1 - eta), int((guess == truth).sum())
        found.append((shift_lower(*known, 0.05), shift_upper(*known, 0.05)))
    return np.array(found)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_the_shift_is_missed_no_more_often_than_allowed_and_nearly_reached(epsilon):
    found = bounds_of(epsilon, 40)
    missed = (found[:, 0] > epsilon).sum(), (found[:, 1] < epsilon).sum()
    assert max(missed) <= binom.isf(2e-4, 40, 0.05)
    assert np.abs(np.median(found, axis=0) - epsilon).max() <= 0.6


@pytest.mark.validate
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_the_level_is_held_over_many_samples(epsilon):
    assert (bounds_of(epsilon, 600)[:, 0] > epsilon).sum() <= binom.isf(1e-4, 600, 0.05)


def test_rounded_odds_are_on_the_safe_side():
    p = np.array([0.0, 1e-14, 0.2, 0.5, 0.999, 1.0])
    up, down = ShiftedCoins.of(p, up=True), ShiftedCoins.of(p, up=False)
    with np.errstate(divide="ignore"):
        true = np.sort(logit(p))
    assert (np.repeat(up.odds, up.counts.astype(int)) >= true).all()
    assert (np.repeat(down.odds, down.counts.astype(int)) <= true).all()
