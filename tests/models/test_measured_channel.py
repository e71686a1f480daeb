"""The channel as counted on rows with true labels."""

import numpy as np
import pytest

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.counts import _products, clean_prior, measured_channel

TRUTH = np.array([0, 0, 0, 1, 1, 1, 1, 1], dtype=np.int32)
RELEASED = np.array([0, 0, 1, 1, 1, 1, 1, 2], dtype=np.int32)


def test_without_a_claim_a_row_is_drawn_towards_the_uniform_one():
    found = measured_channel(TRUTH, RELEASED, (2, 3), None)
    thirds = np.array([[2, 1, 0], [0, 4, 1]]) + 1 / 3
    assert found == pytest.approx(thirds / [[4], [6]])


def test_a_row_that_the_counts_contradict_is_drawn_towards_the_claimed_one():
    claimed = np.array([[0.6, 0.4], [0.5, 0.5]])
    truth = np.repeat([0, 1], 100).astype(np.int32)
    released = np.r_[np.repeat([0, 1], [60, 40]), np.repeat([0, 1], [90, 10])].astype(np.int32)
    found = measured_channel(truth, released, (2, 2), claimed)
    assert found[0].tolist() == [0.6, 0.4]
    assert found[1] == pytest.approx([(90 + 10) / 120, (10 + 10) / 120])


@pytest.mark.parametrize("k", [3, 64, 80])
def test_a_channel_of_many_labels_is_multiplied_like_any_other(k):
    channel = np.full((k, k), 0.4 / k) + 0.6 * np.eye(k)
    rows = np.random.default_rng(k).dirichlet(np.ones(k), 5)
    forth, back = _products(channel)
    assert forth(rows) == pytest.approx(rows @ channel)
    assert back(3 * rows) == pytest.approx(3 * rows @ channel.T)


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_class_shares_that_noise_explains_are_the_uniform_ones(epsilon):
    channel = RandomizedResponse.from_epsilon((0, 1), epsilon).channel.matrix
    even = np.repeat([0, 1], [504, 496]).astype(np.int32)
    assert clean_prior(even, channel) == pytest.approx([0.5, 0.5], abs=1e-9)


def test_without_noise_class_shares_are_those_of_the_labels():
    released = np.repeat([0, 1], [504, 496]).astype(np.int32)
    assert clean_prior(released, np.eye(2)) == pytest.approx([0.504, 0.496], abs=1e-5)
