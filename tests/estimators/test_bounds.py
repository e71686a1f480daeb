"""Every bound, interval and p-value in worlds of known truth: it holds, and finds what is there."""

import zlib

import numpy as np
import pytest
from estimators.honest import INTERVALS, MEANS, OTHERS, P_VALUES, PERSONS
from estimators.worlds import WORLDS, World, allowed, subgroups
from levels import check_level

from ldpaudit.estimators.intervals.bounded_mean import mean_lower

ROWS = [*WORLDS, *PERSONS, *OTHERS, *INTERVALS, *P_VALUES]


LIKE_OTHERS = {"paired (0.9, 0.88)", "risk 1 2", "real, rounded 4.0"}
"""Worlds that differ in a number from one that is faster or harder: run by `make validate`."""


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(one, marks=pytest.mark.validate if one.name in LIKE_OTHERS else ())
        for one in ROWS
    ],
    ids=lambda world: world.name,
)
def test_a_bound_holds_and_finds_most_of_what_is_there(world: World) -> None:
    """At 70 %: one that misses as often as stated fails once in 100,000 times 20 draws.

    One that misses three times as often fails in 96 % of them. ``least`` is of the mean at 90 %.
    """
    seed = zlib.crc32(world.name.encode())
    bounds = [world.draw(np.random.default_rng([seed, draw])) for draw in range(20)]
    assert world.misses(bounds, 0.3) <= allowed(20, 0.3)
    levels = [bounds[0](alpha) for alpha in (0.001, 0.05, 0.3)]
    ends = levels if world.sides == 1 else [low - high for low, high in levels]
    assert ends == sorted(ends)
    if world.least:
        assert np.mean([bound(0.1) for bound in bounds[:12]]) >= world.least * world.truth


@pytest.mark.parametrize("name", MEANS)
def test_a_bound_of_means_holds_nine_times_in_ten(name: str) -> None:
    """At 70 % no level makes it miss three times as often: only near means are candidates."""
    draw, mean = MEANS[name]
    seeds = map(np.random.default_rng, range(150))
    bounds = [mean_lower(np.asarray(draw(rng), np.float64), 0.1, 0.0, 1.0) for rng in seeds]
    assert sum(bound > mean for bound in bounds) <= allowed(150, 0.1)


@pytest.mark.validate
@pytest.mark.parametrize("world", ROWS, ids=lambda world: world.name)
def test_a_bound_misses_no_more_often_than_its_level_in_many_draws(world: World) -> None:
    def missed(draw: int) -> list[bool]:
        return world.missed(world.draw(np.random.default_rng([2000, draw])), 0.05)

    check_level(missed, 2000, 0.05)


@pytest.mark.parametrize(("k", "share", "least"), [(2, 0.1, 2.5), (2, 0.03, 1.5), (4, 0.1, 2.5)])
def test_a_group_in_the_clear_is_found(k: int, share: float, least: float) -> None:
    world = subgroups(k, 1.0, 4000, share)
    assert world.draw(np.random.default_rng(3))(0.005) > least
