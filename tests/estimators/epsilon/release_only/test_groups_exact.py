"""Groups by scores and the tests of a release, by hand."""

import numpy as np
import pytest
from scipy.stats import binomtest

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import accuracy_bound, two_sided_bound
from ldpaudit.estimators.epsilon.release_only import bound
from ldpaudit.estimators.epsilon.release_only.bound import (
    GroupTest,
    ReleaseOnlyEvidence,
    release_only_evidence,
)
from ldpaudit.estimators.epsilon.release_only.score_groups import group_sizes, score_groups


@pytest.mark.parametrize("largest", [0, 10, 100, 5_000])
def test_group_sizes_fall_by_the_root_of_two(largest: int) -> None:
    found = group_sizes(largest)
    assert found[-1] == 0
    if len(found) > 1:
        assert found[0] == largest
        expected = [np.ceil(largest * 2 ** (-i / 2)) for i in range(len(found) - 1)]
        assert found[:-1].tolist() == expected


def test_rows_belong_where_they_are_likelier_than_usual() -> None:
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([2.0, 1.0, 1.0], 400)
    meant = rng.integers(0, 3, 400).astype(np.int32)
    found = score_groups(scores, meant, 3.0)
    assert found.usual == pytest.approx(scores.mean(axis=0))
    group = (scores / scores.mean(axis=0)).argmax(axis=1)
    steps = np.array([0, 1, 2])
    assigned = found.assign(scores, steps)
    for g in range(3):
        mine = np.flatnonzero(group == g)
        size = int(group_sizes(len(mine))[steps[g]])
        surest = mine[np.argsort(-scores[mine, g])[:size]]
        assert set(np.flatnonzero(assigned == g)) == set(surest)
        assert found.ladder.sizes[g, steps[g]] == 3 * size
        hits = int((meant[surest] == g).sum())
        low = binomtest(hits, size).proportion_ci(1 - 2 * 0.16, "exact").low
        assert found.ladder.right[g, steps[g]] == pytest.approx(3 * size * low)
    left_out = np.array([len(group_sizes((group == g).sum())) - 1 for g in range(3)])
    assert (found.assign(scores, left_out) == -1).all()


def test_a_test_is_bounded_at_its_share() -> None:
    table = np.array([[70, 20, 10], [5, 30, 40]])
    means = np.array([0, 1, 1], np.int32)
    mine = GroupTest(table, means, 0.4, "scores")
    assert mine.correct == 70 + 30 + 40
    assert mine.sizes.tolist() == [100, 75]
    assert mine.bound(0.05) == accuracy_bound(140, mine.sizes, 0.05 * 0.4, "scores")
    two = GroupTest(table, means, 0.1, "anchors", "two-sided").bound(0.05)
    assert two.epsilon == two_sided_bound((30, 70), (100, 75), 0.005).epsilon
    assert two.method == "anchors"
    both = ReleaseOnlyEvidence((mine, GroupTest(table // 2, means, 0.6, "anchors")))
    assert both.bound(0.05).epsilon == mine.bound(0.05).epsilon
    assert both.bound(0.05).alpha == 0.05
    assert both.strongest_test(0.05) is mine


def test_sets_of_outputs_that_are_told_apart() -> None:
    frequencies = np.array([[0.1, 0.4, 0.2, 0.3]])
    found = list(bound._problems(frequencies, ordered=False))
    assert found[0] is None
    assert [np.flatnonzero(one).tolist() for one in found[1:]] == [[1], [3], [2], [0]]
    low = list(bound._problems(frequencies, ordered=True))[5:]
    # (i + 1/2)/12 of the rows: the first 0.1 lie in output 0, the next 0.4 in output 1.
    assert [np.flatnonzero(one).tolist() for one in low] == [[0], [0, 1], [0, 1, 2]]
    assert list(bound._problems(np.array([[0.5, 0.5]]), ordered=True)) == [None]
    many = list(bound._problems(np.ones((1, 40)), ordered=True))
    assert len(many) == 1 + 16 + 12
    cuts = [int(one.sum()) - 1 for one in many[17:]]
    assert cuts == [int(np.searchsorted(np.arange(1, 41) / 40, (i + 0.5) / 12)) for i in range(12)]


def test_the_shares_of_all_tests_are_the_whole() -> None:
    rng = np.random.default_rng(1)
    released = rng.integers(0, 2, 900).astype(np.int32)
    scores = rng.dirichlet([1.0, 1.0], 900)
    points = scores[:, :1].astype(np.float32)
    halves = rng.permutation(np.repeat([0, 1], 450)).astype(np.int8)
    for given in ({"scores": scores}, {"points": points}, {"scores": scores, "points": points}):
        arguments = {"points": None, **given}
        found = release_only_evidence(
            arguments.pop("points"), released, 2, halves, rng=rng, **arguments
        )
        assert sum(test.share for test in found.tests) == pytest.approx(1)
        sources = [test.source for test in found.tests]
        assert sources.count("scores") == 4 * ("scores" in given)
        assert sources.count("anchors") == 2 * ("points" in given)
        if len(given) == 2:
            by_scores = sum(t.share for t in found.tests if t.source == "scores")
            assert by_scores == pytest.approx(0.85)
        if "scores" in given:
            sizes = [int(t.sizes.sum()) for t in found.tests if t.source == "scores"]
            assert sizes[0] <= 360
            assert sizes[1] <= sizes[0]


def test_two_hundred_rows_of_either_half_are_enough() -> None:
    rng = np.random.default_rng(2)
    halves = np.repeat([0, 1], [200, 250]).astype(np.int8)
    scores = rng.dirichlet([1.0, 1.0], 450)
    released = rng.integers(0, 2, 450).astype(np.int32)
    release_only_evidence(None, released, 2, halves, rng=rng, scores=scores)
    with pytest.raises(InsufficientDataError, match="400 rows"):
        release_only_evidence(None, released[1:], 2, halves[1:], rng=rng, scores=scores[1:])
    with pytest.raises(InputError, match="points or scores"):
        release_only_evidence(None, released, 2, halves, rng=rng)
