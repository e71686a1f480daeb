"""Clusters that share noise, and the bound of ε by a neighbour's noise."""

import numpy as np
import pytest

from ldpaudit.estimators.assumptions.clusters import (
    alike_rows,
    equal_rows,
    merged,
    one_of_each,
    without_large,
)
from ldpaudit.estimators.assumptions.lags import LagTest
from ldpaudit.estimators.assumptions.order import OrderTest
from ldpaudit.estimators.assumptions.shared_noise import (
    agreement_p_value,
    flip_chances,
    largest_agreement,
    neighbour_guesses,
    noise_test,
)
from ldpaudit.estimators.epsilon.guesses import epsilon_lower
from ldpaudit.release import FeatureTable


def table(points: np.ndarray) -> FeatureTable:
    n = len(points)
    return FeatureTable(points.astype(np.float32), np.zeros((n, 0), np.int32), (), points.shape[1])


def households(
    rng: np.random.Generator, homes: int, size: int, epsilon: float, *, shared: bool, k: int = 2
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return true labels, released labels and homes; where shared, each home has one draw."""
    home = np.repeat(np.arange(homes), size)
    truth = rng.integers(0, k, len(home)).astype(np.int32)
    lost = rng.random(homes)[home] if shared else rng.random(len(home))
    lost = lost > np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    other = (truth + rng.integers(1, k, len(home))) % k
    return truth, np.where(lost, other, truth).astype(np.int32), home


def test_the_neighbours_bound_is_valid() -> None:
    """At 90 % each of 200 bounds misses with chance 0.1 at most: more than 41 has chance 1e-6."""
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        truth, released, _ = households(rng, 300, 2, 0.1, shared=False)
        pairs = np.arange(0, 600, 2), np.arange(1, 600, 2)
        counts = neighbour_guesses(truth, released, *pairs, rng)
        missed += epsilon_lower(counts, 0.1).epsilon > 0.1
    assert missed <= 41


@pytest.mark.parametrize("k", [2, 4])
def test_the_neighbours_bound_finds_shared_noise(k: int) -> None:
    rng = np.random.default_rng(0)
    truth, released, _ = households(rng, 1000, 2, 1.0, shared=True, k=k)
    pairs = np.arange(0, 2000, 2), np.arange(1, 2000, 2)
    assert epsilon_lower(neighbour_guesses(truth, released, *pairs, rng), 0.05).epsilon > 2.5


def test_noise_of_one_persons_rows_gives_nothing_away() -> None:
    rng = np.random.default_rng(1)
    truth, released, home = households(rng, 500, 2, 1.0, shared=True)
    truth, flipped = truth[home * 2], released != truth
    released = np.where(flipped, 1 - truth, truth).astype(np.int32)
    pairs = np.arange(0, 1000, 2), np.arange(1, 1000, 2)
    assert neighbour_guesses(truth, released, *pairs, rng).candidates == 0


@pytest.mark.parametrize("shared", [True, False])
def test_groups_that_share_noise(shared: bool) -> None:
    rng = np.random.default_rng(2)
    truth, released, home = households(rng, 400, 4, 1.0, shared=shared)
    order = rng.permutation(len(truth))
    truth, released, home = truth[order], released[order], home[order]
    flips = released != truth
    chances = flip_chances(flips, truth.astype(np.int64))
    order = OrderTest(LagTest(1.0))
    test = noise_test(flips.astype(float), chances, {"homes": home}, rng, order)
    assert (test.p_value < 1e-6) is shared
    assert test.shared(0.05) == (["homes"] if shared else [])


def test_equal_and_nearly_equal_rows() -> None:
    rng = np.random.default_rng(3)
    points = np.repeat(rng.standard_normal((300, 4)), 2, axis=0)
    assert len(np.unique(equal_rows(table(points)))) == 300
    jittered = points + 0.001 * rng.standard_normal(points.shape)
    assert len(np.unique(equal_rows(table(jittered)))) == 600
    codes = alike_rows(table(jittered), rng)
    assert np.mean(codes[::2] == codes[1::2]) > 0.95
    missing = np.array([[np.nan], [np.nan], [1.0], [-0.0], [0.0]])
    assert (
        equal_rows(table(missing)).tolist() == [0, 0, 1, 2, 2]
        or len(np.unique(equal_rows(table(missing)))) == 3
    )


def test_clusters_are_merged_and_large_ones_taken_apart() -> None:
    codes = merged(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2]))
    assert len(np.unique(codes[:3])) == 1
    assert codes[3] != codes[0]
    assert len(np.unique(without_large(np.repeat([0, 1], [31, 30])))) == 32
    chosen = one_of_each(np.array([0, 0, 1, 2, 2]), np.random.default_rng(0))
    assert len(chosen) == 3


def test_agreement_that_no_channel_allows() -> None:
    keep = 0.73
    most = largest_agreement(np.array([[keep, 1 - keep], [1 - keep, keep]]))
    assert most == pytest.approx(keep**2 + (1 - keep) ** 2)
    rng = np.random.default_rng(4)
    labels = (rng.random(2000) < keep).astype(np.int32)
    pairs = np.arange(0, 2000, 2), np.arange(1, 2000, 2)
    assert agreement_p_value(labels, *pairs, most) > 1e-6
    assert agreement_p_value(np.repeat(labels[::2], 2), *pairs, most) < 1e-6
