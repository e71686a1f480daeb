import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson
from ldpaudit.estimators.loss.posterior_intervals import PosteriorBox, centred_inverse, onto_simplex
from ldpaudit.mechanisms import RandomizedResponse


def box_of(counts: list[list[int]], error: float = 0.05) -> PosteriorBox:
    table = np.array(counts, dtype=np.int32)
    return PosteriorBox.from_counts(table, table.sum(axis=1, dtype=np.int32), error)


def test_two_labels_share_one_clopper_pearson_interval() -> None:
    box = box_of([[30, 70], [0, 50]])
    low, high = clopper_pearson(np.array([70, 50]), np.array([100, 50]), 0.05)
    assert box.low[:, 1] == pytest.approx(low)
    assert box.high[:, 1] == pytest.approx(high)
    assert box.low[:, 0] == pytest.approx(1 - high)


@given(st.lists(st.integers(0, 200), min_size=2, max_size=6).filter(lambda c: sum(c) > 0))
def test_estimates_are_inside_and_never_certain(counts: list[int]) -> None:
    box = box_of([counts])
    assert box.estimate.sum() == pytest.approx(1)
    assert (box.estimate > 0).all()
    assert (box.estimate < 1).all()
    assert (box.low <= box.estimate).all()
    assert (box.estimate <= box.high).all()


@pytest.mark.parametrize("k", [2, 4])
def test_boxes_miss_no_more_often_than_their_error(k: int) -> None:
    rng = np.random.default_rng(k)
    eta = rng.dirichlet(np.ones(k), 4000)
    counts = rng.multinomial(60, eta).astype(np.int32)
    box = PosteriorBox.from_counts(counts, np.full(4000, 60, np.int32), 0.05)
    misses = int(((eta < box.low) | (eta > box.high)).any(axis=1).sum())
    # Flake probability below 1e-7.
    assert misses <= binom.isf(1e-7, 4000, 0.05)


def test_the_binary_inverse_is_the_closed_form() -> None:
    channel = np.array([[0.8, 0.2], [0.1, 0.9]])
    box = box_of([[400, 600]])
    back = box.through(channel)
    assert back.estimate[0, 1] == pytest.approx((box.estimate[0, 1] - 0.2) / 0.7)
    assert back.low[0, 1] == pytest.approx((box.low[0, 1] - 0.2) / 0.7)
    assert back.high[0, 1] == pytest.approx((box.high[0, 1] - 0.2) / 0.7)


def test_an_inverting_channel_swaps_the_ends() -> None:
    channel = np.array([[0.1, 0.9], [0.8, 0.2]])
    box = box_of([[400, 600]])
    back = box.through(channel)
    assert back.low[0, 1] == pytest.approx((box.high[0, 1] - 0.9) / (0.2 - 0.9))


@pytest.mark.parametrize(("k", "m"), [(2, 2), (3, 3), (5, 5), (2, 4), (3, 7)])
def test_boxes_of_released_labels_contain_the_truth_whenever_they_hold(k: int, m: int) -> None:
    rng = np.random.default_rng(10 * k + m)
    channel = 0.5 * np.eye(k, m) + 0.5 * rng.dirichlet(np.ones(m), k)
    channel /= channel.sum(axis=1, keepdims=True)
    eta = rng.dirichlet(np.ones(k), 500)
    counts = np.array([rng.multinomial(200, row) for row in eta @ channel], dtype=np.int32)
    box = PosteriorBox.from_counts(counts, np.full(500, 200, np.int32), 0.2)
    held = ((eta @ channel >= box.low) & (eta @ channel <= box.high)).all(axis=1)
    back = box.through(channel)
    inside = (eta >= back.low - 1e-9) & (eta <= back.high + 1e-9)
    assert held.mean() > 0.7
    assert inside[held].all()
    assert (back.estimate > 0).all()
    assert back.estimate.sum(axis=1) == pytest.approx(np.ones(500))


def test_inverse_of_randomized_response_looks_at_one_released_share_only() -> None:
    channel = RandomizedResponse.from_epsilon(tuple("abcde"), 1.0).channel.matrix
    inverse, offset = centred_inverse(channel)
    assert inverse[~np.eye(5, dtype=bool)] == pytest.approx(0, abs=1e-12)
    eta = np.array([0.5, 0.2, 0.1, 0.1, 0.1])
    assert offset + eta @ channel @ inverse == pytest.approx(eta)


def test_a_lost_label_is_refused() -> None:
    with pytest.raises(InputError, match="inverted"):
        box_of([[5, 5]]).through(np.full((2, 2), 0.5))


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6))
def test_simplex_projection_is_the_nearest_point(values: list[float]) -> None:
    point = np.array([values])
    near = onto_simplex(point)[0]
    assert near.sum() == pytest.approx(1)
    assert near.min() >= 0
    others = np.random.default_rng(0).dirichlet(np.ones(len(values)), 50)
    distances = np.square(others - point).sum(axis=1)
    assert np.square(near - point).sum() <= distances.min() + 1e-9
