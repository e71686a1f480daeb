"""Noise shared by rows at a fixed distance is found, named and thinned out."""

import numpy as np
import pytest

from ldpaudit.estimators.assumptions.lags import LagTest, lag_test, least_clear, of_some
from ldpaudit.estimators.assumptions.shared_noise import flip_chances

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
    assert len(found.apart(np.arange(4000))) == period
    first, second = found.pairs(4000)
    assert (second - first == period).all()


@pytest.mark.parametrize("size", [4, 20])
def test_runs_of_one_draw(size: int) -> None:
    outcomes = flips(np.random.default_rng(0), 8000, run=size)
    found = lags_of(outcomes)
    assert found.p_value < 1e-9
    assert found.period == 0
    assert size - 3 <= found.run <= 2 * size
    assert lags_of(outcomes[found.apart(np.arange(8000))]).p_value > 0.05


def test_a_short_table_is_not_tested() -> None:
    assert lags_of(np.zeros(40)).p_value == 1
    assert lags_of(np.zeros(400)).p_value == 1


@pytest.mark.parametrize("size", [5, 10, 20])
def test_a_short_tables_run_is_hardly_underestimated(size: int) -> None:
    """In 600 rows nine of ten draws give most of the block of one draw, and seldom two of them."""
    runs = [lags_of(flips(np.random.default_rng(s), 600, run=size)).run for s in range(40)]
    assert np.mean(np.array(runs) >= 0.6 * (size - 1)) >= 0.9
    assert np.median(runs) <= 2 * size


def test_a_short_tables_period_is_found() -> None:
    """Not one of its multiples, where few pairs make chance look strong."""
    found = [lags_of(flips(np.random.default_rng(s), 600, period=10)) for s in range(40)]
    periods = [test.period for test in found if test.p_value <= 0.05]
    assert np.mean(np.array(periods) <= 10) >= 0.8
    assert all((period and period % 5 == 0) or period <= 10 for period in periods)


def test_rows_that_take_no_part_keep_their_places() -> None:
    """Every other row of a sequence with period 10 repeats after 10 places, not after 5."""
    outcomes, rows = flips(np.random.default_rng(1), 2000, period=10), np.arange(0, 2000, 2)
    found = lag_test(outcomes, of_some(np.full(2000, outcomes.mean()), rows))
    assert found.period == 10
    assert found.apart(rows).tolist() == [0, 2, 4, 6, 8]


def test_a_file_sorted_by_its_released_labels_shares_no_noise() -> None:
    """Given the true label alone noise comes in two blocks; given the released one it does not."""
    rng = np.random.default_rng(0)
    truth = (rng.random(40_000) < 0.4).astype(np.int64)
    released = truth ^ (rng.random(40_000) < CHANCE)
    order = np.argsort(released, kind="stable")
    truth, released = truth[order], released[order]
    flipped = truth != released
    chances = [flip_chances(flipped, labels) for labels in (truth, released)]
    assert lag_test(flipped.astype(float), chances[0]).p_value < 0.001
    assert least_clear(flipped.astype(float), *chances).p_value > 0.05
