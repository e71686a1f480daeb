from itertools import product

import numpy as np
import pytest
from estimators.person.worlds import (
    HONEST,
    World,
    independent,
    shared_coin,
    shared_uniform,
)
from scipy.stats import binom, fisher_exact

from ldpaudit.estimators.person.shared_draws import high_outputs, paired_p_value, shared_draws

FALSE_ALARM = 1e-6
MANY = independent((1.0, 1.0), (12, 9), "correlated")


def p_value(world: World, n: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    labels = world.labels(n, rng)
    same = [len(c) == c.shape[1] for c in world.channels]
    return shared_draws(labels, world.release(labels, rng), np.zeros(n, np.int64), same).p_value


@pytest.mark.parametrize("world", [HONEST[1], MANY], ids=lambda w: w.name)
def test_honest_draws_are_accused_no_more_often_than_the_level(world):
    found = sum(p_value(world, 600, seed) <= 0.05 for seed in range(40))
    assert found <= binom.isf(FALSE_ALARM, 40, 0.05)


@pytest.mark.validate
@pytest.mark.parametrize("world", [*HONEST, MANY], ids=lambda w: w.name)
@pytest.mark.parametrize("level", [0.01, 0.05, 0.3])
def test_honest_draws_are_accused_no_more_often_than_the_level_over_500(world, level):
    found = sum(p_value(world, 600, seed) <= level for seed in range(500))
    assert found <= binom.isf(FALSE_ALARM, 500, level)


@pytest.mark.parametrize(
    "world",
    [
        shared_uniform((1.0, 1.0), (2, 2)),
        shared_uniform((1.0, 0.5), (2, 5)),
        shared_uniform((1.0, 1.0), (8, 12)),
        shared_coin(1.0, (2, 2)),
        shared_coin(1.0, (4, 4)),
    ],
    ids=lambda w: f"{w.name} {[len(c) for c in w.channels]}",
)
def test_shared_draws_are_found_in_every_draw(world):
    assert max(p_value(world, 3_000, seed) for seed in range(5)) < 0.001


def test_one_pair_among_several_columns_is_named():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (3_000, 4)).astype(np.int32)
    flips = rng.random((3_000, 4)) < 0.3
    flips[:, 3] = flips[:, 1]
    test = shared_draws(labels, labels ^ flips, np.zeros(3_000, np.int64), [True] * 4)
    assert test.pair == (1, 3)
    assert test.p_value < 1e-6


def test_channels_by_stratum_are_no_shared_draws():
    rng = np.random.default_rng(0)
    strata = rng.integers(0, 2, 5_000)
    labels = rng.integers(0, 2, (5_000, 2)).astype(np.int32)
    released = labels ^ (rng.random((5_000, 2)) < np.where(strata, 0.45, 0.05)[:, None])
    blind = shared_draws(labels, released, 0 * strata, [True] * 2)
    told = shared_draws(labels, released, strata, [True] * 2)
    assert blind.p_value < 1e-6 < 0.01 < told.p_value


def test_the_p_value_is_exact():
    rng = np.random.default_rng(2)
    for size in (8, 30):
        first, second = rng.random(size) < 0.4, rng.random(size) < 0.6
        tails = [
            fisher_exact(
                [
                    [np.sum((first == a) & (second == b)) for b in (True, False)]
                    for a in (True, False)
                ],
                alternative=side,
            )[1]
            for side in ("less", "greater")
        ]
        ours = paired_p_value(first, second, np.zeros(size, np.int64))
        assert ours == pytest.approx(min(2 * min(tails), 1.0), rel=1e-6)


def test_the_p_value_of_several_tables_is_that_of_all_orders():
    first = np.array([1, 1, 0, 0, 1, 0], bool)
    second = np.array([1, 0, 0, 1, 1, 0], bool)
    alike = np.array([0, 0, 0, 0, 1, 1])
    laws = []
    for one in product(range(2), repeat=6):
        other = np.array(one, bool)
        if all(other[alike == g].sum() == second[alike == g].sum() for g in (0, 1)):
            laws.append(int((first & other).sum()))
    seen = int((first & second).sum())
    tails = np.mean(np.array(laws) >= seen), np.mean(np.array(laws) <= seen)
    assert paired_p_value(first, second, alike) == pytest.approx(min(2 * min(tails), 1.0))


@pytest.mark.parametrize("signs", [(0.0, 0.0, 0.0, 1.0), (1.0, -1.0, 0.0, 0.0)], ids=str)
def test_draws_shared_by_few_labels_or_in_turn_are_found(signs):
    rng = np.random.default_rng(3)
    alike = rng.choice(4, 4_000, p=[0.47, 0.47, 0.03, 0.03])
    draw = rng.random(4_000)
    other = np.choose((np.array(signs)[alike] + 1).astype(int), [1 - draw, rng.random(4_000), draw])
    assert paired_p_value(draw < 0.5, other < 0.5, alike) < 1e-6


def test_outputs_are_parted_near_the_median_of_rows_with_the_same_label():
    high = high_outputs(np.array([0, 0, 0, 0, 1, 1, 1]), np.array([0, 0, 1, 2, 5, 7, 7]))
    assert high.tolist() == [False, False, True, True, False, True, True]


@pytest.mark.parametrize(
    ("outputs", "high"),
    [([0, 0, 0, 1], [0, 0, 0, 1]), ([0, 1, 1, 1], [0, 1, 1, 1]), ([0, 0, 3, 3], [0, 0, 1, 1])],
)
def test_outputs_are_parted_most_evenly(outputs, high):
    found = high_outputs(np.zeros(4, np.int64), np.array(outputs))
    assert found.astype(int).tolist() == high
