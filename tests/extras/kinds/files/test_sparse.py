"""Sparse releases: svmlight files and SciPy matrices, projected without a look at labels."""

import gzip
import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import ldpaudit
from ldpaudit.datasets import read_release
from ldpaudit.datasets.formats import locations
from ldpaudit.datasets.reading import open_source
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.files import sparse as sparse_module
from ldpaudit.extras.kinds.files.sparse import Projection
from ldpaudit.release import Declaration, Sketch

RR = Declaration("randomized-response", {"epsilon": 1.0}, "options")


def _sparse(n, d, per_row, seed=0, *, ones=False):
    rng = np.random.default_rng(seed)
    rows = np.repeat(np.arange(n), per_row)
    values = np.ones(n * per_row) if ones else rng.normal(size=n * per_row)
    matrix = sparse.csr_matrix((values, (rows, rng.integers(0, d, n * per_row))), (n, d))
    return matrix, rng.integers(0, 2, n)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """300 rows of 20 values among 5,000 features, as a matrix and as a file."""
    matrix, labels = _sparse(300, 5_000, 20)
    path = tmp_path_factory.mktemp("sparse") / "release.svm"
    dump_svmlight_file(matrix, labels, str(path), zero_based=True)
    return matrix, labels, path


def test_distances_keep_their_mean_and_the_variance_is_as_stated():
    # The mean of 300 ratios with variance 2/b has a standard error of 0.0065; 6 of them: 2e-9.
    matrix, _ = _sparse(600, 10**6, 40, ones=True)
    projection = Projection(np.empty(0, dtype=np.int64), 256)
    points = projection.transform(matrix).astype(np.float64)
    between = matrix[:300] - matrix[300:]
    before = np.asarray(between.multiply(between).sum(axis=1)).ravel()
    ratio = ((points[:300] - points[300:]) ** 2).sum(axis=1) / before
    assert abs(ratio.mean() - 1) < 0.039
    assert ratio.var() < 2 / 256 * 1.5
    assert (np.abs(ratio - 1) <= Sketch(10**6, 0, 256, 0.95, None, 0).bound).mean() >= 0.95


def test_frequent_features_keep_a_column_of_their_own():
    matrix, _ = _sparse(200, 1_000, 5)
    matrix = matrix.tolil()
    matrix[:, 77] = 3.5
    matrix = matrix.tocsr()
    projection = Projection.fit(matrix, 32)
    assert projection.transform(matrix).shape == (200, 32)
    column = np.flatnonzero(projection.own == 77)[0]
    assert (projection.transform(matrix)[:, column] == 3.5).all()


def test_few_features_are_not_projected_at_all():
    matrix, labels = _sparse(100, 9, 4)
    block = open_source((matrix, labels)).read()[1]
    sums = matrix.toarray()[:, np.flatnonzero(matrix.getnnz(axis=0))]
    np.testing.assert_allclose(block, sums, rtol=1e-6)


@pytest.mark.parametrize("suffix", [".svm", ".libsvm.gz"])
def test_a_file_read_in_pieces_is_the_matrix(written, tmp_path, monkeypatch, suffix):
    matrix, labels, path = written
    file = tmp_path / f"copy{suffix}"
    content = path.read_bytes()
    file.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    monkeypatch.setattr(locations, "_LINES", 10_000)
    monkeypatch.setattr(sparse_module, "_ROWS_AT_ONCE", 7)
    of_file, of_pair = (open_source(s, 64) for s in (str(file), (matrix, labels)))
    (got, block), (expected, whole) = of_file.read(), of_pair.read()
    assert got.to_pylist() == expected.to_pylist() == labels.tolist()
    np.testing.assert_allclose(block, whole, rtol=1e-4, atol=1e-5)
    assert of_file.sketch.features == of_pair.sketch.features == matrix.indices.max() + 1
    assert 0 < of_file.sketch.error < of_file.sketch.bound


def test_a_release_has_the_projected_columns(written):
    _, labels, path = written
    release = read_release(str(path), declaration=RR, projection=32, truth=labels).release
    assert release.features.numeric.shape == (300, 32)
    assert release.features.numeric.dtype == np.float32
    assert (release.features.columns, release.outputs) == (release.sketch.features, (0, 1))
    assert (release.truth == release.released).all()
    assert release.take(np.arange(5)).sketch is release.sketch


