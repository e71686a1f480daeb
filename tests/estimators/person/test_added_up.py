"""The added bounds, their formulas and the counts behind them, by hand."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from ldpaudit.estimators.person import AddedPlan, Tally, added_plan
from ldpaudit.mechanisms.response import RandomizedResponse

RR = RandomizedResponse.from_epsilon((0, 1, 2), 1.0).channel.matrix
SHARP = RandomizedResponse.from_epsilon((0, 1, 2), 2.0).channel.matrix
EVENT = np.array([False, True, False])


def lower(count: int, n: int, alpha: float) -> float:
    return float(binomtest(int(count), n).proportion_ci(1 - 2 * alpha, "exact").low)


def upper(count: int, n: int, alpha: float) -> float:
    return float(binomtest(int(count), n).proportion_ci(1 - 2 * alpha, "exact").high)


def plan(way: str, groups: list[int]) -> AddedPlan:
    return AddedPlan(way, 1, (EVENT,) * len(groups), np.array(groups))


def test_rates_add_up() -> None:
    """Σ log of Clopper–Pearson's ends, α/2 over all cases and α/2 over the groups of others."""
    tally = Tally(np.array([60, 70, 65]), np.array([30, 20, 41]), (100, 150))
    found = plan("rates", [0, 0, 2]).bound(tally, 0.05)
    low = sum(math.log(lower(c, 100, 0.05 / 6)) for c in (60, 70, 65))
    high = 2 * math.log(upper(50, 300, 0.05 / 4)) + math.log(upper(41, 150, 0.05 / 4))
    assert found.epsilon == pytest.approx(low - high)
    assert (found.n, found.alpha, found.method) == (250, 0.05, "rates")
    nobody = Tally(np.array([0, 70, 65]), np.array([30, 20, 41]), (100, 150))
    assert plan("rates", [0, 0, 2]).bound(nobody, 0.05).epsilon == 0.0


def test_logits_add_up() -> None:
    tally = Tally(np.array([80, 75, 90]), np.array([30, 25, 8]), (100, 100))
    found = plan("accuracy", [0, 0, 2]).bound(tally, 0.05)
    shared = lower((80 + 100 - 30) + (75 + 100 - 25), 400, 0.025)
    alone = lower(90 + 100 - 8, 200, 0.025)
    expected = sum(m * math.log(p / (1 - p)) for m, p in ((2, shared), (1, alone)))
    assert found.epsilon == pytest.approx(expected)
    worse = Tally(np.array([40, 40, 90]), np.array([60, 60, 8]), (100, 100))
    below = plan("accuracy", [0, 0, 2]).bound(worse, 0.05).epsilon
    assert below == pytest.approx(math.log(alone / (1 - alone)))


def test_nobody_to_count_bounds_nothing() -> None:
    found = plan("rates", [0]).bound(Tally(np.array([0]), np.array([3]), (0, 9)), 0.05)
    assert (found.epsilon, found.n) == (0.0, 0)


def test_what_is_counted() -> None:
    labels = np.array([1, 1, 0, 2, 2, 1, 0, 2], np.int32)
    released = np.stack([labels, np.array([1, 0, 1, 1, 2, 1, 0, 0])], axis=1).astype(np.int32)
    rng = np.random.default_rng(0)
    rates = plan("rates", [0, 1]).tally(labels, released, rng)
    assert rates.inside.tolist() == [3, 2]
    assert rates.outside.tolist() == [0, 2]
    assert rates.rows == (3, 5)
    halves = plan("accuracy", [0, 1]).tally(labels, released, rng)
    assert halves.rows == (3, 3)
    assert halves.inside.tolist() == [3, 2]
    assert halves.outside[0] == 0


@pytest.mark.parametrize("way", ["rates", "accuracy"])
def test_the_expected_bound_is_that_of_the_expected_counts(way: str) -> None:
    sizes = np.array([600, 1_000, 200])
    found = plan(way, [0, 1]).expected([RR, SHARP], sizes, 0.05)
    n, rest = (1_000, 800) if way == "rates" else (800, 800)
    inside = [round(n * c[1, 1]) for c in (RR, SHARP)]
    outside = [round(rest * (0.75 * c[0, 1] + 0.25 * c[2, 1])) for c in (RR, SHARP)]
    tally = Tally(np.array(inside), np.array(outside), (n, rest))
    assert found == pytest.approx(plan(way, [0, 1]).bound(tally, 0.05).epsilon, abs=0.02)


def test_the_plan_is_the_best_of_all_labels_and_ways() -> None:
    sizes, channels = np.array([2_000, 900, 30]), [RR, SHARP, RR]
    found = added_plan(sizes, channels)
    assert found is not None
    assert found.groups.tolist() == [0, 1, 0]
    expected = found.expected(channels, sizes, 0.025)
    for label in range(3):
        events = tuple(np.arange(3) == label for _ in channels)
        for way in ("rates", "accuracy"):
            other = AddedPlan(way, label, events, found.groups)
            assert other.expected(channels, sizes, 0.025) <= expected + 1e-12
    assert [e.tolist() for e in found.events] == 3 * [[j == found.label for j in range(3)]]
    assert added_plan(np.array([0, 5, 0]), channels) is None
    few = added_plan(np.array([0, 50, 20]), channels)
    assert few is not None
    assert few.label != 0
