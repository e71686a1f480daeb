"""Bets that rows share noise, or that it changes along the file: exact, and sure where it does.

That honest noise is seldom accused: ``estimators/test_bounds.py``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from estimators.worlds import CHANCE, Rng, flat, flips, labels, people_of_homes

from ldpaudit.estimators.assumptions.noise import (
    LagTest,
    agreement_p_value,
    bet_on_pairs,
    bet_on_rows,
    disjoint_pairs,
    flip_chances,
    lag_test,
    neighbour_guesses,
    of_some,
    p_value,
)
from ldpaudit.estimators.assumptions.order import (
    ORDER_SHARES,
    NoiseTest,
    OrderTest,
    Stretch,
    block_test,
    least_clear,
    noise_test,
    sharpness_test,
    stretch_test,
)
from ldpaudit.estimators.epsilon.guesses import epsilon_lower
from ldpaudit.release import FloatArray, IndexArray


def seeded(seed: int) -> Rng:
    return np.random.default_rng(seed)


def lags_of(outcomes: np.ndarray) -> LagTest:
    return lag_test(outcomes, flat(outcomes))


def pairs(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.arange(0, n, 2), np.arange(1, n, 2)


def test_a_dependence_and_shared_noise_are_found() -> None:
    rng = seeded(0)
    tilt, same = rng.choice([-0.5, 0.5], 1000), np.zeros(1000, dtype=np.int64)
    outcomes = (rng.random(1000) < 1 / (1 + np.exp(-tilt))).astype(np.int32)
    assert p_value(bet_on_rows(outcomes, same, tilt)) < 1e-6
    assert p_value(bet_on_rows(outcomes, same, 0 * tilt)) > 0.999
    shared, chances = np.repeat((rng.random(100) < 0.1).astype(float), 2), np.full(200, 0.1)
    of_homes = disjoint_pairs(np.repeat(np.arange(100), 2), rng)
    assert p_value(bet_on_pairs(shared, chances, *of_homes)) < 1e-6
    clusters = rng.integers(0, 40, 300)
    first, second = disjoint_pairs(clusters, rng)
    assert (clusters[first] == clusters[second]).all()
    paired = len(np.unique(np.r_[first, second]))
    assert paired == 2 * len(first) == 2 * (np.bincount(clusters) // 2).sum()


@pytest.mark.parametrize("period", [20, 1000])
def test_noise_that_repeats(period: int) -> None:
    found = lags_of(flips(seeded(0), 4000, period=period))
    assert found.p_value < 1e-9
    assert (found.period, found.run) == (period, 0)
    assert len(found.apart(np.arange(4000))) == period
    first, second = found.pairs(4000)
    assert (second - first == period).all()


@pytest.mark.parametrize("size", [4, 20])
def test_runs_of_one_draw(size: int) -> None:
    """In 600 rows nine of ten draws give most of the block of one draw, and seldom two of them."""
    outcomes = flips(seeded(0), 8000, run=size)
    found = lags_of(outcomes)
    assert found.p_value < 1e-9
    assert found.period == 0
    assert size - 3 <= found.run <= 2 * size
    assert lags_of(outcomes[found.apart(np.arange(8000))]).p_value > 0.05
    runs = [lags_of(flips(seeded(s), 600, run=size)).run for s in range(20)]
    assert np.mean(np.array(runs) >= 0.6 * (size - 1)) >= 0.9
    assert np.median(runs) <= 2 * size


def test_a_short_tables_period_is_found() -> None:
    """Not one of its multiples, where few pairs make chance look strong."""
    found = [lags_of(flips(seeded(s), 600, period=10)) for s in range(20)]
    periods = [test.period for test in found if test.p_value <= 0.05]
    assert np.mean(np.array(periods) <= 10) >= 0.8
    assert all((period and period % 5 == 0) or period <= 10 for period in periods)
    assert lags_of(np.zeros(40)).p_value == lags_of(np.zeros(400)).p_value == 1


def test_rows_that_take_no_part_keep_their_places() -> None:
    """Every other row of a sequence with period 10 repeats after 10 places, not after 5."""
    outcomes, rows = flips(seeded(1), 2000, period=10), np.arange(0, 2000, 2)
    found = lag_test(outcomes, of_some(flat(outcomes), rows))
    assert found.period == 10
    assert found.apart(rows).tolist() == [0, 2, 4, 6, 8]
    chances = np.where(np.arange(2000) % 2, CHANCE, 0.0)
    other = np.where(chances > 0, outcomes, 1 - outcomes)
    assert OrderTest.of(outcomes, chances) == OrderTest.of(other, chances)


def test_a_file_sorted_by_its_released_labels_shares_no_noise() -> None:
    """Given the true label alone noise comes in two blocks; given the released one it does not."""
    rng = seeded(0)
    truth = (rng.random(40_000) < 0.4).astype(np.int64)
    released = truth ^ (rng.random(40_000) < CHANCE)
    order = np.argsort(released, kind="stable")
    truth, released = truth[order], released[order]
    flipped = truth != released
    chances = [flip_chances(flipped, codes) for codes in (truth, released)]
    assert lag_test(flipped.astype(float), chances[0]).p_value < 0.001
    assert least_clear(lag_test, flipped.astype(float), *chances).p_value > 0.05


def test_the_neighbours_bound_finds_shared_noise_but_not_that_of_one_person() -> None:
    for k in (2, 4):
        rng = seeded(0)
        truth, released, home = people_of_homes(rng, 1000, 2, 1.0, shared=True, k=k)
        found = neighbour_guesses(truth, released, *pairs(2000), rng)
        assert epsilon_lower(found, 0.05).epsilon > 2.5
    own = truth[2 * home]
    released = np.where(released != truth, 1 - own, own).astype(np.int32)
    assert neighbour_guesses(own, released, *pairs(2000), rng).candidates == 0


def bets(outcomes: Any, chances: FloatArray) -> Callable[[str, IndexArray, IndexArray], float]:
    return lambda _, first, second: bet_on_pairs(outcomes.astype(float), chances, first, second)


@pytest.mark.parametrize("shared", [True, False])
def test_groups_that_share_noise(shared: bool) -> None:
    rng = seeded(2)
    truth, released, home = people_of_homes(rng, 400, 4, 1.0, shared=shared)
    rows = rng.permutation(len(truth))
    truth, flipped, home = truth[rows], (released != truth)[rows], home[rows]
    chances = flip_chances(flipped, truth.astype(np.int64))
    test = noise_test(bets(flipped, chances), {"homes": home}, rng, OrderTest(), {"homes": 0.5})
    assert (test.p_value < 1e-6) is shared
    assert test.shared(0.05) == (["homes"] if shared else [])


def test_the_smallest_of_several_ways_to_share_noise() -> None:
    rng = seeded(0)
    outcomes, chances = (rng.random(400) < 0.3).astype(float), np.full(400, 0.3)
    kinds = {"a": np.repeat(np.arange(200), 2), "few": np.arange(400)}
    order = OrderTest(LagTest(0.2), Stretch(0.11))
    found = noise_test(bets(outcomes, chances), kinds, rng, order, dict.fromkeys(kinds, 0.25))
    assert set(found.by_clusters) == {"a"}
    # A quarter of the level for lags, an eighth for stretches, a quarter for each kind.
    assert found.p_value == min(4 * 0.2, 8 * 0.11, 4 * found.by_clusters["a"], 1.0)
    shared = NoiseTest({"a": 0.01, "b": 0.02}, ORDER_SHARES | {"a": 0.4, "b": 0.1}, order)
    assert shared.shared(0.03) == ["a"]


def test_agreement_that_no_channel_allows() -> None:
    keep, rng = 0.73, seeded(4)
    most = keep**2 + (1 - keep) ** 2
    drawn = (rng.random(2000) < keep).astype(np.int32)
    assert agreement_p_value(drawn, *pairs(2000), most) > 1e-6
    assert agreement_p_value(np.repeat(drawn[::2], 2), *pairs(2000), most) < 1e-6


@pytest.mark.parametrize(("length", "most"), [(100, 1e-2), (250, 1e-10), (800, 1e-40)])
def test_neighbouring_rows_in_the_clear(length: int, most: float) -> None:
    for seed in range(5):
        outcomes, start = flips(seeded(seed), 10_000), 731 * seed
        outcomes[start : start + length] = 0
        found = stretch_test(outcomes, flat(outcomes))
        assert found.p_value < most
        assert start - length < found.start < found.stop < start + 2 * length
        assert found.inside < 0.1 < found.usual


def test_a_stretch_with_more_noise_is_found_too_unless_it_is_explained() -> None:
    outcomes = np.sort(flips(seeded(0), 10_000))
    found = stretch_test(outcomes, flat(outcomes))
    assert found.p_value < 1e-100
    assert found.inside > 0.8
    assert found.stop > 7000
    outcomes = np.sort(flips(seeded(0), 2000))
    every = flat(outcomes), np.clip(outcomes, 0.01, 0.99)
    explained = OrderTest.of(outcomes, *every).stretch
    assert explained == stretch_test(outcomes, every[1])
    assert explained.p_value > 0.05


@pytest.mark.parametrize(("lost", "size"), [(3, 10), (27, 100), (5, 20), (68, 250)])
def test_an_exact_number_of_changes_in_each_block(lost: int, size: int) -> None:
    rng = seeded(lost)
    block = np.r_[np.ones(lost), np.zeros(size - lost)]
    outcomes = np.concatenate([rng.permutation(block) for _ in range(10_000 // size)])
    found = block_test(outcomes, flat(outcomes))
    assert found.p_value < 1e-6
    assert found.size == size


@pytest.mark.parametrize("order", ["as drawn", "sorted", "interleaved"])
@pytest.mark.parametrize("exact", [True, False])
def test_blocks_of_a_rare_label_and_orders_made_from_released_labels(
    exact: bool, order: str
) -> None:
    """Exact counts are found also by the shares of each released label; orders share no noise."""
    rng = seeded(1)
    truth = rng.random(10_000) < 0.1
    changed = np.concatenate([rng.permutation(np.arange(10) < 3) for _ in range(1000)])
    changed = changed if exact else rng.random(10_000) < 0.3
    released = truth ^ changed
    place = np.where(released, released.cumsum() / released.sum(), (~released).cumsum())
    place = np.where(released, place, place / (~released).sum())
    by = {"as drawn": np.arange(10_000), "sorted": released}.get(order, place)
    rows = np.argsort(by, kind="stable")
    tests = [
        block_test(changed[rows].astype(float), flip_chances(changed[rows], codes[rows] * 1, 0.0))
        for codes in (truth, released)
    ]
    found = exact and order == "as drawn"
    assert (max(test.p_value for test in tests) < 1e-6) == found


def test_orders_by_released_labels_and_labels_that_no_feature_foretells_are_not_tested() -> None:
    rng = seeded(0)
    released, expected, ends = labels(rng)
    order = np.argsort(released, kind="stable")
    assert sharpness_test(released[order], expected[order], ends).p_value == 1
    side = (rng.random(2000) < 0.5).astype(np.int32)
    assert sharpness_test(side, rng.random(2000), ends).p_value == 1
    # Changed rows at the end show without true labels.
    agree = (expected > 0.5) == (released == 1)
    order = np.argsort(~agree & (rng.random(len(agree)) < 0.7), kind="stable")
    found = sharpness_test(released[order], expected[order], ends)
    assert found.p_value < 1e-20
    assert found.inside < found.usual


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_a_site_in_the_clear_shows_without_true_labels(shift: float) -> None:
    """Nine of ten draws at least; a model of the labels is all that it takes."""
    worlds = (labels(seeded(s), 10_000, slice(3000, 3800), 0, shift) for s in range(10))
    clear = [f for f in (sharpness_test(*world) for world in worlds) if f.p_value <= 0.025]
    assert len(clear) >= 9
    assert all(f.inside > f.usual and f.start < 3800 and f.stop > 3000 for f in clear)
