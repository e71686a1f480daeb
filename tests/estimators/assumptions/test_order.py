"""Noise that changes along the file is found, and honest noise is not accused."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.assumptions.clusters import FEW_VALUES, equal_ranks
from ldpaudit.estimators.assumptions.order import (
    OrderTest,
    block_test,
    sharpness_test,
    stretch_test,
)
from ldpaudit.release import FeatureTable

CHANCE = 0.27


def flat(outcomes: np.ndarray) -> np.ndarray:
    return np.full(len(outcomes), outcomes.mean())


def flips(seed: int, n: int = 10_000) -> np.ndarray:
    return (np.random.default_rng(seed).random(n) < CHANCE).astype(np.float64)


@pytest.mark.parametrize("n", [100, 600, pytest.param(10_000, marks=pytest.mark.validate)])
@pytest.mark.parametrize("test", [stretch_test, block_test])
def test_honest_noise_is_seldom_accused(test: Callable[..., object], n: int) -> None:
    """P(p ≤ 0.05) ≤ 0.05: of 200 draws more than 27 have a chance of 1e-6."""
    found = [test(flips(s, n), flat(flips(s, n))) for s in range(200)]
    assert sum(one.p_value <= 0.05 for one in found) <= 27  # type: ignore[attr-defined]


def test_unequal_chances_are_no_stretch() -> None:
    """The chance changes along the file, and is known: of 200 draws more than 27 have 1e-6."""
    chances = np.linspace(0.05, 0.6, 3000)
    draws = (np.random.default_rng(s).random(3000) < chances for s in range(200))
    assert sum(stretch_test(draw.astype(float), chances).p_value <= 0.05 for draw in draws) <= 27


@pytest.mark.parametrize(("length", "most"), [(100, 1e-2), (250, 1e-10), (800, 1e-40)])
def test_neighbouring_rows_in_the_clear(length: int, most: float) -> None:
    for seed in range(10):
        outcomes, start = flips(seed), 731 * seed
        outcomes[start : start + length] = 0
        found = stretch_test(outcomes, flat(outcomes))
        assert found.p_value < most
        assert start - length < found.start < found.stop < start + 2 * length
        assert found.inside < 0.1 < found.usual


def test_a_stretch_with_more_noise_is_found_too() -> None:
    outcomes = np.sort(flips(0))
    found = stretch_test(outcomes, flat(outcomes))
    assert found.p_value < 1e-100
    assert found.inside > 0.8
    assert found.stop > 7000


@pytest.mark.parametrize(("lost", "size"), [(3, 10), (27, 100), (5, 20), (68, 250)])
def test_an_exact_number_of_changes_in_each_block(lost: int, size: int) -> None:
    rng = np.random.default_rng(lost)
    block = np.r_[np.ones(lost), np.zeros(size - lost)]
    outcomes = np.concatenate([rng.permutation(block) for _ in range(10_000 // size)])
    found = block_test(outcomes, flat(outcomes))
    assert found.p_value < 1e-6
    assert found.size == size


def test_rows_that_take_no_part_change_no_test() -> None:
    outcomes = flips(3, 2000)
    chances = np.where(np.arange(2000) % 2, CHANCE, 0.0)
    other = np.where(chances > 0, outcomes, 1 - outcomes)
    assert OrderTest.of(outcomes, chances) == OrderTest.of(other, chances)


def test_a_short_file_is_not_tested() -> None:
    assert stretch_test(np.ones(60), np.full(60, 0.3)).p_value == 1
    assert block_test(np.ones(60), np.full(60, 0.3)).p_value == 1


def test_the_less_clear_of_two_orders() -> None:
    """What either of two ways to explain the order explains is not found."""
    outcomes = np.sort(flips(0, 2000))
    explained = np.clip(outcomes, 0.01, 0.99)
    tests = [OrderTest.of(outcomes, chances) for chances in (flat(outcomes), explained)]
    assert tests[0].stretch.p_value < 1e-20
    assert tests[0].least_clear(tests[1]).stretch.p_value == tests[1].stretch.p_value > 0.05


def test_tails_of_a_window_are_binomial() -> None:
    """All 32 rows of the first window changed: no window is less likely under its chances."""
    outcomes, chances = np.zeros(64), np.full(64, 0.01)
    outcomes[:32] = 1
    windows = 5
    assert stretch_test(outcomes, chances).p_value == pytest.approx(
        2 * windows * binom.sf(31, 32, 0.01)
    )


def labels(
    seed: int, n: int = 10_000, clear: slice = slice(0, 0), drift: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return released labels, and their chances given features by a model of all rows."""
    rng = np.random.default_rng(seed)
    score = rng.normal(0, 2, n) + drift * np.linspace(-1, 1, n)
    truth = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int32)
    lost = rng.random(n) < CHANCE
    lost[clear] = False
    expected = CHANCE + (1 - 2 * CHANCE) / (1 + np.exp(-score))
    return np.where(lost, 1 - truth, truth).astype(np.int32), expected


@pytest.mark.parametrize("drift", [0.0, 2.0])
def test_labels_that_become_more_frequent_are_honest(drift: float) -> None:
    """Of 100 draws more than 17 at 0.05 have a chance of 1e-5; few come near the margins."""
    found = [sharpness_test(*labels(s, 3000, drift=drift)).p_value for s in range(100)]
    assert sum(p <= 0.05 for p in found) <= 17


def test_a_file_sorted_by_released_labels_is_honest() -> None:
    released, expected = labels(0)
    order = np.argsort(released, kind="stable")
    assert sharpness_test(released[order], expected[order]).p_value == 1


def test_a_site_in_the_clear_shows_without_true_labels() -> None:
    """Nine of ten draws at least; a model of the labels is all that it takes."""
    found = [sharpness_test(*labels(s, clear=slice(3000, 3800))) for s in range(20)]
    clear = [f for f in found if f.p_value <= 0.025]
    assert len(clear) >= 18
    assert all(f.inside > f.usual and f.start < 3800 and f.stop > 3000 for f in clear)


def test_changed_rows_at_the_end_show_without_true_labels() -> None:
    rng = np.random.default_rng(0)
    released, expected = labels(0)
    agree = (expected > 0.5) == (released == 1)
    order = np.argsort(~agree & (rng.random(len(agree)) < 0.7), kind="stable")
    found = sharpness_test(released[order], expected[order])
    assert found.p_value < 1e-20
    assert found.inside < found.usual


def test_labels_that_no_feature_foretells_are_not_tested() -> None:
    rng = np.random.default_rng(0)
    assert sharpness_test((rng.random(2000) < 0.5).astype(np.int32), rng.random(2000)).p_value == 1


def test_rows_of_equal_rank_in_columns_of_few_values() -> None:
    numeric = np.array([[1, 0.5], [2, 1.5], [1, 2.5], [2, 3.5], [2, 4.5]], dtype=np.float32)
    numeric = np.concatenate([numeric, np.zeros((5, 1), np.float32)], axis=1)
    codes = np.array([[0], [0], [-1], [-1], [0]], dtype=np.int32)
    found = dict(equal_ranks(FeatureTable(numeric, codes, (1,), 4)))
    assert found[0].tolist() == [0, 0, 1, 1, 2]
    assert found[3].tolist() == [0, 1, 0, 1, 2]
    assert 2 not in found
    many = np.arange(FEW_VALUES + 1, dtype=np.float32)[:, None]
    nothing = np.empty((len(many), 0), np.int32)
    assert not list(equal_ranks(FeatureTable(many, nothing, (), 1)))
