import numpy as np
import pytest
from scipy.stats import chi2

from ldpaudit.estimators.epsilon.one_run import CandidateDesign, design_candidates


def _symmetric(k: int, epsilon: float) -> np.ndarray:
    weights = np.ones((k, k))
    np.fill_diagonal(weights, np.exp(epsilon))
    return weights / k if epsilon == 0 else weights / weights.sum(axis=1, keepdims=True)


def test_candidates_are_uniform_whatever_the_classes_are() -> None:
    # The output is the label itself, so right guesses count candidates of each label.
    rng = np.random.default_rng(0)
    counts = np.diag([4000, 900])
    design, _ = design_candidates(counts.sum(axis=1), _symmetric(2, 1.0), 0.05)
    only_first = np.array([[4000, 0], [0, 0]]) + np.array([[0, 0], [900, 0]])
    drawn = [design.draw(only_first, rng)[1] for _ in range(2000)]
    # The output is constant: right guesses are Binomial(candidates, 1/2), mean and variance alike.
    n = design.candidates
    assert np.mean(drawn) == pytest.approx(n / 2, abs=5 * np.sqrt(n / 4 / 2000))
    ratio = np.var(drawn, ddof=1) / (n / 4) * 1999
    # False alarm 1e-6.
    assert chi2.ppf(5e-7, 1999) < ratio < chi2.isf(5e-7, 1999)


def test_a_constant_output_is_no_leak() -> None:
    rng = np.random.default_rng(1)
    counts = np.array([[9000, 0], [1000, 0]])
    design, _ = design_candidates(counts.sum(axis=1), _symmetric(2, 1.0), 0.05)
    guesses = [design.draw(counts, rng) for _ in range(400)]
    misses = sum(design.bound(*drawn, 0.05).epsilon > 0 for drawn in guesses)
    assert misses <= 49  # Binomial(400, 0.05) exceeds it with probability below 1e-6


def test_few_rows_are_lost_to_the_drawing() -> None:
    for n in (1_000, 100_000):
        sizes = np.array([n // 2, n // 2])
        design, _ = design_candidates(sizes, _symmetric(2, 1.0), 0.05)
        assert design.candidates > n - 5 * np.sqrt(n)
        assert design.overflow <= 1e-4


def test_the_subset_of_labels_leaves_rare_ones_out() -> None:
    sizes = np.array([5000, 3, 5000, 5000, 10])
    design, _ = design_candidates(sizes, _symmetric(5, 2.0), 0.05)
    assert sorted(design.labels) == [0, 2, 3]
    # Outputs that are no candidate's are abstained from.
    assert (design.guess[[1, 4]] == -1).all()
    assert (design.guess[[0, 2, 3]] == [0, 2, 3]).all()


def test_one_class_gives_nothing() -> None:
    counts = np.array([[50, 50], [0, 0]])
    design, _ = design_candidates(counts.sum(axis=1), _symmetric(2, 1.0), 0.05)
    assert design.draw(counts, np.random.default_rng(0)) == (0, 0)
    assert design.bound(0, 0, 0.05).epsilon == 0.0


def test_chances_that_round_to_above_one_are_one() -> None:
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(40), size=(300, 2))
    labels, guess = np.array([0, 1], np.int32), np.tile(np.array([0, 1], np.int32), 20)
    design = CandidateDesign(labels, 10, guess, 0.0)
    assert max(row.sum() / 2 for row in rows) > 1  # rounding: otherwise this tests nothing
    assert all(design.chances(row)[1] <= 1 for row in rows)
