"""Estimates of a divergence, by their definitions."""

import math

import numpy as np
import pytest

from ldpaudit.estimators.renyi import points
from ldpaudit.estimators.renyi.critics import Scores
from ldpaudit.estimators.renyi.divergence import _groups
from ldpaudit.estimators.renyi.points import calibration_error, effective_rows, renyi_points

RNG = np.random.default_rng(0)
P, Q = RNG.normal(0.4, 0.8, 300), RNG.normal(-0.4, 0.8, 400)


@pytest.mark.parametrize("order", [1.5, 4.0])
def test_effective_rows_are_the_fewer_of_two(order: float) -> None:
    weights = np.exp(order * Q)
    direct = weights.sum() ** 2 / (weights**2).sum()
    assert effective_rows(weights) == pytest.approx(direct)
    # Of n rows of Q: n (E_Q w)²/E_Q w², with E_Q[w] = E_P[e^{(α−1)φ}] and so on.
    first, square = np.exp((order - 1) * P).mean(), np.exp((2 * order - 1) * P).mean()
    expected = min(direct, len(Q) * first**2 / square)
    assert points._effective_rows(P, Q, order) == pytest.approx(expected)


@pytest.mark.parametrize("order", [1.5, 4.0])
def test_plain_forms(order: float) -> None:
    first, second = np.exp((order - 1) * P).mean(), np.exp(order * Q).mean()
    plain, conjugate = points._plug_in(P, Q, order)
    assert plain == pytest.approx(order / (order - 1) * math.log(first) - math.log(second))
    c = 1 / first
    scaled = order / (order - 1) * math.log(first)
    assert conjugate == pytest.approx(scaled + math.log(c) + 1 - c * second)


@pytest.mark.parametrize("order", [1.2, 2.0, 6.0])
def test_the_far_part_is_taken_from_the_other_side(order: float) -> None:
    """The last cut whose near part is sure enough; beyond it E_Q[e^{αφ}] = E_P[e^{(α−1)φ}]."""
    mean = np.exp((order - 1) * P).mean()
    rough = max(math.log(mean) / (order - 1), 0.01)
    best = None
    for cut in np.unique(np.quantile(Q, 1 - np.geomspace(1, 1 / len(Q), 60))):
        near = np.where(cut >= Q, np.exp(order * Q), 0.0)
        total = near.mean() + np.where(cut < P, np.exp((order - 1) * P), 0.0).mean()
        if near.std() / math.sqrt(len(Q)) / total <= 0.012 * rough or best is None:
            best = total
    expected = order / (order - 1) * math.log(mean) - math.log(best)
    assert points._balanced(P, Q, order) == pytest.approx(expected)


def test_an_order_is_supported_by_thirty_rows_and_all_smaller_orders() -> None:
    found = renyi_points(Scores(P, Q), (1.2, 1.5, 8.0, 10.0))
    for point in found:
        assert point.effective_rows == pytest.approx(points._effective_rows(P, Q, point.order))
    rows = [point.effective_rows for point in found]
    expected = [all(r >= 30 for r in rows[: i + 1]) for i in range(4)]
    assert [point.supported for point in found] == expected == [True, True, False, False]
    assert points.largest_order(found) == 1.5


def test_the_calibration_error_is_a_sum_over_bins() -> None:
    both = np.r_[P, Q]
    weights = np.r_[np.full(300, 1 / 600), np.full(400, 1 / 800)]
    is_p = np.arange(700) < 300
    gap = weights * (is_p - 1 / (1 + np.exp(-both)))
    edges = np.quantile(both, np.arange(1, 5) / 5)
    cells = (both[:, None] >= edges).sum(axis=1)
    expected = sum(abs(gap[cells == c].sum()) for c in range(5))
    assert calibration_error(Scores(P, Q), 5) == pytest.approx(expected)


@pytest.mark.parametrize(("n_p", "n_q"), [(100, 100), (100, 155), (1_000, 37), (9, 400), (5, 3)])
def test_groups_waste_few_rows(n_p: int, n_q: int) -> None:
    one, other = _groups(n_p, n_q)
    assert (one, other) == _groups(n_q, n_p)[::-1]
    groups = min(n_p // one, n_q // other)
    assert groups >= min(8, min(n_p, n_q)) or min(n_p, n_q) < 8
    if min(n_p, n_q) >= 100:
        assert max(1 - groups * one / n_p, 1 - groups * other / n_q) <= 0.05
