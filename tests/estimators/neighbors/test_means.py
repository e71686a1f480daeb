"""Label counts whatever does the work: files or memory, threads or processes, kept parts."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ldpaudit.arrays import Float32Array, IntArray
from ldpaudit.errors import InputError
from ldpaudit.estimators.neighbors import cell_search, counts, means
from ldpaudit.estimators.neighbors.counts import count_labels
from ldpaudit.estimators.neighbors.means import Means
from ldpaudit.running.finished import Finished
from ldpaudit.running.scratch import Scratch


def sample(n: int, m: int, d: int, n_labels: int) -> tuple[Float32Array, IntArray, Float32Array]:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((n + m, d), dtype=np.float32)
    labels = rng.integers(0, n_labels, n).astype(np.int32)
    return points[:n], labels, points[n:]


@pytest.fixture(autouse=True)
def in_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send even small inputs through the k-means cells, in several batches."""
    monkeypatch.setattr(counts, "EXACT_PAIRS", 0)
    monkeypatch.setattr(cell_search, "MOST_AT_ONCE", 300)


@dataclass(frozen=True)
class Elsewhere:
    """Does tasks as another process would: what is shared has been through pickle."""

    workers: int = 1

    def map(
        self, function: Callable[[Any, Any], Any], items: Iterable[Any], *, shared: Any = None
    ) -> Iterator[Any]:
        there = pickle.loads(pickle.dumps((function, shared)))
        for item in pickle.loads(pickle.dumps(list(items))):
            yield there[0](item, there[1])


def test_counts_are_the_same_wherever_rows_and_work_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index, labels, queries = sample(20_000, 1_000, 5, 3)
    plain = count_labels(index, labels, queries, 250, 3)
    assert "k-means" in plain.method
    files = []
    for name, rows in (("index", index), ("queries", queries)):
        rows.tofile(tmp_path / name)
        files.append(np.memmap(tmp_path / name, np.float32, "r", shape=rows.shape))
    monkeypatch.setattr(means, "_SHARE", 0)
    with Scratch() as scratch:
        on_disk = Means(2, Elsewhere(), scratch)
        found = count_labels(files[0], labels, files[1], 250, 3, means=on_disk)
        assert list(scratch.folder.iterdir())
    np.testing.assert_array_equal(found.counts, plain.counts)
    assert found.method == plain.method


def test_exact_neighbours_are_asked_for() -> None:
    index, labels, queries = sample(6_000, 200, 3, 2)
    near = count_labels(index, labels, queries, 250, 2)
    exact = count_labels(index, labels, queries, 250, 2, means=Means(exact=True))
    assert exact.method.startswith("exact")
    assert (exact.totals == 250).all()
    assert not near.method.startswith("exact")
    # Labels are fair coins here: the estimates agree within their noise, sd 0.03 each.
    differences = near.counts[:, 1] / near.totals - exact.counts[:, 1] / exact.totals
    assert np.abs(differences).max() < 0.15


@pytest.mark.parametrize(("rows", "words"), [(10**8, "17 h"), (10**6, "fewer|memory")])
def test_an_exact_search_of_hours_or_beyond_memory_is_refused(rows: int, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Means(1, memory=2**28, exact=True).check_exact(76_500, rows, 18)


def test_finished_batches_are_not_made_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    index, labels, queries = sample(20_000, 1_000, 4, 2)
    monkeypatch.setattr(counts, "_KEPT", 2)
    once = Means(finished=Finished(tmp_path / "parts"))
    first = count_labels(index, labels, queries, 250, 2, means=once)
    part = once.finished.get("neighbors/0/600")
    np.testing.assert_array_equal(part, first.counts[600:])
    once.finished.put("neighbors/0/600", part + 1)
    again = count_labels(index, labels, queries, 250, 2, means=once)
    np.testing.assert_array_equal(again.counts[:600], first.counts[:600])
    np.testing.assert_array_equal(again.counts[600:], first.counts[600:] + 1)


@pytest.mark.parametrize("n_labels", [2, 7])
def test_torch_gives_the_same_counts(monkeypatch: pytest.MonkeyPatch, n_labels: int) -> None:
    index, labels, queries = sample(20_000, 600, 5, n_labels)
    plain = count_labels(index, labels, queries, 250, n_labels)
    monkeypatch.setattr(Means, "accelerator", lambda _: "cpu")
    found = count_labels(index, labels, queries, 250, n_labels, means=Means(device="cuda"))
    same = found.counts == plain.counts
    assert same.mean() > 0.99  # rows at the border of a ball, within the rounding of a product
    assert np.abs(found.counts - plain.counts).max() <= 2
