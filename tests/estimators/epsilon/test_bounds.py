"""ε from the accuracy of a guess: its inverse, and the channels that allow the most."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ldpaudit.estimators.epsilon.bounds import accuracy_epsilon, epsilon_of_accuracy

# Expected 95 % bounds for binary randomized response with as many rows of either label.
EXPECTED = {
    1_000: (0.389, 0.881, 1.839, 3.601, 5.064, 5.809),
    100_000: (0.489, 0.988, 1.984, 3.961, 5.896, 7.700),
}
EPSILONS = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)


def largest_accuracy(epsilon: float, sizes: np.ndarray) -> float:
    """Return max_j P_j e^ε/(e^ε + j − 1), what :func:`epsilon_of_accuracy` inverts."""
    cumulative = np.cumsum(-np.sort(-sizes)) / sizes.sum()
    return float(np.max(cumulative / (1 + np.arange(len(sizes)) * math.exp(-epsilon))))


@pytest.mark.parametrize("n", EXPECTED)
def test_expected_bounds_of_binary_randomized_response(n: int) -> None:
    correct = np.round(n / (1 + np.exp(-np.array(EPSILONS)))).astype(int)
    found = accuracy_epsilon(correct, np.array([n // 2, n // 2]), 0.05)
    assert found == pytest.approx(EXPECTED[n], abs=0.0006)  # the table's rounding


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=7), st.floats(0.0, 10.0))
def test_epsilon_of_accuracy_inverts_the_largest_accuracy(sizes: list[int], epsilon: float) -> None:
    best = largest_accuracy(epsilon, np.array(sizes))
    back = float(epsilon_of_accuracy(np.array(best), np.array(sizes)))
    assert back <= epsilon + 1e-6
    assert largest_accuracy(back, np.array(sizes)) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.5])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_no_epsilon_dp_channel_exceeds_the_largest_accuracy(epsilon: float, k: int) -> None:
    sizes = np.random.default_rng(k).integers(1, 100, k)
    # Maximise Σ p_y T[y, y] over all ε-DP channels: T[y, z] ≤ e^ε T[y', z].
    cost = -np.diag(sizes / sizes.sum()).ravel()
    pairs = [(y, o, z) for y in range(k) for o in range(k) for z in range(k) if y != o]
    ratio = np.zeros((len(pairs), k * k))
    for i, (y, o, z) in enumerate(pairs):
        ratio[i, y * k + z], ratio[i, o * k + z] = 1.0, -math.exp(epsilon)
    rows = np.kron(np.eye(k), np.ones(k))
    found = linprog(cost, ratio, np.zeros(len(pairs)), rows, np.ones(k), bounds=(0, 1))
    assert -found.fun == pytest.approx(largest_accuracy(epsilon, sizes), abs=1e-7)
