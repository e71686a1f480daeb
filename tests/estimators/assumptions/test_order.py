"""Noise that changes along the file is found, and honest orders are not accused."""

import numpy as np
import pytest
from estimators.assumptions.test_noise import flat, flips, labels

from ldpaudit.estimators.assumptions.noise import flip_chances
from ldpaudit.estimators.assumptions.order import (
    OrderTest,
    block_test,
    sharpness_test,
    stretch_test,
)


def drawn(seed: int, n: int = 10_000) -> np.ndarray:
    return flips(np.random.default_rng(seed), n)


@pytest.mark.parametrize(("length", "most"), [(100, 1e-2), (250, 1e-10), (800, 1e-40)])
def test_neighbouring_rows_in_the_clear(length: int, most: float) -> None:
    for seed in range(10):
        outcomes, start = drawn(seed), 731 * seed
        outcomes[start : start + length] = 0
        found = stretch_test(outcomes, flat(outcomes))
        assert found.p_value < most
        assert start - length < found.start < found.stop < start + 2 * length
        assert found.inside < 0.1 < found.usual


def test_a_stretch_with_more_noise_is_found_too_unless_it_is_explained() -> None:
    outcomes = np.sort(drawn(0))
    found = stretch_test(outcomes, flat(outcomes))
    assert found.p_value < 1e-100
    assert found.inside > 0.8
    assert found.stop > 7000
    outcomes = np.sort(drawn(0, 2000))
    every = flat(outcomes), np.clip(outcomes, 0.01, 0.99)
    assert OrderTest.of(outcomes, *every).stretch == stretch_test(outcomes, every[1])
    assert OrderTest.of(outcomes, *every).stretch.p_value > 0.05


@pytest.mark.parametrize(("lost", "size"), [(3, 10), (27, 100), (5, 20), (68, 250)])
def test_an_exact_number_of_changes_in_each_block(lost: int, size: int) -> None:
    rng = np.random.default_rng(lost)
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
    rng = np.random.default_rng(1)
    truth = rng.random(10_000) < 0.1
    changed = np.concatenate([rng.permutation(np.arange(10) < 3) for _ in range(1000)])
    changed = changed if exact else rng.random(10_000) < 0.3
    released = truth ^ changed
    place = np.where(released, released.cumsum() / released.sum(), (~released).cumsum())
    place = np.where(released, place, place / (~released).sum())
    rows = np.argsort(
        {"as drawn": np.arange(10_000), "sorted": released}.get(order, place), kind="stable"
    )
    truth, changed, released = truth[rows], changed[rows], released[rows]
    tests = [
        block_test(changed.astype(float), flip_chances(changed, codes.astype(np.int64), 0.0))
        for codes in (truth, released)
    ]
    found = exact and order == "as drawn"
    assert (max(test.p_value for test in tests) < 1e-6) == found


def test_orders_by_released_labels_and_labels_that_no_feature_foretells_are_not_tested() -> None:
    rng = np.random.default_rng(0)
    released, expected, ends = labels(rng)
    order = np.argsort(released, kind="stable")
    assert sharpness_test(released[order], expected[order], ends).p_value == 1
    side = (rng.random(2000) < 0.5).astype(np.int32)
    assert sharpness_test(side, rng.random(2000), ends).p_value == 1


@pytest.mark.parametrize("shift", [0.0, 1.0, 2.0])
def test_a_site_in_the_clear_shows_without_true_labels(shift: float) -> None:
    """Nine of ten draws at least; a model of the labels is all that it takes."""
    worlds = (
        labels(np.random.default_rng(s), 10_000, slice(3000, 3800), 0, shift) for s in range(20)
    )
    clear = [f for f in (sharpness_test(*world) for world in worlds) if f.p_value <= 0.025]
    assert len(clear) >= 18
    assert all(f.inside > f.usual and f.start < 3800 and f.stop > 3000 for f in clear)


def test_changed_rows_at_the_end_show_without_true_labels() -> None:
    rng = np.random.default_rng(0)
    released, expected, ends = labels(rng)
    agree = (expected > 0.5) == (released == 1)
    order = np.argsort(~agree & (rng.random(len(agree)) < 0.7), kind="stable")
    found = sharpness_test(released[order], expected[order], ends)
    assert found.p_value < 1e-20
    assert found.inside < found.usual
