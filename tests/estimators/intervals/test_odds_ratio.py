"""The exact conditional bound of an odds ratio: by its definition, and of any size."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import logsumexp
from scipy.stats import hypergeom
from scipy.stats.contingency import odds_ratio

from ldpaudit.estimators.epsilon.bounds import event_epsilon, event_exceeds
from ldpaudit.estimators.intervals.binomial import log_odds_ratio_exceeds, log_odds_ratio_lower


def test_equals_scipy_on_small_tables_one_by_one() -> None:
    tables = np.random.default_rng(1).integers(1, 40, (4, 25, 2, 2))
    scipys = [
        odds_ratio(table).confidence_interval(0.95, alternative="greater").low
        for table in tables.reshape(-1, 2, 2)
    ]
    assert log_odds_ratio_lower(tables, 0.05).ravel() == pytest.approx(np.log(scipys), abs=1e-6)


@given(
    st.lists(st.integers(0, 60), min_size=4, max_size=4), st.sampled_from([1e-6, 0.01, 0.05, 0.3])
)
def test_the_tail_at_the_bound_is_alpha(values: list[int], alpha: float) -> None:
    """The law by its definition: SciPy's own, in C++, ends the process for some tables."""
    table = np.array(values).reshape(2, 2)
    log_theta = float(log_odds_ratio_lower(table, alpha))
    if min(table[0, 0], table[1, 1]) == 0:
        assert log_theta == -math.inf
        return
    total, row, column = int(table.sum()), int(table[1].sum()), int(table[:, 1].sum())
    x = np.arange(max(0, row + column - total), min(row, column) + 1)
    logs = hypergeom.logpmf(x, total, row, column) + x * log_theta
    tail = np.exp(logsumexp(logs[x >= table[1, 1]]) - logsumexp(logs))
    assert tail == pytest.approx(alpha, rel=1e-6)


@pytest.mark.parametrize("n", [10**3, 10**5, 10**7])
@pytest.mark.parametrize("prior", [0.5, 0.03])
def test_large_tables_have_about_the_normal_bound(n: int, prior: float) -> None:
    positive = int(n * prior)
    flips = int(0.2 * positive)
    table = np.array([[n - positive - int(0.2 * n), int(0.2 * n)], [flips, positive - flips]])
    low, spread = log_odds_ratio_lower(table, 0.05), math.sqrt((1.0 / table).sum())
    plain = math.log(table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0])) - 1.645 * spread
    assert low == pytest.approx(plain, abs=0.15 * 1.645 * spread + 1e-6)
    near = low + 0.02 * spread * np.array([-1, 1])
    assert [bool(log_odds_ratio_exceeds(table, 0.05, limit)) for limit in near] == [True, False]


@pytest.mark.parametrize(("share", "alpha"), [(0.0, 0.3), (0.1, 0.05), (0.5, 1e-6)])
def test_simulated_bounds_are_held_against_limits_as_if_they_were_found(
    share: float, alpha: float
) -> None:
    rng = np.random.default_rng(3)
    tables = rng.integers(0, 2 ** rng.integers(2, 9, (300, 1, 1)), (300, 2, 2))
    bounds = event_epsilon(tables, share, alpha)
    for limit in (0.0, *np.quantile(bounds, [0.2, 0.5, 0.9])):
        np.testing.assert_array_equal(
            event_exceeds(tables, share, alpha, limit * (1 + 1e-6)), bounds > limit * (1 + 1e-6)
        )


@pytest.mark.parametrize(
    ("table", "low", "high"),
    [
        ([[0, 0], [0, 0]], 0, 0),
        ([[5, 5], [5, 5]], 0, 0),
        # P(no flip | margins) = 1/Σ_j C(500, j)² θ^{−j} = 1/20.
        ([[500, 0], [0, 500]], 5.34, 5.38),
        # The margins do not matter.
        ([[73_000, 27_000], [27_000, 73_000]], 0.98, 1.0),
        ([[730_000, 270_000], [13_500, 36_500]], 0.97, 0.99),
    ],
)
def test_what_a_table_proves(table: list[list[int]], low: float, high: float) -> None:
    assert low <= event_epsilon(np.array(table), 0.0, 0.05) <= high
