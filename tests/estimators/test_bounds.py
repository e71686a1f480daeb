"""Every lower bound of ε: it holds at its level, and finds most of what is there."""

import numpy as np
import pytest
from estimators.worlds import WORLDS, World, subgroups
from scipy.stats import binom

FALSE_ALARM = 1e-7
"""Of each test; all of them together alarm falsely about once in 200,000 runs."""


def misses(world: World, runs: int, alpha: float) -> int:
    return sum(
        world.draw(np.random.default_rng([runs, seed]))(alpha) > world.epsilon + 1e-9
        for seed in range(runs)
    )


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_bound_misses_no_more_often_than_its_level(world: World) -> None:
    assert misses(world, 30, 0.1) <= binom.isf(FALSE_ALARM, 30, 0.1)


@pytest.mark.validate
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_a_bound_misses_no_more_often_than_its_level_in_many_draws(world: World) -> None:
    assert misses(world, 2000, 0.05) <= binom.isf(FALSE_ALARM, 2000, 0.05)


@pytest.mark.parametrize(
    "world", [world for world in WORLDS if world.least], ids=lambda world: world.name
)
def test_a_bound_finds_most_of_what_is_there(world: World) -> None:
    found = [world.draw(np.random.default_rng(seed))(0.1) for seed in range(12)]
    assert np.mean(found) >= world.least * world.epsilon
    levels = [world.draw(np.random.default_rng(0))(alpha) for alpha in (0.001, 0.01, 0.05, 0.2)]
    assert levels == sorted(levels)


@pytest.mark.parametrize(("k", "share", "least"), [(2, 0.1, 2.5), (2, 0.03, 1.5), (4, 0.1, 2.5)])
def test_a_group_in_the_clear_is_found(k: int, share: float, least: float) -> None:
    world = subgroups(k, 1.0, 4000, share)
    assert world.draw(np.random.default_rng(3))(0.005) > least
