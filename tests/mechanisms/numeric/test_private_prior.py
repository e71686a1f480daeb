import math

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.mechanisms.numeric.private_prior import (
    check_prior_budget,
    prior_budget,
    private_prior,
)


def test_the_split_of_the_paper():
    assert prior_budget(1.0, 400, 1_000_000) == pytest.approx(0.02)


@pytest.mark.parametrize(("epsilon", "k", "n"), [(0.1, 100, 10_000), (1.0, 2, 0), (0.5, 10, 3)])
def test_too_few_rows_leave_nothing_for_the_labels(epsilon, k, n):
    with pytest.raises(InputError, match="rows"):
        prior_budget(epsilon, k, n)


@pytest.mark.parametrize(("epsilon", "k", "n"), [(1e-12, 2, 10**6), (0.1, 100, 1000)])
def test_a_prior_of_noise_alone_is_refused(epsilon, k, n):
    with pytest.raises(InputError, match="noise alone"):
        check_prior_budget(epsilon, k, n)


def test_noise_smaller_than_the_table_is_allowed():
    check_prior_budget(0.2, 100, 1000)


def test_the_noise_has_scale_two_over_epsilon():
    rng = np.random.default_rng(5)
    k, epsilon, count = 20_000, 0.5, 10_000
    prior = private_prior(np.full(k, count), epsilon, rng)
    noisy = prior * (k * count)
    # Var of discrete Laplace noise 2q/(1−q)², q = e^{−1/b}, b = 2/ε. The total moves each value by
    # less than 1 %. 6 standard errors of a variance, kurtosis 6: 0.1.
    q = math.exp(-epsilon / 2)
    expected = 2 * q / (1 - q) ** 2
    assert np.var(noisy) == pytest.approx(expected, rel=0.12)


def test_it_approaches_the_frequencies():
    counts = np.array([500_000, 300_000, 0, 200_000])
    prior = private_prior(counts, 0.5, np.random.default_rng(1))
    assert prior.sum() == pytest.approx(1)
    assert (prior >= 0).all()
    # Discrete Laplace noise of scale 4: beyond 200 with probability e^{−50}.
    assert prior == pytest.approx(counts / counts.sum(), abs=1e-3)


def test_nothing_left_is_uniform():
    seeds = (np.random.default_rng(seed) for seed in range(200))
    priors = [private_prior([0, 0], 1.0, rng) for rng in seeds]
    assert any(np.array_equal(prior, [0.5, 0.5]) for prior in priors)
    assert all(prior.sum() == pytest.approx(1) for prior in priors)


def test_the_system_s_generator_is_the_default():
    assert private_prior([10, 20, 30], 1.0).shape == (3,)


def test_wrong_counts_are_refused():
    rng = np.random.default_rng(0)
    for counts in ([1.5, 2.0], [-1, 2], [[1, 2]]):
        with pytest.raises(InputError, match="counts"):
            private_prior(counts, 1.0, rng)
    with pytest.raises(InputError, match="above 0"):
        private_prior([1, 2], 0.0, rng)
