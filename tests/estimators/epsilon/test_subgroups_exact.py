"""Groups at the ends of a ranking, and what would be found in the clear, by hand."""

import math

import numpy as np
import pytest

from ldpaudit.estimators.epsilon import clear, subgroups
from ldpaudit.estimators.epsilon.subgroups import Edge, RankedRows, betraying, surprise
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse

RR = RandomizedResponse.from_epsilon((0, 1, 2), 1.0).channel.matrix


def test_edges_are_quantiles_from_either_end() -> None:
    scores = np.random.default_rng(0).permutation(100) / 1.0
    found = list(subgroups._edges(scores, (0.1, 0.5)))
    inside = [edge.inside(scores) for edge in found]
    assert [part.sum() for part in inside] == [10, 50, 10, 50]
    assert [set(scores[part]) for part in inside[::2]] == [set(range(90, 100)), set(range(10))]
    assert Edge(-1, -3.0).inside(np.array([2.0, 3.0, 4.0])).tolist() == [True, True, False]


def test_outputs_betray_labels_that_they_are_likelier_for() -> None:
    sizes = np.array([50, 30, 20])
    assert (betraying(RR, sizes) == np.eye(3, dtype=bool)).all()
    assert not betraying(np.full((3, 3), 1 / 3), sizes).any()
    same = np.array([[0.5, 0.5], [0.5, 0.5], [0.2, 0.8]])
    expected = [[True, False], [True, False], [False, True]]
    assert betraying(same, np.array([1, 1, 1])).tolist() == expected


def test_a_surprise_is_a_row_less_its_labels_share() -> None:
    truth = np.array([0, 0, 0, 0, 1, 1], np.int32)
    released = np.array([0, 0, 0, 1, 1, 0], np.int32)
    rows = RankedRows(np.zeros(6), truth, released)
    found = surprise(rows, np.eye(3, dtype=bool))
    assert found.tolist() == [0.25, 0.25, 0.25, -0.75, 0.5, -0.5]


def test_the_commonest_label_against_all_others() -> None:
    counts = np.array([[5, 2, 1], [3, 20, 7], [4, 6, 2]])
    assert subgroups._commonest(counts).tolist() == [[20, 10], [8, 12]]


def test_a_group_of_one_label_promises_nothing() -> None:
    assert subgroups._promise(np.array([[5, 5], [0, 0]]), 2.0) == -1.0
    assert subgroups._promise(np.array([[5, 5], [1, 0]]), 0.5) == -1.0
    few, many = (subgroups._promise(np.array([[80, 20], [20, 80]]), f) for f in (1.0, 4.0))
    assert 0 < few < many < math.log(4)


def test_many_labels_are_made_two() -> None:
    k = 20
    channel = RandomizedResponse.from_epsilon(tuple(range(k)), 2.0).channel.matrix
    sizes = np.arange(1, k + 1) * 10
    rows, one, told = clear._simplified(clear.Claimed(sizes, channel, channel, 2.0))
    assert rows.tolist() == [200, sizes[:-1].sum()]
    assert one[0] == pytest.approx([channel[0, 0], 1 - channel[0, 0]])
    assert one[1] == pytest.approx([channel[0, 1], 1 - channel[0, 1]])
    assert (told == np.eye(2)).all()
    rows, one, told = clear._simplified(clear.Claimed(sizes[:3], RR, RR, 1.0))
    assert rows.tolist() == [10, 20, 30]
    assert one is RR


@pytest.mark.parametrize("truth", [1e-4, 0.03, 0.9])
def test_the_smallest_share_is_found_to_two_percent(truth: float) -> None:
    found = clear._smallest(lambda share: share >= truth)
    assert truth <= found <= 1.021 * truth
    assert clear._smallest(lambda _: False) == math.inf
