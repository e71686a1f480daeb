"""Bounds under a claimed curve, and tests that may look at any time: valid, and they find."""

import math

import numpy as np
import pytest
from estimators.worlds import allowed
from scipy.special import expit
from scipy.stats import binom, norm

from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.extras.kinds.noisy_features.one_run import one_run_epsilon
from ldpaudit.extras.kinds.noisy_features.tradeoff import (
    epsilon_of_mu,
    fixed_share,
    gaussian_mu,
    independent_mu,
    one_run_mu,
    one_run_refutes,
)
from ldpaudit.extras.probe.sequential import anytime_epsilon, log_wealth, refutes

DELTA = 1e-5


def gaussian_coins(mu: float, m: int, share: float, rng: np.random.Generator) -> GuessCounts:
    """Release each coin by a number with Gaussian noise of curve μ, and guess the surest."""
    coin = rng.random(m) < 0.5
    said = rng.normal(mu * (coin - 0.5))
    surest = np.argsort(-np.abs(said))[: math.ceil(share * m)]
    right = int(((said[surest] > 0) == coin[surest]).sum())
    return GuessCounts(m, right, len(surest) - right)


def common_noise(mu: float, m: int, rng: np.random.Generator) -> GuessCounts:
    """Release the share of ones with Gaussian noise: one number for all coins."""
    coin = rng.random(m) < 0.5
    ones = coin.sum() + rng.normal() / mu > m / 2
    right = int((coin == ones).sum())
    return GuessCounts(m, right, m - right)


def misses(mu: float, m: int, share: float, draws: int, alpha: float) -> int:
    """Count the draws in which the true μ is refuted: those with enough right guesses."""
    guesses = math.ceil(share * m)
    least = next(
        (
            v
            for v in range(guesses + 1)
            if one_run_refutes(GuessCounts(m, v, guesses - v), mu, alpha)
        ),
        guesses + 1,
    )
    rng = np.random.default_rng([m, guesses])
    return sum(gaussian_coins(mu, m, share, rng).right >= least for _ in range(draws))


def test_the_curve_and_its_epsilon_are_inverse() -> None:
    for epsilon in (0.5, 2.0, 8.0):
        assert epsilon_of_mu(gaussian_mu(epsilon, DELTA), DELTA) == pytest.approx(epsilon, rel=1e-6)
    assert epsilon_of_mu(0.0, DELTA) == 0


def test_the_recursion_is_that_of_one_candidate() -> None:
    """Of one candidate that is always guessed: right with at most f̄'s fixed point, Φ(μ/2)."""
    for mu in (0.5, 1.0, 2.0):
        chance = float(norm.cdf(mu / 2))
        assert not one_run_refutes(GuessCounts(1, 1, 0), mu, chance - 1e-6)
        assert one_run_refutes(GuessCounts(1, 1, 0), mu, chance + 1e-6)


def test_more_right_guesses_and_more_error_refute_more() -> None:
    bounds = [one_run_mu(GuessCounts(500, v, 50 - v), 0.05) for v in range(25, 51)]
    assert bounds == sorted(bounds)
    assert bounds[0] == 0 < bounds[-1]
    assert one_run_mu(GuessCounts(500, 45, 5), 0.01) < one_run_mu(GuessCounts(500, 45, 5), 0.1)
    assert one_run_mu(GuessCounts(500, 0, 0), 0.05) == 0


@pytest.mark.parametrize(("epsilon", "m", "share"), [(2.0, 200, 0.3), (4.0, 500, 0.1)])
def test_the_true_curve_is_refuted_no_more_often_than_the_level(
    epsilon: float, m: int, share: float
) -> None:
    assert misses(gaussian_mu(epsilon, DELTA), m, share, 300, 0.05) <= allowed(300, 0.05)


@pytest.mark.validate
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize(("m", "share"), [(100, 1.0), (1000, 1.0), (1000, 0.1), (1000, 0.02)])
def test_the_true_curve_is_refuted_rarely_in_3000_draws(
    epsilon: float, m: int, share: float
) -> None:
    assert misses(gaussian_mu(epsilon, DELTA), m, share, 3_000, 0.3) <= allowed(3_000, 0.3)


