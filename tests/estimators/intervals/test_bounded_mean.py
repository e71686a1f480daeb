"""Bounds of a mean by betting: they hold, and they are near the normal ones."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import ndtri
from scipy.stats import binom

from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower
from ldpaudit.estimators.intervals.bounded_mean import _rejected, mean_lower, mean_upper
from ldpaudit.release import FloatArray

Draw = Callable[[np.random.Generator, int], FloatArray]
DISTRIBUTIONS: dict[str, Draw] = {
    "fair coin": lambda rng, n: rng.random(n) < 0.5,
    "rare event": lambda rng, n: rng.random(n) < 0.02,
    "rare failure": lambda rng, n: rng.random(n) < 0.98,
    "skewed": lambda rng, n: rng.beta(0.3, 3.0, n),
}


def in_standard_errors(values: FloatArray, bound: float) -> float:
    return float((values.mean() - bound) / values.std() * math.sqrt(len(values)))


# Each ratio is a mean of 5 runs with a standard deviation below 0.1; the limits are 5 away.
@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("alpha", [0.05, 0.005])
def test_power_is_close_to_the_normal_bound(name: str, alpha: float) -> None:
    rng, normal = np.random.default_rng(3), -float(ndtri(alpha))
    samples = [np.float64(DISTRIBUTIONS[name](rng, 20_000)) for _ in range(5)]
    errors = [in_standard_errors(v, mean_lower(v, alpha, 0, 1)) for v in samples]
    # An exponential bound with a constant bet would sit at sqrt(2 log 1/alpha) = 2.45 and 3.26.
    assert normal * 0.95 < np.mean(errors) < normal * 1.2 + 0.1


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_the_bound_is_just_below_the_exact_root(name: str, alpha: float) -> None:
    """The capital of each mean is its own: a fine grid finds where it stops short of 1/α."""
    values = np.float64(DISTRIBUTIONS[name](np.random.default_rng(5), 3_000))
    bound = mean_lower(values, alpha, 0, 1, rng=np.random.default_rng(9))
    mixed = values[np.random.default_rng(9).permutation(3_000)]
    error, placing = values.std() / math.sqrt(3_000), 60
    grid = bound + error * np.arange(-500, 500) / 1_000
    rejected = _rejected(mixed[:placing], mixed[placing:], grid, alpha)
    assert rejected[:501].all()
    # Candidates are a twentieth of a standard error apart, as the first 60 values have it.
    assert not rejected[600:].any()


def test_coarser_steps_hold_as_well_and_lose_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 10 % more than 43 of 200 have a chance of 1e-6."""
    samples = np.random.default_rng(4).random((200, 400)) < 0.3
    full = np.array([mean_lower(values, 0.1, 0, 1) for values in samples[:40]])
    monkeypatch.setenv("LDPAUDIT_EFFORT", "small")
    small = np.array([mean_lower(values, 0.1, 0, 1) for values in samples])
    assert (small > 0.3).sum() <= binom.isf(1e-6, 200, 0.1)
    means = samples[:40].mean(axis=1)
    assert 1.0 < np.mean(means - small[:40]) / np.mean(means - full) < 1.15


FLAT = 0.5 + 0.02 * np.random.default_rng(1).uniform(-1, 1, 50_000)


@pytest.mark.parametrize(
    ("values", "least", "most"),
    [
        # Of little variance; constant at best 0.3 α^(1/n), as the rest could hide zeros.
        (FLAT, 0.4998, FLAT.mean()),
        (1 - FLAT, 0.4998, 1 - FLAT.mean()),
        (np.full(1000, 0.3), 0.3 * (1 - 6 * math.log(20) / 1000), 0.3 * 0.05**0.001 + 1e-12),
        (np.ones(200), 0.96, float(clopper_pearson_lower(200, 200, 0.05))),
    ],
)
def test_low_variance_is_used(values: FloatArray, least: float, most: float) -> None:
    assert least < mean_lower(values, 0.05, 0, 1) <= most
    assert mean_upper(1 - values, 0.05, 0, 1) == pytest.approx(1 - mean_lower(values, 0.05, 0, 1))


def test_rows_sorted_by_their_values_are_shuffled() -> None:
    values, seed = np.repeat([0.0, 1.0], 5000), np.random.default_rng
    bounds = [mean_lower(values, 0.05, 0, 1, rng=seed(s)) for s in (*range(10), 0)]
    assert bounds[0] == bounds[-1]
    # Over orders the distance varies with a standard deviation of 0.25.
    assert 1.4 < np.mean([in_standard_errors(values, b) for b in bounds[:10]]) < 2.2
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
        assert low - 1e-12 <= values.mean() <= high + 1e-12
    moved = mean_lower(shift + scale * values, alpha, shift, shift + scale)
    assert shift <= moved <= shift + scale
