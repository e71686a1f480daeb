"""Files larger than memory: read a group of columns at a time, or some rows; or refused."""

import dataclasses
import datetime
import gzip
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import ldpaudit
from ldpaudit.datasets import read_features, read_release, rows_in_memory
from ldpaudit.datasets.formats import arrow, csv_file, open_table, tables
from ldpaudit.datasets.formats.tables import bare_schema, decoded, held_to, read_whole
from ldpaudit.errors import InputError
from ldpaudit.options import FileOptions
from ldpaudit.release import Declaration
from ldpaudit.work.memory import LEAST

N = 3_000


def content():
    rng = np.random.default_rng(1)
    day = datetime.date(2020, 1, 1)
    town = rng.choice(["Ulm", "Bonn", "Kiel", "Aachen"], N).tolist()
    town[7], town[N - 1] = None, "Zell"  # A category of the last batch alone.
    lists = rng.normal(size=(N, 3)).tolist()
    lists[5] = None
    return pa.table(
        {
            "label": rng.choice(["no", "yes"], N),
            "truth": rng.choice(["no", "yes"], N),
            "x": rng.normal(size=N),
            "far": 1e9 + rng.integers(0, 50, N),
            "huge": rng.normal(size=N) * 1e20,
            "small": pa.array(rng.normal(size=N).astype(np.float32)),
            "count": pa.array([None, *rng.integers(0, 9, N - 1).tolist()], pa.int16()),
            "town": town,
            "group": pa.array(rng.choice(["a", "b"], N)).dictionary_encode(),
            "day": [day + datetime.timedelta(int(d)) for d in rng.integers(0, 900, N)],
            "id": np.arange(N),
            "note": [f"word{i} and word{i % 7}" for i in range(N)],
            "flag": pa.array(rng.random(N) < 0.5),
            "lists": lists,
            "left": rng.permutation(N),
        }
    )


def write(table, path):
    if path.suffix == ".csv":
        plain = [f.name for f in table.schema if not pa.types.is_nested(f.type)]
        table = table.select([n for n in plain if n != "group"])
        pyarrow.csv.write_csv(table, path)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(table, path, chunksize=700)
    else:
        pq.write_table(table, path, row_group_size=700)
    return path


def same(one, other):
    assert type(one) is type(other) or isinstance(one, np.ndarray)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif dataclasses.is_dataclass(one):
        for field in dataclasses.fields(one):
            if field.name not in ("name", "sha256"):
                same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_a_column_at_a_time_is_all_of_them(suffix, tmp_path, monkeypatch):
    path = write(content(), tmp_path / f"r{suffix}")
    options = {"truth_column": "truth", "drop": ["left"]}
    whole = read_release(path, **options)
    if suffix != ".csv":
        same(read_release(content(), **options).release, whole.release)
    monkeypatch.setattr(tables, "_CELLS_AT_ONCE", 1)
    monkeypatch.setattr(tables, "_CELL", 1 << 40)
    monkeypatch.setattr(arrow, "_MOST_BATCH_ROWS", 640)
    monkeypatch.setattr(csv_file, "ROW_BYTES", 1 << 13)
    apart = read_release(path, **options)
    assert whole.warnings == apart.warnings
    same(whole.release, apart.release)


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv"])
def test_some_rows_are_read_where_memory_holds_no_more(suffix, tmp_path, monkeypatch):
    rows = np.arange(7, N, 3)
    path, table = write(content(), tmp_path / f"r{suffix}"), content()
    monkeypatch.setattr(rows_in_memory, "_LARGE", 1)
    monkeypatch.setattr(rows_in_memory, "rows_looked_at", lambda n, *_: rows if n == N else None)
    monkeypatch.setattr(rows_in_memory, "allowed", lambda: 8 * 14 * 2000)
    truth = table.select(["truth"]).rename_columns(["label"])
    options = {"drop": ["truth"], "by": None}
    found = read_release(path, truth=truth, **options)
    assert f"Read {len(rows):,} of the {N:,} rows" in found.remarks[-1]
    np.testing.assert_array_equal(found.release.places, rows)
    monkeypatch.undo()
    some, true = table.take(rows), truth.take(rows)
    drop = ["truth"] if suffix != ".csv" else ["truth", "lists", "group"]
    expected = read_release(some, truth=true, drop=drop).release
    np.testing.assert_array_equal(found.release.released, expected.released)
    np.testing.assert_array_equal(found.release.truth, expected.truth)
    np.testing.assert_array_equal(found.release.features.numeric, expected.features.numeric)
    np.testing.assert_array_equal(found.release.features.categorical, expected.features.categorical)


