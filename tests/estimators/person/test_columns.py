import math

import numpy as np
import pytest
from estimators.person.worlds import HONEST, JOINT, SHARED, World, independent, shared_uniform
from scipy.stats import binom

from ldpaudit.estimators.epsilon.strongest import epsilon_evidence
from ldpaudit.estimators.person.evidence import AnswersEvidence, OfColumns, column_codes
from ldpaudit.estimators.person.shared_draws import kinds_of
from ldpaudit.estimators.person.sums import sum_lower
from ldpaudit.release import label_table

FALSE_ALARM = 1e-6
ALPHA = 0.05


def evidence(world: World, n: int, rng: np.random.Generator, *, claimed: bool) -> AnswersEvidence:
    labels = world.labels(n, rng)
    released = world.release(labels, rng)
    columns = tuple(
        epsilon_evidence(label_table(labels[:, a], released[:, a], *c.shape), c, rng)
        for a, c in enumerate(world.channels)
    )
    channel = world.channel if claimed else None
    sizes = [c.shape for c in world.channels]
    codes = tuple(column_codes(labels, released, sizes, channel, rng))
    found = AnswersEvidence.of([OfColumns(columns)], codes)
    assert found is not None
    return found


def columns_bound(world: World, n: int, rng: np.random.Generator) -> float:
    return evidence(world, n, rng, claimed=False).bound(ALPHA).epsilon


def vectors_bound(world: World, n: int, rng: np.random.Generator) -> float:
    return evidence(world, n, rng, claimed=world in JOINT).as_one(ALPHA).epsilon


def most_misses(draws: int) -> int:
    return int(binom.isf(FALSE_ALARM, draws, ALPHA))


def misses(world: World, bound, n: int, draws: int) -> int:
    return sum(
        bound(world, n, np.random.default_rng(seed)) > world.epsilon + 1e-9 for seed in range(draws)
    )


@pytest.mark.parametrize("world", [HONEST[2], JOINT[1], SHARED[0]], ids=lambda w: w.name)
def test_vectors_as_labels_hold_at_their_level(world):
    """Each test of misses here: a right bound fails it once in a million."""
    assert misses(world, vectors_bound, 400, 12) <= most_misses(12)


def test_columns_hold_at_their_level():
    assert misses(HONEST[0], columns_bound, 400, 10) <= most_misses(10)


@pytest.mark.validate
@pytest.mark.parametrize("world", [*HONEST, *JOINT, *SHARED], ids=lambda w: w.name)
@pytest.mark.parametrize("n", [300, 3_000])
def test_vectors_as_labels_hold_at_their_level_over_500_draws(world, n):
    assert misses(world, vectors_bound, n, 500) <= most_misses(500)


@pytest.mark.validate
@pytest.mark.parametrize("world", HONEST, ids=lambda w: w.name)
def test_columns_hold_at_their_level_over_500_draws(world):
    assert misses(world, columns_bound, 1_000, 500) <= most_misses(500)


@pytest.mark.parametrize(
    ("world", "bound", "least"),
    [
        (independent((1.0, 1.0), (2, 2), "correlated"), columns_bound, 0.9),
        (independent((1.0,) * 5, (3,) * 5, "uniform"), columns_bound, 0.85),
        (JOINT[0], vectors_bound, 0.85),
        (JOINT[1], vectors_bound, 0.6),
        (SHARED[0], vectors_bound, 0.8),
        (SHARED[1], vectors_bound, 0.8),
    ],
    ids=lambda w: getattr(w, "name", None),
)
def test_bounds_come_near_the_true_epsilon(world, bound, least):
    assert bound(world, 10_000, np.random.default_rng(5)) > least * world.epsilon


def test_a_shared_draw_is_bounded_beyond_the_claim():
    world = shared_uniform((1.0, 1.0), (2, 2))
    assert vectors_bound(world, 5_000, np.random.default_rng(1)) > 3.0


def test_of_many_values_pairs_are_looked_at():
    world = independent((1.0,) * 5, (3,) * 5, "uniform")
    found = evidence(world, 2_000, np.random.default_rng(0), claimed=False)
    assert len(found.codes) == 10
    assert found.codes[0].counts.shape == (9, 9)


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


def test_kinds_are_counted_within_strata():
    parts, strata = np.array([[0, 1], [0, 1], [0, 1], [1, 1]]), np.array([0, 0, 1, 1])
    assert kinds_of(parts, strata).tolist() == [0, 0, 1, 2]


def test_nothing_is_bounded_where_all_true_labels_are_the_same():
    labels = np.zeros((100, 2), np.int32)
    rng = np.random.default_rng(0)
    released = rng.integers(0, 2, (100, 2)).astype(np.int32)
    assert not list(column_codes(labels, released, [(2, 2), (2, 2)], None, rng))
