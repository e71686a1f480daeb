"""Test rows that are rows of the table are found, and other people with equal features are not."""

import numpy as np
import pytest

from ldpaudit.errors import InputError
from ldpaudit.extras.learn.utility.outside import rows_inside, said_inside
from ldpaudit.release import FeatureTable


def few(kinds, columns):
    return lambda n, rng: rng.integers(0, kinds, (n, columns))


def with_many_alike(n, rng):
    return np.where(rng.random((n, 1)) < 0.45, 0, rng.normal(size=(n, 2)))


PEOPLE = {
    "numbers": lambda n, rng: rng.normal(size=(n, 2)),
    "many alike": with_many_alike,
    "often twins": few(5, 4),
    "frequent and rare": lambda n, rng: np.minimum(rng.zipf(1.5, (n, 2)), 1000),
}

COARSE = {"few kinds": few(2, 3), "mostly twins": few(4, 4)}
"""Rows of the table cannot be told from others."""


def table(values):
    values = np.asarray(values, dtype=np.float32)
    none = np.zeros((len(values), 0), np.int32)
    return FeatureTable(values, none, (), values.shape[1])


def inside(own, theirs):
    return rows_inside(table(own), table(theirs))


@pytest.mark.parametrize("kind", [*PEOPLE, *COARSE])
@pytest.mark.parametrize(("n", "t"), [(1000, 1000), (1000, 200), (200, 2000), (60, 30)])
def test_other_people_are_never_taken_for_the_table(kind, n, t):
    people = (PEOPLE | COARSE)[kind]
    for seed in range(100):
        rng = np.random.default_rng([seed, n, t])
        assert inside(people(n, rng), people(t, rng)) == 0.0


@pytest.mark.parametrize("kind", PEOPLE)
@pytest.mark.parametrize(("n", "t"), [(1000, 1000), (1000, 200), (200, 2000), (60, 30)])
def test_rows_of_the_table_are_refused(kind, n, t):
    rng = np.random.default_rng([1, n, t])
    own = PEOPLE[kind](n, rng)
    rows = rng.permutation(n)[:t] if t <= n else rng.integers(0, n, t)
    with pytest.raises(InputError, match="The test rows must be of other people"):
        inside(own, own[rows])


@pytest.mark.parametrize(
    ("kind", "share"), [("numbers", 0.1), ("numbers", 0.4), ("many alike", 0.4)]
)
def test_a_part_of_them_is_said(kind, share):
    rng = np.random.default_rng(2)
    own, theirs = PEOPLE[kind](1000, rng), PEOPLE[kind](500, rng)
    theirs[: round(500 * share)] = own[: round(500 * share)]
    found = inside(own, theirs)
    assert abs(found - share) < 0.08
    assert said_inside(found).startswith(f"About {100 * found:.0f} % of the test rows have")


def test_people_with_the_commonest_features_are_other_people():
    rng = np.random.default_rng(3)
    own = with_many_alike(1000, rng)
    assert inside(own, np.zeros((500, 2))) == 0.0
    assert inside(np.zeros((100, 0)), np.zeros((50, 0))) == 0.0
    assert said_inside(0.0) == ""
