"""Payoffs and their ranges, label by label; losses of rows with two labels, in closed form."""

import math

import numpy as np
import pytest

from ldpaudit.estimators.loss.bounds import row_loss_lower
from ldpaudit.estimators.loss.payoff import Payoff, margin, share_slope, share_term
from ldpaudit.estimators.loss.posterior_intervals import PosteriorBox
from ldpaudit.estimators.renyi.cells import CellMap

PRIOR = np.array([0.5, 0.3, 0.2])
REACH = np.array([2.0, -np.inf, 4.0])


class Critic:
    """Log-odds that are the posterior itself; a table of largest odds, or none."""

    def __init__(self, table: np.ndarray | None = None) -> None:
        self.table = table

    def log_odds(self, posterior: np.ndarray, released: np.ndarray) -> np.ndarray:
        return posterior

    def largest_odds(self) -> np.ndarray | None:
        return self.table


class Rows:
    def __init__(self, posterior: np.ndarray, labels: np.ndarray) -> None:
        self.posterior, self.labels = posterior, labels
        self.released = labels

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: slice) -> "Rows":
        return Rows(self.posterior[rows], self.labels[rows])


def odds(p: float) -> float:
    return p / (1 - p)


def test_share_terms_and_slopes() -> None:
    p = np.array([0.1, 0.5, 0.8])
    assert share_term(p) == pytest.approx(-p * np.log(p / (1 - p)))
    assert share_term(np.array([0.0, 1.0])).tolist() == [0.0, -np.inf]
    step = 1e-6
    slope = (share_term(p + step) - share_term(p - step)) / (2 * step)
    assert share_slope(p) == pytest.approx(slope, rel=1e-6)


def test_values_are_summed_over_kept_labels() -> None:
    mine = Payoff(Critic(), PRIOR, REACH)
    assert mine.kept.tolist() == [True, False, True]
    scores = np.array([[0.3, 9.0, -9.0], [5.0, 0.0, 1.0], [-5.0, 1.0, 9.0]])
    labels = np.array([0, 1, 2], np.int32)
    expected = []
    for row, label in zip(scores, labels, strict=True):
        total = 0.0
        for y in (0, 2):
            centre = math.log(odds(PRIOR[y]))
            psi = min(max(row[y], centre - REACH[y]), centre + REACH[y])
            own = psi + 1 + float(share_slope(PRIOR[y : y + 1])[0])
            total += own if label == y else -math.exp(psi)
        expected.append(total)
    assert mine.values(Rows(scores, labels)) == pytest.approx(expected)
    p = PRIOR[[0, 2]]
    assert mine.constant == pytest.approx((share_term(p) - share_slope(p) * p).sum())


@pytest.mark.parametrize("table", [None, np.array([0.4, 9.0, 0.001]), np.array([99.0, 9.0, 0.5])])
def test_the_range_of_a_payoff(table: np.ndarray | None) -> None:
    mine = Payoff(Critic(table), PRIOR, REACH)
    gain = [math.log(odds(PRIOR[y])) + 1 + share_slope(PRIOR)[y] for y in (0, 2)]
    ceiling = [odds(PRIOR[y]) * math.exp(REACH[y]) for y in (0, 2)]
    floor = [odds(PRIOR[y]) * math.exp(-REACH[y]) for y in (0, 2)]
    if table is None:
        most = min(sum(ceiling), max(ceiling) + 2 + sum(floor))
    else:
        cut = zip(table[[0, 2]], floor, ceiling, strict=True)
        most = sum(min(max(t, f), c) for t, f, c in cut)
    low = min(0.0, gain[0] - 2, gain[1] - 4) - most
    high = max(0.0, gain[0] + 2, gain[1] + 4)
    assert mine.range() == pytest.approx((low, high))
    assert Payoff(Critic(), PRIOR, np.full(3, -np.inf)).range() == (0.0, 0.0)


def test_a_margin_has_the_spread_and_the_range() -> None:
    values = np.array([0.0, 1.0, 2.0, 5.0])
    spread = margin(values, 0.0, 100)
    assert margin(values, 7.0, 100) - spread == pytest.approx(7 * (margin(values * 0, 1.0, 100)))
    assert margin(values, 0.0, 400) == pytest.approx(spread / 2)
    assert margin(2 * values, 0.0, 100) == pytest.approx(2 * spread)


def test_the_loss_of_a_row_with_two_labels() -> None:
    """log(η p(z|1)/((1 − η) p(z|0))) − logit(prior), with η and the prior at their worse ends."""
    estimate = np.array([[0.4, 0.6], [0.7, 0.3]])
    low, high = estimate - 0.1, estimate + 0.1
    box = PosteriorBox(estimate, low, high, np.array([50, 50], np.int32))
    channel = np.array([[0.8, 0.2], [0.3, 0.7]])
    labels, released = np.array([1, 0], np.int32), np.array([1, 1], np.int32)
    prior_high = np.array([0.45, 0.65])
    found = row_loss_lower(box, labels, released, prior_high, channel)
    expected = [
        math.log(odds(0.5) * 0.7 / 0.2) - math.log(odds(0.65)),
        math.log(odds(0.6) * 0.2 / 0.7) - math.log(odds(0.45)),
    ]
    assert found == pytest.approx(expected)
    alone = row_loss_lower(box, labels, released, prior_high, None)
    assert alone[0] == pytest.approx(math.log(odds(0.5)) - math.log(odds(0.65)))


def test_cells_hold_log_ratios_drawn_to_the_guess() -> None:
    rng = np.random.default_rng(0)
    p, q = rng.normal(0.5, 1, 150), rng.normal(-0.5, 1, 250)
    found = CellMap.fit(p, q)
    assert len(found.table) == 2 * 150 // 60
    both = np.r_[p, q]
    cells = (both[:, None] >= found.edges).sum(axis=1)
    assert np.ptp(np.bincount(cells)) <= 1
    for cell, entry in enumerate(found.table):
        inside = cells == cell
        ratio = math.exp(both[inside].mean()) * 150 / 250
        prior = ratio / (1 + ratio)
        hits = inside[:150].sum() + 20 * prior
        misses = inside[150:].sum() + 20 * (1 - prior)
        assert entry == pytest.approx(math.log(hits / 150 / (misses / 250)))
    assert found(both) == pytest.approx(found.table[cells])
    assert len(CellMap.fit(p[:20], q).table) == 2
    assert len(CellMap.fit(np.repeat(p, 20), np.repeat(q, 20)).table) <= 60
