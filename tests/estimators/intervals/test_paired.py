"""Paired and unpaired intervals: they hold (validity) and they find something (power)."""

import numpy as np
import pytest
from estimators.worlds import guesses, pair
from scipy.special import betaincinv

from ldpaudit.estimators.intervals.bounded_mean import (
    Folds,
    best_interval,
    mean_lower,
    mean_upper,
    paired_interval,
)
from ldpaudit.extras.compare.differences import (
    count_lower,
    counted_interval,
    stored_interval,
)
from ldpaudit.result import Estimate


def test_a_paired_interval_finds_what_an_unpaired_one_does_not() -> None:
    rng = np.random.default_rng(13)
    a, b = guesses(rng, 6000, [0.80, 0.785])
    paired = paired_interval(pair(a, b), 0.05)
    unpaired = counted_interval(*({"x": (int(one.sum()), 6000)} for one in (a, b)), 0.05)
    assert paired.high < 0
    assert unpaired.low < 0 < unpaired.high
    assert paired.high - paired.low < 0.6 * (unpaired.high - unpaired.low)


def test_the_interval_is_near_the_normal_one() -> None:
    folds = pair(*guesses(np.random.default_rng(14), 40_000, [0.8, 0.7]))
    found, error = paired_interval(folds, 0.05), np.concatenate(folds.parts).std() / 200
    # Two folds at half the error each: √2 · z₀.₉₈₇₅/z₀.₉₇₅ is 1.62; betting adds a little.
    assert found.high - found.low < 2 * 1.96 * error * 1.62 * 1.25


@pytest.mark.parametrize("parts", [2, 3])
@pytest.mark.parametrize("reach", [1.0, 2.0])
def test_each_fold_has_its_share_of_the_error_and_counts_by_its_rows(
    parts: int, reach: float
) -> None:
    rng = np.random.default_rng(parts)
    folds = Folds(tuple(rng.choice([-1.0, 0.0, 1.0], 60 * (i + 1)) for i in range(parts)), reach)
    sizes = np.array([len(part) for part in folds.parts])
    alpha, low, high = 0.06 / parts, -reach, reach
    lower = [mean_lower(part, alpha, low, high) for part in folds.parts]
    upper = [mean_upper(part, alpha, low, high) for part in folds.parts]
    assert folds.lower(0.06) == pytest.approx(sizes @ lower / sizes.sum(), rel=1e-9)
    assert folds.upper(0.06) == pytest.approx(sizes @ upper / sizes.sum(), rel=1e-9)
    assert folds.lower(0.06) < folds.mean() < folds.upper(0.06)
    assert folds.mean() == pytest.approx(np.concatenate(folds.parts).mean())


def test_the_difference_of_the_best_is_found_and_costs_its_number() -> None:
    ours, theirs = guesses(np.random.default_rng(4), 100, [0.6, 0.9]), np.ones((2, 100))
    theirs[0, ::2] = 0
    found = best_interval(
        lambda i, j: pair(ours[int(i)], theirs[int(j)]),
        {"0": 0.6, "1": 0.9},
        {"0": 0.5, "1": 1.0},
        0.1,
    )
    assert found.low == min(pair(one, theirs[1]).lower(0.025) for one in ours)
    assert found.high == max(pair(ours[1], one).upper(0.025) for one in theirs)


@pytest.mark.parametrize("n", [10, 41, 400])
@pytest.mark.parametrize("alpha", [0.05, 1e-4])
def test_an_even_split_of_the_counts_is_the_worst(n: int, alpha: float) -> None:
    """Counts of the two folds are not stored, so the bound has to hold for every split."""

    def lower(count: np.ndarray, trials: int) -> np.ndarray:
        inner = count > 0
        safe = np.where(inner, count, 1)
        return np.where(inner, betaincinv(safe, trials - safe + 1, alpha / 2), 0.0)

    small, large = n // 2, n - n // 2
    for count in range(0, n + 1, max(1, n // 25)):
        first = np.arange(max(0, count - large), min(small, count) + 1)
        ends = small * lower(first, small) + large * lower(count - first, large)
        # An odd number of rows cannot be halved: that is worth less than 1/n of a share.
        slack = 1e-12 if n % 2 == 0 else 0.25 / n
        assert count_lower(count, n, alpha) <= ends.min() / n + slack


def test_stored_intervals_add_up() -> None:
    def estimate(value: float) -> Estimate:
        return Estimate(
            id="instance_loss.mean", kind="estimated", value=value, low=value - 0.1,
            high=value + 0.1, side="two-sided", level=0.99, unit="nats",
        )  # fmt: skip

    found = stored_interval(estimate(1.0), estimate(2.0))
    assert found is not None
    assert (found.value, found.low, found.high) == pytest.approx((1.0, 0.8, 1.2))
    assert found.level == 0.98
    one_sided = Estimate(id="x", kind="certified", value=1.0, side="lower", level=0.95)
    assert stored_interval(one_sided, estimate(1.0)) is None
