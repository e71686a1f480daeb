"""Bets are valid p-values at every size, and grow where there is something to find."""

import numpy as np

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
