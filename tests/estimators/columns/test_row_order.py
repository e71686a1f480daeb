"""The agreement of rows near each other: exact moments, no false alarm, planted orders found."""

from itertools import permutations

import numpy as np
import pytest

from ldpaudit.estimators.columns.row_order import (
    agreement,
    agreement_beyond,
    strongest_agreement,
)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_mean_and_variance_are_those_over_all_orders(lag: int) -> None:
    labels = (0, 0, 0, 1, 1, 2, 2)
    same = [
        sum(a == b for a, b in zip(order, order[lag:], strict=False))
        for order in permutations(labels)
    ]
    counts = np.array([3, 2, 2])
    z = [agreement(counts, lag, each).z for each in same]
    assert np.mean(z) == pytest.approx(0, abs=1e-9)
    assert np.std(z) == pytest.approx(1, abs=1e-9)
    assert agreement(counts, lag, same[0]).chance == pytest.approx(np.mean(same) / (7 - lag))


@pytest.mark.parametrize("seed", range(50))
def test_a_random_order_is_like_chance(seed: int) -> None:
    labels = np.random.default_rng(seed).choice(3, 2000, p=[0.8, 0.15, 0.05]).astype(np.int32)
    found = strongest_agreement(labels, 3)
    assert found is not None
    assert abs(found.z) < 6  # Missed by chance once in 10^8.


ORDERS = {
    "sorted": np.sort(np.arange(2000) % 3),
    "in turn": np.arange(2000) % 2,
    "every third": (np.arange(2000) % 3 == 0).astype(int),
    "blocks of ten": np.repeat(np.random.default_rng(0).integers(0, 3, 200), 10),
}


@pytest.mark.parametrize("case", ORDERS)
def test_an_order_that_tells_labels_is_found(case: str) -> None:
    found = strongest_agreement(ORDERS[case].astype(np.int32), 3)
    assert found is not None
    assert abs(found.z) > 10
    assert abs(found.excess) > 0.4


def test_one_label_or_few_rows_say_nothing() -> None:
    found = strongest_agreement(np.zeros(100, dtype=np.int32), 2)
    assert found is not None
    assert (found.z, found.excess) == (0.0, 0.0)
    assert strongest_agreement(np.zeros(5, dtype=np.int32), 2) is None


def drawn(rng: np.random.Generator, n: int = 900) -> tuple[np.ndarray, np.ndarray]:
    """Return true and released labels: six in ten are kept."""
    truth = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    released = np.where(rng.random(n) < 0.6, truth, (truth + rng.integers(1, 3, n)) % 3)
    return truth, released


@pytest.mark.parametrize("lag", [1, 3])
@pytest.mark.parametrize("how", ["sorted", "as drawn", "blocks"])
def test_beyond_the_released_label_moments_are_those_over_orders_within_it(
    how: str, lag: int
) -> None:
    rng = np.random.default_rng(5)
    truth, released = drawn(rng)
    order = np.argsort(released, kind="stable")
    if how == "blocks":
        order = order.reshape(-1, 30)[rng.permutation(30)].ravel()
    place = order if how != "as drawn" else np.arange(len(truth))
    labels, cells = truth[place].astype(np.int32), released[place]
    z = []
    for _ in range(400):
        for cell in range(3):
            inside = np.flatnonzero(cells == cell)
            labels[inside] = labels[rng.permutation(inside)]
        z.append(agreement_beyond(labels, cells, lag).z)
    assert abs(np.mean(z)) < 4 / 20
    assert 0.85 < np.std(z) < 1.15


def test_rows_sorted_by_the_released_label_tell_no_more_than_it_does() -> None:
    truth, released = drawn(np.random.default_rng(6))
    for order, told in {
        "released": (np.argsort(released, kind="stable"), False),
        "true": (np.argsort(truth, kind="stable"), True),
        "released, then true": (np.lexsort((truth, released)), True),
    }.values():
        found = strongest_agreement(truth[order].astype(np.int32), 3, released[order])
        assert found is not None
        assert (abs(found.z) > 10, found.excess > 0.9) == (told, told)
