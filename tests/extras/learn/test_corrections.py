import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.errors import InputError
from ldpaudit.extras.learn.corrections import label_targets
from ldpaudit.mechanisms import Channel, RandomizedResponse


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
