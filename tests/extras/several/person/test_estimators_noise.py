"""Does noise of two answers go together? Columns and releases, with and without true labels."""

from typing import Any

import numpy as np
import pytest
from extras.several.person.worlds import (
    Repeated,
    World,
    drawn,
    shared_coin,
    shared_uniform,
)
from scipy.stats import binom, fisher_exact

from ldpaudit.arrays import IndexArray
from ldpaudit.extras.several.person.estimators import (
    best_guess,
    estimated_prior,
    guesses,
    log_likelihoods,
)
from ldpaudit.extras.several.person.noise_tests import (
    Line,
    fresh_p_value,
    least_changed,
    noise_of_other_rows,
    paired_p_value,
    remembered_mixture,
    remembered_share_lower,
    shared_noise,
)
from ldpaudit.release import label_table


def of_columns(world: World, n: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    labels = world.labels(n, rng)
    same = [len(c) == c.shape[1] for c in world.channels]
    found = shared_noise(labels, world.release(labels, rng), same_labels=same)
    assert found.p_value is not None
    return found.p_value


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
def test_draws_that_columns_share_are_found_in_every_draw(world: World) -> None:
    assert max(of_columns(world, 3_000, seed) for seed in range(3)) < 0.001


@pytest.mark.parametrize(
    ("same", "options", "found"),
    [
        (True, {"classes": 2, "remembered": 1.0}, True),
        (True, {"classes": 6, "remembered": 1.0}, True),
        (True, {"classes": 6}, False),
        (False, {"changing": 0.5, "reused": True, "n": 2_000}, True),
        (False, {"changing": 0.5, "remembered": 1.0, "n": 2_000}, False),
    ],
)
def test_remembered_and_reused_noise_is_found(same: bool, options: dict, found: bool) -> None:
    made = drawn(np.random.default_rng(1), **{"changing": 0.2, "n": 1_000} | options)
    known: Any = {"same_labels": [True] * 2, "unchanged": same}
    p_value = shared_noise(made.truth, made.released, **known).p_value or 0.0
    assert (p_value < 1e-9) == found
    assert found or p_value > 1e-4


def line(labels: Any, outputs: Any, whose: Any = None) -> Line:
    n = len(labels)
    people = np.arange(n) if whose is None else whose
    return Line(labels.astype(np.int32), outputs.astype(np.int32), np.zeros(n, np.int64), people)


def of_other_rows(seed: int, moved: Any = None, n: int = 2_000) -> float:
    """Return the p-value where the noise of a second answer is the first's, moved, or its own."""
    rng = np.random.default_rng(seed)
    labels, uniform = rng.integers(0, 2, (2, n)), rng.random(n)
    others = rng.random(n) if moved is None else moved(uniform)
    first = np.where(uniform < 0.3, 1 - labels[0], labels[0])
    second = np.where(others < 0.3, 1 - labels[1], labels[1])
    found = noise_of_other_rows(line(labels[0], first), line(labels[1], second), (True, True))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "moved",
    [
        lambda u: np.roll(u, 1),
        lambda u: np.roll(u, -700),
        lambda u: u[::-1],
        lambda u: np.roll(u[::-1], 40),
        lambda u: 1 - np.roll(u, 3),
    ],
)
def test_random_numbers_that_serve_other_rows_of_another_answer_are_found(moved: Any) -> None:
    assert max(of_other_rows(seed, moved) for seed in range(3)) < 1e-6


def test_noise_of_its_own_is_refuted_as_seldom_as_stated() -> None:
    draws, level = 60, 0.2
    wrong = sum(of_other_rows(seed, n=400) <= level for seed in range(draws))
    assert wrong <= binom.isf(1e-5, draws, level)


@pytest.mark.parametrize("order", [lambda a, b: 2 * a + b, lambda a, b: 2 * b + a, lambda a, b: a])
def test_a_file_in_an_order_of_released_labels_shares_no_noise(order: Any) -> None:
    """Sorting rows by what was released of them reveals nothing more."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        labels = rng.integers(0, 2, (2, 2_000))
        released = np.where(rng.random((2, 2_000)) < 0.3, 1 - labels, labels)
        rows = np.argsort(order(*released), kind="stable")
        lines = [line(labels[c][rows], released[c][rows]) for c in range(2)]
        found = noise_of_other_rows(lines[0], lines[1], (True, True))
        assert found is None or found > 0.001


def test_remembered_answers_of_one_person_are_no_noise_of_other_rows() -> None:
    """People leave: later rows of the second file are the same people's, a few places before."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, 1_500)
    released = np.where(rng.random(1_500) < 0.3, 1 - labels, labels)
    left = np.delete(np.arange(1_500), [0, 1, 500])
    every = line(labels, released)
    fewer = line(labels[left], released[left], left)
    found = noise_of_other_rows(every, fewer, (True, True))
    assert found is not None
    assert found > 0.01


