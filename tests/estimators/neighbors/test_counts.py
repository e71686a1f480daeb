"""Label counts: brute force, ties, blindness to labels and to the file's order, known losses."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.estimators.instance_loss import mean_loss
from ldpaudit.estimators.neighbors import count_labels, neighbor_search
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import Float32Array, IntArray
from ldpaudit.work.tasks import Threads

MANY = 10**9
"""Queries for whose number a search in cells is prepared, however few then ask."""


def counted(
    index: Any, labels: Any, queries: Any, k: int, n_labels: int = 2, **how: Any
) -> IntArray:
    asked = how.pop("asked", len(queries))
    return count_labels(neighbor_search(index, labels, k, n_labels, asked, **how), queries)


def brute_force(index: Any, labels: IntArray, queries: Any, k: int, n_labels: int) -> IntArray:
    """Counts within the k-th smallest distance, ties included, in float64."""
    found = np.empty((len(queries), n_labels), dtype=np.int32)
    for i, query in enumerate(queries.astype(np.float64)):
        squares = ((index.astype(np.float64) - query) ** 2).sum(axis=1)
        near = squares <= np.sort(squares)[min(k, len(index)) - 1] * (1 + 1e-12)
        found[i] = np.bincount(labels[near], minlength=n_labels)
    return found


def sample(
    n: int, m: int, d: int, n_labels: int = 2, seed: int = 0
) -> tuple[Float32Array, IntArray, Float32Array]:
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n + m, d), dtype=np.float32)
    return points[:n], rng.integers(0, n_labels, n).astype(np.int32), points[n:]


@pytest.mark.parametrize(("d", "n_labels"), [(1, 2), (1, 53), (2, 2), (18, 53)])
@pytest.mark.parametrize("k", [1, 100, 500])
def test_small_inputs_equal_brute_force(d: int, n_labels: int, k: int) -> None:
    index, labels, queries = sample(400, 60, d, n_labels)
    found = counted(index, labels, queries, k, n_labels)
    np.testing.assert_array_equal(found, brute_force(index, labels, queries, k, n_labels))
    assert found.dtype == np.int32
    assert counted(index, labels, queries[:0], k, n_labels).shape == (0, n_labels)


@pytest.mark.parametrize("k", [1, 17, 400, 2_500, 4_999])
@pytest.mark.parametrize("kind", ["random", "every sixteenth near", "few values"])
def test_of_wide_rows_a_part_is_looked_at_first(k: int, kind: str) -> None:
    index, labels, queries = sample(5_000, 70, 3)
    if kind == "every sixteenth near":
        index[::16] /= 1e3
    if kind == "few values":
        index, queries = np.round(index), np.round(queries)
    expected = brute_force(index, labels, queries, k, 2)
    np.testing.assert_array_equal(counted(index, labels, queries, k), expected)


@given(st.integers(1, 40), st.integers(1, 45), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_every_tie_is_inside(n: int, k: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    index, queries = (rng.integers(-3, 4, (m, d)).astype(np.float32) for m in (n, 10))
    labels = rng.integers(0, 3, n).astype(np.int32)
    found = counted(index, labels, queries, k, 3)
    np.testing.assert_array_equal(found, brute_force(index, labels, queries, k, 3))


@given(st.integers(2, 300), st.integers(1, 320), st.integers(0, 2**32 - 1))
def test_one_coordinate_is_exact_for_any_floats(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = (rng.standard_cauchy(n + 20) * 10 ** rng.uniform(-3, 6)).astype(np.float32)[:, None]
    labels = rng.integers(0, 2, n).astype(np.int32)
    expected = brute_force(points[:n], labels, points[n:], k, 2)
    np.testing.assert_array_equal(counted(points[:n], labels, points[n:], k), expected)


@pytest.mark.parametrize("n_labels", [2, 53])
def test_cells_count_every_row_within_their_radius(n_labels: int) -> None:
    """Where every cell is visited, each neighbourhood is a ball: the totals nearest rows."""
    index, labels, queries = sample(6_000, 50, 4, n_labels)
    search = neighbor_search(index, labels, 400, n_labels, MANY)
    assert "k-means" in search.method
    for query, found in zip(queries, count_labels(search, queries), strict=True):
        expected = brute_force(index, labels, query[None], int(found.sum()), n_labels)
        np.testing.assert_array_equal(found, expected[0])
        # P(outside) < 2e-7 for the 48th of a sample; the seed is fixed.
        assert 160 <= found.sum() <= 1000


@pytest.mark.parametrize("grid", [False, True])
def test_neighbours_depend_neither_on_labels_nor_on_order_nor_on_threads(grid: bool) -> None:
    index, labels, queries = sample(20_000, 500, 3)
    if grid:  # with many ties
        index, queries = np.round(index * 8), np.round(queries * 8)
    found = counted(index, labels, queries, 250, asked=MANY)
    by_label = np.argsort(labels, kind="stable")
    sorted_ = counted(index[by_label], labels[by_label], queries, 250, asked=MANY)
    np.testing.assert_array_equal(found, sorted_)
    other = counted(index, 1 - labels // 2, queries, 250, asked=MANY)
    np.testing.assert_array_equal(found.sum(axis=1), other.sum(axis=1))
    search = neighbor_search(index, labels, 250, 2, MANY)
    search.batch = 100
    np.testing.assert_array_equal(
        found.sum(axis=1), count_labels(search, queries, Threads(2)).sum(axis=1)
    )


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**-10, 2.0**80])
@pytest.mark.parametrize("offset", [0.0, 2.0**13])
@pytest.mark.parametrize("asked", [1, MANY])
def test_units_and_origin_do_not_matter(scale: float, offset: float, asked: int) -> None:
    index, labels, queries = (
        np.round(x * 512) if x.ndim > 1 else x for x in sample(10_000, 100, 4)
    )
    plain = counted(index, labels, queries, 300, asked=asked)
    moved = [((x + offset) * scale).astype(np.float32) for x in (index, queries)]
    found = counted(moved[0], labels, moved[1], 300, asked=asked)
    eta, other = (c[:, 1] / c.sum(axis=1) for c in (plain, found))
    # Exact: the same. Cells: shares of fair coins in balls nearly the same, sd .03 at most.
    assert np.abs(eta - other).max() < (1e-9 if asked == 1 else 0.15)


def test_losses_of_a_mixture_are_the_known_ones() -> None:
    """E[ν] within .06 of 1.46 nats and J(τ) within .03: a constant η̂ is off by .9."""
    rng = np.random.default_rng(11)
    labels = (rng.random(65_000) < 0.457).astype(np.int32)
    points = rng.standard_normal((65_000, 2), dtype=np.float32) + labels[:, None]
    odds = 0.457 / 0.543 * np.exp(points.sum(axis=1, dtype=np.float64) - 1)
    found = counted(points[:60_000], labels[:60_000], points[60_000:], 600)
    channel, prior = RandomizedResponse.from_epsilon((0, 1), 1.0).channel.matrix, [0.543, 0.457]
    shares = (found[:, 1] / found.sum(axis=1), (odds / (1 + odds))[60_000:])
    ours, truth = (
        mean_loss(np.stack([1 - p, p], axis=1), np.array(prior), channel) for p in shares
    )
    assert abs(ours.mean() - truth.mean()) < 0.06
    for tau in (0.5, 0.8, 1.2):
        assert abs((ours >= tau).mean() - (truth >= tau).mean()) < 0.03
    constant = mean_loss(np.array([prior]), np.array(prior), channel)[0]
    assert truth.mean() - constant > 0.9
