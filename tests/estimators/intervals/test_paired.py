"""Paired and unpaired intervals: they hold (validity) and they find something (power)."""

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom

from ldpaudit.commands.compare.differences import (
    Count,
    best_count_interval,
    count_interval,
    stored_interval,
)
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import (
    Folds,
    Interval,
    best_interval,
    paired_interval,
)
from ldpaudit.result import Estimate

ALPHA = 0.1


def allowed(runs: int, alpha: float) -> int:
    """The most misses that chance explains; a false alarm has probability below 1e-6."""
    return int(binom.isf(1e-6, runs, alpha))


def guesses(rng: np.random.Generator, n: int, shares: list[float]) -> list[np.ndarray]:
    """Right guesses of several attacks that mostly agree: each has its share of right ones."""
    rank = rng.random(n)
    noise = rng.random((len(shares), n))
    # Nine in ten rows are as easy for all; the others are guessed independently.
    own = noise < 0.1
    return [np.where(own[i], rng.random(n), rank) < share for i, share in enumerate(shares)]


def pair(a: np.ndarray, b: np.ndarray) -> Folds:
    difference = b.astype(np.float64) - a.astype(np.float64)
    return Folds(tuple(np.array_split(difference, 2)))


def misses(runs: int, n: int, shares: tuple[float, float]) -> int:
    rng = np.random.default_rng(11)
    found = [paired_interval(pair(*guesses(rng, n, list(shares))), ALPHA) for _ in range(runs)]
    return sum(not one.low <= shares[1] - shares[0] <= one.high for one in found)


@pytest.mark.parametrize("shares", [(0.7, 0.7), (0.9, 0.88)])
def test_a_paired_interval_holds(shares: tuple[float, float]) -> None:
    assert misses(25, 600, shares) <= allowed(25, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize("n", [100, 1000, 5000])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.98, 0.97), (0.6, 0.8), (0.999, 0.999)])
def test_a_paired_interval_holds_at_length(n: int, shares: tuple[float, float]) -> None:
    assert misses(400, n, shares) <= allowed(400, ALPHA)


def test_a_paired_interval_finds_what_an_unpaired_one_does_not() -> None:
    rng = np.random.default_rng(13)
    a, b = guesses(rng, 6000, [0.80, 0.785])
    paired = paired_interval(pair(a, b), 0.05)
    counts = Count(int(a.sum()), 6000), Count(int(b.sum()), 6000)
    unpaired = count_interval(*counts, 0.05)
    assert paired.high < 0
    assert unpaired.low < 0 < unpaired.high
    assert paired.high - paired.low < 0.6 * (unpaired.high - unpaired.low)


def test_the_interval_is_near_the_normal_one() -> None:
    folds = pair(*guesses(np.random.default_rng(14), 40_000, [0.8, 0.7]))
    found, error = paired_interval(folds, 0.05), np.concatenate(folds.parts).std() / 200
    # Two folds at half the error each: √2 · z₀.₉₈₇₅/z₀.₉₇₅ is 1.62; betting adds a little.
    assert found.high - found.low < 2 * 1.96 * error * 1.62 * 1.25


def best(
    rng: np.random.Generator, n: int, a: list[float], b: list[float], alpha: float
) -> Interval:
    right = guesses(rng, n, a + b)
    ours, theirs = right[: len(a)], right[len(a) :]
    return best_interval(
        lambda i, j: pair(ours[int(i)], theirs[int(j)]),
        {str(i): float(row.mean()) for i, row in enumerate(ours)},
        {str(j): float(row.mean()) for j, row in enumerate(theirs)},
        alpha,
    )


def best_misses(runs: int, n: int, a: list[float], b: list[float]) -> int:
    rng = np.random.default_rng(15)
    found = [best(rng, n, a, b, ALPHA) for _ in range(runs)]
    return sum(not one.low <= max(b) - max(a) <= one.high for one in found)


def test_the_difference_of_the_best_holds() -> None:
    # All attacks are equally good: choosing the luckiest must not be mistaken for a difference.
    assert best_misses(16, 300, [0.7], [0.7] * 4) <= allowed(16, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize(
    ("a", "b"), [([0.7], [0.7] * 8), ([0.7] * 8, [0.7]), ([0.6] * 5, [0.8] * 5)]
)
def test_the_difference_of_the_best_holds_at_length(a: list[float], b: list[float]) -> None:
    assert best_misses(150, 400, a, b) <= allowed(150, ALPHA)


def test_the_difference_of_the_best_is_found_and_costs_its_number() -> None:
    found = best(np.random.default_rng(17), 4000, [0.85, 0.6], [0.75, 0.7], 0.05)
    assert -0.14 < found.low < found.value < found.high < -0.06
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


def test_too_few_rows() -> None:
    with pytest.raises(InsufficientDataError, match="40 rows"):
        paired_interval(Folds((np.zeros(39), np.zeros(100))), 0.05)


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
        assert Count(count, n).lower(alpha) <= ends.min() / n + slack


def test_unpaired_intervals_hold() -> None:
    runs = 2000
    rng = np.random.default_rng(18)
    misses, best = 0, 0
    for a, b in rng.binomial(300, [0.7, 0.6], (runs, 2)):
        found = count_interval(Count(int(a), 300), Count(int(b), 300), ALPHA)
        misses += not found.low <= -0.1 <= found.high
    for row in rng.binomial(300, 0.7, (400, 6)):
        counts = {str(i): Count(int(c), 300) for i, c in enumerate(row)}
        ours = {name: counts.pop(name) for name in ("0", "1")}
        found = best_count_interval(ours, counts, ALPHA)
        best += not found.low <= 0 <= found.high
    assert misses <= allowed(runs, ALPHA)
    assert best <= allowed(400, ALPHA)


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
