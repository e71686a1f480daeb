import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from ldpaudit.estimators.loss.bounds import mean_loss_lower, row_loss_lower
from ldpaudit.estimators.loss.instance_loss import BinaryLoss, mean_loss, row_loss
from ldpaudit.estimators.loss.posterior_intervals import PosteriorBox
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FloatArray


def drawn(k: int, size: int, rows: int, seed: int) -> tuple[PosteriorBox, FloatArray]:
    rng = np.random.default_rng(seed)
    eta = rng.dirichlet(np.full(k, 0.7), rows)
    counts = rng.multinomial(size, eta).astype(np.int32)
    return PosteriorBox.from_counts(counts, np.full(rows, size, np.int32), 1e-3), eta


def channel_of(k: int, epsilon: float) -> FloatArray:
    return np.array(RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel.matrix)


def inside(box: PosteriorBox, eta: FloatArray) -> np.ndarray:
    return ((eta >= box.low) & (eta <= box.high)).all(axis=1)


@given(st.integers(2, 6), st.integers(5, 500), st.floats(0.2, 4), st.integers(0, 10**6))
@settings(max_examples=40)
def test_never_above_the_loss_of_a_posterior_in_the_box(
    k: int, size: int, epsilon: float, seed: int
) -> None:
    box, eta = drawn(k, size, 30, seed)
    prior, channel = np.full(k, 1 / k), channel_of(k, epsilon)
    for matrix in (channel, None):
        bound = mean_loss_lower(box, 0.95 * prior, prior, matrix)
        held = inside(box, eta)
        assert (bound <= mean_loss(eta, prior, matrix) + 1e-9)[held].all()
        assert (bound <= mean_loss(box.estimate, prior, matrix) + 1e-9).all()


@given(st.integers(2, 6), st.integers(5, 500), st.floats(0.2, 4), st.integers(0, 10**6))
@settings(max_examples=40)
def test_rows_are_never_above_either(k: int, size: int, epsilon: float, seed: int) -> None:
    box, eta = drawn(k, size, 30, seed)
    rng = np.random.default_rng(seed)
    labels, released = rng.integers(0, k, (2, 30)).astype(np.int32)
    prior = np.full(k, 1 / k)
    for matrix in (channel_of(k, epsilon), None):
        bound = row_loss_lower(box, labels, released, prior, matrix)
        with np.errstate(divide="ignore"):
            loss = row_loss(eta, labels, released, prior, matrix)
        held = inside(box, eta)
        assert (bound <= loss + 1e-9)[held].all()


def test_two_labels_take_the_exact_minimum_at_the_worse_prior() -> None:
    box, _ = drawn(2, 80, 40, 1)
    channel = channel_of(2, 1.5)
    bound = mean_loss_lower(box, np.array([0.6, 0.3]), np.array([0.7, 0.4]), channel)
    fine = np.linspace(0, 1, 401)
    for i in range(40):
        z = box.low[i, 1] + fine * (box.high[i, 1] - box.low[i, 1])
        values = [BinaryLoss.of_channel(p, channel).value(z).min() for p in (0.3, 0.35, 0.4)]
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


def test_more_neighbours_bring_the_bound_to_the_loss() -> None:
    eta = np.array([[0.9, 0.05, 0.05]])
    prior, channel = np.full(3, 1 / 3), channel_of(3, 1.0)
    truth = mean_loss(eta, prior, channel)[0]
    gaps = []
    for size in (100, 10_000, 1_000_000):
        counts = np.round(eta * size).astype(np.int32)
        box = PosteriorBox.from_counts(counts, np.array([size], np.int32), 1e-6)
        gaps.append(truth - mean_loss_lower(box, prior, prior, channel)[0])
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < 0.03


def test_a_betrayed_label_has_no_least_loss() -> None:
    box = PosteriorBox.from_counts(
        np.array([[50, 30, 20]], np.int32), np.array([100], np.int32), 0.01
    )
    prior = np.full(3, 1 / 3)
    assert np.isinf(mean_loss_lower(box, prior, prior, np.eye(3))).all()
    merging = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    assert np.isinf(mean_loss_lower(box, prior, prior, merging)).all()
