import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logit

from ldpaudit.errors import InputError
from ldpaudit.estimators.loss.instance_loss import (
    BinaryLoss,
    features_mean,
    label_mean,
    mean_loss,
    row_loss,
    versus_rest,
)
from ldpaudit.mechanisms import RandomizedResponse
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


@given(shares, shares, flips)
def test_binary_average_is_the_definitions(z: float, prior: float, flip: float) -> None:
    channel, posterior = flip_channel(flip), np.array([1 - z, z])
    losses = defined_loss(posterior, np.array([1 - prior, prior]), channel)
    expected = float((posterior[:, None] * channel * losses).sum())
    loss = BinaryLoss.of_channel(prior, channel)
    assert float(loss.value(np.array(z))) == pytest.approx(expected, abs=1e-9)
    # Lemma D.1 of the paper.
    printed = (2 * z - 1) * (logit(z) - logit(prior)) + (2 * flip - 1) * logit(flip)
    assert expected == pytest.approx(printed, abs=1e-9)


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


@given(shares, shares, st.integers(0, 1000))
def test_one_versus_rest_of_two_labels_is_the_papers(z: float, prior: float, seed: int) -> None:
    channel = random_channel(2, 3, seed)
    posterior, both = np.array([[1 - z, z]]), np.array([1 - prior, prior])
    general = versus_rest(posterior, channel) - posterior @ logit(both)
    assert mean_loss(posterior, both, channel)[0] == pytest.approx(general[0], abs=1e-9)


def test_theorem_6_4_with_its_misprint_corrected() -> None:
    # e^ν = P(z|y)/P(z|1−y) · η_y/η_{1−y} · p_{1−y}/p_y at y = 1, z = 0.
    loss = row_loss(
        np.array([[0.3, 0.7]]),
        np.array([1], np.int32),
        np.array([0], np.int32),
        np.array([0.6, 0.4]),
        np.array([[0.8, 0.2], [0.1, 0.9]]),
    )
    assert loss[0] == pytest.approx(math.log(0.1 / 0.8 * 0.7 / 0.3 * 0.6 / 0.4))


@given(shares, shares, shares, st.floats(0, 5), st.floats(0, 5))
def test_convex(prior: float, one: float, two: float, forward: float, backward: float) -> None:
    loss = BinaryLoss(prior, forward, backward)
    ends = loss.value(np.array([one, two, (one + two) / 2]))
    assert ends[2] <= ends[:2].mean() + 1e-9
    assert ends.min() >= float(loss.value(np.array(loss.minimizer))) - 1e-12


@given(st.floats(0.001, 0.999), flips)
def test_minimizer_lies_between_a_half_and_the_prior(prior: float, flip: float) -> None:
    loss = BinaryLoss.of_channel(prior, flip_channel(flip))
    assert min(0.5, prior) - 1e-9 <= loss.minimizer <= max(0.5, prior) + 1e-9


def test_symmetric_only_for_equal_labels() -> None:
    z = np.linspace(0.05, 0.95, 19)
    channel = flip_channel(0.1)
    even, uneven = (BinaryLoss.of_channel(p, channel).value(z) for p in (0.5, 0.2))
    assert even == pytest.approx(even[::-1])
    assert np.abs(uneven - uneven[::-1]).max() > 1


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


def test_parts_of_the_mean() -> None:
    rng = np.random.default_rng(2)
    posterior = rng.dirichlet([2.0, 3.0], 50)
    prior = posterior.mean(axis=0)
    channel = random_channel(2, 4, 1)
    whole = mean_loss(posterior, prior, channel).mean()
    both = features_mean(posterior, prior) + label_mean(prior, channel)
    assert whole == pytest.approx(both)


def test_parts_of_more_labels_are_at_most_the_whole() -> None:
    rng = np.random.default_rng(2)
    posterior = rng.dirichlet(np.ones(4), 500)
    prior = posterior.mean(axis=0)
    channel = random_channel(4, 4, 1)
    whole = mean_loss(posterior, prior, channel).mean()
    assert whole >= max(features_mean(posterior, prior), label_mean(prior, channel)) - 1e-12


def test_label_part_of_randomized_response() -> None:
    channel = RandomizedResponse.from_epsilon(("a", "b"), 2.0).channel.matrix
    flip = channel[0, 1]
    expected = (1 - 2 * flip) * math.log((1 - flip) / flip)
    assert label_mean(np.array([0.2, 0.8]), channel) == pytest.approx(expected)
    # Kept with 0.881, so E[ν] is a little below ε.
    assert expected == pytest.approx(2.0 * math.tanh(1.0))


def test_no_information_is_no_loss() -> None:
    prior = np.array([0.2, 0.3, 0.5])
    silent = np.full((3, 2), 0.5)
    assert mean_loss(np.tile(prior, (4, 1)), prior, silent) == pytest.approx(np.zeros(4))
    assert label_mean(prior, silent) == pytest.approx(0)


def test_bad_prior() -> None:
    with pytest.raises(InputError):
        BinaryLoss(1.0)
