import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integer_tables import integer_epsilon
from scipy import stats

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.exact_sampling import (
    TOTAL,
    WeightTable,
    integer_weights,
    randomized_response,
    uniform_below,
)

SIGNIFICANCE = 1e-7  # Of each chi-square test: a false alarm of the whole file is below 1e-6.


class Given:
    """A source of words that were chosen beforehand, then of zeros."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, n):
        taken, self.left = self.left[:n], self.left[n:]
        return np.array(taken + [0] * (n - len(taken)), dtype=np.uint64)


def rows(draw_floats):
    values = np.array(draw_floats) + 0.0
    return values / values.sum()


PROBABILITIES = st.lists(st.floats(0, 1), min_size=2, max_size=40).filter(lambda v: sum(v) > 1e-3)


@given(PROBABILITIES)
def test_integer_weights_are_the_probabilities_to_two_units(values):
    row = rows(values)
    weights = [int(w) for w in integer_weights(row[None, :])[0]]
    assert sum(weights) == TOTAL
    scale = sum(Fraction(p) for p in row.tolist())
    for weight, p in zip(weights, row.tolist(), strict=True):
        assert abs(weight - Fraction(p) / scale * TOTAL) <= 2
        assert p > 0 or weight == 0


def test_a_row_that_is_off_by_rounding_is_scaled():
    row = np.array([0.25, 0.75 + 9e-10])
    weights = [int(w) for w in integer_weights(row[None, :])[0]]
    exact = Fraction(0.25) / (Fraction(0.25) + Fraction(0.75 + 9e-10))
    assert abs(Fraction(weights[0], TOTAL) - exact) < Fraction(1, 1 << 60)


@given(PROBABILITIES, st.integers(0, 63))
def test_inversion_is_exact_at_every_boundary(values, choice):
    table = WeightTable.from_probabilities(rows(values)[None, :])
    ends = [int(c) for c in np.cumsum(table.weights[0], dtype=np.uint64)]
    outcomes = [j for j in range(len(ends)) if table.weights[0, j] > 0]
    j = outcomes[choice % len(outcomes)]
    first, last = ends[j] - int(table.weights[0, j]), ends[j] - 1
    # The lowest bit of a word is not used.
    source = Given(2 * first, 2 * first + 1, 2 * last, 2 * last + 1)
    assert table.draw(np.zeros(4, np.int32), source).tolist() == [j] * 4


def test_uniform_draws_reject_what_would_be_too_much():
    last = (1 << 64) // 3 * 3 - 1
    assert uniform_below(3, 3, Given(last + 1, last, 4, 5)).tolist() == [2, last % 3, 1]


@given(st.floats(0.001, 1), st.integers(2, 30))
def test_randomized_response_redraws_below_its_threshold_only(noise, k):
    threshold = math.ceil(Fraction(noise) * (1 << 64))
    whole = threshold // k * k
    labels = np.full(2, k - 1, np.int32)
    below = randomized_response(labels, noise, k, Given(whole - k, whole - 2))
    assert below.tolist() == [0, k - 2]
    if threshold < 1 << 64:
        kept = randomized_response(labels, noise, k, Given(threshold, (1 << 64) - 1))
        assert kept.tolist() == [k - 1, k - 1]
    if whole < threshold:  # Not enough words left to be uniform: a fresh one decides.
        assert randomized_response(labels[:1], noise, k, Given(whole, k + 1)).tolist() == [1]


@given(st.floats(1e-6, 1 - 1e-6), st.integers(2, 1000))
def test_integers_of_randomized_response_never_exceed_its_epsilon(noise, k):
    threshold = Fraction(math.ceil(Fraction(noise) * (1 << 64)), 1 << 64)
    off = threshold / k
    keep = 1 - threshold + off
    assert abs(keep - (1 - Fraction(noise) + Fraction(noise) / k)) < Fraction(1, 1 << 60)
    assert keep / off <= 1 + k * (1 - Fraction(noise)) / Fraction(noise)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_ends_of_lambda(noise):
    labels = np.arange(4, dtype=np.int32).repeat(25_000)
    released = randomized_response(labels, noise, 4, np.random.default_rng(0))
    if noise == 0:
        np.testing.assert_array_equal(released, labels)
    else:
        table = np.bincount(labels * 4 + released, minlength=16)
        assert stats.chisquare(table).pvalue > SIGNIFICANCE


def assert_follows(mechanism, n, rng):
    k, m = mechanism.channel.matrix.shape
    labels = np.arange(n, dtype=np.int32) % k
    released = mechanism.sample(labels, rng)
    counts = np.bincount(labels * m + released, minlength=k * m).reshape(k, m)
    expected = mechanism.channel.matrix * counts.sum(axis=1, keepdims=True)
    possible = expected > 0
    assert counts[~possible].sum() == 0
    statistic = ((counts - expected)[possible] ** 2 / expected[possible]).sum()
    assert stats.chi2.sf(statistic, possible.sum() - k) > SIGNIFICANCE


@pytest.mark.parametrize("source", ["system", "generator"])
@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (10, 0.5), (53, 4.0)])
def test_frequencies_of_randomized_response(source, k, epsilon):
    rng = None if source == "system" else np.random.default_rng(1)
    assert_follows(RandomizedResponse.from_epsilon(tuple(range(k)), epsilon), 1_000_000, rng)


@pytest.mark.parametrize("source", ["system", "generator"])
def test_frequencies_of_a_table(source):
    rng = np.random.default_rng(2)
    matrix = rng.dirichlet(np.full(37, 0.3), size=5)
    table = WeightTable.from_probabilities(matrix)
    labels = (np.arange(500_000) % 5).astype(np.int32)
    drawn = table.draw(labels, None if source == "system" else rng)
    counts = np.bincount(labels * 37 + drawn, minlength=5 * 37).reshape(5, 37)
    expected = matrix * 100_000
    common = expected >= 5
    statistic = ((counts - expected)[common] ** 2 / expected[common]).sum()
    assert stats.chi2.sf(statistic, common.sum() - 5) > SIGNIFICANCE


@pytest.mark.validate
@pytest.mark.parametrize(("k", "epsilon"), [(2, 1.0), (53, 2.0)])
def test_frequencies_of_a_hundred_million_draws(k, epsilon):
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    total = np.zeros(k * k, dtype=np.int64)
    labels = (np.arange(10_000_000) % k).astype(np.int32)
    for _ in range(10):
        total += np.bincount(labels * k + mechanism.sample(labels), minlength=k * k)
    counts = total.reshape(k, k)
    expected = mechanism.channel.matrix * counts.sum(axis=1, keepdims=True)
    statistic = ((counts - expected) ** 2 / expected).sum()
    assert stats.chi2.sf(statistic, k * (k - 1)) > SIGNIFICANCE


def test_draws_are_repeatable_with_a_generator_and_not_without():
    labels = np.zeros(1000, np.int32)
    mechanism = RandomizedResponse.from_epsilon(tuple(range(9)), 1.0)
    first, second = (mechanism.sample(labels, np.random.default_rng(3)) for _ in "ab")
    np.testing.assert_array_equal(first, second)
    # Equal by chance with probability below 1e-300.
    assert (mechanism.sample(labels) != mechanism.sample(labels)).any()


@given(st.floats(0.05, 8), st.integers(2, 60))
@settings(max_examples=50)
def test_the_integers_have_the_epsilon_of_the_channel(epsilon, k):
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    assert integer_epsilon(mechanism.weights) == pytest.approx(epsilon, rel=1e-12, abs=1e-12)
