"""Groups told apart by low against high outputs, and by one rare output's two shares."""

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.epsilon.release_only.bound import (
    ReleaseOnlyEvidence,
    release_only_evidence,
)
from ldpaudit.mechanisms import RandomizedResponse

ALPHA, K = 0.2, 5


def evidence(epsilon: float, n: int, seed: int) -> ReleaseOnlyEvidence:
    """Return what groups show of randomized response on five numbers, the outer ones well told."""
    rng = np.random.default_rng(seed)
    middle = rng.normal(2.0, 2.0, n)
    truth = np.clip(np.rint(middle + rng.normal(0, 0.3, n)), 0, K - 1).astype(np.int32)
    claimed = RandomizedResponse.from_epsilon(tuple(range(K)), epsilon)
    likely = np.exp(-((np.clip(middle, 0, K - 1)[:, None] - np.arange(K)) ** 2))
    scores = (likely / likely.sum(axis=1, keepdims=True)) @ claimed.channel.matrix
    halves = rng.permutation(n).astype(np.int32) % 2
    released = claimed.sample(truth, rng)
    return release_only_evidence(None, released, K, halves, rng=rng, scores=scores, ordered=True)


def misses(runs: int, start: int) -> int:
    settings = [(1.0, 800), (0.3, 800), (2.0, 1500)]
    chosen = [settings[r % len(settings)] for r in range(runs)]
    return sum(
        evidence(epsilon, n, start + r).bound(ALPHA).epsilon > epsilon
        for r, (epsilon, n) in enumerate(chosen)
    )


def test_the_bound_holds_at_its_level() -> None:
    """More misses than this have probability below 1e-6 at the stated level."""
    assert misses(45, 0) <= binom.isf(1e-6, 45, ALPHA)


@pytest.mark.validate
def test_the_bound_holds_at_its_level_often() -> None:
    assert misses(1200, 1000) <= binom.isf(1e-6, 1200, ALPHA)


def test_one_of_many_outputs_shows_most_of_epsilon() -> None:
    found = evidence(1.0, 40_000, 1)
    assert any(test.method == "two-sided" for test in found.tests)
    assert found.bound(0.05).epsilon > 0.7
