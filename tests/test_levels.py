"""The check of levels itself: it finds what is too often, lets pass what is not, and ends early."""

import numpy as np
import pytest
from levels import check_level, found_surely


def draws_of(rate: float, seed: int):
    rng = np.random.default_rng([seed, int(rate * 1e6)])
    return lambda _: rng.random() < rate


@pytest.mark.parametrize(("draws", "alpha"), [(2000, 0.05), (100, 0.05), (500, 0.1)])
def test_what_goes_wrong_too_often_is_found(draws, alpha):
    worst = found_surely(draws, alpha)
    assert alpha < worst < 0.4
    found = 0
    for seed in range(60):
        try:
            check_level(draws_of(worst, seed), draws, alpha)
        except AssertionError:
            found += 1
    assert found >= 54


@pytest.mark.parametrize(("draws", "alpha"), [(2000, 0.05), (100, 0.05), (500, 0.1)])
def test_what_keeps_its_level_passes(draws, alpha):
    for seed in range(60):
        assert check_level(draws_of(alpha, seed), draws, alpha) <= draws


def test_what_never_goes_wrong_takes_few_draws():
    assert check_level(lambda _: False, 2000, 0.05) <= 250
    assert check_level(lambda _: (False, False), 500, 0.1) <= 125


def test_each_of_several_things_is_looked_at():
    with pytest.raises(AssertionError, match=r" of "):
        check_level(lambda number: (False, number % 2), 200, 0.1)


def test_each_of_several_things_may_have_a_level_of_its_own():
    rng = np.random.default_rng(0)
    check_level(lambda _: rng.random() <= np.array([0.01, 0.2]), 400, (0.01, 0.2))
    with pytest.raises(AssertionError, match=r" of "):
        check_level(lambda _: rng.random() <= np.array([0.2, 0.2]), 400, (0.01, 0.2))