@pytest.mark.validate
@pytest.mark.parametrize("m", [1, 2, 5, 40])
def test_noise_that_all_candidates_share_refutes_nothing(m: int) -> None:
    rng, mu, alpha = np.random.default_rng(m), 1.0, 0.3
    found = [one_run_refutes(common_noise(mu, m, rng), mu, alpha) for _ in range(3_000)]
    assert sum(found) <= allowed(3_000, alpha)


def test_a_claimed_curve_certifies_more_than_one_point_of_it() -> None:
    """1,000 coins: the published gain over the bound for (ε, δ)."""
    rng = np.random.default_rng(3)
    for epsilon, least, gain in ((2.0, 0.9, 1.3), (4.0, 2.1, 1.3), (8.0, 4.4, 1.4)):
        mu = gaussian_mu(epsilon, DELTA)
        share = fixed_share(mu, 1_000, 0.05)
        counts = [gaussian_coins(mu, 1_000, share, rng) for _ in range(30)]
        under = np.mean([epsilon_of_mu(one_run_mu(c, 0.05), DELTA) for c in counts])
        without = np.mean([one_run_epsilon(c, 0.05, DELTA) for c in counts])
        assert under > max(least, gain * without)


def test_runs_of_their_own_certify_most() -> None:
    counts = GuessCounts(400, 276, 124)
    assert one_run_mu(counts, 0.05) < independent_mu(counts, 0.05)
    level = binom.sf(275, 400, norm.cdf(independent_mu(counts, 0.05) / 2))
    assert level == pytest.approx(0.05, abs=1e-6)
    assert independent_mu(GuessCounts(9, 0, 0), 0.05) == 0


# --- looking at any time


def first_refutation(truth: float, claim: float, rows: int, draws: int, seed: int) -> np.ndarray:
    """Return at which guess the claim is refuted, ``rows`` + 1 where it is not."""
    rng = np.random.default_rng(seed)
    right = np.cumsum(rng.random((draws, rows)) < expit(truth), axis=1)
    looks = np.arange(1, rows + 1)
    wealth = [log_wealth(r, looks - r, claim) >= math.log(20) for r in right.astype(float)]
    hit = np.array(wealth)
    return np.where(hit.any(axis=1), hit.argmax(axis=1) + 1, rows + 1)


def test_an_honest_claim_is_rarely_refuted_however_often_one_looks() -> None:
    assert (first_refutation(1.0, 1.0, 600, 300, 1) <= 600).sum() <= allowed(300, 0.05)


@pytest.mark.validate
def test_an_honest_claim_is_rarely_refuted_in_3000_draws() -> None:
    for epsilon in (0.1, 1.0, 3.0):
        assert (first_refutation(epsilon, epsilon, 2_000, 3_000, 2) <= 2_000).sum() <= allowed(
            3_000, 0.05
        )


def test_a_leak_is_found_sooner_than_by_a_number_fixed_beforehand() -> None:
    """Rows that a test of fixed size needs for a power of 90 %: 545, 225, 60."""
    for truth, fixed in ((1.3, 545), (1.5, 225), (2.0, 60)):
        found = first_refutation(truth, 1.0, 3 * fixed, 300, 3)
        assert (found <= 3 * fixed).mean() > 0.95
        assert found.mean() < fixed


def test_the_bound_after_looks_is_where_the_claim_stops_being_refuted() -> None:
    looks = [(40, 5), (95, 9), (150, 30)]
    bound = anytime_epsilon(looks, 0.05)
    assert refutes(looks, bound, 0.05)
    assert not refutes(looks, bound + 2e-4, 0.05)
    assert 0 < anytime_epsilon(looks[:1], 0.05) < bound
    assert bound < one_run_epsilon(GuessCounts(104, 95, 9), 0.05)
    assert anytime_epsilon([], 0.05) == 0