def test_slices_and_probabilities_of_some_rows(tmp_path, monkeypatch):
    rows = np.arange(0, N, 2)
    path = write(content().select(["label", "x", "town"]), tmp_path / "r.parquet")
    monkeypatch.setattr(rows_in_memory, "rows_looked_at", lambda *_: rows)
    monkeypatch.setattr(rows_in_memory, "allowed", lambda: 8 * 2 * 2000)
    posterior = np.full((N, 2), 0.5)
    result = ldpaudit.audit(
        path,
        mechanism="rr",
        epsilon=1.0,
        only=["mechanism"],
        slices=["town"],
        public_posterior=posterior,
    )
    assert result.release.rows == len(rows)


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_with_little_memory_some_rows_are_read_and_more_memory_is_never_refused(
    columns, tmp_path, monkeypatch
):
    """Also where the labels alone are too many: the file may have no features."""
    rows = 30_000
    table = {f"x{i}": np.arange(rows) for i in range(columns)} | {"label": np.arange(rows) % 2}
    pq.write_table(pa.table(table), tmp_path / "r.parquet")
    monkeypatch.setattr(rows_in_memory, "_BASE", 0)
    read = []
    for memory in range(600_000, 60_000_000, 3_000_000):
        monkeypatch.setattr(rows_in_memory, "allowed", lambda memory=memory: memory)
        read.append(len(read_release(tmp_path / "r.parquet", memory=memory).release))
    assert read == sorted(read)
    assert 0 < read[0] < read[-1] == rows


def test_the_memory_that_many_classes_need_is_said_once(tmp_path, monkeypatch):
    rows = 30_000
    table = {"x": np.arange(rows), "label": np.arange(rows) % 300}
    pq.write_table(pa.table(table), tmp_path / "r.parquet")
    monkeypatch.setattr(rows_in_memory, "_BASE", 0)
    monkeypatch.setattr(rows_in_memory, "MOST_ROWS_LOOKED_AT", rows)
    monkeypatch.setattr(rows_in_memory, "allowed", lambda: 8_000_000)
    with pytest.raises(InputError, match=r"30,000 rows .* and 300 classes need at least 351 MiB"):
        read_release(tmp_path / "r.parquet", memory=8_000_000)
    enough = 351 << 20
    monkeypatch.setattr(rows_in_memory, "allowed", lambda: enough)
    assert len(read_release(tmp_path / "r.parquet", memory=enough).release) == rows


def test_all_rows_are_needed_for_bags_and_joins(tmp_path, monkeypatch):
    path = write(content(), tmp_path / "r.parquet")
    monkeypatch.setattr(rows_in_memory, "allowed", lambda: 8 * 14 * 2000)
    with pytest.raises(InputError, match="all of them are needed; give more --memory"):
        read_release(path, id_column="id", keyed=lambda ids: np.asarray(ids))


def test_too_little_memory_is_said_before_the_work(tmp_path):
    rows_in_memory.check_memory(None, 10**9, 18, 2)
    rows_in_memory.check_memory(LEAST, 100_000, 23, 2)
    with pytest.raises(InputError, match=r"600 MiB; 4,500,000 rows with 18 .* at least 1.6 GiB"):
        rows_in_memory.check_memory(LEAST, 4_500_000, 18, 2)


