"""Bins, rates and tilts are what a loop over the rows counts."""

import numpy as np
import pytest
from scipy import special

from ldpaudit.estimators.assumptions import derived
from ldpaudit.estimators.assumptions.columns import (
    Columns,
    Halves,
    column_bins,
    logit,
    rates,
    sampled,
    tilts,
)
from ldpaudit.estimators.assumptions.derived import Dependence, LabelledRows, label_sides
from ldpaudit.modelling.screening import TREE_COLUMNS
from ldpaudit.release import FeatureTable, FloatArray


def table(numbers: FloatArray) -> FeatureTable:
    n = len(numbers)
    return FeatureTable(
        numbers.astype(np.float32), np.zeros((n, 0), np.int32), (), numbers.shape[1]
    )


def test_log_odds_are_those_of_scipy() -> None:
    chances = np.array([1e-6, 0.2, 0.5, 0.7, 1 - 1e-9])
    assert logit(chances) == pytest.approx(special.logit(chances), rel=1e-12)


def test_rates_are_shares_of_ones_with_half_a_row_more() -> None:
    outcomes = np.array([1, 0, 1, 1, 0, 1], np.int32)
    codes = np.array([0, 0, 2, 2, 2, 1])
    mean = (2 + 0.5) / (4 + 1)  # Of the learning rows 0, 1, 2, 4.
    expected = [(1 + mean) / 3, (1 + mean) / 3, *3 * [(1 + mean) / 3], mean / 1]
    assert rates(outcomes, codes, np.array([0, 1, 2, 4])) == pytest.approx(expected)


def test_tilts_are_what_a_bin_adds_in_its_stratum() -> None:
    rng = np.random.default_rng(0)
    n, size = 60, 3
    bins, strata = rng.integers(0, size, n).astype(np.int32), rng.integers(0, 2, n)
    outcomes = (rng.random(n) < 0.4).astype(np.int32)
    halves = Halves(np.arange(40), np.arange(40, n))
    expected = []
    for row in halves.test:
        mine = [i for i in halves.learn if strata[i] == strata[row]]
        base = (outcomes[mine].sum() + 0.5) / (len(mine) + 1)
        cell = [i for i in mine if bins[i] == bins[row]]
        chance = (outcomes[cell].sum() + 5 * base) / (len(cell) + 5)
        expected.append(special.logit(chance) - special.logit(base))
    assert tilts(bins, size, outcomes, strata, halves) == pytest.approx(expected)


def test_few_values_have_a_bin_each_and_missing_ones_their_own() -> None:
    features = table(np.array([[3.0], [1.0], [np.nan], [2.0], [7.0], [1.4]]))
    bins, size = column_bins(features, 0, np.array([0, 1, 2, 3]))
    assert bins.tolist() == [3, 1, 0, 2, 3, 1]
    assert size == 4


@pytest.mark.parametrize(("values", "edges"), [(16, 15), (17, 15), (160, 15)])
def test_many_values_have_sixteen_bins_of_equally_many_rows(values: int, edges: int) -> None:
    bins, size = column_bins(table(np.arange(values)[:, None] * 1.0), 0, np.arange(values))
    assert size == edges + 2
    assert bins.min() == 1
    counts = np.bincount(bins)[1:]
    assert len(counts) == 16
    assert counts.max() - counts.min() <= 1


def test_the_32_most_frequent_levels_have_a_bin_each() -> None:
    codes = np.repeat(np.arange(34), np.arange(34, 0, -1))[::-1]
    codes = np.r_[codes, -1].astype(np.int32)[:, None]
    n = len(codes)
    features = FeatureTable(np.zeros((n, 0), np.float32), codes, (35,), 1)
    bins, size = column_bins(features, 0, np.arange(n))
    assert size == 34
    assert bins[-1] == 0
    assert sorted(set(bins[codes[:, 0] == 33])) == sorted(set(bins[codes[:, 0] == 32])) == [33]
    assert {int(bins[codes[:, 0] == c][0]) for c in range(32)} == set(range(1, 33))


@pytest.mark.parametrize(("width", "most"), [(0, 50_000), (100, 15_000), (5_000, 4_000)])
def test_rows_are_sampled_so_that_a_model_is_soon_fitted(width: int, most: int) -> None:
    rows = np.arange(60_000)
    some = sampled(rows, width, np.random.default_rng(0))
    assert len(some) == most
    assert (np.diff(some) > 0).all()
    assert sampled(rows[:most], width, np.random.default_rng(0)) is not None
    assert (sampled(rows[:most], width, np.random.default_rng(0)) == rows[:most]).all()


