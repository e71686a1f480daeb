"""Posteriors of labels in bags: against enumeration, and the published numbers."""

import itertools

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.extras.kinds.bags.posterior import (
    bag_posterior,
)
from ldpaudit.extras.kinds.mechanisms.label_proportions import LabelProportions

EVEN_ODDS = {1: 0.5, 2: 0.25, 4: 0.1875, 8: 0.1367, 16: 0.0982, 32: 0.0700, 64: 0.0497, 256: 0.0249}


def mechanism(noise="none", epsilon=None):
    return LabelProportions("bag", ("no", "yes"), noise, epsilon, "sum")


@pytest.mark.parametrize(("size", "advantage"), EVEN_ODDS.items())
def test_the_known_advantages_at_even_odds(size, advantage):
    sums = np.arange(size + 1.0)
    members = np.repeat(np.arange(size + 1), size)
    made = mechanism()
    found = bag_posterior(
        np.full(len(members), 0.5), members, sums, made.log_likelihood, made.epsilon
    )
    right = np.maximum(found, 1 - found).reshape(size + 1, size).mean(axis=1)
    pmf = binom.pmf(np.arange(size + 1), size, 0.5)
    assert pmf @ right - 0.5 == pytest.approx(advantage, abs=5e-5)


@pytest.mark.parametrize(
    ("noise", "epsilon", "released"),
    [
        ("none", None, 0.0),
        ("none", None, 3.0),
        ("laplace", 0.7, -4.3),
        ("laplace", 5.0, 2.6),
        ("geometric", 0.01, 40.0),
        ("geometric", 3.0, 2.0),
        ("geometric", 30.0, 3.0),
    ],
)
def test_it_is_what_enumeration_gives(noise, epsilon, released):
    priors, made = np.random.default_rng(4).uniform(0.001, 0.999, 7), mechanism(noise, epsilon)
    weights = np.exp(made.log_likelihood(np.array([released]), 7)[0])
    every = np.array(list(itertools.product((0, 1), repeat=7)))
    joint = np.prod(np.where(every == 1, priors, 1 - priors), axis=1) * weights[every.sum(axis=1)]
    expected = joint @ every / joint.sum()
    members = np.zeros(7, dtype=int)
    found = bag_posterior(priors, members, np.array([released]), made.log_likelihood, made.epsilon)
    assert np.allclose(found, expected, atol=1e-12)


def test_improbable_sums_of_large_bags_do_not_underflow():
    priors, members, made = np.full(2000, 0.01), np.zeros(2000, int), mechanism()
    found = bag_posterior(priors, members, np.array([1999.0]), made.log_likelihood, np.inf)
    assert np.allclose(found, 0.9995, atol=1e-9)
    faint = mechanism("laplace", 0.001)
    found = bag_posterior(priors, members, np.array([1000.0]), faint.log_likelihood, 0.001)
    # A slope of ε tilts the odds of every label by e^ε.
    assert np.allclose(found, 0.01 * np.exp(0.001) / (0.99 + 0.01 * np.exp(0.001)), atol=1e-9)


def test_bags_of_many_sizes_are_told_apart():
    rng, made = np.random.default_rng(2), mechanism("geometric", 1.0)
    members = rng.integers(0, 30, 400)
    priors, released = rng.uniform(0, 1, 400), rng.integers(0, 12, 30).astype(float)
    found = bag_posterior(priors, members, released, made.log_likelihood, 1.0)
    for bag in (0, 7, 29):
        own = members == bag
        alone = bag_posterior(
            priors[own], np.zeros(own.sum(), int), released[[bag]], made.log_likelihood, 1.0
        )
        assert np.allclose(found[own], alone, atol=1e-12)
