"""Powers are sums over all counts that exceed a limit; sums of binomials are convolutions."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.epsilon import power
from ldpaudit.estimators.epsilon.bounds import (
    accuracy_bound,
    epsilon_of_accuracy,
    largest_accuracy,
    two_sided_bound,
)
from ldpaudit.estimators.epsilon.consistency import channel_consistency
from ldpaudit.estimators.epsilon.power import (
    SumOfBinomials,
    accuracy_power,
    event_power,
    least_count,
    smallest_detectable,
    two_sided_power,
)
from ldpaudit.estimators.epsilon.two_sided import event_bound
from ldpaudit.estimators.intervals.odds_ratio import upper_tail_probability
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse

THREE = SumOfBinomials(np.array([7, 0, 5, 9]), np.array([0.2, 0.5, 0.7, 0.2]))


def convolved() -> np.ndarray:
    mass = np.ones(1)
    for n, p in zip(THREE.trials, THREE.probabilities, strict=True):
        mass = np.convolve(mass, binom.pmf(np.arange(n + 1), n, p))
    return mass


def test_sums_of_binomials_are_convolutions() -> None:
    tail = np.cumsum(convolved()[::-1])[::-1]
    assert THREE.survival(np.arange(22.0)) == pytest.approx(tail, abs=1e-12)
    assert THREE.survival(np.array([22.0, 90.0])) == pytest.approx(0)
    nobody = SumOfBinomials(np.array([0]), np.array([0.5]))
    assert nobody.survival(np.array([0.0, 1.0])).tolist() == [1.0, 0.0]


def test_large_sums_leave_out_nothing_that_counts() -> None:
    large = SumOfBinomials(np.array([200_000, 100_000]), np.array([0.3, 0.6]))
    mean, spread = 120_000, math.sqrt(200_000 * 0.21 + 100_000 * 0.24)
    found = large.survival(np.array([mean - 3 * spread, mean + 0.5, mean + 3 * spread]))
    assert found == pytest.approx([0.99865, 0.5, 0.00135], abs=2e-3)


@pytest.mark.parametrize("nodes", [5, 200])
def test_a_window_covers_the_distribution(nodes: int) -> None:
    values, weights = THREE.window(nodes)
    assert weights.sum() == pytest.approx(1)
    assert (values[0], values[-1]) == (0, 21)
    if nodes == 200:
        assert weights == pytest.approx(convolved(), abs=1e-12)
    else:
        assert len(values) == 5
        assert weights @ values == pytest.approx(THREE.trials @ THREE.probabilities, abs=0.3)
    wide, _ = SumOfBinomials(np.array([10**6]), np.array([0.5])).window(801)
    assert wide[0] == pytest.approx(500_000 - 9 * 500 - 20, abs=1)
    assert wide[-1] == pytest.approx(500_000 + 9 * 500 + 20, abs=1)


@pytest.mark.parametrize(
    ("sizes", "limit", "least"), [([30, 10], 0.4, 0.7), ([12, 12, 12], 0.2, 0.4)]
)
def test_the_power_of_right_guesses(sizes: list[int], limit: float, least: float) -> None:
    rows, n = np.array(sizes), sum(sizes)
    right = SumOfBinomials(rows, np.linspace(least, 0.9, len(sizes)))
    mass = np.ones(1)
    for size, p in zip(sizes, right.probabilities, strict=True):
        mass = np.convolve(mass, binom.pmf(np.arange(size + 1), size, p))
    above = [accuracy_bound(c, rows, 0.1).epsilon > limit for c in range(n + 1)]
    expected = mass[above].sum()
    assert 0.01 < expected < 0.999
    assert accuracy_power(right, rows, limit, 0.1) == pytest.approx(expected)


def test_a_count_is_the_least_whose_bound_exceeds() -> None:
    for n, p, alpha in ((30, 0.4, 0.05), (7, 0.9, 0.2), (5, 0.99, 0.01), (4, 1.0, 0.1)):
        above = [c for c in range(n + 1) if binom.sf(c - 1, n, p) < alpha]
        assert least_count(n, p, alpha) == min(above, default=n + 1)


@pytest.mark.parametrize(("limit", "truth"), [(0.3, 0.8), (1.5, 0.97)])
def test_the_power_of_two_groups(limit: float, truth: float) -> None:
    negative = SumOfBinomials(np.array([25]), np.array([1 - truth]))
    positive = SumOfBinomials(np.array([18]), np.array([truth]))
    expected = sum(
        binom.pmf(a, 25, 1 - truth) * binom.pmf(b, 18, truth)
        for a in range(26)
        for b in range(19)
        if two_sided_bound((a, b), (25, 18), 0.1).epsilon > limit
    )
    assert 0.01 < expected < 0.999
    assert two_sided_power(negative, positive, limit, 0.1) == pytest.approx(expected)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5])
@pytest.mark.parametrize(("often", "limit"), [((0.1, 0.6), 0.6), ((0.02, 0.4), 1.2)])
def test_the_power_of_an_event_in_two_labels(
    share: float, often: tuple[float, float], limit: float
) -> None:
    n0, n1 = 40, 30
    expected = sum(
        binom.pmf(a, n0, often[0]) * binom.pmf(b, n1, often[1])
        for a in range(n0 + 1)
        for b in range(n1 + 1)
        if event_bound(np.array([[n0 - a, a], [n1 - b, b]]), share, 0.1).epsilon > limit
    )
    rows = np.array([[n0 * (1 - often[0]), n0 * often[0]], [n1 * (1 - often[1]), n1 * often[1]]])
    assert 0.01 < expected < 0.999
    assert event_power(rows, share, limit, 0.1) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("n0", "n1", "theta"), [(20, 15, 0.5), (6, 40, 2.0), (30, 30, 0.0)])
def test_the_least_count_that_refutes_an_odds_ratio(n0: int, n1: int, theta: float) -> None:
    for false in range(n0 + 1):
        refuting = [
            true
            for true in range(1, n1 + 1)
            if false < n0
            and upper_tail_probability(np.array([[n0 - false, false], [n1 - true, true]]), theta)
            < 0.05
        ]
        found = power._least_true(n0, n1, false, theta, 0.05)
        assert found == min(refuting, default=n1 + 1)


@pytest.mark.parametrize("sizes", [[50, 30, 20], [10, 10], [97, 1, 1, 1]])
def test_accuracy_and_epsilon_are_inverse(sizes: list[int]) -> None:
    rows = np.array(sizes)
    shares = np.sort(rows / rows.sum())[::-1]
    for epsilon in (0.1, 1.0, 4.0):
        best = max(
            shares[:j].sum() * math.exp(epsilon) / (math.exp(epsilon) + j - 1)
            for j in range(1, len(sizes) + 1)
        )
        assert largest_accuracy(epsilon, rows) == pytest.approx(best)
        expected = epsilon if best > shares[0] + 1e-9 else 0.0
        assert epsilon_of_accuracy(np.array(best), rows) == pytest.approx(expected)
    assert epsilon_of_accuracy(np.array([0.0, shares[0], 1.0]), rows).tolist() == [0, 0, np.inf]


def test_absent_labels_are_no_cells() -> None:
    claim = RandomizedResponse.from_epsilon((0, 1, 2), 1.0).channel.matrix
    counts = np.array([[60, 20, 20], [0, 0, 0], [25, 25, 60]])
    found = channel_consistency(counts, claim, 0.05)
    assert found.cells == 6
    cells = [
        2 * min(binom.cdf(c, n, p), binom.sf(c - 1, n, p))
        for row, n, probabilities in ((counts[0], 100, claim[0]), (counts[2], 110, claim[2]))
        for c, p in zip(row, probabilities, strict=True)
    ]
    assert found.p_value == pytest.approx(min(1, 6 * min(cells)))
    assert found.inconsistent == sum(6 * p <= 0.05 for p in cells)


def test_nothing_is_found_beyond_sixty_nats() -> None:
    assert smallest_detectable(lambda _: 0.0, 0.0, 0.9) == math.inf