def test_one_pair_among_several_columns_is_found() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (3_000, 4)).astype(np.int32)
    flips = rng.random((3_000, 4)) < 0.3
    flips[:, 3] = flips[:, 1]
    test = shared_noise(labels, labels ^ flips, same_labels=[True] * 4)
    assert test.p_value is not None
    assert test.p_value < 1e-6
    apart = shared_noise(labels, labels ^ flips, same_labels=[True] * 4, pairs=[(0, 1)])
    assert apart.p_value is not None
    assert apart.p_value > 1e-4
    labels[:2_990, 1] = -1  # Few people have both answers.
    few = shared_noise(labels, labels ^ flips, same_labels=[True] * 4, pairs=[(1, 3)])
    assert few.p_value is None


def test_channels_by_stratum_are_no_shared_draws() -> None:
    rng = np.random.default_rng(0)
    strata = rng.integers(0, 2, 5_000)
    labels = rng.integers(0, 2, (5_000, 2)).astype(np.int32)
    released = labels ^ (rng.random((5_000, 2)) < np.where(strata, 0.45, 0.05)[:, None])
    blind = shared_noise(labels, released, same_labels=[True] * 2).p_value
    told = shared_noise(labels, released, strata, same_labels=[True] * 2).p_value
    assert blind is not None
    assert told is not None
    assert blind < 1e-6 < 0.01 < told


def test_the_p_value_is_exact() -> None:
    rng = np.random.default_rng(2)
    for size in (8, 30):
        first, second = rng.random(size) < 0.4, rng.random(size) < 0.6
        table = [[np.sum((first == a) & (second == b)) for b in (1, 0)] for a in (1, 0)]
        tails = [fisher_exact(table, alternative=side)[1] for side in ("less", "greater")]
        ours = paired_p_value(first, second, np.zeros(size, np.int64))
        assert ours == pytest.approx(min(2 * min(tails), 1.0), rel=1e-6)
    none = np.zeros(100, bool)
    assert paired_p_value(none, none, np.zeros(100, np.int64)) == 1.0


def counts_of(made: Repeated) -> IndexArray:
    return label_table(*made.released[:, :2].T, *made.channel.shape)


def test_without_true_labels_remembered_noise_cannot_be_fresh() -> None:
    made = drawn(np.random.default_rng(4), remembered=1.0, changing=0.1)
    counts, one = counts_of(made), made.channel
    assert (fresh_p_value(counts, one, one) or 0) < 1e-9
    assert 0.7 < remembered_share_lower(int(np.trace(counts)), 5_000, one, one, 0.05) < 0.95


def test_without_true_labels_fresh_noise_would_need_many_changes() -> None:
    made = drawn(np.random.default_rng(5), changing=0.05)
    one, counts = made.channel, counts_of(made)
    assert (fresh_p_value(counts, one, one) or 0) > 1e-3
    mixtures = np.kron(one, one), remembered_mixture(one, one)
    fresh, remembered = (least_changed(counts, mixture, 0.05) for mixture in mixtures)
    assert (fresh is not None, remembered is not None) == (True, True)
    assert (fresh or 0) < 0.06 < 0.5 < (remembered or 0)


def test_votes_wear_the_noise_away() -> None:
    made = drawn(np.random.default_rng(6), n=2_000, releases=8)
    right = []
    for t in (1, 8):
        channels = [made.channel] * t
        prior = estimated_prior(log_likelihoods(channels, made.released[:, :t]))
        found = guesses(channels, made.released[:, :t], prior)
        right.append((found == made.truth[:, 0]).mean())
    assert right[0] < 0.76
    assert right[1] > 0.92
    exact = best_guess([made.channel] * 2)
    assert exact is not None
    assert np.isclose(exact, np.exp(1) / (1 + np.exp(1)))
