import math

import numpy as np
import pytest
from estimators.vectors.worlds import HONEST, JOINT, SHARED, World, independent, shared_uniform
from scipy.stats import binom

from ldpaudit.estimators.epsilon.strongest import epsilon_evidence
from ldpaudit.estimators.vectors import choosing
from ldpaudit.estimators.vectors.choosing import (
    choose_by_claim,
    choose_by_pilot,
    relations,
    split_pilot,
)
from ldpaudit.estimators.vectors.patterns import (
    Outcome,
    Pattern,
    TrueVectors,
    balance,
    distinct_rows,
)
from ldpaudit.estimators.vectors.sums import sum_lower
from ldpaudit.release import label_table

FALSE_ALARM = 1e-6
ALPHA = 0.05


def draw(world: World, n: int, rng: np.random.Generator):
    labels = world.labels(n, rng)
    return TrueVectors(labels, np.zeros(n, np.int64)), world.release(labels, rng)


def patterns_bound(world: World, n: int, rng: np.random.Generator) -> float:
    truth, released = draw(world, n, rng)
    simulated = [world.release(truth.labels, rng) for _ in range(2)]
    choice = choose_by_claim(truth, world.channels, simulated)
    return 0.0 if choice is None else choice.count(truth, released, rng).bound(ALPHA).epsilon


def pairs_bound(world: World, n: int, rng: np.random.Generator) -> float:
    truth, released = draw(world, n, rng)
    pilot, others = split_pilot(n, rng)
    near = [relations(channel, 0.0)[0] for channel in world.channels]
    choice = choose_by_pilot(truth.take(pilot), released[pilot], near, len(others) / len(pilot))
    if choice is None:
        return 0.0
    return choice.count(truth.take(others), released[others], rng).bound(ALPHA).epsilon


def columns_bound(world: World, n: int, rng: np.random.Generator) -> float:
    truth, released = draw(world, n, rng)
    evidence = [
        epsilon_evidence(label_table(truth.labels[:, a], released[:, a], *c.shape), c, rng)
        for a, c in enumerate(world.channels)
    ]
    return sum_lower([lambda alpha, e=e: e.strongest(alpha).epsilon for e in evidence], ALPHA)


def most_misses(draws: int) -> int:
    return int(binom.isf(FALSE_ALARM, draws, ALPHA))


def misses(world: World, bound, n: int, draws: int) -> int:
    return sum(
        bound(world, n, np.random.default_rng(seed)) > world.epsilon + 1e-9 for seed in range(draws)
    )


@pytest.mark.parametrize("world", [HONEST[2], JOINT[1], SHARED[0]], ids=lambda w: w.name)
@pytest.mark.parametrize("bound", [patterns_bound, pairs_bound])
def test_patterns_hold_at_their_level(world, bound):
    assert misses(world, bound, 400, 12) <= most_misses(12)


def test_sums_hold_at_their_level():
    assert misses(HONEST[0], columns_bound, 400, 10) <= most_misses(10)


@pytest.mark.validate
@pytest.mark.parametrize("world", [*HONEST, *JOINT, *SHARED], ids=lambda w: w.name)
@pytest.mark.parametrize("bound", [patterns_bound, pairs_bound])
@pytest.mark.parametrize("n", [300, 3_000])
def test_patterns_hold_at_their_level_over_500_draws(world, bound, n):
    assert misses(world, bound, n, 500) <= most_misses(500)


@pytest.mark.validate
@pytest.mark.parametrize("world", HONEST, ids=lambda w: w.name)
def test_sums_hold_at_their_level_over_500_draws(world):
    assert misses(world, columns_bound, 1_000, 500) <= most_misses(500)


@pytest.mark.parametrize(
    ("world", "least"),
    [
        (independent((1.0, 1.0), (2, 2), "correlated"), 0.85),
        (independent((1.0,) * 5, (3,) * 5, "uniform"), 0.8),
        (JOINT[1], 0.7),
    ],
    ids=lambda w: getattr(w, "name", w),
)
def test_patterns_come_near_the_true_epsilon(world, least):
    assert patterns_bound(world, 10_000, np.random.default_rng(5)) > least * world.epsilon


def test_a_shared_draw_is_bounded_beyond_the_claim():
    world = shared_uniform((1.0, 1.0), (2, 2))
    assert pairs_bound(world, 5_000, np.random.default_rng(1)) > 5.0


def test_a_sum_is_stronger_than_equal_shares():
    def bound(alpha: float) -> float:
        return 1.0 - 0.05 * math.sqrt(-2 * math.log(alpha))

    assert sum_lower([bound], ALPHA) == bound(ALPHA)
    for many in (2, 5):
        value = sum_lower([bound] * many, ALPHA)
        assert many * bound(ALPHA / many) < value < many * bound(0.25)


def test_sums_never_use_a_bound_that_fails_at_large_levels():
    def bound(alpha: float) -> float:
        return 0.0 if alpha > 0.25 else 1.0

    assert sum_lower([bound, bound], ALPHA) == 2.0


def test_distinct_rows_are_counted_within_strata():
    parts = np.array([[0, 1], [0, 1], [0, 1], [2, 0]], np.int32)
    first, kind, counts = distinct_rows(parts, np.array([0, 0, 1, 0]))
    assert sorted(counts.tolist()) == [1, 1, 2]
    assert kind[0] == kind[1] != kind[2]
    assert set(kind[first]) == {0, 1, 2}


def test_balance_counts_true_vectors_of_the_rows_stratum():
    labels = np.array([[0], [0], [1], [1], [1], [0]], np.int32)
    truth = TrueVectors(labels, np.array([0, 0, 0, 0, 0, 1]))
    near, far = relations(np.array([[0.7, 0.3], [0.3, 0.7]]), 0.0)
    ratio = balance(Pattern((0,), (near,), (far,)), truth, np.zeros((6, 1), np.int32))
    assert ratio[:5] == pytest.approx(1.5)
    assert ratio[5] == 0.0  # No control in its stratum: it counts for nothing.
    outcome = Outcome.of(Pattern((0,), (near,), (far,)), truth, np.zeros((6, 1), np.int32))
    assert len(outcome.cases) == 2
    assert len(outcome.controls) == 3


def test_an_output_that_tells_nothing_has_neither_cases_nor_controls():
    near, far = relations(np.array([[0.5, 0.3, 0.2], [0.5, 0.2, 0.3]]), 0.25)
    assert not near[:, 0].any()
    assert not far[:, 0].any()
    assert near[:, 1].tolist() == [True, False]


def test_fewer_columns_are_looked_at_where_their_product_is_too_large(monkeypatch):
    world = independent((1.0, 0.2, 1.0), (6, 6, 6), "uniform")
    rng = np.random.default_rng(0)
    truth, released = draw(world, 1_000, rng)
    monkeypatch.setattr(choosing, "_LARGEST", 2_000)
    choice = choosing.choose_by_claim(truth, world.channels, [released])
    assert choice is not None
    assert choice.pattern.columns == (0, 2)


def test_nothing_is_bounded_where_all_true_vectors_are_the_same():
    world = HONEST[0]
    rng = np.random.default_rng(0)
    truth = TrueVectors(np.zeros((500, 2), np.int32), np.zeros(500, np.int64))
    released = world.release(truth.labels, rng)
    assert choose_by_claim(truth, world.channels, [released]) is None
    near = [relations(channel, 0.0)[0] for channel in world.channels]
    assert choose_by_pilot(truth, released, near, 4.0) is None
