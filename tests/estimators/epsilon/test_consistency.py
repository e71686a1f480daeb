import numpy as np
import pytest
from scipy.stats import binom, binomtest

from ldpaudit.estimators.epsilon.consistency import (
    SMALLEST_P_VALUE,
    binomial_p_value,
    channel_consistency,
    likelihood_ratio_p_value,
    marginal_consistency,
)


def randomized_response(k: int, epsilon: float) -> np.ndarray:
    weights = np.ones((k, k))
    np.fill_diagonal(weights, np.exp(epsilon))
    return weights / weights.sum(axis=1, keepdims=True)


def test_the_entry_test_is_twice_the_smaller_binomial_tail() -> None:
    for count in (0, 3, 25, 40, 50):
        one_sided = min(
            binomtest(count, 50, 0.4, alternative=side).pvalue for side in ("less", "greater")
        )
        found = float(binomial_p_value(np.array(count), np.array(50), np.array(0.4)))
        assert found == pytest.approx(min(1, 2 * one_sided), rel=1e-5)


def test_the_entry_test_holds_for_rows_of_unequal_probabilities() -> None:
    """Exactly: the law of a sum of unequal coins, and the chance of each p-value or less."""
    rng = np.random.default_rng(0)
    for trial in range(40):
        n = int(rng.integers(2, 40))
        chances = rng.random(n) ** rng.integers(1, 12)
        chances = (1 - chances if trial % 2 else chances).round(6)
        law = np.ones(1)
        for chance in chances:
            law = np.convolve(law, [1 - chance, chance])
        found = binomial_p_value(np.arange(n + 1), np.array(n), np.array(chances.mean()))
        for p_value in found[found <= 0.1]:
            assert law[found <= p_value].sum() <= p_value * (1 + 1e-9)


@pytest.mark.parametrize("k", [2, 3, 8])
def test_p_values_are_valid(k: int) -> None:
    rng = np.random.default_rng(0)
    channel, prior, runs = randomized_response(k, 1.0), np.full(k, 1 / k), 300
    p_values: dict[str, list[float]] = {"channel": [], "marginal": []}
    for _ in range(runs):
        sizes = rng.multinomial(600, prior)
        counts = np.array([rng.multinomial(n, row) for n, row in zip(sizes, channel, strict=True)])
        p_values["channel"].append(channel_consistency(counts, channel, 0.05).p_value)
        found = marginal_consistency(counts.sum(axis=0), channel)
        assert found is not None
        p_values["marginal"].append(found)
    for alpha in (0.05, 0.3):
        limit = binom.isf(1e-7, runs, alpha)  # false alarm 1e-7 each, below 1e-6 in all
        assert np.sum(np.array(p_values["channel"]) <= alpha) <= limit
        assert np.sum(np.array(p_values["marginal"]) <= alpha) <= limit


def test_a_wrong_parametrisation_is_found() -> None:
    # λ read as the probability of a flip: twice the noise.
    rng = np.random.default_rng(1)
    claimed, true = np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.8, 0.2], [0.2, 0.8]])
    counts = np.array([rng.multinomial(2000, row) for row in true])
    found = channel_consistency(counts, claimed, 0.05)
    assert found.p_value < 1e-10
    assert (found.cells, found.inconsistent) == (2, 2)
    assert likelihood_ratio_p_value(counts, claimed) < 1e-10
    assert channel_consistency(counts, true, 0.05).inconsistent == 0


def test_the_released_shares_alone_can_refute_a_claim() -> None:
    channel = randomized_response(3, 0.5)
    # Under the claim every output has at least a share of 1/(e^0.5 + 2) = 0.274.
    assert marginal_consistency(np.array([100, 450, 450]), channel) == SMALLEST_P_VALUE
    assert marginal_consistency(np.array([280, 300, 420]), channel) == pytest.approx(1.0, abs=0.01)
    # Each share is possible by itself, but no mixture gives them together.
    narrow = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    assert marginal_consistency(np.array([600, 200, 200]), narrow) < 1e-8


def test_a_borderline_share_has_a_p_value_in_between() -> None:
    claimed = np.array([[0.7, 0.3], [0.3, 0.7]])
    found = marginal_consistency(np.array([280, 720]), claimed)
    assert found == pytest.approx(2 * binom.cdf(280, 1000, 0.3), rel=0.02)


def test_impossible_outputs() -> None:
    channel = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
    counts = np.array([[50, 49, 1], [0, 50, 50]])
    assert channel_consistency(counts, channel, 0.05).p_value < 1e-5
    assert likelihood_ratio_p_value(counts, channel) == 0.0
    fine = np.array([[50, 50, 0], [0, 50, 50]])
    assert channel_consistency(fine, channel, 0.05).p_value == 1.0


def test_labels_and_outputs_without_rows() -> None:
    channel = randomized_response(3, 1.0)
    counts = np.array([[580, 210, 210], [0, 0, 0], [210, 210, 580]])
    assert channel_consistency(counts, channel, 0.05).p_value > 0.05
    assert likelihood_ratio_p_value(counts, channel) > 0.05
    identity = np.eye(2)
    assert channel_consistency(np.array([[5, 0], [0, 0]]), identity, 0.05).p_value == 1.0
    assert likelihood_ratio_p_value(np.array([[5, 0], [0, 0]]), identity) == 1.0


def test_a_program_that_is_too_large_is_left_out() -> None:
    assert marginal_consistency(np.ones(500, dtype=np.int64), np.full((500, 500), 0.002)) is None
