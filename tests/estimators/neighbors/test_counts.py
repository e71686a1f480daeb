"""Label counts: parity with brute force, ties, determinism, blindness to the labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ldpaudit.errors import InputError
from ldpaudit.estimators.neighbors import cell_search
from ldpaudit.estimators.neighbors import counts as neighbors
from ldpaudit.estimators.neighbors.counts import NeighborCounts, count_labels
from ldpaudit.estimators.neighbors.means import Means
from ldpaudit.estimators.neighbors.sizes import default_neighbors, queries_needed
from ldpaudit.release import Float32Array, IntArray


def brute_force(
    index: Float32Array, labels: IntArray, queries: Float32Array, k: int, n_labels: int
) -> IntArray:
    """Counts within the k-th smallest distance, ties included, in float64."""
    found = np.empty((len(queries), n_labels), dtype=np.int32)
    for i, query in enumerate(queries.astype(np.float64)):
        squares = ((index.astype(np.float64) - query) ** 2).sum(axis=1)
        near = squares <= np.sort(squares)[min(k, len(index)) - 1] * (1 + 1e-12)
        found[i] = np.bincount(labels[near], minlength=n_labels)
    return found


def sample(
    n: int, m: int, d: int, n_labels: int, seed: int = 0
) -> tuple[Float32Array, IntArray, Float32Array]:
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((n + m, d), dtype=np.float32)
    labels = rng.integers(0, n_labels, n).astype(np.int32)
    return points[:n], labels, points[n:]


@pytest.fixture
def in_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send even small inputs through the k-means cells."""
    monkeypatch.setattr(neighbors, "EXACT_PAIRS", 0)


@pytest.mark.parametrize(("d", "n_labels"), [(1, 2), (1, 53), (2, 2), (5, 3), (18, 53)])
@pytest.mark.parametrize("k", [1, 7, 100])
def test_small_inputs_equal_brute_force(d: int, n_labels: int, k: int) -> None:
    index, labels, queries = sample(400, 60, d, n_labels)
    found = count_labels(index, labels, queries, k, n_labels)
    np.testing.assert_array_equal(found.counts, brute_force(index, labels, queries, k, n_labels))
    assert (found.totals == k).all()
    assert found.method.startswith("exact")


