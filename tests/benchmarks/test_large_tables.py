import gzip

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import dump_svmlight_file

from benchmarks.papers.large_tables import DIRECTIONS, read_large


@pytest.mark.validate
def test_svmlight_rows_that_are_alike_stay_near(tmp_path):
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 2, 400)
    # Each kind of row has twenty columns of its own among a million, and one at random.
    own = [rng.choice(1_000_000, 20, replace=False) for _ in range(2)]
    columns = np.stack([np.append(rng.choice(own[y], 9, replace=False), 999_999) for y in kind])
    rows = np.repeat(np.arange(400), 10)
    matrix = csr_matrix((np.ones(4000), (rows, columns.ravel())), shape=(400, 1_000_000))
    path = tmp_path / "rows.txt"
    dump_svmlight_file(matrix, 2 * kind - 1, str(path))
    table, labels = read_large(path)
    np.testing.assert_array_equal(labels, kind)
    assert table.numeric.dtype == np.float32
    assert table.numeric.shape == (400, DIRECTIONS)
    middle = np.stack([table.numeric[kind == y].mean(axis=0) for y in (0, 1)])
    nearest = ((table.numeric[:, None] - middle) ** 2).sum(axis=2).argmin(axis=1)
    np.testing.assert_array_equal(nearest, kind)


@pytest.mark.validate
def test_no_line_is_lost_or_read_twice_between_pieces(tmp_path):
    path = tmp_path / "rows.txt"
    lines = [f"{(-1) ** i} {1 + i % 40}:1 {50 + i % 7}:{i}" for i in range(300)]
    path.write_text("\n".join(lines) + "\n")
    table, labels = read_large(path, piece=700)
    assert len(table) == 300
    np.testing.assert_array_equal(labels, [int(i % 2 == 0) for i in range(300)])


def test_csv_with_the_label_first(tmp_path):
    path = tmp_path / "susy.csv.gz"
    path.write_bytes(gzip.compress(b"1.0,0.5,2\n0.0,-1,3\n1.0,4,5\n"))
    table, labels = read_large(path)
    np.testing.assert_array_equal(labels, [1, 0, 1])
    np.testing.assert_array_equal(table.numeric, np.float32([[0.5, 2], [-1, 3], [4, 5]]))
