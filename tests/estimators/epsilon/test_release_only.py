"""Groups of rows that stand for labels, by scores or by balls: how they are found and counted."""

from collections.abc import Iterator

import numpy as np
import pytest
from estimators.worlds import clusters

from ldpaudit.errors import InputError, InsufficientDataError
from ldpaudit.estimators.epsilon import release_only
from ldpaudit.estimators.epsilon.release_only import (
    SplitRows,
    group_sizes,
    nested_balls,
    release_only_evidence,
)


@pytest.mark.parametrize(("k", "epsilon", "blunt"), [(2, 1.0, 0.85), (5, 2.0, 0.0)])
def test_many_rows_show_nearly_all_of_epsilon(k: int, epsilon: float, blunt: float) -> None:
    rng = np.random.default_rng(0)
    points, released, halves, scores = clusters(20_000, k, epsilon, rng)
    # Badly calibrated ones still serve.
    sharp = np.clip(5 * (scores - 0.5) + 0.5, 1e-4, 1 - 1e-4)
    for by_points, by_scores, least in (
        (points, scores, 0.9),
        (points, None, 0.7),
        (None, sharp, blunt),
    ):
        found = release_only_evidence(
            by_points, SplitRows(released, k, halves), rng=rng, scores=by_scores
        )
        assert least * epsilon <= found.bound(0.05).epsilon <= epsilon


def test_the_shares_of_all_tests_are_the_whole() -> None:
    rng = np.random.default_rng(1)
    points, released, halves, scores = clusters(900, 2, 1.0, rng)
    for by_points, by_scores in ((points, None), (None, scores), (points, scores)):
        found = release_only_evidence(
            by_points, SplitRows(released, 2, halves), rng=rng, scores=by_scores
        )
        assert sum(test.share for test in found.tests) == pytest.approx(1)
        sources = [test.source for test in found.tests]
        assert sources.count("scores") == 4 * (by_scores is not None)
        assert sources.count("anchors") == 2 * (by_points is not None)
    assert sum(t.share for t in found.tests if t.source == "scores") == pytest.approx(0.85)
    sizes = [int(test.sizes.sum()) for test in found.tests[:2]]
    assert sizes[1] <= sizes[0] <= 360
    some = np.arange(0, 900, 2)
    fewer = release_only_evidence(
        points[some], SplitRows(released, 2, halves), rng=rng, point_rows=some
    )
    assert sum(int(test.sizes.sum()) for test in fewer.tests) <= 450


def test_two_hundred_rows_of_either_half_are_enough() -> None:
    rng = np.random.default_rng(2)
    points, released, _, scores = clusters(450, 2, 1.0, rng)
    halves = np.repeat([0, 1], [200, 250]).astype(np.int8)
    release_only_evidence(None, SplitRows(released, 2, halves), rng=rng, scores=scores)
    with pytest.raises(InsufficientDataError, match="400 rows"):
        release_only_evidence(points[1:], SplitRows(released[1:], 2, halves[1:]), rng=rng)
    with pytest.raises(InputError, match="points or scores"):
        release_only_evidence(None, SplitRows(released, 2, halves), rng=rng)


def test_balls_count_exact_neighbours() -> None:
    points, released, _, _ = clusters(3000, 2, 1.0, np.random.default_rng(7))
    sizes = group_sizes(1000)[:-1]
    radii, counts = nested_balls(points, released, points[:40], sizes, 2)
    assert (counts.sum(axis=2) == sizes).all()
    near = np.argsort(((points.astype(np.float64) - points[35]) ** 2).sum(axis=1))
    for step in (0, len(sizes) - 1):
        expected = np.bincount(released[near[: int(sizes[step])]], minlength=2)
        assert np.abs(counts[35, step] - expected).max() <= 1
        inside = release_only._distances(points, points[35:36])[0] <= radii[35, step]
        assert abs(inside.sum() - sizes[step]) <= 1


@pytest.mark.parametrize("wanted", ["accuracy", "two-sided"])
def test_the_plan_with_the_largest_expected_bound_is_tested(
    wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps(*_: object) -> Iterator[tuple[str, np.ndarray, float]]:
        for method in ("accuracy", "two-sided"):
            yield method, np.zeros(2, dtype=np.int64), 2.0 if method == wanted else 1.0

    monkeypatch.setattr(release_only, "best_steps", steps)
    points, released, halves, scores = clusters(1000, 2, 1.0, np.random.default_rng(7))
    rng = np.random.default_rng(1)
    found = release_only_evidence(points, SplitRows(released, 2, halves), rng=rng, scores=scores)
    assert {test.source for test in found.tests} == {"scores", "anchors"}
    assert {test.method for test in found.tests} == {wanted}


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_balls_chosen_on_a_sample_count_all_other_rows(
    epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_only, "_MOST_DESIGNED", 500)
    bounds = []
    # At a level of .001 each, one of twenty honest releases exceeds ε by chance in 2 % of all runs
    # at most.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        points, released, halves, _ = clusters(6_000, 2, epsilon, rng)
        found = release_only_evidence(points, SplitRows(released, 2, halves), rng=rng)
        assert [test.sampled for test in found.tests] == [500, 500]
        # More rows are counted than balls were chosen on.
        assert min(test.sizes.sum() for test in found.tests) > 500
        bounds.append(found.bound(0.001).epsilon)
    assert max(bounds) <= epsilon
    assert np.median(bounds) >= 0.5 * epsilon
    monkeypatch.setattr(release_only, "_MOST_DESIGNED", 3_000)
    every = release_only_evidence(points, SplitRows(released, 2, halves), rng=rng)
    assert {test.sampled for test in every.tests} == {None}
