"""Numbers of neighbours, cells and rows to ask, and counts, by brute force."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

from ldpaudit.estimators.neighbors import exact, sizes
from ldpaudit.estimators.neighbors.counts import EXACT_PAIRS, cell_rows, planned_cells
from ldpaudit.estimators.neighbors.distinct import DistinctRows, count_distinct, distinct_rows
from ldpaudit.estimators.neighbors.nearest_centers import folds_for, most_visits
from ldpaudit.estimators.neighbors.points import Points


@pytest.mark.parametrize(
    ("n", "dimensions", "k"),
    [
        (10_000, None, 400),
        (10_000, 1, 1_000),
        (50_000, 1, 3_344),
        (300, 5, 30),
        (100, 2, 20),
        (7, 3, 7),
    ],
)
def test_the_default_number_of_neighbors(n: int, dimensions: int | None, k: int) -> None:
    assert sizes.default_neighbors(n, dimensions) == k


def test_so_many_rows_are_asked_that_a_share_is_pinned_down() -> None:
    def widest(m: int, worst: float) -> float:
        shares = [c / m for c in range(m // 4 if worst == 0.5 else 0, m + 1)]
        if worst < 0.5:
            shares = [s for s in shares if s <= worst or s >= 1 - worst]
        return max(s - binomtest(round(s * m), m).proportion_ci(0.9, "exact").low for s in shares)

    for precision, worst in ((0.05, 0.5), (0.05, 0.1)):
        found = sizes.queries_needed(precision, 0.05, worst)
        assert found % 100 == 0
        assert widest(found, worst) <= precision + 5e-5
        assert widest(found - 100, worst) > precision - 5e-4
    assert sizes.queries_needed() == 66_600


def test_cells_are_planned_where_an_exact_search_is_long() -> None:
    n, k = 1_000_000, 200
    assert planned_cells(n, EXACT_PAIRS // n, k) == 0
    assert planned_cells(n, EXACT_PAIRS // n + 1, k) == math.ceil(n / cell_rows(n, k))
    assert planned_cells(n, 10**6, n) == 0


def test_visits_and_folds() -> None:
    assert most_visits(40, 10_000) == 50
    assert most_visits(4, 10_000) == 6
    assert most_visits(40, 45) == 45
    for count, cells in ((10, 10_000), (10, 150), (30, 1_199), (30, 1_200), (100, 1_000)):
        folds = [f for f in (1, 2, 4, 8) if f == 1 or f * count**2 <= 3 * cells]
        assert folds_for(count, cells) == max(folds)


def test_different_values_are_counted() -> None:
    for values in ([], [3], [3, 3], [1, 2, 2, 9]):
        assert count_distinct(np.array(values, np.uint64)) == len(set(values))


@pytest.mark.parametrize("long", [1, 10**9])
@pytest.mark.parametrize("copies", [False, True])
def test_exact_counts_are_those_of_all_distances(
    long: int, copies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "_LONG", long)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 4, (80, 2)).astype(np.float32)
    rows = rows if copies else rng.normal(size=(80, 2)).astype(np.float32)
    labels = rng.integers(0, 3, 80).astype(np.int32)
    queries = rng.normal(1, 1, (25, 2)).astype(np.float32)
    codes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    distinct = distinct_rows(Points(rows), codes.astype(np.uint64))
    for k in (1, 7, 30):
        found = exact.WeightedRows(distinct, labels, 3, k).count(queries)
        far = ((queries[:, None].astype(float) - rows[None]) ** 2).sum(axis=2)
        radius = np.sort(far, axis=1)[:, k - 1]
        near = far <= radius[:, None] + 1e-9
        expected = [[int((labels[row] == c).sum()) for c in range(3)] for row in near]
        assert found.tolist() == expected


def test_labels_of_distinct_rows() -> None:
    points = Points(np.array([[1.0], [2.0]], np.float32))
    distinct = DistinctRows(points, np.array([1, 0, 1]))
    assert distinct.label_counts(np.array([0, 2, 2], np.int32), 3).tolist() == [
        [0, 0, 1],
        [1, 0, 1],
    ]
    alone = DistinctRows(points, None)
    assert alone.label_counts(np.array([1, 0], np.int32), 2).tolist() == [[0, 1], [1, 0]]
