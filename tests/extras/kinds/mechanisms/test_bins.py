import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from integer_tables import integer_epsilon
from scipy.optimize import linprog, minimize_scalar

from ldpaudit.extras.kinds.mechanisms.bins import optimal_bins
from ldpaudit.mechanisms.label_range import loss

LOSSES = ["squared", "absolute", "poisson"]


def least_loss(name, labels, weights):
    """min over m of Σ weight · ℓ(m, label), by search: losses are unimodal between the ends."""
    labels = np.asarray(labels, float)
    if name == "absolute":
        return min(float(weights @ np.abs(m - labels)) for m in labels)
    low = max(labels[0], 1e-9) if name == "poisson" else labels[0]
    found = minimize_scalar(
        lambda m: float(weights @ loss(name, np.full(len(labels), m), labels)),
        bounds=(low, labels[-1]),
        method="bounded",
        options={"xatol": 1e-11},
    )
    return float(found.fun)


def best_of_all_partitions(name, labels, prior, epsilon):
    k, best = len(labels), math.inf
    for cuts in itertools.product([False, True], repeat=k - 1):
        bins = np.concatenate([[0], np.cumsum(cuts)])
        d = bins[-1] + 1
        low = 1 / (math.exp(epsilon) + d - 1)
        total = sum(
            least_loss(name, labels, prior * np.where(bins == z, math.exp(epsilon) * low, low))
            for z in range(d)
        )
        best = min(best, total)
    return best


def best_of_all_channels(name, labels, prior, epsilon):
    """An LP over all 2^k staircase columns, each with its own best output: every ε-DP channel."""
    k = len(labels)
    bits = np.array(list(itertools.product([0, 1], repeat=k)), dtype=float).T
    columns = 1 + math.expm1(epsilon) * bits
    costs = np.array([least_loss(name, labels, prior * column) for column in columns.T])
    solved = linprog(costs, A_eq=columns, b_eq=np.ones(k), method="highs")
    return float(solved.fun)


def problem(seed, most, zeros=False):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, most + 1))
    labels = np.cumsum(rng.uniform(0.05, 3, size=k))
    prior = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 5.0])))
    if zeros:
        prior[rng.random(k) < 0.4] = 0
        prior = prior / prior.sum() if prior.sum() else np.full(k, 1 / k)
    return labels, prior, float(rng.choice([0.1, 0.5, 1, 2, 4, 8]))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(6))
def test_it_equals_the_best_of_all_partitions(name, seed):
    labels, prior, epsilon = problem(seed, 7, zeros=seed % 3 == 0)
    design = optimal_bins(labels.tolist(), prior, epsilon, name)
    oracle = best_of_all_partitions(name, labels, prior, epsilon)
    assert design.loss == pytest.approx(oracle, rel=1e-9, abs=1e-9)
    assert design.mechanism.expected_loss(prior, name) == pytest.approx(design.loss, rel=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(100, 103))
def test_no_private_channel_of_any_kind_is_better(name, seed):
    labels, prior, epsilon = problem(seed, 8)
    design = optimal_bins(labels.tolist(), prior, epsilon, name)
    oracle = best_of_all_channels(name, labels, prior, epsilon)
    assert design.loss == pytest.approx(oracle, rel=1e-8, abs=1e-8)


def test_the_example_of_the_paper():
    # Badanidiyuru et al. (2023), section 3: Φ(0) = .396, Φ(1) = Φ(2) = .720 at ε = 0.5.
    design = optimal_bins([0, 1, 2], [0.6, 0.25, 0.15], 0.5)
    assert design.mechanism.outputs == pytest.approx([0.39590, 0.71997], abs=5e-6)
    assert design.mechanism.starts == (0, 1)
    assert design.mechanism.bins.tolist() == [0, 1, 1]


@settings(max_examples=20)
@given(st.integers(0, 10**6), st.sampled_from(LOSSES))
def test_privacy_is_never_exceeded_by_rounding(seed, name):
    labels, prior, epsilon = problem(seed, 12, zeros=True)
    mechanism = optimal_bins(labels.tolist(), prior, epsilon, name).mechanism
    assert mechanism.epsilon <= epsilon
    assert integer_epsilon(mechanism.weights) <= epsilon * (1 + 1e-15)
    if len(mechanism.outputs) > 1:
        assert mechanism.epsilon >= epsilon - 1e-12
    assert len(set(mechanism.outputs)) == len(mechanism.outputs)
    assert labels[0] - 1e-9 <= min(mechanism.outputs)
    assert max(mechanism.outputs) <= labels[-1] + 1e-9
