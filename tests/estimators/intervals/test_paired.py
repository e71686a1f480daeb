"""Paired and unpaired intervals: they hold (validity) and they find something (power)."""

import numpy as np
import pytest
from scipy.special import betaincinv
from scipy.stats import binom

from ldpaudit.commands.compare.differences.unpaired import (
    Count,
    best_count_interval,
    count_interval,
    stored_interval,
)
from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.paired import Folds, best_interval, paired_interval
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


def missed(rng: np.random.Generator, n: int, shares: tuple[float, float]) -> bool:
    a, b = guesses(rng, n, list(shares))
    found = paired_interval(pair(a, b), ALPHA)
    return not found.low <= shares[1] - shares[0] <= found.high


@pytest.mark.parametrize("shares", [(0.7, 0.7), (0.9, 0.88)])
def test_a_paired_interval_holds(shares: tuple[float, float]) -> None:
    runs = 25
    rng = np.random.default_rng(11)
    misses = sum(missed(rng, 600, shares) for _ in range(runs))
    assert misses <= allowed(runs, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize("n", [100, 1000, 5000])
@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.98, 0.97), (0.6, 0.8), (0.999, 0.999)])
def test_a_paired_interval_holds_at_length(n: int, shares: tuple[float, float]) -> None:
    runs = 400
    rng = np.random.default_rng(12)
    misses = sum(missed(rng, n, shares) for _ in range(runs))
    assert misses <= allowed(runs, ALPHA)


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
    rng = np.random.default_rng(14)
    a, b = guesses(rng, 40_000, [0.8, 0.7])
    found, folds = paired_interval(pair(a, b), 0.05), pair(a, b)
    error = np.concatenate(folds.parts).std() / np.sqrt(folds.n)
    # Two folds at half the error each: √2 · z₀.₉₈₇₅/z₀.₉₇₅ is 1.62; betting adds a little.
    assert found.high - found.low < 2 * 1.96 * error * 1.62 * 1.25


def best_pair(rng: np.random.Generator, n: int, a: list[float], b: list[float]) -> bool:
    right = guesses(rng, n, a + b)
    ours = {f"a{i}": row for i, row in enumerate(right[: len(a)])}
    theirs = {f"b{i}": row for i, row in enumerate(right[len(a) :])}
    found = best_interval(
        lambda i, j: pair(ours[i], theirs[j]),
        {name: float(row.mean()) for name, row in ours.items()},
        {name: float(row.mean()) for name, row in theirs.items()},
        ALPHA,
    )
    return not found.low <= max(b) - max(a) <= found.high


def test_the_difference_of_the_best_holds() -> None:
    # All attacks are equally good: choosing the luckiest must not be mistaken for a difference.
    runs = 16
    rng = np.random.default_rng(15)
    misses = sum(best_pair(rng, 300, [0.7], [0.7] * 4) for _ in range(runs))
    assert misses <= allowed(runs, ALPHA)


@pytest.mark.validate
@pytest.mark.parametrize(
    ("a", "b"), [([0.7], [0.7] * 8), ([0.7] * 8, [0.7]), ([0.6] * 5, [0.8] * 5)]
)
def test_the_difference_of_the_best_holds_at_length(a: list[float], b: list[float]) -> None:
    runs = 150
    rng = np.random.default_rng(16)
    misses = sum(best_pair(rng, 400, a, b) for _ in range(runs))
    assert misses <= allowed(runs, ALPHA)


def test_the_difference_of_the_best_is_found() -> None:
    rng = np.random.default_rng(17)
    right = guesses(rng, 4000, [0.85, 0.6, 0.75, 0.7])
    ours, theirs = {"x": right[0], "y": right[1]}, {"x": right[2], "z": right[3]}
    found = best_interval(
        lambda i, j: pair(ours[i], theirs[j]),
        {name: float(row.mean()) for name, row in ours.items()},
        {name: float(row.mean()) for name, row in theirs.items()},
        0.05,
    )
    assert -0.14 < found.low < found.value < found.high < -0.06


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
