"""Rare classes: the p-value is valid, and few people in the clear are found."""

import numpy as np
import pytest
from estimators.worlds import counted, randomized_response

from ldpaudit.estimators.epsilon.consistency import RareClasses, rare_classes

ASYMMETRIC = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.25, 0.25, 0.5], [0.1, 0.1, 0.8]])


def examined(counts: np.ndarray, channel: np.ndarray, epsilon: float) -> RareClasses:
    found = rare_classes(counts, channel, epsilon, channel.argmax(axis=1))
    assert found is not None
    return found


def planted(
    sizes: list[int], row: list[int], epsilon: float, seed: int = 0, label: int = 2
) -> RareClasses:
    """Return what is found where the people of one label have these outputs."""
    channel = randomized_response(len(sizes), epsilon)
    counts = counted(np.array(sizes), channel, np.random.default_rng(seed))
    counts[label] = row
    return examined(counts, channel, epsilon)


@pytest.mark.parametrize(
    ("sizes", "row", "epsilon", "most", "first"),
    [
        ([2500, 2491, 9], [0, 0, 9], 0.1, 1e-4, (2, 2)),
        ([2500, 2492, 8], [0, 0, 8], 1.0, 0.013, (2, 2)),
        # One of many rare classes, and a class that is always released as another.
        ([2000, 1000, *[9] * 10], [0, 0, 9, *[0] * 9], 1.0, 1e-3, (2, 2)),
        ([2500, 2492, 8], [8, 0, 0], 1.0, 1e-3, (2, 0)),
        # Three people cannot show anything, and cost nothing.
        ([2000, 1000, 9, 3], [0, 0, 9, 0], 1.0, 1.3 / 0.8 * (np.e / (np.e + 3)) ** 9, (2, 2)),
    ],
)
def test_few_people_in_the_clear_are_found_in_every_draw(
    sizes: list[int], row: list[int], epsilon: float, most: float, first: tuple[int, int]
) -> None:
    found = [planted(sizes, row, epsilon, seed) for seed in range(20)]
    assert max(one.p_value for one in found) < most
    assert {(one.classes[0].label, one.classes[0].output) for one in found} == {first}


def test_the_class_and_its_odds_are_named() -> None:
    first = planted([2500, 2491, 9], [0, 0, 9], 0.1).classes[0]
    keep = np.exp(0.1) / (np.exp(0.1) + 2)
    assert (first.people, first.count) == (9, 9)
    assert (first.chance, first.all_alike) == pytest.approx((keep**9, keep**9), rel=1e-6)
    found = planted([2000, 1000, 9, 3], [0, 0, 9, 0], 1.0).classes
    assert {one.label: one.can_be_seen for one in found} == {2: True, 3: False}


@pytest.mark.parametrize("seed", range(5))
def test_what_is_done_to_released_labels_is_no_leak(seed: int) -> None:
    channel = randomized_response(3, 1.0)
    counts = counted(np.array([2500, 2460, 40]), channel, np.random.default_rng(seed))
    merged, thinned = counts.copy(), counts.copy()
    merged[:, 0] += merged[:, 2]
    merged[:, 2], thinned[:, 0] = 0, thinned[:, 0] // 10
    for changed in (counts, merged, thinned):  # One draw in ten thousand lies below.
        assert examined(changed, channel, 1.0).p_value > 1e-4
