import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.estimators.epsilon.subgroups import (
    RankedRows,
    SubgroupEvidence,
    betraying,
    subgroup_tests,
    surprise,
)
from ldpaudit.mechanisms import RandomizedResponse

ALPHA = 0.2


def rows(
    n: int, k: int, epsilon: float, rng: np.random.Generator, clear: float = 0.0
) -> RankedRows:
    """Return rows whose scores depend on the label; the highest are in the clear."""
    truth = np.where(rng.random(n) < 0.6, 0, rng.integers(0, k, n)).astype(np.int32)
    scores = np.round(rng.normal(size=n) + 0.5 * truth, 1)
    labels = tuple(range(k))
    released = RandomizedResponse.from_epsilon(labels, epsilon).sample(truth, rng)
    if clear:
        top = scores > np.quantile(scores, 1 - clear)
        released = np.where(top, truth, released).astype(np.int32)
    return RankedRows(scores, truth, released)


def bound(seed: int, k: int, epsilon: float, n: int, alpha: float, clear: float = 0.0) -> float:
    rng = np.random.default_rng(seed)
    choosing, tested = (rows(size, k, epsilon, rng, clear) for size in (n // 3, n))
    tests = subgroup_tests(choosing, tested, (k, k), 1.0, rng)
    assert sum(share for share, _ in tests) <= 1 + 1e-9
    return SubgroupEvidence(tuple(tests)).bound(alpha).epsilon


def misses(repeats: int, seed: int) -> int:
    settings = [(2, 0.2), (2, 1.0), (3, 1.0), (2, 3.0)]
    return sum(
        bound(seed + r, *settings[r % len(settings)], n=400, alpha=ALPHA)
        > settings[r % len(settings)][1]
        for r in range(repeats)
    )


def test_the_bound_holds_at_its_level() -> None:
    """More misses than this have probability below 1e-6 at the stated level."""
    assert misses(32, 0) <= binom.isf(1e-6, 32, ALPHA)


@pytest.mark.validate
def test_the_bound_holds_at_its_level_often() -> None:
    assert misses(1500, 1000) <= binom.isf(1e-6, 1500, ALPHA)


@pytest.mark.parametrize(("k", "share", "least"), [(2, 0.1, 2.5), (2, 0.03, 1.5), (4, 0.1, 2.5)])
def test_a_group_in_the_clear_is_found(k: int, share: float, least: float) -> None:
    assert bound(3, k, 1.0, 4000, 0.005, share) > least


def test_a_group_that_gets_the_other_label_is_found() -> None:
    rng = np.random.default_rng(5)
    both = [rows(n, 2, 1.0, rng) for n in (2000, 4000)]
    turned = []
    for part in both:
        low = part.scores < np.quantile(part.scores, 0.1)
        released = np.where(low, 1 - part.truth, part.released).astype(np.int32)
        turned.append(RankedRows(part.scores, part.truth, released))
    tests = subgroup_tests(turned[0], turned[1], (2, 2), 1.0, rng)
    assert SubgroupEvidence(tuple(tests)).bound(0.005).epsilon > 2.5


def test_groups_of_one_label_have_no_bound() -> None:
    rng = np.random.default_rng(0)
    one = RankedRows(rng.normal(size=500), np.zeros(500, np.int32), np.zeros(500, np.int32))
    tests = subgroup_tests(one, one, (2, 2), 1.0, rng)
    assert SubgroupEvidence(tuple(tests)).bound(0.05).epsilon == 0


def test_surprise_is_zero_on_average_for_each_label() -> None:
    some = rows(3000, 3, 1.0, np.random.default_rng(1))
    betrays = betraying(np.eye(3), np.bincount(some.truth))
    assert np.array_equal(betrays, np.eye(3, dtype=bool))
    target = surprise(some, betrays)
    for label in range(3):
        assert target[some.truth == label].mean() == pytest.approx(0, abs=1e-12)
