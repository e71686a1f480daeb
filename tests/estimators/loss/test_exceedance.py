from functools import lru_cache

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.instance_loss import (
    ErrorBudget,
    PosteriorBox,
    exceedance,
    expected_exceedance,
    loss_grid,
    mean_loss,
    mean_loss_lower,
    smoothness_bias,
)
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower

BUDGET = ErrorBudget.of(0.01)


def test_budget_adds_up() -> None:
    assert pytest.approx(0.01) == BUDGET.count + BUDGET.markov + BUDGET.prior
    assert BUDGET.count == 0.005
    assert BUDGET.per_query == pytest.approx(4.5e-6)


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


GRID = np.arange(0.0, 4.0, 0.5)


def model(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    channel = np.full((k, k), 0.1) + (1 - 0.1 * k) * np.eye(k)
    return np.full(k, 0.5), np.full(k, 1 / k), channel


@lru_cache
def true_shares(k: int) -> np.ndarray:
    shapes, prior, channel = model(k)
    truth = mean_loss(np.random.default_rng(0).dirichlet(shapes, 400_000), prior, channel)
    return np.array([(truth >= tau).mean() for tau in GRID])


def simulated(seed: int, k: int, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """J's bound and truth at eight τ; neighbourhoods are small enough to have no bias."""
    rng = np.random.default_rng(seed)
    shapes, prior, channel = model(k)
    eta = rng.dirichlet(shapes, 800)
    counts = rng.multinomial(neighbours, eta).astype(np.int32)
    box = PosteriorBox.from_counts(counts, np.full(800, neighbours, np.int32), BUDGET.per_query)
    losses = mean_loss(box.estimate, prior, channel)
    lower = mean_loss_lower(box, prior, prior, channel)
    found = exceedance(losses, lower, BUDGET, GRID)
    assert found.low is not None
    return found.low, true_shares(k)


# A bound misses with probability at most 0.01 at each τ; the limits are 1 − 1e-8 quantiles.
@pytest.mark.parametrize("k", [2, 3])
def test_the_bound_misses_no_more_often_than_its_level_and_finds_most(k: int) -> None:
    runs = [simulated(seed, k, 400) for seed in range(60)]
    misses = np.sum([low > truth + 0.003 for low, truth in runs], axis=0)
    assert misses.max() <= binom.isf(1e-8, 60, 0.01)
    low, truth = (part[2] for part in simulated(1, k, 20_000))  # τ = 1
    assert max(0.2, low) < truth < low / 0.7


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


def test_a_box_is_widened_within_zero_and_one() -> None:
    box = PosteriorBox.from_counts(np.array([[3, 37], [20, 20]]), np.array([40, 40]), 0.01)
    wide = box.widened(0.3)
    assert wide.low == pytest.approx(np.maximum(box.low - 0.3, 0))
    assert wide.high == pytest.approx(np.minimum(box.high + 0.3, 1))