def test_columns_are_taken_by_their_places() -> None:
    columns = Columns.of(table(np.random.default_rng(0).normal(size=(50, 3))))
    more = columns.only([2, 0]).beside(np.arange(50.0))
    assert more.places.tolist() == [0, 2, -1]
    assert more.matrix.shape == (50, 3)
    assert not more.categorical.any()
    assert more.only([]).places.tolist() == [-1]
    assert (more.only([]).matrix[:, 0] == np.arange(50)).all()


@pytest.mark.parametrize("outcomes", [[0, 0, 0, 0], [1, 1, 1, 1]])
def test_equal_outcomes_have_the_odds_of_half_a_row_more(outcomes: list[int]) -> None:
    columns = Columns.of(table(np.arange(8.0)[:, None]))
    found = columns.log_odds(
        np.array(outcomes * 2, np.int32), Halves(np.arange(4), np.arange(4, 8)), 0
    )
    share = (sum(outcomes) + 0.5) / 5
    assert found == pytest.approx(4 * [np.log(share / (1 - share))])


def test_without_columns_the_odds_are_those_of_all_rows() -> None:
    columns = Columns.of(table(np.arange(8.0)[:, None])).only([])
    halves = Halves(np.arange(4), np.arange(4, 8))
    found = columns.log_odds(np.array([0, 1, 1, 1, 0, 0, 0, 0], np.int32), halves, 0)
    assert found == pytest.approx(4 * [np.log(3.5 / 1.5)])


def test_of_very_many_columns_the_strongest_are_learnt_from() -> None:
    rng = np.random.default_rng(0)
    outcomes = rng.integers(0, 2, 300).astype(np.int32)
    numbers = rng.normal(size=(300, TREE_COLUMNS + 20))
    numbers[:, -1] += 3 * outcomes
    columns = Columns.of(table(numbers)).beside(rng.normal(size=300))
    halves = Halves(np.arange(200), np.arange(200, 300))
    fewer = columns._strongest(outcomes, halves)
    assert len(fewer.places) == TREE_COLUMNS
    assert {-1, TREE_COLUMNS + 19} <= set(fewer.places.tolist())
    found = columns.log_odds(outcomes, halves, 0, small=True)
    assert np.mean((found > 0) == outcomes[halves.test]) > 0.9
    assert np.abs(found).max() <= np.log(999) + 1e-9


def test_the_columns_to_bet_on_are_those_that_tell_within_strata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(derived, "_MOST_BETS", 1)
    rng = np.random.default_rng(1)
    strata = np.repeat([0, 1, 2], 200)
    chance = np.array([0.1, 0.9, 0.0])[strata]
    outcomes = (rng.random(600) < chance).astype(np.int32)
    # The first tells the stratum, the second a little of the outcome within it, the third nothing.
    little = outcomes + 1.5 * rng.normal(size=600)
    numbers = np.stack([strata == 1, little, rng.normal(size=600)], axis=1)
    halves = Halves(np.arange(600), np.arange(0))
    rows = LabelledRows(table(numbers * 1.0), outcomes, outcomes, (outcomes, outcomes), halves, 0)
    assert derived._clearest(rows, strata, [0, 1, 2]) == [1]
    assert derived._clearest(rows, strata, [0]) == [0]


def test_suspects_are_the_clearest_first_and_clear_at_a_twentieth() -> None:
    clear = np.log(20)
    found = Dependence(np.array([0.0, clear + 1, clear - 1e-6, clear + 2]), [0, 1], -1.0)
    assert found.suspects() == [3, 1]
    wealth = (np.exp(-1.0) + (1 + np.exp(clear + 1)) / 2) / 2
    assert found.p_value == pytest.approx(1 / wealth)
    assert Dependence(np.arange(20) + 10.0, [], 0.0).suspects() == list(range(19, 3, -1))


def test_released_labels_that_are_never_the_true_ones_have_a_side() -> None:
    truth, released = np.array([0, 4, 4, 1], np.int32), np.array([0, 1, 0, 1], np.int32)
    sides = label_sides(truth, released, same_labels=True)
    assert sides[0].tolist() == [0, 0, 0, 1]
    assert sides[1].tolist() == [0, 1, 0, 1]
    apart = label_sides(truth, released, same_labels=False)
    assert apart[0].tolist() == [1, 0, 0, 1]
    assert apart[1].tolist() == [0, 1, 0, 1]
