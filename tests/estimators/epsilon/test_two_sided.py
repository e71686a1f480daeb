import math

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.epsilon.bounds import two_sided_bound
from ldpaudit.estimators.epsilon.two_sided import (
    SHARES,
    TwoSidedPlan,
    best_two_sided,
    event_bound,
    odds_ratio_plan,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower, clopper_pearson_upper


def test_of_groups_it_is_the_classical_bound_with_half_of_alpha_per_tail() -> None:
    plan = TwoSidedPlan(np.array([0, 1, 1], np.int32), np.array([0, 1], np.int32), 0.5)
    counts = np.array([[700, 300], [100, 300], [100, 500]])
    low = clopper_pearson_lower(800, 1000, 0.025)
    high = clopper_pearson_upper(300, 1000, 0.025)
    wanted = max(math.log(low / high), math.log((1 - high) / (1 - low)))
    found = plan.bound(counts, 0.05)
    assert not plan.single
    assert found.epsilon == pytest.approx(wanted)
    assert found.n == 2000


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("often", [(0.02, 0.2), (0.1, 0.5), (0.3, 0.7), (0.4, 0.4)])
def test_an_event_is_bounded_too_high_no_more_often_than_its_level(
    share: float, often: tuple[float, float]
) -> None:
    """Exactly, over all tables of 25 and 20 rows."""
    n, alpha = (25, 20), 0.1
    low, high = often
    epsilon = max(math.log(high / low), math.log((1 - low) / (1 - high)))
    missed = sum(
        binom.pmf(a, n[0], low) * binom.pmf(b, n[1], high)
        for a in range(n[0] + 1)
        for b in range(n[1] + 1)
        if event_bound(np.array([[n[0] - a, a], [n[1] - b, b]]), share, alpha).epsilon
        > epsilon + 1e-9
    )
    assert missed <= alpha


@pytest.mark.parametrize("table", [[[990, 10], [900, 100]], [[2000, 1], [960, 40]]])
def test_a_rare_event_is_known_better_than_by_two_rates(table: list[list[int]]) -> None:
    counts = np.array(table)
    rates = two_sided_bound(counts[:, 1].tolist(), counts.sum(axis=1).tolist(), 0.05).epsilon
    assert event_bound(counts, 0.02, 0.05).epsilon > rates + 0.15


def test_an_event_that_never_or_always_happens() -> None:
    for share in SHARES:
        assert event_bound(np.array([[10, 0], [10, 0]]), share, 0.05).epsilon == 0.0
        assert event_bound(np.array([[0, 10], [0, 10]]), share, 0.05).epsilon == 0.0
        assert event_bound(np.array([[0, 0], [0, 0]]), share, 0.05).epsilon == 0.0
        assert event_bound(np.array([[500, 0], [0, 500]]), share, 0.05).epsilon > 4


def test_the_plan_finds_the_outputs_that_distinguish_labels() -> None:
    # Only the third output betrays the first label.
    channel = np.array([[0.4, 0.4, 0.2], [0.49, 0.49, 0.02], [0.49, 0.49, 0.02]])
    plan, expected = best_two_sided(np.array([9000, 9000, 9000]), channel, 0.05)
    assert plan.groups[0] == 1
    assert plan.guess.tolist() == [0, 0, 1]
    assert 2.0 < expected < math.log(10)


def test_outputs_of_the_same_ratio_are_one_event() -> None:
    rare = np.full(4, 0.002)
    channel = np.array([[0.5, *rare, 0.5 - rare.sum()], [0.5, *10 * rare, 0.5 - 10 * rare.sum()]])
    plan, expected = best_two_sided(np.array([3000, 3000]), channel, 0.05)
    assert plan.groups.tolist() == [0, 1]
    assert plan.guess.tolist() == [0, 1, 1, 1, 1, 0]
    assert 1.6 < expected < math.log(10)


def test_small_classes_are_put_together() -> None:
    channel = np.repeat([[0.97, 0.03], [0.7, 0.3]], 20, axis=0)
    plan, expected = best_two_sided(np.full(40, 25), channel, 0.05)
    assert not plan.single
    assert (plan.groups == np.repeat([0, 1], 20)).all()
    assert 1.5 < expected < math.log(10)


@pytest.mark.parametrize(
    ("channel", "sizes"),
    [
        ([[0.9, 0.1], [0.5, 0.5]], [3000, 1000]),
        ([[0.5, 0.499, 0.001], [0.49, 0.49, 0.02]], [1500, 1500]),
        ([[0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6]], [2910, 45, 45]),
        (np.repeat([[0.97, 0.03], [0.7, 0.3]], 20, axis=0), [50] * 40),
        ([[0.73, 0.27], [0.27, 0.73]], [2700, 300]),
    ],
)
def test_the_expected_bound_is_about_the_mean_bound(
    channel: list[list[float]], sizes: list[int]
) -> None:
    matrix, rng = np.asarray(channel), np.random.default_rng(0)
    plan, expected = best_two_sided(np.array(sizes), matrix, 0.05)
    bounds = []
    for _ in range(200):
        counts = np.array([rng.multinomial(n, row) for n, row in zip(sizes, matrix, strict=True)])
        bounds.append(plan.bound(counts, 0.05).epsilon)
    # The mean of 200 has a standard error below 0.035; the approximation is good to 0.12.
    assert np.mean(bounds) == pytest.approx(expected, abs=0.3)


def test_no_difference_gives_nothing() -> None:
    plan, expected = best_two_sided(np.array([10, 10]), np.full((2, 2), 0.5), 0.05)
    assert expected <= 0.0
    assert plan.bound(np.full((2, 2), 5), 0.05).epsilon == 0.0


def test_the_odds_ratio_leaves_other_labels_and_outputs_out() -> None:
    channel = np.full((3, 3), 0.2)
    np.fill_diagonal(channel, 0.6)
    plan = odds_ratio_plan(np.array([10, 300, 200]), channel)
    assert plan.groups.tolist() == [-1, 1, 0]
    assert plan.guess.tolist() == [-1, 1, 0]
    counts = np.array([[5, 3, 2], [60, 180, 60], [40, 40, 120]])
    assert plan.table(counts).tolist() == [[120, 40], [60, 180]]
    # Whatever share of the rows of each output is kept.
    assert plan.bound(counts * 100, 0.05).epsilon == pytest.approx(math.log(3), abs=0.02)
    kept = plan.bound(counts * [100, 100, 25], 0.05).epsilon
    assert kept == pytest.approx(math.log(3), abs=0.05)
