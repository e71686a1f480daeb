import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from ldpaudit.errors import InputError
from ldpaudit.mechanisms import Channel, RandomizedResponse
from ldpaudit.mechanisms.composition import compose


@given(st.integers(2, 4), st.integers(1, 4), st.integers(1, 4), st.integers(0, 1000))
def test_divergences_add_up(k, m, n, seed):
    rng = np.random.default_rng(seed)
    classes = tuple(range(k))
    first = Channel(rng.dirichlet(np.ones(m), size=k), classes, tuple(range(m)))
    second = Channel(rng.dirichlet(np.ones(n), size=k), classes, tuple(range(n)))
    both = compose(first, second)
    for alpha in (0.5, 1, 3):
        total = first.divergences(alpha) + second.divergences(alpha)
        np.testing.assert_allclose(both.divergences(alpha), total, rtol=1e-7, atol=1e-9)


def test_binary_randomized_response_is_a_binomial_count():
    channel = RandomizedResponse.from_epsilon(("a", "b"), 0.5).channel
    twenty = compose(*[channel] * 20)
    assert twenty.matrix.shape == (2, 21)
    keep = 1 / (1 + math.exp(-0.5))
    count = np.arange(21)
    p, q = stats.binom.pmf(count, 20, keep), stats.binom.pmf(count, 20, 1 - keep)
    assert twenty.epsilon == pytest.approx(10.0, rel=1e-9)
    for at in (0.0, 1.0, 4.0):
        expected = np.clip(p - math.exp(at) * q, 0, None).sum()
        assert twenty.delta(at) == pytest.approx(expected, abs=1e-12)


def test_an_impossible_output_stays_impossible():
    channel = Channel(np.array([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]), (0, 1), (0, 1, 2))
    both = compose(channel, channel)
    assert both.epsilon == math.inf
    assert both.matrix.shape == (2, 2)


def test_what_cannot_be_composed_is_refused():
    first = RandomizedResponse((0, 1), 0.5).channel
    with pytest.raises(InputError, match="same labels"):
        compose(first, RandomizedResponse((1, 0), 0.5).channel)
    with pytest.raises(InputError, match="at least one"):
        compose()
    rng = np.random.default_rng(0)
    wide = Channel(rng.dirichlet(np.ones(3000), size=2), (0, 1), tuple(range(3000)))
    with pytest.raises(InputError, match="too many"):
        compose(wide, wide)
