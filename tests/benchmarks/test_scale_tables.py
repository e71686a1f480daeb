import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_svmlight_file

import ldpaudit
from benchmarks import tables


@pytest.mark.parametrize("table", ["susy", "credit", "ctr", "forest"])
def test_labels_have_the_probabilities_that_are_told(table):
    _, chance, labels = tables.TABLES[table](60_000, np.random.default_rng(1))
    for low, high in ((0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1)):
        eta = chance[(chance >= low) & (chance < high)]
        found = (labels == 1)[(chance >= low) & (chance < high)].sum()
        # Six deviations: a false alarm once in 10⁸ tables.
        assert abs(found - eta.sum()) < 6 * np.sqrt((eta * (1 - eta)).sum() + 1)


def test_a_larger_table_begins_with_the_smaller_one(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 100)
    small, large = (tables.make("susy", tmp_path, rows) for rows in (200, 350))
    assert pq.read_table(large).slice(0, 200).equals(pq.read_table(small))
    assert pq.ParquetFile(large).metadata.num_row_groups == 4


def test_a_parquet_release_can_be_audited_and_its_noise_is_its_own(tmp_path):
    path = tables.make("susy", tmp_path, 4_000, epsilon=2.0, eta=True)
    truth = path.with_name("susy-4000.truth.parquet")
    result = ldpaudit.audit(path, truth=truth, only=["mechanism", "seeds"])
    assert all(check.verdict != "fail" for check in result.checks)
    assert result.mechanism.epsilon == pytest.approx(2.0)
    eta = pq.read_table(path.with_name("susy-4000.eta.parquet"))["label"].to_numpy()
    guesses = (eta > 0.5) == pq.read_table(truth)["label"].to_numpy()
    assert 0.79 < guesses.mean() < 0.87


def test_a_release_of_seven_classes_declares_them(tmp_path):
    path = tables.make("forest", tmp_path, 20_000)
    labels = pq.read_table(path.with_name("forest-20000.truth.parquet"))["label"].to_numpy()
    shares = np.bincount(labels, minlength=7) / len(labels)
    assert 0.8 < np.sort(shares)[-2:].sum() < 0.9
    assert shares.min() > 0.001
    result = ldpaudit.audit(path, only=["mechanism"])
    assert result.release.classes == 7


def test_an_svmlight_release(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK", 400)
    path = tables.make("ctr", tmp_path, 1_000, features=10_000)
    rows, labels = load_svmlight_file(str(path), n_features=10_000)
    np.testing.assert_array_equal(np.diff(rows.indptr), 40)
    assert (rows.data == 1).all()
    truth = pq.read_table(tmp_path / "ctr-1000-10000.truth.parquet")["label"].to_numpy()
    # At ε = 1 a label is kept with probability .731; six deviations.
    assert abs((truth == labels).mean() - 0.731) < 0.085
    declared = json.loads(Path(f"{path}.ldpaudit.json").read_text())
    assert declared["mechanism"]["epsilon"] == 1.0
