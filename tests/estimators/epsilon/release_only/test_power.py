"""What groups of rows could have shown, for randomized response and for other channels."""

from dataclasses import replace

import numpy as np
import pytest

from ldpaudit.estimators.epsilon.power import sharpened, smallest_detectable
from ldpaudit.estimators.epsilon.release_only.bound import GroupTest, Method
from ldpaudit.estimators.epsilon.release_only.power import group_power, label_mixtures
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel

SKEWED = Channel(np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]]), (0, 1), (0, 1, 2))
LOPSIDED = Channel(np.array([[0.6, 0.25, 0.15], [0.15, 0.25, 0.6]]), (0, 1), (0, 1, 2))
BINARY = RandomizedResponse.from_epsilon((0, 1), 1.0).channel


def groups_of(shares: np.ndarray, channel: Channel, n: int, means: list[int]) -> GroupTest:
    """Return groups of n rows each with the given shares of true labels, as expected."""
    table = np.rint(n * shares @ channel.matrix).astype(np.int64)
    return GroupTest(table, np.array(means, np.int32), 1.0, "scores")


def power(test: GroupTest, claimed: Channel, epsilon: float, factor: float = 1.0) -> float:
    made = sharpened(claimed, epsilon)
    shares = label_mixtures(test, claimed)
    return group_power(test, shares, made, claimed.epsilon, 0.05, factor)


def test_pure_groups_are_as_good_as_true_labels() -> None:
    pure = groups_of(np.eye(2), BINARY, 5000, [0, 1])
    assert power(pure, BINARY, 1.0) == pytest.approx(0.05, abs=0.015)
    assert power(pure, BINARY, 1.2) > 0.99


def test_groups_that_are_half_wrong_say_nothing() -> None:
    useless = groups_of(np.full((2, 2), 0.5), BINARY, 5000, [0, 1])
    assert power(useless, BINARY, 5.0) < 1e-6
    nobody = GroupTest(np.zeros((2, 2), np.int64), np.array([0, 1], np.int32), 1.0, "scores")
    assert power(nobody, BINARY, 5.0) == 0.0


@pytest.mark.parametrize("channel", [BINARY, SKEWED])
def test_the_mixture_behind_a_group_is_found(channel: Channel) -> None:
    shares = np.array([[0.9, 0.1], [0.25, 0.75]])
    means = [0, 1] if channel is BINARY else [0, 0, 1]
    found = label_mixtures(groups_of(shares, channel, 10**6, means), channel)
    np.testing.assert_allclose(found, shares, atol=0.02)


@pytest.mark.parametrize("method", ["accuracy", "two-sided"])
def test_the_power_is_what_simulated_releases_show(method: Method) -> None:
    """Binomial(400, 0.6): the tolerance is five standard errors."""
    shares, n, rng = np.array([[0.97, 0.03], [0.05, 0.95]]), 3000, np.random.default_rng(2)
    planned = replace(groups_of(shares, LOPSIDED, n, [0, 0, 1]), method=method)
    claimed = LOPSIDED.epsilon
    epsilon = smallest_detectable(lambda e: power(planned, LOPSIDED, e), claimed, 0.6)
    made, hits = sharpened(LOPSIDED, epsilon), 0
    for _ in range(400):
        table = rng.multinomial(n, shares @ made.matrix)
        hits += replace(planned, table=table).bound(0.05).epsilon > claimed
    assert hits / 400 == pytest.approx(0.6, abs=0.125)
