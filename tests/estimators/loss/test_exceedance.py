import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.instance_loss import (
    ErrorBudget,
    exceedance,
    expected_exceedance,
    loss_grid,
    smoothness_bias,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower

BUDGET = ErrorBudget.of(0.01)


def test_counts_and_bound() -> None:
    losses = np.repeat([0.25, 1.0, 3.0], [500, 300, 200])
    found = exceedance(losses, losses - 0.5, BUDGET, np.array([0.0, 1.0, 2.0, 3.5]))
    assert found.value == pytest.approx([1.0, 0.5, 0.2, 0.0])
    assert found.low is not None
    low = clopper_pearson_lower(np.array([500, 200, 200, 0]), 1000, 0.005) - 0.001
    assert found.low == pytest.approx(np.maximum(low, 0))


def test_infinite_losses_exceed_everything() -> None:
    losses = np.full(100, np.inf)
    found = exceedance(losses, losses, BUDGET, loss_grid(losses))
    assert (found.value == 1).all()
    assert found.grid[-1] == 25


@pytest.mark.parametrize("spread", [0.3, 8.0, 31.0])
def test_grid_holds_every_half(spread: float) -> None:
    losses = np.linspace(-1.3, spread, 50)
    grid = loss_grid(losses)
    assert (np.diff(grid) > 0).all()
    assert grid[0] == -1.5
    assert grid[-1] >= max(25, spread)
    assert set(np.arange(-1.5, 25.5, 0.5)) <= set(grid)


def test_expected_shares_are_weighted_counts() -> None:
    losses = np.tile([0.0, 2.0], (400, 1))
    weights = np.tile([0.75, 0.25], (400, 1))
    found = expected_exceedance(losses, weights, np.array([-1.0, 1.0, 3.0]))
    assert found.value == pytest.approx([1.0, 0.25, 0.0])
    assert found.low is None


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_smoothness_covers_what_a_ball_averages_away(power: float) -> None:
    """P(label | x) falls steeply within a ball: its mean alone misses, widened by C·μ^β it holds.

    x is uniform on [0, 1] and η(x) = C·|x − ½|^β: every ball up to a row at a distance r holds at
    least the share r. The k-th nearest row's distance is seen, so the bias is that of the worst η.
    """
    n, k, constant, error, missed = 400, 40, 0.9, 0.05, 0
    bias = smoothness_bias(n, k, error, constant, power)
    assert bias < constant * (2 * k / n) ** power  # Lemma D.3, for k ≥ 4 log(1/error).
    for seed in range(200):
        far = np.sort(np.abs(np.random.default_rng(seed).random(n) - 0.5))[:k]
        mean = float((constant * far**power).mean())
        assert mean > 0  # η(½) = 0: without widening every interval around the mean is off.
        missed += mean > bias
        assert constant * (2 * far[-1]) ** power >= mean
    assert missed <= binom.isf(1e-6, 200, error)
    shares = np.array(
        [2 * np.sort(np.abs(np.random.default_rng(s).random(n) - 0.5))[k - 1] for s in range(400)]
    )
    # The bound of the share itself is exact: missed as often as its error says.
    most = smoothness_bias(n, k, error, 1.0)
    assert binom.ppf(1e-6, 400, error) <= (shares > most).sum() <= binom.isf(1e-6, 400, error)
