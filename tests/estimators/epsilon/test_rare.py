"""Rare classes: the p-value is valid, and few people in the clear are found."""

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.epsilon.rare import RareClasses, rare_classes, usual_outputs


def randomized_response(k: int, epsilon: float) -> np.ndarray:
    weights = np.ones((k, k))
    np.fill_diagonal(weights, np.exp(epsilon))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def drawn(sizes: list[int], channel: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.array([rng.multinomial(n, row) for n, row in zip(sizes, channel, strict=True)])


def examined(counts: np.ndarray, channel: np.ndarray, epsilon: float) -> RareClasses:
    found = rare_classes(counts, channel, epsilon, channel.argmax(axis=1))
    assert found is not None
    return found


def in_the_clear(people: int, epsilon: float, seed: int) -> RareClasses:
    channel = randomized_response(3, epsilon)
    counts = drawn([2500, 2500 - people, people], channel, np.random.default_rng(seed))
    counts[2] = [0, 0, people]
    return examined(counts, channel, epsilon)


ASYMMETRIC = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5], [0.1, 0.1, 0.8]])


@pytest.mark.parametrize(
    ("sizes", "channel", "epsilon"),
    [
        ([2500, 2491, 9], randomized_response(3, 0.1), 0.1),
        ([2500, 2492, 8], randomized_response(3, 1.0), 1.0),
        ([2500, 2400, 12, 11, 8], randomized_response(5, 1.0), 1.0),
        ([60, 50, *range(3, 33)], randomized_response(32, 1.0), 1.0),
        ([900, 3, 2, 1], randomized_response(4, 2.0), 2.0),
        ([40, 7], randomized_response(2, 0.5), 0.5),
        ([900, 30, 20, 10], ASYMMETRIC, float(np.log(8))),
    ],
)
def test_honest_releases_are_held_up_no_more_often_than_the_level_says(
    sizes: list[int], channel: np.ndarray, epsilon: float
) -> None:
    rng, runs = np.random.default_rng(len(sizes)), 500
    p_values = [examined(drawn(sizes, channel, rng), channel, epsilon).p_value for _ in range(runs)]
    for alpha in (0.01, 0.05, 0.3):
        # False alarm 3e-8 each, below 1e-6 in all.
        assert np.sum(np.array(p_values) <= alpha) <= binom.isf(3e-8, runs, alpha)


def test_few_people_in_the_clear_are_found_in_every_draw() -> None:
    assert max(in_the_clear(9, 0.1, seed).p_value for seed in range(20)) < 1e-4
    assert max(in_the_clear(8, 1.0, seed).p_value for seed in range(20)) < 0.013


def test_the_class_and_its_odds_are_named() -> None:
    first = in_the_clear(9, 0.1, 0).classes[0]
    assert (first.label, first.output, first.people, first.count) == (2, 2, 9, 9)
    keep = np.exp(0.1) / (np.exp(0.1) + 2)
    assert first.chance == pytest.approx(keep**9, rel=1e-6)
    assert first.all_alike == pytest.approx(keep**9, rel=1e-6)


def test_one_of_many_rare_classes_is_found() -> None:
    channel = randomized_response(12, 1.0)
    counts = drawn([2000, 1000, *[9] * 10], channel, np.random.default_rng(0))
    counts[5] = np.eye(12, dtype=int)[5] * 9
    found = examined(counts, channel, 1.0)
    assert found.p_value < 1e-3
    assert found.classes[0].label == 5


def test_three_people_cannot_show_anything_and_cost_nothing() -> None:
    channel = randomized_response(4, 1.0)
    counts = drawn([2000, 1000, 9, 3], channel, np.random.default_rng(0))
    counts[2] = [0, 0, 9, 0]
    found = examined(counts, channel, 1.0)
    assert [one.can_be_seen for one in sorted(found.classes, key=lambda c: c.label)] == [
        True,
        False,
    ]
    assert found.p_value < 1.3 * found.classes[0].chance / 0.8


def test_a_class_that_is_always_released_as_another_is_found() -> None:
    channel = randomized_response(3, 1.0)
    counts = drawn([2500, 2492, 8], channel, np.random.default_rng(0))
    counts[2] = [8, 0, 0]
    found = examined(counts, channel, 1.0)
    assert found.p_value < 1e-3
    assert found.classes[0].output == 0


@pytest.mark.parametrize("seed", range(5))
def test_what_is_done_to_released_labels_is_no_leak(seed: int) -> None:
    channel = randomized_response(3, 1.0)
    counts = drawn([2500, 2460, 40], channel, np.random.default_rng(seed))
    merged, thinned = counts.copy(), counts.copy()
    merged[:, 0] += merged[:, 2]
    merged[:, 2] = 0
    thinned[:, 0] //= 10
    assert examined(counts, channel, 1.0).p_value > 1e-4  # one draw in ten thousand lies below
    assert examined(merged, channel, 1.0).p_value > 1e-4
    assert examined(thinned, channel, 1.0).p_value > 1e-4


def test_large_classes_are_not_looked_at() -> None:
    channel = randomized_response(2, 1.0)
    assert rare_classes(np.array([[400, 100], [0, 51]]), channel, 1.0, np.arange(2)) is None


def test_the_usual_output_of_a_class_is_its_own_name_or_the_likeliest() -> None:
    found = usual_outputs(ASYMMETRIC, ("a", "b", "c", "d"), ("c", "b", "z"))
    assert found.tolist() == [0, 1, 0, 2]
