"""Groups at the ends of a ranking, and what a row's surprise is, by hand."""

import math

import numpy as np
import pytest
from estimators.worlds import ranked

from ldpaudit.estimators.epsilon.bounds import Strongest
from ldpaudit.estimators.epsilon.strongest import (
    RankedRows,
    _promise,
    betraying,
    subgroup_tests,
)
from ldpaudit.mechanisms import RandomizedResponse

RR = RandomizedResponse.from_epsilon((0, 1, 2), 1.0).channel.matrix


def test_outputs_betray_labels_that_they_are_likelier_for() -> None:
    sizes = np.array([50, 30, 20])
    assert (betraying(RR, sizes) == np.eye(3, dtype=bool)).all()
    assert not betraying(np.full((3, 3), 1 / 3), sizes).any()
    same = np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    expected = [[True, False], [True, False], [False, True]]
    assert betraying(same, np.array([1, 1, 1])).tolist() == expected


def test_a_group_promises_what_its_counts_show() -> None:
    """Of one label nothing; of many labels the commonest against all others is compared."""
    many, two = np.zeros((13, 13), np.int64), np.array([[120, 50], [40, 130]])
    many[1, 1], many[1, 2:12], many[5:9, 1], many[2:12, 2:12] = 120, 5, 10, np.eye(10) * 13
    assert _promise(many, 1.0) == pytest.approx(_promise(two, 1.0))
    assert _promise(np.array([[5, 5], [0, 0]]), 2.0) == -1.0
    few, many = (_promise(np.array([[80, 20], [20, 80]]), f) for f in (1.0, 4.0))
    assert 0 < few < many < math.log(4)
    rng, none = np.random.default_rng(0), np.zeros(500, np.int32)
    one = RankedRows(rng.normal(size=500), none, none)
    assert Strongest(subgroup_tests(one, one, (2, 2), 1.0, rng)).bound(0.05).epsilon == 0


def test_a_group_that_gets_the_other_label_is_found() -> None:
    rng, turned = np.random.default_rng(5), []
    for n in (2000, 4000):
        part = ranked(n, 2, 1.0, rng)
        low = part.scores < np.quantile(part.scores, 0.1)
        released = np.where(low, 1 - part.truth, part.released).astype(np.int32)
        turned.append(RankedRows(part.scores, part.truth, released))
    tests = subgroup_tests(turned[0], turned[1], (2, 2), 1.0, rng)
    assert Strongest(tests).bound(0.005).epsilon > 2.5
    assert sum(test.share for test in tests) == pytest.approx(1)
