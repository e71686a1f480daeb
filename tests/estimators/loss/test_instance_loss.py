"""ν of posteriors, intervals of posteriors, and least losses over them."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import logit
from scipy.stats import binom

from ldpaudit.estimators.instance_loss import (
    PosteriorBox,
    features_mean,
    label_mean,
    mean_loss,
    mean_loss_lower,
    row_loss,
    row_loss_lower,
)
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.corrections import onto_simplex
from ldpaudit.release import FloatArray

shares = st.floats(0.02, 0.98)
flips = st.floats(0.001, 0.45)


def flip_channel(flip: float) -> FloatArray:
    return np.array([[1 - flip, flip], [flip, 1 - flip]])


def random_channel(k: int, m: int, seed: int) -> FloatArray:
    return np.random.default_rng(seed).dirichlet(np.full(m, 2.0), k)


def defined_loss(posterior: FloatArray, prior: FloatArray, channel: FloatArray) -> FloatArray:
    """ν(y, z) from its definition: posterior odds of y given (x, z) over prior odds."""
    joint = posterior[:, None] * channel
    given_z = joint / joint.sum(axis=0)
    return np.asarray(logit(given_z) - logit(prior)[:, None])


def of_two(z: FloatArray, prior: float, channel: FloatArray) -> FloatArray:
    """Return the losses of posteriors 1 − z, z."""
    return mean_loss(np.stack([1 - z, z], axis=1), np.array([1 - prior, prior]), channel)


@given(shares, shares, flips)
def test_the_average_of_two_labels_is_lemma_d_1(z: float, prior: float, flip: float) -> None:
    printed = (2 * z - 1) * (logit(z) - logit(prior)) + (2 * flip - 1) * logit(flip)
    assert of_two(np.array([z]), prior, flip_channel(flip))[0] == pytest.approx(printed, abs=1e-9)


@pytest.mark.parametrize(("k", "m"), [(2, 2), (2, 5), (3, 3), (4, 6), (7, 3)])
def test_average_and_rows_are_the_definitions_for_any_channel(k: int, m: int) -> None:
    rng = np.random.default_rng(k * m)
    channel, prior = random_channel(k, m, k + m), rng.dirichlet(np.full(k, 3.0))
    posterior = rng.dirichlet(np.ones(k), 20)
    for eta, average in zip(posterior, mean_loss(posterior, prior, channel), strict=True):
        losses = defined_loss(eta, prior, channel)
        assert average == pytest.approx(float((eta[:, None] * channel * losses).sum()))
        y, z = np.divmod(np.arange(k * m, dtype=np.int32), m)
        rows = row_loss(np.tile(eta, (k * m, 1)), y, z, prior, channel)
        assert rows == pytest.approx(losses.ravel())


def test_certain_labels_lose_everything() -> None:
    posterior = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    prior = np.array([0.5, 0.5])
    for channel in (None, flip_channel(0.1)):
        losses = mean_loss(posterior, prior, channel)
        assert np.isinf(losses[:2]).all()
        assert np.isfinite(losses[2])
    assert np.isinf(mean_loss(posterior, prior, np.eye(2))).all()
    assert np.isinf(mean_loss(np.full((1, 3), 1 / 3), np.full(3, 1 / 3), np.eye(3))).all()
    assert label_mean(np.full(3, 1 / 3), np.eye(3)) == math.inf


@pytest.mark.parametrize("k", [2, 4])
def test_parts_of_the_mean(k: int) -> None:
    posterior = np.random.default_rng(2).dirichlet(np.arange(k) + 2.0, 500)
    prior, channel = posterior.mean(axis=0), random_channel(k, 4, 1)
    whole = mean_loss(posterior, prior, channel).mean()
    parts = features_mean(posterior, prior), label_mean(prior, channel)
    assert whole >= max(parts) - 1e-12
    assert k > 2 or whole == pytest.approx(sum(parts))


def box_of(counts: list[list[int]], error: float = 0.05) -> PosteriorBox:
    table = np.array(counts, dtype=np.int32)
    return PosteriorBox.from_counts(table, table.sum(axis=1, dtype=np.int32), error)


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


@pytest.mark.parametrize("rows", [[[0.8, 0.2], [0.1, 0.9]], [[0.1, 0.9], [0.8, 0.2]]])
def test_the_binary_inverse_is_the_closed_form(rows: list[list[float]]) -> None:
    """A channel that inverts swaps the ends."""
    channel, box = np.array(rows), box_of([[400, 600]])
    back, ends = box.through(channel), np.array([box.low[0, 1], box.high[0, 1]])
    low, estimate, high = sorted([*ends, box.estimate[0, 1]], reverse=rows[0][0] < 0.5)
    for found, seen in ((back.low, low), (back.estimate, estimate), (back.high, high)):
        assert found[0, 1] == pytest.approx(
            (seen - channel[0, 1]) / (channel[1, 1] - channel[0, 1])
        )


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


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6))
def test_simplex_projection_is_the_nearest_point(values: list[float]) -> None:
    point = np.array([values])
    near = onto_simplex(point)[0]
    assert near.sum() == pytest.approx(1)
    assert near.min() >= 0
    others = np.random.default_rng(0).dirichlet(np.ones(len(values)), 50)
    distances = np.square(others - point).sum(axis=1)
    assert np.square(near - point).sum() <= distances.min() + 1e-9


def drawn(k: int, size: int, rows: int, seed: int) -> tuple[PosteriorBox, FloatArray]:
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.full(k, 0.7), rows)
    counts = rng.multinomial(size, eta).astype(np.int32)
    return PosteriorBox.from_counts(counts, np.full(rows, size, np.int32), 1e-3), eta


def channel_of(k: int, epsilon: float) -> FloatArray:
    return np.array(RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel.matrix)


@given(st.integers(2, 6), st.integers(5, 500), st.floats(0.2, 4), st.integers(0, 10**6))
@settings(max_examples=40)
def test_never_above_the_loss_of_a_posterior_in_the_box(
    k: int, size: int, epsilon: float, seed: int
) -> None:
    box, eta = drawn(k, size, 30, seed)
    prior, held = np.full(k, 1 / k), ((eta >= box.low) & (eta <= box.high)).all(axis=1)
    labels, released = np.random.default_rng(seed).integers(0, k, (2, 30)).astype(np.int32)
    for matrix in (channel_of(k, epsilon), None):
        bound = mean_loss_lower(box, 0.95 * prior, prior, matrix)
        assert (bound <= mean_loss(eta, prior, matrix) + 1e-9)[held].all()
        assert (bound <= mean_loss(box.estimate, prior, matrix) + 1e-9).all()
        with np.errstate(divide="ignore"):
            losses = row_loss(eta, labels, released, prior, matrix)
        bound = row_loss_lower(box, labels, released, prior, matrix)
        assert (bound <= losses + 1e-9)[held].all()


def test_one_neighbour_may_hold_the_whole_mean() -> None:
    # With one neighbour of five that has the label by chance p, it is counted with probability p.
    box = PosteriorBox.from_counts(np.array([[4, 1], [1, 4]]), np.full(2, 5), 0.1)
    assert 5 * max(box.low[0, 1], 1 - box.high[1, 1]) <= 0.05 + 1e-12


def test_a_proof_is_a_proof_whatever_the_neighbours_say_and_an_excluded_label_none() -> None:
    channel, prior = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]), np.array([0.5, 0.5])
    box = PosteriorBox.from_counts(np.array([[9, 0]] * 4), np.full(4, 9), 0.01)
    labels, released = (np.array(codes, np.int32) for codes in ((1, 0, 1, 0), (1, 1, 2, 0)))
    with np.errstate(all="raise"):
        losses = row_loss(box.estimate, labels, released, prior, channel)
        lower = row_loss_lower(box, labels, released, prior, channel)
    assert losses[:3].tolist() == [np.inf, -np.inf, 0]
    assert lower[:3].tolist() == [np.inf, -np.inf, -np.inf]
    assert -np.inf < lower[3] <= losses[3] < np.inf


def test_two_labels_take_the_exact_minimum_at_the_worse_prior() -> None:
    box, _ = drawn(2, 80, 40, 1)
    channel = channel_of(2, 1.5)
    bound = mean_loss_lower(box, np.array([0.6, 0.3]), np.array([0.7, 0.4]), channel)
    fine = np.linspace(0, 1, 401)
    for i in range(40):
        z = box.low[i, 1] + fine * (box.high[i, 1] - box.low[i, 1])
        values = [of_two(z, p, channel).min() for p in (0.3, 0.35, 0.4)]
        assert bound[i] <= min(values) + 1e-12
        assert bound[i] == pytest.approx(min(values), abs=1e-3)


@pytest.mark.parametrize(("k", "epsilon", "size"), [(3, 1.0, 100), (4, 2.0, 1000), (10, 2.0, 1000)])
def test_tangents_come_near_the_exact_minimum(k: int, epsilon: float, size: int) -> None:
    box, _ = drawn(k, size, 4, k)
    prior, channel = np.full(k, 1 / k), channel_of(k, epsilon)
    bound = mean_loss_lower(box, prior, prior, channel)
    for i in range(4):
        exact = minimize(
            lambda e: float(mean_loss(np.maximum(e, 1e-12)[None], prior, channel)[0]),
            box.estimate[i],
            method="SLSQP",
            bounds=list(zip(box.low[i], box.high[i], strict=True)),
            constraints=[{"type": "eq", "fun": lambda e: e.sum() - 1}],
        ).fun
        assert exact - 0.02 <= bound[i] <= exact + 1e-5


def test_a_betrayed_label_has_no_least_loss() -> None:
    box = PosteriorBox.from_counts(
        np.array([[50, 30, 20]], np.int32), np.array([100], np.int32), 0.01
    )
    prior = np.full(3, 1 / 3)
    assert np.isinf(mean_loss_lower(box, prior, prior, np.eye(3))).all()
    merging = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert np.isinf(mean_loss_lower(box, prior, prior, merging)).all()
