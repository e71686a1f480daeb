"""What reading costs grows with a file's size, not with its rows times its columns."""

import json
import resource
import time

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.features import EncodedFeatures
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.locations import locate
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.files.json_lines import JsonLines


def seconds(action):
    start = time.process_time()
    action()
    return time.process_time() - start


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_columns_cost_each_the_same(form, tmp_path):
    took = {}
    for columns in (300, 1_200):
        rows = np.random.default_rng(0).integers(0, 3, (20, columns))
        path = tmp_path / f"{columns}.{form}"
        names = [f"c{i}" for i in range(columns)]
        if form == "csv":
            text = ["label," + ",".join(names)]
            text += [f"{'ab'[i % 2]}," + ",".join(map(str, row)) for i, row in enumerate(rows)]
        else:
            text = [
                json.dumps({"label": "ab"[i % 2], **dict(zip(names, row.tolist(), strict=True))})
                for i, row in enumerate(rows)
            ]
        path.write_text("\n".join(text) + "\n")
        read_release(path)  # Imports and caches.
        took[columns] = seconds(lambda path=path: read_release(path))
    # Four times the columns: by a square it would be sixteen times.
    assert took[1_200] < 9 * took[300] + 0.3


def keys_of_their_own(path, lines):
    rows = ({"label": "ab"[i % 2], f"key{i}": 1} for i in range(lines))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_keys_that_differ_in_every_line_are_refused_before_they_cost(tmp_path):
    path = keys_of_their_own(tmp_path / "r.jsonl", 20_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    with pytest.raises(InputError, match="different keys or more"):
        open_table(path)
    assert time.process_time() - start < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # In KiB.


def test_few_lines_with_keys_of_their_own_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr("ldpaudit.extras.kinds.files.json_lines._CELLS", 1_000)
    monkeypatch.setattr("ldpaudit.extras.kinds.files.json_lines._PIECE", 5_000)
    path = keys_of_their_own(tmp_path / "r.jsonl", 300)
    table = JsonLines(locate(path))
    batches = list(table.batches())
    assert len(batches) > 20
    assert sum(map(len, batches)) == table.row_count == 300
    whole = np.concatenate([batch.column("label").to_pylist() for batch in batches])
    assert whole.tolist() == ["a", "b"] * 150
    assert len(table.names) == 301


def test_a_mark_of_the_byte_order_before_json_lines(tmp_path):
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + b'{"label": "a", "x": 1}\n{"label": "b", "x": 2}\n' * 20)
    assert open_table(path).names == ("label", "x")


SAME = pa.DictionaryArray.from_arrays(pa.array([0] * 150 + [1] * 50), ["x" * (1 << 21), "y"])
LABELS = ["a", "b"] * 100


@pytest.mark.parametrize("form", ["parquet", "bare.parquet", "feather"])
def test_a_long_text_in_many_rows_is_in_memory_once(form, tmp_path):
    column = SAME.cast(pa.large_string()) if form == "bare.parquet" else SAME
    table, path = pa.table({"label": LABELS, "x": column}), tmp_path / f"t.{form}"
    if form == "feather":
        pyarrow.feather.write_feather(table, path)
    else:
        pq.write_table(table, path, compression="zstd", store_schema=form == "parquet")
    cells = dict(open_table(path).columns(["x"]))["x"]
    assert cells.nbytes < 32 << 20  # All rows: 300 MiB.
    assert cells.cast(pa.large_string()).equals(pa.chunked_array([SAME]).cast(pa.large_string()))
    read = read_release(path).release.features
    np.testing.assert_array_equal(read.categorical[:, 0], [0] * 150 + [1] * 50)
    assert read.marks[0, 0] == 1 << 21  # The length of the text.


def test_texts_that_are_short_or_differ_stay_as_they_are(tmp_path):
    texts = [f"{i} ".ljust(6_000, "z") if i % 2 else "short" for i in range(400)]
    pq.write_table(pa.table({"x": texts, "y": ["same"] * 400}), tmp_path / "t.parquet")
    for _, cells in open_table(tmp_path / "t.parquet").columns(["x", "y"]):
        assert not pa.types.is_dictionary(cells.type)


def test_free_texts_of_categories_are_read_as_others_are():
    rng = np.random.default_rng(0)
    words = ["lung", "heart", "pain", "none", "since", "May"]
    texts = [" ".join(rng.choice(words, 4)) for _ in range(300)] + [None] * 20
    table = pa.table({"label": ["a", "b"] * 160, "x": texts})
    coded = table.set_column(1, "x", table["x"].dictionary_encode())
    ours, theirs = (read_release(one).release.features for one in (table, coded))
    assert ours.extra.shape[1] >= 8
    np.testing.assert_array_equal(ours.extra, theirs.extra)
    np.testing.assert_array_equal(ours.categorical, theirs.categorical)
    np.testing.assert_array_equal(ours.marks, theirs.marks)


def test_a_value_that_a_dictionary_holds_twice_is_one_category():
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None] * 50), ["b", "a", "b"])
    read = read_release(pa.table({"label": LABELS, "x": twice})).release.features
    assert read.categorical[:4, 0].tolist() == [1, 0, 1, -1]
    assert read.cardinalities == (2,)


def test_runs_that_stand_for_very_many_rows_are_refused_before_they_are_unpacked(tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([10_000_000], pa.int32()), ["a"])
    pyarrow.feather.write_feather(pa.table({"label": runs}), tmp_path / "t.feather")
    with pytest.raises(InputError, match=r"columns of runs, of which at most .* rows are read"):
        open_table(tmp_path / "t.feather")


def test_encoding_a_column_costs_the_same_among_many():
    took = {}
    for columns in (2_000, 8_000):
        encoded, cells = EncodedFeatures(4), pa.chunked_array([[1, 2, 3, 4]])
        took[columns] = seconds(lambda e=encoded, n=columns, c=cells: [e.add(c) for _ in range(n)])
    assert took[8_000] < 9 * took[2_000] + 0.5
