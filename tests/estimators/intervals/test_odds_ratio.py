import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats.contingency import odds_ratio

from ldpaudit.errors import InputError
from ldpaudit.estimators.epsilon.two_sided import event_bound
from ldpaudit.estimators.intervals.odds_ratio import (
    log_odds_ratio_lower,
    upper_tail_probability,
)

cells = st.lists(st.integers(0, 60), min_size=4, max_size=4)


def test_equals_scipy_on_small_tables() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        table = rng.integers(1, 40, (2, 2))
        interval = odds_ratio(table).confidence_interval(0.95, alternative="greater")
        assert log_odds_ratio_lower(table, 0.05) == pytest.approx(math.log(interval.low), abs=1e-6)


@given(cells, st.floats(-3, 3))
def test_the_tail_is_fishers_noncentral_hypergeometric(values: list[int], log_theta: float) -> None:
    table = np.array(values).reshape(2, 2)
    total, row, column = int(table.sum()), int(table[1].sum()), int(table[:, 1].sum())
    if min(row, column, total - row, total - column) == 0:
        return
    # The law by its definition: SciPy's own, in C++, ends the process for some tables.
    counts = range(max(0, row + column - total), min(row, column) + 1)
    weights = [
        math.comb(column, x) * math.comb(total - column, row - x) * math.exp(x * log_theta)
        for x in counts
    ]
    exact = sum(weights[table[1, 1] - counts[0] :]) / sum(weights)
    assert upper_tail_probability(table, log_theta) == pytest.approx(exact, abs=1e-8)


@pytest.mark.parametrize("n", [10**3, 10**5, 10**7])
@pytest.mark.parametrize("prior", [0.5, 0.03])
def test_the_bound_is_where_the_tail_is_alpha(n: int, prior: float) -> None:
    positive = int(n * prior)
    flips = int(0.2 * positive)
    table = np.array([[n - positive - int(0.2 * n), int(0.2 * n)], [flips, positive - flips]])
    low = log_odds_ratio_lower(table, 0.05)
    assert upper_tail_probability(table, low) == pytest.approx(0.05, rel=1e-5)
    plain = math.log(table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0]))
    spread = 1.645 * math.sqrt((1.0 / table).sum())
    assert low == pytest.approx(plain - spread, abs=0.15 * spread + 1e-6)


def test_tables_that_prove_nothing() -> None:
    assert log_odds_ratio_lower(np.array([[5, 5], [10, 0]]), 0.05) == -math.inf
    assert log_odds_ratio_lower(np.array([[0, 5], [10, 5]]), 0.05) == -math.inf
    assert event_bound(np.zeros((2, 2), dtype=int), 0.0, 0.05).epsilon == 0.0
    assert event_bound(np.array([[5, 5], [5, 5]]), 0.0, 0.05).epsilon == 0.0


def test_no_error_at_all_is_still_bounded() -> None:
    bound = event_bound(np.array([[500, 0], [0, 500]]), 0.0, 0.05)
    # P(no flip | margins) = 1/Σ_j C(500, j)² θ^{−j} = 1/20.
    assert bound.epsilon == pytest.approx(5.36, abs=0.02)


def test_the_margins_do_not_matter() -> None:
    balanced = event_bound(np.array([[73_000, 27_000], [27_000, 73_000]]), 0.0, 0.05).epsilon
    skewed = event_bound(np.array([[730_000, 270_000], [13_500, 36_500]]), 0.0, 0.05).epsilon
    assert 0.97 < skewed < balanced < 1.0


def test_another_shape_is_refused() -> None:
    with pytest.raises(InputError, match="2 × 2"):
        log_odds_ratio_lower(np.ones((2, 3), dtype=int), 0.05)