def test_the_declaration_beside_a_file_is_read(written, tmp_path):
    file = tmp_path / "declared.svm"
    file.write_bytes(written[2].read_bytes())
    mechanism = {"name": "randomized-response", "classes": [0, 1], "epsilon": 0.5}
    declaration = {"version": 1, "label": "label", "mechanism": mechanism}
    (tmp_path / "declared.svm.ldpaudit.json").write_text(json.dumps(declaration))
    assert read_release(str(file)).release.declaration.parameters["epsilon"] == 0.5
    with pytest.raises(InputError, match="none of the private columns"):
        read_release(str(file), label="click")


def test_the_label_takes_the_name_that_is_asked_for(written):
    release = read_release(str(written[2]), declaration=RR, label="click").release
    assert (release.label, release.outputs) == ("click", (0, 1))


def test_an_audit_of_a_sparse_release_states_the_distortion(written):
    matrix, labels, _ = written
    result = ldpaudit.audit(
        (matrix, labels),
        truth=labels,
        mechanism={"name": "randomized-response", "epsilon": 1.0},
        projection=64,
        only=["mechanism"],
        threads=1,
    )
    found = {e.id: e for e in result.estimates}
    assert found["features.distortion_bound"].value == pytest.approx((2 / (32 * 0.05)) ** 0.5)
    assert 0 < found["features.distortion"].value < 2
    assert "without labels" in found["features.distortion"].method


SECRET = "geheim"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"1 3:{SECRET}", "index:value pairs"),
        (f"{SECRET} 3:1", "a number for the label"),
        ("1 -7:1", "indices from 0"),
        ("1 3:1 3:2", "each index once"),
        ("1 5:1 3:2", "increasing order"),
        ("1 3", "index:value pairs"),
        ("1 3:nan", "index:value pairs"),
        ("1 3:1e999", "finite values"),
        ("1 3:1e300", "of at most 1e"),
        ("inf 3:1", "a number for the label"),
        ("1 99999999999:1", "at most"),
        ("1 3:1:4", "index:value pairs"),
        ("1 3: 4", "index:value pairs"),
    ],
)
def test_a_malformed_line_is_named_by_its_number(tmp_path, line, words):
    path = tmp_path / "bad.svm"
    path.write_text("# a comment\n0 1:2 4:5\n1 qid:3 2:1 # noted\n\n" + line + "\n0 1:1\n")
    with pytest.raises(InputError, match=words) as error:
        open_source(str(path)).read()
    assert str(error.value).startswith("Line 5 of 'bad.svm' must")
    assert SECRET not in str(error.value)
    assert "\n" not in str(error.value)


def test_what_else_cannot_be_read(written, tmp_path):
    matrix, labels, path = written
    empty = tmp_path / "empty.svm"
    empty.write_text("# nothing\n")
    with pytest.raises(InputError, match="no rows"):
        read_release(str(empty), declaration=RR)
    with pytest.raises(InputError, match="one label for each"):
        open_source((matrix, labels[1:]))
    with pytest.raises(InputError, match="from 16 to 4096"):
        open_source(str(path), 3)
    with pytest.raises(InputError, match="sparse releases"):
        read_release(str(tmp_path / "x.csv"), projection=64)
    with pytest.raises(InputError, match="--truth alone"):
        read_release(str(path), declaration=RR, public=str(path))
    damaged = tmp_path / "cut.svm.gz"
    damaged.write_bytes(gzip.compress(path.read_bytes())[:-500])
    with pytest.raises(InputError, match="is truncated"):
        read_release(str(damaged), declaration=RR)
    with pytest.raises(InputError, match="There is no file"):
        read_release(str(tmp_path / "none.svm"))


def test_pairs_are_compared_only_where_rows_differ():
    same = open_source((sparse.csr_matrix(np.ones((4, 3))), np.array([0, 1, 0, 1])))
    assert same.read()[1].shape == (4, 3)
    assert same.sketch.error is None


def test_some_rows_of_a_sparse_release(written):
    matrix, labels, path = written
    rows = np.array([0, 3, 4, 250, 299])
    for source in (str(path), (matrix, labels)):
        every = open_source(source).read()[0]
        some, block = open_source(source).read(rows)
        assert (some.to_pylist(), len(block)) == (every.take(rows).to_pylist(), len(rows))
