import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtri
from scipy.stats import binom

from ldpaudit.errors import InputError
from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.estimators.intervals.bounded_mean import mean_lower, mean_upper
from ldpaudit.release import FloatArray

Draw = Callable[[np.random.Generator, int], FloatArray]


def coin(p: float) -> Draw:
    return lambda rng, n: (rng.random(n) < p).astype(np.float64)


DISTRIBUTIONS: dict[str, tuple[Draw, float]] = {
    "fair coin": (coin(0.5), 0.5),
    "rare event": (coin(0.02), 0.02),
    "rare failure": (coin(0.98), 0.98),
    "skewed": (lambda rng, n: rng.beta(0.3, 3.0, n), 1 / 11),
}


def in_standard_errors(values: FloatArray, bound: float) -> float:
    return float((values.mean() - bound) / values.std() * math.sqrt(len(values)))


def misses(name: str, n: int, runs: int, alpha: float) -> tuple[int, int]:
    draw, mean = DISTRIBUTIONS[name]
    rng = np.random.default_rng(20)
    samples = [draw(rng, n) for _ in range(runs)]
    above = sum(mean_lower(v, alpha, 0, 1) > mean for v in samples)
    below = sum(mean_upper(v, alpha, 0, 1) < mean for v in samples)
    return above, below


# Each count of misses is stochastically below Bin(runs, alpha); the limits are its 1 − 1e-7
# quantiles, so that all the cases together fail by chance with probability below 1e-6.
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_bounds_miss_no_more_often_than_their_level(name: str) -> None:
    limit = binom.isf(1e-7, 100, 0.1)
    assert max(misses(name, 200, 100, 0.1)) <= limit


@pytest.mark.validate
@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("n", [20, 100, 3000])
def test_bounds_miss_no_more_often_than_their_level_at_length(name: str, n: int) -> None:
    for alpha in (0.2, 0.05):
        assert max(misses(name, n, 500, alpha)) <= binom.isf(1e-8, 500, alpha)


# Each ratio is a mean of 10 runs with a standard deviation below 0.1; the limits are 10 away.
@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("alpha", [0.05, 0.005])
def test_power_is_close_to_the_normal_bound(name: str, alpha: float) -> None:
    draw, _ = DISTRIBUTIONS[name]
    rng = np.random.default_rng(3)
    samples = [draw(rng, 20_000) for _ in range(10)]
    errors = [in_standard_errors(v, mean_lower(v, alpha, 0, 1)) for v in samples]
    normal = -float(ndtri(alpha))
    # An exponential bound with a constant bet would sit at sqrt(2 log 1/alpha) = 2.45 and 3.26.
    assert normal * 0.95 < np.mean(errors) < normal * 1.2 + 0.1


def test_low_variance_is_used() -> None:
    values = 0.5 + 0.02 * np.random.default_rng(1).uniform(-1, 1, 50_000)
    hoeffding = math.sqrt(math.log(20) / 2 / 50_000)
    assert 0.4998 < mean_lower(values, 0.05, 0, 1) < values.mean()
    assert values.mean() < mean_upper(values, 0.05, 0, 1) < 0.5002
    assert hoeffding > 0.005


def test_constant_values_are_bounded_at_the_rate_of_the_range() -> None:
    n, alpha = 1000, 0.05
    bound = mean_lower(np.full(n, 0.3), alpha, 0, 1)
    # The best possible is 0.3 α^(1/n): the rest could hide zeros.
    assert 0.3 * (1 - 6 * math.log(1 / alpha) / n) < bound <= 0.3 * alpha ** (1 / n)


def test_certain_successes_come_near_clopper_pearson() -> None:
    bound = mean_lower(np.ones(200), 0.05, 0, 1)
    assert 0.96 < bound <= float(clopper_pearson_lower(200, 200, 0.05))


def test_rows_sorted_by_their_values_are_shuffled() -> None:
    values = np.repeat([0.0, 1.0], 5000)
    bounds = [mean_lower(values, 0.05, 0, 1, rng=np.random.default_rng(s)) for s in range(10)]
    # Over orders the distance varies with a standard deviation of 0.25.
    assert 1.4 < np.mean([in_standard_errors(values, b) for b in bounds]) < 2.2
    assert 0.8 < in_standard_errors(values, mean_lower(values, 0.05, 0, 1)) < 3.0


@given(
    arrays(np.float64, st.integers(0, 60), elements=st.floats(0, 1)),
    st.floats(0.001, 0.5),
    st.floats(-5, 5),
    st.floats(0.01, 100),
)
@settings(max_examples=60, deadline=None)
def test_bounds_lie_in_range_around_the_mean_and_follow_the_scale(
    values: FloatArray, alpha: float, shift: float, scale: float
) -> None:
    low, high = mean_lower(values, alpha, 0, 1), mean_upper(values, alpha, 0, 1)
    assert 0 <= low <= high <= 1
    if len(values):
        assert low <= values.mean() + 1e-12
        assert high >= values.mean() - 1e-12
    moved = mean_lower(shift + scale * values, alpha, shift, shift + scale)
    assert shift <= moved <= shift + scale


def test_deterministic_given_the_generator() -> None:
    values = np.random.default_rng(0).random(2000)
    first = mean_lower(values, 0.05, 0, 1, rng=np.random.default_rng(7))
    assert first == mean_lower(values, 0.05, 0, 1, rng=np.random.default_rng(7))
    assert mean_lower(values, 0.05, 0, 1) == mean_lower(values, 0.05, 0, 1)


def test_half_a_million_values_take_less_than_a_second() -> None:
    values = np.random.default_rng(0).normal(0, 1, 500_000).clip(-9, 9)
    start = time.process_time()
    bound = mean_lower(values, 0.05, -9, 9)
    # Measured: 0.08–0.15 s of one core; the limit leaves room for a loaded machine.
    assert time.process_time() - start < 1.0
    assert 1.4 < in_standard_errors(values, bound) < 2.1


@pytest.mark.parametrize(
    ("values", "alpha", "low", "high"),
    [
        ([0.5, 2.0], 0.05, 0.0, 1.0),
        ([0.5, math.nan], 0.05, 0.0, 1.0),
        ([0.5], 0.0, 0.0, 1.0),
        ([0.5], 0.05, 1.0, 0.0),
        ([0.5], 0.05, 0.0, math.inf),
    ],
)
def test_bad_parameters(values: list[float], alpha: float, low: float, high: float) -> None:
    with pytest.raises(InputError):
        mean_lower(np.array(values), alpha, low, high)


def test_degenerate_samples() -> None:
    assert mean_lower(np.zeros(0), 0.05, -2, 3) == -2
    assert mean_upper(np.zeros(0), 0.05, -2, 3) == 3
    assert mean_lower(np.full(100, 4.0), 0.05, 4, 4) == 4
