"""Which event is counted, and what it bounds: exactly over all tables, and as expected."""

import math

import numpy as np
import pytest
from estimators.worlds import counted
from scipy.stats import binom

from ldpaudit.error_budget import EVENTS
from ldpaudit.estimators.epsilon.bounds import event_epsilon, two_sided_epsilon
from ldpaudit.estimators.epsilon.events import best_event


@pytest.mark.parametrize("share", EVENTS)
@pytest.mark.parametrize("often", [(0.02, 0.2), (0.1, 0.5), (0.3, 0.7), (0.4, 0.4)])
def test_an_event_is_bounded_too_high_no_more_often_than_its_level(
    share: float, often: tuple[float, float]
) -> None:
    """Exactly, over all tables of 25 and 20 rows."""
    n, alpha, (low, high) = (25, 20), 0.1, often
    epsilon = max(math.log(high / low), math.log((1 - low) / (1 - high)))
    a, b = (grid.ravel() for grid in np.meshgrid(*(np.arange(size + 1) for size in n)))
    tables = np.stack([np.stack([n[0] - a, a], 1), np.stack([n[1] - b, b], 1)], axis=1)
    chances = binom.pmf(a, n[0], low) * binom.pmf(b, n[1], high)
    assert chances[event_epsilon(tables, share, alpha) > epsilon + 1e-9].sum() <= alpha
    for table in ([[10, 0], [10, 0]], [[0, 10], [0, 10]], [[0, 0], [0, 0]]):
        assert event_epsilon(np.array(table), share, 0.05) == 0.0
    assert event_epsilon(np.array([[500, 0], [0, 500]]), share, 0.05) > 4


@pytest.mark.parametrize("table", [[[990, 10], [900, 100]], [[2000, 1], [960, 40]]])
def test_a_rare_event_is_known_better_than_by_two_rates(table: list[list[int]]) -> None:
    counts = np.array(table)
    rates = two_sided_epsilon(counts[:, 1], counts.sum(axis=1), 0.05)
    assert event_epsilon(counts, 0.02, 0.05) > rates + 0.15


RATIO = [[0.5, *[0.002] * 4, 0.492], [0.5, *[0.02] * 4, 0.42]]
HALVES = np.repeat([[0.97, 0.03], [0.7, 0.3]], 20, axis=0)
EVENTS = [
    # Only the third output betrays the first label.
    ([[0.4, 0.4, 0.2], *[[0.49, 0.49, 0.02]] * 2], [9000] * 3, (2.0, 2.31), None, [0, 0, 1]),
    # Outputs of the same ratio are one event.
    (RATIO, [3000] * 2, (1.6, 2.31), [0, 1], [0, 1, 1, 1, 1, 0]),
    # Small classes are put together.
    (HALVES, [25] * 40, (1.5, 2.31), [0] * 20 + [1] * 20, [0, 1]),
    ([[0.9, 0.1], [0.5, 0.5]], [3000, 1000], (0, 9), None, None),
    ([[0.5, 0.499, 0.001], [0.49, 0.49, 0.02]], [1500, 1500], (0, 9), None, None),
    ([[0.6, 0.3, 0.1], [0.25, 0.5, 0.25], [0.2, 0.2, 0.6]], [2910, 45, 45], (0, 9), None, None),
    ([[0.73, 0.27], [0.27, 0.73]], [2700, 300], (0, 9), None, None),
]


@pytest.mark.parametrize(("channel", "sizes", "bounds", "groups", "guess"), EVENTS)
def test_the_best_event_and_its_expected_bound(
    channel: list[list[float]],
    sizes: list[int],
    bounds: tuple[float, float],
    groups: list[int] | None,
    guess: list[int] | None,
) -> None:
    matrix, rng = np.asarray(channel), np.random.default_rng(0)
    plan, expected = best_event(np.array(sizes), matrix, 0.05)
    assert bounds[0] < expected < bounds[1]
    assert groups in (None, plan.groups.tolist())
    assert guess in (None, plan.guess.tolist())
    tables = [plan.table(counted(np.array(sizes), matrix, rng)) for _ in range(100)]
    # The mean of 100 has a standard error below 0.05; the approximation is good to 0.12.
    assert np.mean([plan.epsilon(t, 0.05) for t in tables]) == pytest.approx(expected, abs=0.3)
