"""The exact interval of a ratio of shares on pairs: its errors, and its width."""

import math
from functools import cache

import numpy as np
import pytest
from estimators.worlds import allowed

from ldpaudit.extras.kinds.synthetic.counts import PairedSuccesses
from ldpaudit.extras.kinds.synthetic.paired_ratio import Pairs, ratio_interval, ratio_p_value

WORLDS = [
    (100, 0.0, 0.05, 0.01),
    (50, 0.02, 0.1, 0.005),
    (50, 0.0, 0.02, 0.1),
    (500, 0.02, 0.01, 0.001),
    (200, 0.05, 0.2, 0.1),
]
"""Pairs, and the chances of success on both people, the first alone, the second alone."""


def misses(world: tuple[int, float, float, float], draws: int, alpha: float) -> list[int]:
    """Return how often either end of the interval lies beyond the true ratio."""
    n, both, first, second = world
    rng, ratio = np.random.default_rng(n), (1 - both - first) / (1 - both - second)

    @cache
    def refuted(x: int, y: int, z: int, low: bool) -> bool:
        return ratio_p_value(Pairs(x, y, z), ratio, alpha, low=low) <= alpha / 2

    made = rng.multinomial(n, [both, first, second, 1 - both - first - second], draws).tolist()
    return [sum(refuted(c, b, d, low) for _, b, c, d in made) for low in (True, False)]


@pytest.mark.parametrize("world", WORLDS[:3])
def test_ends_miss_no_more_often_than_they_say(world: tuple[int, float, float, float]) -> None:
    assert max(misses(world, 200, 0.1)) <= allowed(200, 0.05)


@pytest.mark.validate
@pytest.mark.parametrize("world", [*WORLDS, (500, 0.02, 0.05, 0.01), (3000, 0.2, 0.2, 0.1)])
def test_ends_miss_no_more_often_in_3000_draws(world: tuple[int, float, float, float]) -> None:
    assert max(misses(world, 3_000, 0.1)) <= allowed(3_000, 0.05)


def test_it_is_nearly_as_narrow_as_the_normal_approximation() -> None:
    """Three Clopper–Pearson intervals in place of one were 1.8 times as wide."""
    rng, wide = np.random.default_rng(1), []
    for both, first, second, rest in rng.multinomial(500, [0.02, 0.05, 0.01, 0.92], 6).tolist():
        low, high = PairedSuccesses(500, both, first, second).interval(0.05)
        # The delta method of 1 − (second + neither)/(first + neither).
        a, c = (second + rest) / 500, (first + rest) / 500
        spread = a / c**2 + (a / c) ** 2 * c / c**2 - 2 * (a / c) * (rest / 500) / c**2
        wide.append((high - low) / (2 * 1.96 * math.sqrt(spread / 500)))
        assert low < 1 - a / c < high
    assert np.mean(wide) < 1.2


def test_extreme_counts_have_ends() -> None:
    assert ratio_interval(Pairs(5, 0, 0), 0.05) == (0.0, math.inf)
    low, high = ratio_interval(Pairs(0, 0, 100), 0.05)
    assert 0.9 < low < 1 < high < 1.1
    assert ratio_interval(Pairs(0, 20, 0), 0.05)[0] == 0
