import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.exact_sampling import (
    TOTAL,
    WeightTable,
    integer_weights,
    randomized_response,
    uniform_below,
)


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
        # What is possible has a unit at least, which the likeliest outcome gives.
        assert abs(weight - Fraction(p) / scale * TOTAL) <= 2 + len(row) * int(p == row.max())
        assert (p > 0) == (weight > 0)


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


def test_draws_are_repeatable_with_a_generator_and_not_without():
    labels = np.zeros(1000, np.int32)
    mechanism = RandomizedResponse.from_epsilon(tuple(range(9)), 1.0)
    first, second = (mechanism.sample(labels, np.random.default_rng(3)) for _ in "ab")
    np.testing.assert_array_equal(first, second)
    # Equal by chance with probability below 1e-300.
    assert (mechanism.sample(labels) != mechanism.sample(labels)).any()
