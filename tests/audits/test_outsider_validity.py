"""Whole outsiders' audits of honest releases: the claim is refuted no more often than it may be."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import ldpaudit
from ldpaudit.mechanisms import RandomizedResponse

RUNS = 300


def release(seed: int, made: float) -> pd.DataFrame:
    rng = np.random.default_rng([seed, 11])
    codes = rng.integers(0, 2, 3000).astype(np.int32)
    frame = pd.DataFrame({f"x{i}": 2 * codes + rng.standard_normal(3000) for i in range(3)})
    return frame.assign(label=RandomizedResponse.from_epsilon((0, 1), made).sample(codes, rng))


def lower(seed: int, made: float) -> float:
    claim = {"name": "randomized-response", "epsilon": 1.0}
    result = ldpaudit.audit(release(seed, made), None, claim, seed, only=("mechanism",), threads=1)
    bound = result.estimate("release_only.epsilon_lower")
    assert bound is not None
    return bound.value


@pytest.mark.validate
def test_honest_releases_are_refuted_at_most_as_often_as_the_level_says() -> None:
    """The limit has a false-alarm probability below 1e-6."""
    misses = sum(lower(seed, 1.0) > 1.0 for seed in range(RUNS))
    assert misses <= binom.isf(1e-6, RUNS, 0.05)


def test_a_release_that_leaks_more_is_found() -> None:
    """Made at ε = 3: a constant zero would fail here."""
    assert lower(0, 3.0) > 2.0
