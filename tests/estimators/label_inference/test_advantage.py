import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.estimators.advantage import (
    accuracy_ceiling,
    advantage_ceiling,
    randomized_response_advantage,
    utility_bound,
)
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel

EPSILONS = st.floats(0.01, 10.0)


def random_posteriors(seed, k, n=7):
    return np.random.default_rng(seed).dirichlet(np.full(k, 0.7), size=n)


@given(st.integers(2, 9), EPSILONS, st.integers(0, 10_000))
def test_closed_form_equals_the_sum_over_outputs(k, epsilon, seed):
    eta = random_posteriors(seed, k)
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel
    brute = sum((eta * column).max(axis=1) for column in channel.matrix.T) - eta.max(axis=1)
    np.testing.assert_allclose(randomized_response_advantage(eta, epsilon), brute, atol=1e-12)
    gain = (channel.informed_accuracy(eta) - eta.max(axis=1)).mean()
    assert gain == pytest.approx(brute.mean(), abs=1e-12)


def staircase_channel(rng, k, m, epsilon):
    """A random channel whose columns hold only 1 and e^ε times a factor, scaled to rows of 1."""
    pattern = np.exp(epsilon * rng.integers(0, 2, size=(k, m)))
    weights, *_ = np.linalg.lstsq(pattern, np.ones(k), rcond=None)
    if (weights < 0).any():
        return None
    matrix = pattern * weights
    if np.abs(matrix.sum(axis=1) - 1).max() > 1e-9:
        return None
    return Channel(matrix, tuple(range(k)), tuple(range(m)))


@given(st.integers(2, 5), st.floats(0.1, 5.0), st.integers(0, 10_000))
def test_no_private_channel_exceeds_the_ceilings(k, epsilon, seed):
    rng = np.random.default_rng(seed)
    eta = random_posteriors(seed, k)
    channels = [staircase_channel(rng, k, 2 * k, epsilon) for _ in range(5)]
    channels.append(RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel)
    for channel in channels:
        if channel is None:
            continue
        informed = channel.informed_accuracy(eta)
        assert (informed <= accuracy_ceiling(eta.max(axis=1), epsilon) + 1e-9).all()
        assert (informed - eta.max(axis=1)).max() <= advantage_ceiling(epsilon, k) + 1e-9


@given(st.floats(0.05, 6.0), st.floats(0.3, 0.95), st.integers(2, 6))
def test_utility_bound_holds_for_randomized_response(epsilon, p_star, k):
    p_star = max(p_star, 1 / k)
    prior = np.full((1, k), (1 - p_star) / (k - 1))
    prior[0, 0] = p_star
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel
    bound = utility_bound(channel.rdp, p_star, k)
    assert channel.informed_accuracy(prior).mean() <= bound + 1e-12
    assert bound <= 1 - math.exp(-epsilon) * (1 - p_star) + 1e-12


def test_utility_bound_is_the_best_over_delta():
    channel = RandomizedResponse.from_epsilon((0, 1), 0.5).channel
    found = utility_bound(channel.rdp, 0.6, 2)
    deltas = np.logspace(-12, -0.01, 4000)
    best = min(
        (1 - (math.exp(-channel.rdp(a)) * deltas ** (1 / (a - 1)) * 0.4 - deltas)).min()
        for a in (3.0, 4.0, 8.0, 64.0, 1024.0)
    )
    assert found <= best + 1e-6
