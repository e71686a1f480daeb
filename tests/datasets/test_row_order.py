"""Folders of many parts, and true labels whose blocks of rows are in another order."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.formats.locations import numbered
from ldpaudit.datasets.reading import read_release
from ldpaudit.datasets.row_order import check_row_order
from ldpaudit.errors import InputError

PARTS, EACH = 12, 500


def honest(rng, rows, epsilon=2.0, classes=2, shares=None):
    truth = rng.choice(classes, rows, p=shares).astype(np.int32)
    keep = np.exp(epsilon) / (np.exp(epsilon) + classes - 1)
    other = (truth + rng.integers(1, classes, rows)) % classes
    return np.where(rng.random(rows) < keep, truth, other).astype(np.int32), truth


def parts(folder, released, name):
    folder.mkdir()
    for place, rows in enumerate(np.array_split(released, PARTS)):
        pq.write_table(pa.table({"x": np.arange(len(rows)), "label": rows}), folder / name(place))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (lambda i: f"{i}.parquet", True),
        (lambda i: f"part.{i}.parquet", True),
        (lambda i: f"part-{i:05d}-3f2a9c10-1234-5678-9abc-def012345678.parquet", False),
        (lambda i: f"data{i + 5}.parquet", True),
        (lambda i: f"{chr(97 + i)}.parquet", False),
    ],
)
def test_parts_are_read_by_their_numbers(name, said, tmp_path):
    released, truth = honest(np.random.default_rng(0), PARTS * EACH)
    parts(tmp_path / "parts", released, name)
    pq.write_table(pa.table({"label": truth}), tmp_path / "truth.parquet")
    report = read_release(tmp_path / "parts", truth=tmp_path / "truth.parquet")
    np.testing.assert_array_equal(report.release.released, released)
    np.testing.assert_array_equal(report.release.features.numeric[:EACH, 0], np.arange(EACH))
    assert any("order of the numbers" in remark for remark in report.remarks) == said
    pattern = read_release(str(tmp_path / "parts" / "*.parquet")).release
    np.testing.assert_array_equal(pattern.released, released)


def test_true_labels_in_the_order_of_letters_are_refused(tmp_path):
    released, truth = honest(np.random.default_rng(1), PARTS * EACH)
    parts(tmp_path / "parts", released, "part.{}.parquet".format)
    blocks = np.array_split(truth, PARTS)
    order = sorted(range(PARTS), key="part.{}.parquet".format)
    other = np.concatenate([blocks[i] for i in order])
    with pytest.raises(InputError, match=r"part 3 of 12 of the release stand elsewhere.*--id"):
        read_release(tmp_path / "parts", truth=other)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_blocks_of_one_file_are_recognised(classes):
    released, truth = honest(np.random.default_rng(2), 12_000, classes=classes)
    order = np.random.default_rng(3).permutation(11)
    moved = np.concatenate([np.array_split(truth, 11)[i] for i in order])
    check_row_order(released, truth)
    with pytest.raises(InputError, match="stand elsewhere"):
        check_row_order(released, moved)


@pytest.mark.parametrize("seed", range(40))
def test_honest_labels_in_any_order_are_not_accused(seed):
    """Of 40 honest tables none is refused: weak noise and strong, sorted, rare, in runs."""
    rng = np.random.default_rng(seed)
    shares = [0.97, 0.03] if seed % 4 == 1 else None
    released, truth = honest(rng, 6000, epsilon=(0.1, 1, 3)[seed % 3], shares=shares)
    if seed % 4 == 2:
        order = np.argsort(truth, kind="stable")
    elif seed % 4 == 3:
        order = np.argsort(np.repeat(rng.integers(0, 9, 60), 100), kind="stable")
    else:
        order = np.arange(6000)
    check_row_order(released[order], truth[order])
    # A constant part, and one released with noise alone.
    released[:3000] = rng.integers(0, 2, 3000)
    check_row_order(released[order], truth[order], [1000, 5000])


def test_numbers_in_names():
    names = ["a/2", "a/10", "a/b2", "a/b10", "a10/1", "a9/1"]
    assert sorted(names, key=numbered) == ["a9/1", "a10/1", "a/2", "a/10", "a/b2", "a/b10"]