def test_texts_that_unpack_to_more_than_memory_holds():
    codes = pa.array(np.zeros(1000, np.int32))
    long = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 1_000_000]))
    views = long.cast(pa.string()).cast(pa.string_view())
    for column in (long, views):
        with held_to(1 << 29), pytest.raises(InputError, match="unpacks to 954 MiB, more than"):
            decoded(pa.chunked_array([column]))
        assert len(decoded(pa.chunked_array([column.slice(0, 5)]))) == 5


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path, encode = write(content(), tmp_path / "r.parquet"), read_features.encode_together

    def meddled(*given):
        encoded = encode(*given)
        pq.write_table(content().slice(1), path)
        return encoded

    monkeypatch.setattr(read_features, "encode_together", meddled)
    with pytest.raises(InputError, match="changed while it was being read"):
        read_release(path)


def test_a_declared_stratum_column_of_a_csv_with_decimal_commas(tmp_path):
    (tmp_path / "r.csv").write_text("label;zip;x\n" + "a;01;1,5\nb;02;2,5\n" * 50)
    rr = {"name": "randomized-response", "classes": ["a", "b"], "epsilon": 1.0}
    strata = [{"value": value, "mechanism": rr} for value in ("01", "02")]
    claim = Declaration("by-stratum", {"strata": strata}, "options")
    release = read_release(
        tmp_path / "r.csv", declaration=claim, by="zip", files=FileOptions(decimal=",")
    ).release
    assert release.strata.codes[:2].tolist() == [0, 1]


def mixed(rows=5000):
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "x": rng.standard_normal(rows),
            "word": rng.choice(["a", "b"], rows),
            "category": pa.array(rng.choice(["c", "d"], rows)).dictionary_encode(),
            "list": pa.array(list(rng.standard_normal((rows, 3)))),
            "a.b": rng.integers(0, 9, rows),
            "a": pa.array(rng.integers(0, 9, rows), mask=rng.random(rows) < 0.1),
        }
    )


def test_parquet_in_batches_is_parquet_at_once(tmp_path):
    table = mixed()
    for size in (700, 5000):
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=size)
        source = open_table(tmp_path / "t.parquet")
        assert source.row_count == 5000
        assert source.schema == bare_schema(pq.read_schema(tmp_path / "t.parquet"))
        assert read_whole(source).equals(pq.read_table(tmp_path / "t.parquet"))


