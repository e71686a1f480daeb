"""The added bounds, their formulas and the counts behind them, by hand."""

import numpy as np

from ldpaudit.extras.several.person.estimators import AddedPlan, added_plan
from ldpaudit.mechanisms.response import RandomizedResponse

RR = RandomizedResponse.from_epsilon((0, 1, 2), 1.0).channel.matrix
SHARP = RandomizedResponse.from_epsilon((0, 1, 2), 2.0).channel.matrix
EVENT = np.array([False, True, False])


def plan(way: str, groups: list[int]) -> AddedPlan:
    return AddedPlan(way, 1, (EVENT,) * len(groups), np.array(groups))


def test_what_is_counted() -> None:
    labels = np.array([1, 1, 0, 2, 2, 1, 0, 2], np.int32)
    released = np.stack([labels, np.array([1, 0, 1, 1, 2, 1, 0, 0])], axis=1).astype(np.int32)
    rng = np.random.default_rng(0)
    rates = plan("rates", [0, 1]).tally(labels, released, rng)
    assert rates.inside.tolist() == [3, 2]
    assert rates.outside.tolist() == [0, 2]
    assert rates.rows == (3, 5)
    halves = plan("accuracy", [0, 1]).tally(labels, released, rng)
    assert halves.rows == (3, 3)
    assert halves.inside.tolist() == [3, 2]
    assert halves.outside[0] == 0


def test_the_plan_is_the_best_of_all_labels_and_ways() -> None:
    sizes, channels = np.array([2_000, 900, 30]), [RR, SHARP, RR]
    found = added_plan(sizes, channels)
    assert found is not None
    assert found.groups.tolist() == [0, 1, 0]
    expected = found.expected(channels, sizes, 0.025)
    for label in range(3):
        events = tuple(np.arange(3) == label for _ in channels)
        for way in ("rates", "accuracy"):
            other = AddedPlan(way, label, events, found.groups)
            assert other.expected(channels, sizes, 0.025) <= expected + 1e-12
    assert [e.tolist() for e in found.events] == 3 * [[j == found.label for j in range(3)]]
    assert added_plan(np.array([0, 5, 0]), channels) is None
    few = added_plan(np.array([0, 50, 20]), channels)
    assert few is not None
    assert few.label != 0
