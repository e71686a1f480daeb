import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Channel, RandomizedResponse
from ldpaudit.models.corrections import label_targets
from ldpaudit.models.counts import shrunk_cell_posteriors


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
    with pytest.raises(InputError, match=r"(outside|rows): \d"):
        label_targets(np.array([0, 2, -1]), channel)


def test_many_labels_of_randomized_response_have_the_answers_of_any_channel():
    rng, k = np.random.default_rng(0), 70
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), 3.0).channel.matrix
    nearly = channel.copy()
    nearly[0, :2] += np.array([1, -1]) * 1e-9 * channel[0, 1]
    counts = rng.multinomial(30, np.full(k, 1 / k), 20).astype(float)
    base = rng.dirichlet(np.ones(k), 20)
    found, other = (shrunk_cell_posteriors(counts, t, base, 2.0) for t in (channel, nearly))
    np.testing.assert_allclose(found, other, rtol=1e-6)
    assert (found != other).any()