def test_columns_are_chosen_by_their_whole_name(tmp_path):
    pq.write_table(mixed(), tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    for names in (["a"], ["a.b"], ["list", "a"], []):
        batch = next(iter(source.batches(names)))
        assert batch.schema.names == names
    cells = pa.concat_arrays([batch.column(0) for batch in source.batches(["a"])])
    assert cells.equals(mixed()["a"].combine_chunks())


def test_a_folder_with_values_in_its_names(tmp_path):
    table = mixed(60).append_column("year", pa.array([2020, 2021, 2022] * 20))
    part = pa.dataset.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
    pa.dataset.write_dataset(table, tmp_path / "d", format="parquet", partitioning=part)
    source = open_table(tmp_path / "d")
    found = read_whole(source)
    assert found["year"].to_pylist() == [2020] * 20 + [2021] * 20 + [2022] * 20
    assert found["x"].to_pylist() == table.sort_by("year")["x"].to_pylist()


def test_wide_rows_come_in_small_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(arrow, "_BYTES_AT_ONCE", 1 << 22)
    table = pa.table({"v": pa.array(list(np.random.default_rng(0).random((800, 2000))))})
    pq.write_table(table, tmp_path / "t.parquet")
    batches = list(open_table(tmp_path / "t.parquet").batches())
    assert max(batch.nbytes for batch in batches) < 1 << 23
    assert len(batches) > 1
    assert sum(map(len, batches)) == 800


TYPES = {
    "whole": (["1", "-2", ""], pa.int64()),
    "late fraction": (["1", "2", "2.5"], pa.float64()),
    "late word": (["1", "2.5", "x"], pa.large_string()),
    "codes": (["007", "012", "3"], pa.large_string()),
    "late code": (["1", "2", "012"], pa.large_string()),
    "zero": (["0", "0.5", "-0.25"], pa.float64()),
    "long": (["12345678901234567890", "1", "2"], pa.large_string()),
    "largest": (["9223372036854775807", "1", "2"], pa.int64()),
    "booleans": (["true", "false", ""], pa.bool_()),
    "late boolean": (["1", "0", "true"], pa.large_string()),
    "dates": (["2020-01-31", "1999-12-01", ""], pa.date32()),
    "late time": (["2020-01-31", "2020-01-31 10:00:00", ""], pa.timestamp("s")),
    "nothing": (["", "", ""], pa.null()),
    "exponents": (["1e5", "2E-3", "3"], pa.float64()),
}


@pytest.mark.parametrize("case", TYPES)
def test_csv_types_fit_every_row(case, tmp_path, monkeypatch):
    cells, kind = TYPES[case]
    # So small that every row is a block of its own.
    monkeypatch.setattr(csv_file, "ROW_BYTES", 64)
    padding = "p" * 60
    rows = "".join(f"{cell},{padding}\n" for cell in cells)
    (tmp_path / "t.csv").write_text("c,padding\n" + rows)
    source = open_table(tmp_path / "t.csv")
    assert source.schema.field("c").type == kind
    found = read_whole(source)["c"]
    expected = pa.array([cell or None for cell in cells], pa.large_string())
    expected = pa.nulls(3) if pa.types.is_null(kind) else expected.cast(kind)
    assert found.combine_chunks().equals(expected)


def test_csv_is_read_as_text_is_written(tmp_path):
    frame = pd.DataFrame({"a": ['he said "no"', "two\nlines", "a,b", "ü"], "b": [1, 2, 3, 4]})
    text = frame.to_csv(index=False)
    (tmp_path / "t.csv").write_text("\ufeff" + text, encoding="utf-8")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "t.tsv").write_text(frame.to_csv(index=False, sep="\t"))
    for name in ("t.csv", "t.csv.gz", "t.tsv"):
        source = open_table(tmp_path / name)
        assert read_whole(source).to_pydict() == frame.to_dict("list")
        assert [b.column(0)[0].as_py() for b in source.batches(["b"])] == [1]


def test_bad_csv(tmp_path):
    for content, word in ((b"a,b\n1,2\n1\n", "2 fields"), (b"a,b\n\xff\xfe,1\n", "UTF-8")):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(InputError, match=word):
            read_whole(open_table(tmp_path / "t.csv"))
    for name in ("t1.csv", "t2.csv"):
        (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(InputError, match="Several files"):
        open_table(tmp_path / "t?.csv")


READ = """
import sys
from ldpaudit.datasets import read_release

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) << 10

small, large, truth = sys.argv[1:]
read_release(small)
before = peak()
read_release(large, truth=truth)
print(peak() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peaks are read from /proc")
def test_reading_holds_few_columns_besides_the_table(tmp_path):
    rows, rng = 6_000_000, np.random.default_rng(2)
    columns = {f"x{i}": rng.standard_normal(rows, dtype=np.float32) for i in range(3)}
    labels = rng.integers(0, 2, rows, dtype=np.int32)
    paths = [str(tmp_path / f"{name}.parquet") for name in ("small", "large", "truth")]
    pq.write_table(pa.table({**columns, "label": labels}).slice(0, 1000), paths[0])
    pq.write_table(pa.table({**columns, "label": labels}), paths[1])
    pq.write_table(pa.table({"label": labels[::-1]}), paths[2])
    words = [sys.executable, "-c", READ, *paths]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    # 20 bytes are the table and both labels, which are read at once; one column and its copy, and
    # what a pass over a block takes.
    assert int(done.stdout) < 45 * rows + (64 << 20)
