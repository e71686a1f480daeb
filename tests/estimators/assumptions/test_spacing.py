"""At which distances rows share noise, and which rows are left."""

import numpy as np
import pytest
from estimators.worlds import Rng, flips

from ldpaudit.estimators.assumptions.spacing import Spacing, spacing_of
from ldpaudit.estimators.departures import Order
from ldpaudit.estimators.row_noise import RowNoise
from ldpaudit.estimators.whiteness import autocorrelations, white
from ldpaudit.release import FloatArray


def outcomes_of(ones: FloatArray) -> RowNoise:
    return RowNoise(ones, np.zeros(len(ones), dtype=np.int64))


def found(ones: FloatArray) -> tuple[float, Spacing | None]:
    """Return the p-value of the clearest distance, and the spacing that it looks like."""
    outcomes = outcomes_of(ones)
    departures = [
        one
        for one in white(outcomes, [Order("the file", np.arange(len(ones)))], [])
        if one.family == "distance" and not one.opposite
    ]
    if not departures:
        return 1.0, None
    best = min(departures, key=lambda one: one.p_value)
    return best.p_value, spacing_of(autocorrelations(outcomes.residual), best.first)


def seeded(seed: int) -> Rng:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("period", [20, 1000])
def test_noise_that_repeats(period: int) -> None:
    p_value, spacing = found(flips(seeded(0), 4000, period=period))
    assert p_value < 1e-9
    assert spacing == Spacing(period=period)
    assert len(spacing.apart(np.arange(4000))) == period
    first, second = spacing.pairs(4000)
    assert (second - first == period).all()


@pytest.mark.parametrize("size", [4, 20])
def test_runs_of_one_draw(size: int) -> None:
    """In 600 rows nine of ten draws give most of the block of one draw, and seldom two of them."""
    ones = flips(seeded(0), 8000, run=size)
    p_value, spacing = found(ones)
    assert p_value < 1e-9
    assert spacing is not None
    assert spacing.period == 0
    assert size - 3 <= spacing.run <= 2 * size
    assert found(ones[spacing.apart(np.arange(8000))])[0] > 0.05
    some = [found(flips(seeded(s), 600, run=size))[1] for s in range(20)]
    runs = np.array([0 if one is None else one.run for one in some])
    assert np.mean(runs >= 0.6 * (size - 1)) >= 0.9
    assert np.median(runs) <= 2 * size


def test_a_short_tables_period_is_found() -> None:
    """Not one of its multiples, where few pairs make chance look strong."""
    some = [found(flips(seeded(s), 600, period=10)) for s in range(20)]
    periods = [one.period for p, one in some if p <= 0.05 and one is not None]
    assert len(periods) >= 16
    assert np.mean(np.array(periods) <= 10) >= 0.8
    assert all((period and period % 5 == 0) or period <= 10 for period in periods)
    assert found(np.zeros(400)) == (1.0, None)


def test_rows_that_were_left_out_keep_their_places() -> None:
    places = np.arange(0, 2000, 2)
    assert Spacing(period=10).apart(places).tolist() == [0, 2, 4, 6, 8]
    kept = Spacing(run=3).apart(np.array([0, 1, 3, 4, 9, 10, 13]))
    assert kept.tolist() == [0, 4, 9, 13]
    first, second = Spacing(run=3).pairs(12)
    assert first.tolist() == [0, 5, 10]
    assert second.tolist() == [1, 6, 11]


def test_a_chance_correlation_is_not_taken_for_the_period() -> None:
    clear, spread = np.zeros(3_999), np.sqrt(3_999 - np.arange(3_999))
    clear[999::1_000] = 6 * spread[999::1_000] / spread[999]
    clear[6] = 4.0
    assert spacing_of(clear, 1_000) == Spacing(period=1_000)
