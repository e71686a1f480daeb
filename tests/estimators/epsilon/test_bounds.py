import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import logit
from scipy.stats import binom

from ldpaudit.estimators.epsilon.bounds import (
    accuracy_bound,
    epsilon_of_accuracy,
    largest_accuracy,
)
from ldpaudit.estimators.intervals.binomial import trials_lower, trials_upper

# Expected 95 % bounds for binary randomized response with as many rows of either label.
EXPECTED = {
    1_000: (0.389, 0.881, 1.839, 3.601, 5.064, 5.809),
    10_000: (0.466, 0.963, 1.949, 3.874, 5.654, 7.162),
    100_000: (0.489, 0.988, 1.984, 3.961, 5.896, 7.700),
    1_000_000: (0.497, 0.996, 1.995, 3.988, 5.967, 7.911),
}
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)

shares = st.lists(st.integers(1, 1000), min_size=2, max_size=7)


@pytest.mark.parametrize("n", EXPECTED)
def test_expected_bounds_of_binary_randomized_response(n: int) -> None:
    for epsilon, wanted in zip(EPSILONS, EXPECTED[n], strict=True):
        correct = round(n / (1 + math.exp(-epsilon)))
        accuracy = accuracy_bound(correct, np.array([n // 2, n // 2]), 0.05).epsilon
        one_run = logit(float(trials_lower(correct, n, 0.05)))
        assert one_run == pytest.approx(accuracy, rel=1e-12)
        assert accuracy >= wanted - 0.0006  # the table's rounding


@given(shares, st.floats(0.0, 10.0))
def test_epsilon_of_accuracy_inverts_the_largest_accuracy(sizes: list[int], epsilon: float) -> None:
    best = largest_accuracy(epsilon, np.array(sizes))
    back = float(epsilon_of_accuracy(np.array(best), np.array(sizes)))
    assert back <= epsilon + 1e-6
    assert largest_accuracy(back, np.array(sizes)) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 2.5])
def test_no_epsilon_dp_channel_exceeds_the_largest_accuracy(epsilon: float) -> None:
    rng = np.random.default_rng(0)
    for k in (2, 3, 4):
        sizes = rng.integers(1, 100, k)
        # Maximise Σ p_y T[y, y] over all ε-DP channels: T[y, z] ≤ e^ε T[y', z].
        cost = -np.diag(sizes / sizes.sum()).ravel()
        pairs = [(y, o, z) for y in range(k) for o in range(k) for z in range(k) if y != o]
        ratio = np.zeros((len(pairs), k * k))
        for i, (y, o, z) in enumerate(pairs):
            ratio[i, y * k + z], ratio[i, o * k + z] = 1.0, -math.exp(epsilon)
        rows = np.kron(np.eye(k), np.ones(k))
        found = linprog(cost, ratio, np.zeros(len(pairs)), rows, np.ones(k), bounds=(0, 1))
        assert -found.fun == pytest.approx(largest_accuracy(epsilon, sizes), abs=1e-7)


def test_accuracy_that_a_constant_guess_reaches_proves_nothing() -> None:
    assert accuracy_bound(900, np.array([900, 100]), 0.05).epsilon == 0.0
    assert accuracy_bound(500, np.array([500, 500]), 0.05).epsilon == 0.0
    assert accuracy_bound(0, np.array([0, 0]), 0.05).epsilon == 0.0
    assert accuracy_bound(980, np.array([900, 100]), 0.05).epsilon > 2.5


@given(st.integers(1, 200), st.data())
def test_mean_bounds_hold_for_unequal_probabilities(n: int, data: st.DataObject) -> None:
    # Half of the rows surely right: the sum is n/2 + Bin(n/2, p), less spread than a binomial.
    p = data.draw(st.integers(0, 1000)) / 1000
    sure, mean = n // 2, (n // 2 + (n - n // 2) * p) / n
    counts = np.arange(n + 1)
    chance = binom.pmf(counts - sure, n - sure, p)
    assert chance[trials_lower(counts, n, 0.1) > mean + 1e-12].sum() <= 0.1 + 1e-9
    assert chance[trials_upper(counts, n, 0.1) < mean - 1e-12].sum() <= 0.1 + 1e-9


@given(st.lists(st.integers(0, 500), min_size=4, max_size=4), st.floats(1e-4, 0.4))
def test_a_smaller_error_probability_never_gives_more(cells: list[int], alpha: float) -> None:
    table = np.array(cells).reshape(2, 2)
    sizes, right = table.sum(axis=1), int(np.trace(table))
    weaker = accuracy_bound(right, sizes, alpha / 2).epsilon
    assert weaker <= accuracy_bound(right, sizes, alpha).epsilon + 1e-12