@given(
    st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    st.lists(st.integers(-4, 4), min_size=1, max_size=10),
    st.integers(1, 45),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_every_tie_is_inside(
    values: list[int], asked: list[int], k: int, d: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    index = np.repeat(np.array(values, dtype=np.float32)[:, None], d, axis=1)
    index[:, 1:] = rng.integers(-2, 3, index[:, 1:].shape)
    queries = np.repeat(np.array(asked, dtype=np.float32)[:, None], d, axis=1)
    labels = rng.integers(0, 3, len(values)).astype(np.int32)
    found = count_labels(index, labels, queries, k, 3)
    np.testing.assert_array_equal(found.counts, brute_force(index, labels, queries, k, 3))


@given(st.integers(2, 300), st.integers(1, 320), st.integers(0, 2**32 - 1))
def test_one_coordinate_is_exact_for_any_floats(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = (rng.standard_cauchy(n + 20) * 10 ** rng.uniform(-3, 6)).astype(np.float32)[:, None]
    labels = rng.integers(0, 2, n).astype(np.int32)
    found = count_labels(points[:n], labels, points[n:], k, 2)
    expected = brute_force(points[:n], labels, points[n:], k, 2)
    np.testing.assert_array_equal(found.counts, expected)


def test_duplicates_count_with_their_multiplicity_and_cost_nothing() -> None:
    rng = np.random.default_rng(1)
    cells = rng.standard_normal((50, 6), dtype=np.float32)
    where = rng.integers(0, 50, 400_000)
    labels = rng.integers(0, 2, 400_000).astype(np.int32)
    found = count_labels(cells[where], labels, cells[where[:300_000]], 100, 2)
    at_cell = np.zeros((50, 2), dtype=np.int32)
    np.add.at(at_cell, (where, labels), 1)
    np.testing.assert_array_equal(found.counts, at_cell[where[:300_000]])


@pytest.mark.usefixtures("in_cells")
@pytest.mark.parametrize("n_labels", [2, 53])
def test_cells_count_every_row_within_their_radius(n_labels: int) -> None:
    """Where every cell is visited, each neighbourhood is a ball: the totals nearest rows."""
    index, labels, queries = sample(6_000, 50, 4, n_labels)
    found = count_labels(index, labels, queries, 400, n_labels)
    assert "15 of 15" in found.method or "k-means" in found.method
    for i, total in enumerate(found.totals):
        expected = brute_force(index, labels, queries[i : i + 1], int(total), n_labels)
        np.testing.assert_array_equal(found.counts[i], expected[0])


@pytest.mark.usefixtures("in_cells")
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.sampled_from([60, 200, 1000]))
@settings(max_examples=10)
def test_totals_of_cells_stay_in_their_band(seed: int, d: int, k: int) -> None:
    # 10 × 200 totals; P(outside) < 2e-7 each for the 48th of a sample, k ≥ 48: all runs: 4e-4.
    index, labels, queries = sample(8_000, 200, d + 1, 2, seed)
    totals = count_labels(index, labels, queries, k, 2).totals
    assert (totals >= 0.4 * k).all()
    assert (totals <= 2.5 * k).all()


@pytest.mark.usefixtures("in_cells")
def test_result_depends_neither_on_threads_nor_on_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    index, labels, queries = sample(20_000, 3_000, 6, 3)
    one = count_labels(index, labels, queries, 300, 3)
    two = count_labels(index, labels, queries, 300, 3, means=Means(2))
    np.testing.assert_array_equal(one.counts, two.counts)
    monkeypatch.setattr(cell_search, "MOST_AT_ONCE", 700)
    small = count_labels(index, labels, queries, 300, 3)
    assert (small.counts == one.counts).mean() > 0.999  # rounding of products, at most


@pytest.mark.usefixtures("in_cells")
@pytest.mark.parametrize("grid", [True, False])
def test_order_of_the_file_does_not_matter(grid: bool) -> None:
    """A file sorted by label must not change who is a neighbour, ties included."""
    index, labels, queries = sample(20_000, 500, 3, 2)
    if grid:
        index, queries = np.round(index * 8), np.round(queries * 8)
    by_label = np.argsort(labels, kind="stable")
    found = count_labels(index, labels, queries, 250, 2)
    again = count_labels(index[by_label], labels[by_label], queries, 250, 2)
    np.testing.assert_array_equal(found.totals, again.totals)
    if not grid:
        np.testing.assert_array_equal(found.counts, again.counts)


@pytest.mark.usefixtures("in_cells")
def test_neighbours_are_chosen_without_the_labels() -> None:
    index, labels, queries = sample(20_000, 500, 3, 2)
    index, queries = np.round(index * 8), np.round(queries * 8)
    other = np.random.default_rng(5).integers(0, 2, len(labels)).astype(np.int32)
    found = count_labels(index, labels, queries, 250, 2)
    again = count_labels(index, other, queries, 250, 2)
    np.testing.assert_array_equal(found.totals, again.totals)


@pytest.mark.usefixtures("in_cells")
def test_half_of_all_rows_at_one_point() -> None:
    index, labels, queries = sample(30_000, 400, 3, 2)
    index[::2] = index[0]
    queries[::2] = index[0]
    found = count_labels(index, labels, queries, 300, 2)
    assert (found.totals > 0).all()
    assert (found.totals[::2] >= 300).all()
    assert (found.counts.sum(axis=1) == found.totals).all()


@pytest.mark.usefixtures("in_cells")
@pytest.mark.parametrize("scale", [1e-20, 1e-3, 1.0, 1e6, 1e25])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_units_and_origin_do_not_matter(scale: float, offset: float) -> None:
    index, labels, queries = sample(10_000, 300, 4, 2)
    index, queries = np.round(index * 512), np.round(queries * 512)  # exact after the shift
    plain = count_labels(index, labels, queries, 300, 2)
    factor = np.float32(2.0 ** np.round(np.log2(scale)))
    moved = count_labels((index + offset) * factor, labels, (queries + offset) * factor, 300, 2)
    eta, shifted = (c.counts[:, 1] / c.totals for c in (plain, moved))
    assert np.abs(eta - shifted).max() < 0.15  # another k-means start, the same neighbourhoods


def mixture(n: int, rng: np.random.Generator) -> tuple[Float32Array, IntArray, Float32Array]:
    """The Gaussian mixture of the design: 18 coordinates, means ± 0.125, P(Y = 1) = 0.457."""
    labels = (rng.random(n) < 0.457).astype(np.int32)
    points = rng.standard_normal((n, 18), dtype=np.float32)
    points += (0.25 * (labels[:, None] - 0.5)).astype(np.float32)
    log_odds = 0.25 * points.sum(axis=1) + np.log(0.457 / 0.543)
    return points, labels, (1 / (1 + np.exp(-log_odds))).astype(np.float32)


def rmse(found: NeighborCounts, eta: Float32Array) -> float:
    return float(np.sqrt(np.mean((found.counts[:, 1] / found.totals - eta) ** 2)))


def test_cells_are_as_well_calibrated_as_exact_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(11)
    index, labels, _ = mixture(20_000, rng)
    queries, _, eta = mixture(2_000, rng)
    in_cells = count_labels(index, labels, queries, 300, 2)
    assert "k-means" in in_cells.method
    monkeypatch.setattr(neighbors, "EXACT_PAIRS", 10**12)
    exact = count_labels(index, labels, queries, 300, 2)
    assert exact.method.startswith("exact")
    # sd of η is 0.24, so a constant has RMSE 0.24; the seeds are fixed, nothing can flake.
    assert rmse(in_cells, eta) < 1.02 * rmse(exact, eta) < 0.15


def test_binomial_counts_of_pure_noise() -> None:
    """Labels that ignore the features: counts must be Bin(totals, p)."""
    index, _, queries = sample(60_000, 2_500, 8, 2)
    labels = (np.random.default_rng(3).random(60_000) < 0.3).astype(np.int32)
    found = count_labels(index, labels, queries, 250, 2)
    z = (found.counts[:, 1] - 0.3 * found.totals) / np.sqrt(0.21 * found.totals)
    assert abs(z.mean()) < 0.25
    assert 0.8 < z.std() < 1.2


@pytest.mark.parametrize("k", [50, 51, 10_000])
def test_more_neighbours_than_rows(k: int) -> None:
    index, labels, queries = sample(50, 20, 3, 2)
    found = count_labels(index, labels, queries, k, 2)
    np.testing.assert_array_equal(found.counts, np.tile(np.bincount(labels), (20, 1)))


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("m", [0, 1])
def test_few_queries(d: int, m: int) -> None:
    index, labels, queries = sample(500, m, d, 4)
    found = count_labels(index, labels, queries, 10, 4)
    assert found.counts.shape == (m, 4)
    assert found.counts.dtype == found.totals.dtype == np.int32


def test_no_list_of_neighbours_is_ever_held() -> None:
    import tracemalloc

    index, labels, queries = sample(30_000, 30_000, 3, 2)
    tracemalloc.start()
    try:
        count_labels(index, labels, queries, 10_000, 2)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200e6  # a list of 30,000 × 10,000 neighbours takes 1.2e9 bytes


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, "'k'"),
        ({"n_labels": 1}, "codes"),
        ({"labels": np.zeros(3, dtype=np.int32)}, "label for each row"),
        ({"index": np.full((100, 2), np.nan, dtype=np.float32)}, "finite"),
        ({"queries": np.zeros((3, 5), dtype=np.float32)}, "same width"),
        ({"index": np.zeros((100, 0), dtype=np.float32), "queries": np.zeros((3, 0))}, "columns"),
    ],
)
def test_bad_input_is_refused(change: dict[str, object], words: str) -> None:
    index, labels, queries = sample(100, 5, 2, 2)
    arguments: dict[str, object] = {
        "index": index, "labels": labels, "queries": queries, "k": 5, "n_labels": 2
    }  # fmt: skip
    with pytest.raises(InputError, match=words):
        count_labels(**(arguments | change))  # type: ignore[arg-type]


