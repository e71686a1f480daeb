import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Channel, RandomizedResponse
from ldpaudit.models.corrections import label_targets, nearest_source


def random_channel(k, m, rng):
    matrix = rng.dirichlet(np.ones(m), size=k)
    return Channel(matrix, tuple(range(k)), tuple(range(m)))


@given(st.integers(2, 5), st.integers(0, 3), st.integers(0, 10_000))
def test_the_backward_loss_is_unbiased(k, more, seed):
    rng = np.random.default_rng(seed)
    channel = random_channel(k, k + more, rng)
    if np.linalg.svd(channel.matrix, compute_uv=False)[-1] < 1e-3:
        return
    losses = rng.exponential(size=(1, k))
    codes = np.arange(k + more)
    each = (label_targets(codes, channel) * losses).sum(axis=1)
    np.testing.assert_allclose(channel.matrix @ each, losses[0], atol=1e-9)


def test_labels_outside_the_channel_are_counted():
    channel = RandomizedResponse((0, 1), 0.4).channel
    with pytest.raises(InputError, match=r"\d row"):
        label_targets(np.array([0, 2, -1]), channel)


@given(st.integers(2, 6), st.floats(0.05, 8.0), st.integers(0, 1000))
def test_cleaning_undoes_the_channel(k, epsilon, seed):
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel
    eta = np.random.default_rng(seed).dirichlet(np.ones(k), size=5)
    np.testing.assert_allclose(nearest_source(eta @ channel.matrix, channel.matrix), eta, atol=1e-8)


@given(st.integers(2, 6), st.integers(0, 1000))
def test_cleaning_stays_on_the_simplex(k, seed):
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), 0.5).channel
    noisy = np.random.default_rng(seed).dirichlet(np.full(k, 0.3), size=9)
    clean = nearest_source(noisy, channel.matrix)
    assert clean.min() >= 0
    np.testing.assert_allclose(clean.sum(axis=1), 1.0, atol=1e-9)
