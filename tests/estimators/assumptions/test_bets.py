"""Bets are valid p-values at every size, and grow where there is something to find."""

import numpy as np
import pytest

from ldpaudit.estimators.assumptions.bets import bet_on_pairs, bet_on_rows, disjoint_pairs, p_value


def test_bets_on_rows_are_valid() -> None:
    """P(p ≤ 0.1) ≤ 0.1; with 400 draws more than 69 have a chance of 1e-6."""
    false = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        outcomes = (rng.random(60) < 0.3).astype(np.int32)
        strata = rng.integers(0, 3, 60)
        # The presumed tilt is as wild as it may be: it does not look at these outcomes.
        false += p_value(bet_on_rows(outcomes, strata, rng.normal(0, 1, 60))) <= 0.1
    assert false <= 69


def test_bets_on_rows_find_a_dependence() -> None:
    rng = np.random.default_rng(0)
    tilt = rng.choice([-0.5, 0.5], 1000)
    outcomes = (rng.random(1000) < 1 / (1 + np.exp(-tilt))).astype(np.int32)
    assert p_value(bet_on_rows(outcomes, np.zeros(1000, dtype=np.int64), tilt)) < 1e-6
    nothing = bet_on_rows(outcomes, np.zeros(1000, dtype=np.int64), 0 * tilt)
    assert p_value(nothing) > 0.999


def test_bets_on_pairs_are_valid() -> None:
    false = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        chances = rng.choice([0.02, 0.3, 0.8], 200)
        outcomes = (rng.random(200) < chances).astype(float)
        pairs = np.arange(0, 200, 2), np.arange(1, 200, 2)
        false += p_value(bet_on_pairs(outcomes, chances, *pairs)) <= 0.1
    assert false <= 69


def test_bets_on_pairs_find_shared_noise() -> None:
    rng = np.random.default_rng(1)
    outcomes = np.repeat((rng.random(100) < 0.1).astype(float), 2)
    chances = np.full(200, 0.1)
    pairs = disjoint_pairs(np.repeat(np.arange(100), 2), rng)
    assert len(pairs[0]) == 100
    assert p_value(bet_on_pairs(outcomes, chances, *pairs)) < 1e-6


def test_pairs_are_disjoint_and_of_one_cluster() -> None:
    clusters = np.random.default_rng(2).integers(0, 40, 300)
    first, second = disjoint_pairs(clusters, np.random.default_rng(3))
    assert (clusters[first] == clusters[second]).all()
    assert len(np.unique(np.r_[first, second])) == 2 * len(first)
    assert len(first) == (np.bincount(clusters) // 2).sum()


def test_a_bet_on_rows_multiplies_its_gains() -> None:
    """Each outcome is predicted from those of its stratum still to come, tilted; by a loop."""
    rng = np.random.default_rng(4)
    outcomes, strata = rng.integers(0, 2, 40).astype(np.int32), rng.integers(0, 3, 40)
    tilt = rng.normal(0, 1, 40)
    wealth = []
    for boldness in (0.5, 1.0):
        product = 1.0
        for row in range(40):
            left = [i for i in range(row, 40) if strata[i] == strata[row]]
            share, factor = outcomes[left].mean(), np.exp(boldness * tilt[row])
            chance = share * factor / (share * factor + 1 - share)
            product *= chance / share if outcomes[row] else (1 - chance) / (1 - share)
        wealth.append(product)
    assert np.exp(bet_on_rows(outcomes, strata, tilt)) == pytest.approx(np.mean(wealth))


def test_a_bet_on_pairs_multiplies_its_gains() -> None:
    rng = np.random.default_rng(5)
    chances = rng.choice([0.0, 0.2, 0.7, 1.0], 60)
    outcomes = (rng.random(60) < chances).astype(float)
    first, second = np.arange(0, 60, 2), np.arange(1, 60, 2)
    wealth = []
    for stake in (0.05, 0.1, 0.2, 0.4, 0.8):
        product = 1.0
        for a, b in zip(first, second, strict=True):
            p, q = chances[a], chances[b]
            if 0 < p < 1 and 0 < q < 1:
                gain = (outcomes[a] - p) * (outcomes[b] - q)
                product *= 1 + stake * gain / max(p * (1 - q), q * (1 - p))
        wealth.append(product)
    assert np.exp(bet_on_pairs(outcomes, chances, first, second)) == pytest.approx(np.mean(wealth))