def test_progress_reaches_the_end() -> None:
    class Steps:
        seen: list[tuple[int, int]]

        def __init__(self) -> None:
            self.seen = []

        def step(self, text: str) -> None:
            pass

        def advance(self, done: int, total: int) -> None:
            self.seen.append((done, total))

    steps = Steps()
    index, labels, queries = sample(3_000, 5_000, 3, 2)
    count_labels(index, labels, queries, 10, 2, means=Means(progress=steps))
    assert steps.seen[-1] == (5_000, 5_000)
    assert len(steps.seen) > 1


def test_queries_needed_gives_the_precision_it_promises() -> None:
    from ldpaudit.estimators.intervals.binomial import clopper_pearson_lower

    m = queries_needed()
    assert 66_000 < m < 67_000
    for count in range(0, m, m // 50):
        assert count / m - float(clopper_pearson_lower(count, m, 0.005)) <= 0.005
    short = m - 500
    assert 0.5 - float(clopper_pearson_lower(short // 2, short, 0.005)) > 0.005
    assert queries_needed(0.05) < queries_needed(0.01) < queries_needed(0.01, 0.0005)


@given(st.integers(1, 10**9))
def test_default_neighbors_grow_slower_than_the_index(n: int) -> None:
    k = default_neighbors(n)
    assert 1 <= k <= n
    assert k <= default_neighbors(2 * n) <= 2 * k + 1
