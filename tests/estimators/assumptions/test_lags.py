"""Noise shared by rows at a fixed distance is found, named and thinned out."""

import numpy as np
import pytest

from ldpaudit.estimators.assumptions.lags import LagTest, lag_test

CHANCE = 0.27


def flips(rng: np.random.Generator, n: int, period: int = 0, run: int = 1) -> np.ndarray:
    drawn = (rng.random(period or n) < CHANCE).astype(float)
    return np.resize(drawn, n) if period else np.repeat(drawn, run)[:n]


def lags_of(outcomes: np.ndarray) -> LagTest:
    return lag_test(outcomes, np.full(len(outcomes), outcomes.mean()))


def test_independent_noise_is_not_called_shared() -> None:
    """P(p ≤ 0.05) ≤ 0.05: of 200 draws more than 27 have a chance of 1e-6."""
    p_values = [lags_of(flips(np.random.default_rng(s), 400)).p_value for s in range(200)]
    assert sum(p <= 0.05 for p in p_values) <= 27


@pytest.mark.parametrize("period", [20, 1000])
def test_noise_that_repeats(period: int) -> None:
    found = lags_of(flips(np.random.default_rng(0), 4000, period=period))
    assert found.p_value < 1e-9
    assert (found.period, found.run) == (period, 0)
    assert len(found.apart(4000)) == period
    first, second = found.pairs(4000)
    assert (second - first == period).all()


@pytest.mark.parametrize("size", [4, 20])
def test_runs_of_one_draw(size: int) -> None:
    outcomes = flips(np.random.default_rng(0), 8000, run=size)
    found = lags_of(outcomes)
    assert found.p_value < 1e-9
    assert found.period == 0
    assert size - 3 <= found.run <= 2 * size
    assert lags_of(outcomes[found.apart(8000)]).p_value > 0.05


def test_a_short_table_is_not_tested() -> None:
    assert lags_of(np.zeros(40)).p_value == 1
    assert lags_of(np.zeros(400)).p_value == 1
