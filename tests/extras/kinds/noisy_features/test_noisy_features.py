"""Bounds of ε of noise on feature vectors: valid, and they find noise that is too small."""

import numpy as np
import pytest
from estimators.worlds import allowed
from scipy.stats import norm

from ldpaudit.extras.kinds.mechanisms.gaussian import gaussian_sigma
from ldpaudit.extras.kinds.noisy_features.audit import too_little
from ldpaudit.extras.kinds.noisy_features.guesses import PairGuesses, once, pair_guesses

DELTA, RADIUS = 1e-5, 1.0
BOUNDS = ("curve_epsilon", "one_run_epsilon", "point_epsilon")


def people(n: int, p: int, rng: np.random.Generator) -> np.ndarray:
    """Two clusters of vectors in the unit ball."""
    x = 0.3 * rng.normal(size=(n, p))
    x[:, 0] += np.where(rng.random(n) < 0.4, 0.5, -0.5)
    return x / np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))


def guessed(x: np.ndarray, noise: np.ndarray, epsilon: float, alpha: float = 0.05) -> PairGuesses:
    sigma = gaussian_sigma(epsilon, DELTA, 2 * RADIUS)
    found = pair_guesses(x, x + sigma * noise, sigma, alpha, np.random.default_rng(0))
    assert found is not None
    return found


def bounds(found: PairGuesses, alpha: float = 0.05) -> list[float]:
    """Return the three bounds in the order of ``BOUNDS``."""
    curve, run = (getattr(found, name)(alpha, RADIUS, DELTA) for name in BOUNDS[:2])
    return [curve, run, found.point_epsilon(alpha, DELTA)]


def misses(n: int, p: int, epsilon: float, draws: int, alpha: float) -> np.ndarray:
    """Count the draws in which each of the bounds lies above the true ε."""
    rng = np.random.default_rng([n, p, int(10 * epsilon)])
    x, missed = people(n, p, rng), np.zeros(3, dtype=int)
    # Both ends of the same data: all pairs are as far apart as can be.
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    for _ in range(draws):
        found = guessed(x, rng.normal(size=x.shape), epsilon, alpha)
        missed += np.array(bounds(found, alpha)) > epsilon * (1 + 1e-6)
    return missed


@pytest.mark.parametrize(("p", "epsilon"), [(1, 4.0), (5, 1.0)])
def test_no_bound_lies_above_the_true_epsilon_more_often_than_its_level(
    p: int, epsilon: float
) -> None:
    assert (misses(200, p, epsilon, 150, 0.1) <= allowed(150, 0.1)).all()


@pytest.mark.validate
@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
@pytest.mark.parametrize("p", [1, 4])
def test_no_bound_lies_above_the_true_epsilon_in_3000_draws(p: int, epsilon: float) -> None:
    assert (misses(400, p, epsilon, 3_000, 0.2) <= allowed(3_000, 0.2)).all()


def test_each_further_assumption_certifies_more_and_the_last_most_of_epsilon() -> None:
    rng = np.random.default_rng(5)
    for epsilon in (1.0, 4.0, 8.0):
        x = people(4_000, 4, rng)
        drawn = [bounds(guessed(x, rng.normal(size=x.shape), epsilon)) for _ in range(5)]
        curve, run, point = np.mean(drawn, axis=0)
        assert curve > max(0.6 * epsilon, 1.3 * run)
        assert run > 1.2 * point > 0


def test_noise_of_half_the_size_is_found_and_so_is_a_column_without_any() -> None:
    rng = np.random.default_rng(6)
    for p in (2, 10):
        x = people(2_000, p, rng)
        noise = rng.normal(size=x.shape)
        assert guessed(x, noise / 2, 4.0).curve_epsilon(0.05, RADIUS, DELTA) > 5
        noise[:, 0] = 0
        assert guessed(x, noise, 4.0).curve_epsilon(0.05, RADIUS, DELTA) > 20


def test_what_does_not_look_at_true_vectors_certifies_no_more() -> None:
    """Clipped and rounded vectors: less noise is left, and no bound rises above ε."""
    rng, epsilon = np.random.default_rng(7), 8.0
    sigma = gaussian_sigma(epsilon, DELTA, 2 * RADIUS)
    for change in (lambda v: np.clip(v, -1, 1), np.rint, np.sign):
        x = people(3_000, 3, rng)
        noisy = change(x + sigma * rng.normal(size=x.shape))
        found = pair_guesses(x, noisy, sigma, 0.001, rng)
        assert found is not None
        assert max(bounds(found, 0.001)) < epsilon
    assert too_little(np.clip(noisy, -1, 1) - x, sigma) < 1e-9


def test_vectors_of_other_people_certify_nothing() -> None:
    rng = np.random.default_rng(8)
    x, other = people(2_000, 3, rng), people(2_000, 3, rng)
    assert max(bounds(guessed(x, other - x, 1.0), 0.001)) < 0.1


def test_copies_count_once_and_few_or_equal_vectors_give_no_bound() -> None:
    rng = np.random.default_rng(9)
    x = people(60, 2, rng)
    twice = np.vstack([x, x])
    assert len(once(twice, twice, rng)) == 60
    assert pair_guesses(x, x, 1.0, 0.05, rng) is None
    assert pair_guesses(np.ones((500, 2)), x[rng.integers(0, 60, 500)], 1.0, 0.05, rng) is None


def test_the_amount_of_noise_has_an_exact_test() -> None:
    rng = np.random.default_rng(10)
    p_values = np.array([too_little(rng.normal(size=(50, 4)), 1.0) for _ in range(400)])
    for level in (0.02, 0.1, 0.4):
        assert (p_values <= level).sum() <= allowed(400, level)
    assert too_little(0.9 * rng.normal(size=(500, 4)), 1.0) < 1e-4
    assert too_little(1.1 * rng.normal(size=(500, 4)), 1.0) > 0.5
    one = rng.normal(size=(200, 20))
    one[:, 7] *= 0.5
    assert too_little(one, 1.0) < 1e-9


def test_the_independent_bound_is_the_binomial_one_where_all_pairs_are_alike() -> None:
    x = np.repeat([[-1.0], [1.0]], 500, axis=0)
    rng = np.random.default_rng(11)
    found = pair_guesses(x, x + 2 * rng.normal(size=x.shape), 2.0, 0.05, rng)
    assert found is not None
    assert np.allclose(found.distances, 2)
    truth = norm.cdf(2 / (np.sqrt(2) * 2))
    assert found.right.mean() == pytest.approx(truth, abs=0.1)
