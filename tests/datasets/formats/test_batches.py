"""Reading in batches: the same cells as reading at once, and types that fit every row."""

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.formats import arrow, csv_file, open_table
from ldpaudit.datasets.formats.tables import bare_schema, read_whole
from ldpaudit.errors import InputError


def mixed(rows: int = 5000) -> pa.Table:
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


def test_parquet_in_batches_is_parquet_at_once(tmp_path: Path) -> None:
    table = mixed()
    for size in (700, 5000):
        pq.write_table(table, tmp_path / "t.parquet", row_group_size=size)
        source = open_table(tmp_path / "t.parquet")
        assert source.row_count == 5000
        assert source.schema == bare_schema(pq.read_schema(tmp_path / "t.parquet"))
        assert read_whole(source).equals(pq.read_table(tmp_path / "t.parquet"))


def test_columns_are_chosen_by_their_whole_name(tmp_path: Path) -> None:
    pq.write_table(mixed(), tmp_path / "t.parquet")
    source = open_table(tmp_path / "t.parquet")
    for names in (["a"], ["a.b"], ["list", "a"], []):
        batch = next(iter(source.batches(names)))
        assert batch.schema.names == names
    cells = pa.concat_arrays([batch.column(0) for batch in source.batches(["a"])])
    assert cells.equals(mixed()["a"].combine_chunks())


def test_a_folder_with_values_in_its_names(tmp_path: Path) -> None:
    table = mixed(60).append_column("year", pa.array([2020, 2021, 2022] * 20))
    part = pa.dataset.partitioning(pa.schema([("year", pa.int64())]), flavor="hive")
    pa.dataset.write_dataset(table, tmp_path / "d", format="parquet", partitioning=part)
    source = open_table(tmp_path / "d")
    found = read_whole(source)
    assert found["year"].to_pylist() == [2020] * 20 + [2021] * 20 + [2022] * 20
    assert found["x"].to_pylist() == table.sort_by("year")["x"].to_pylist()


def test_wide_rows_come_in_small_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "_BYTES_AT_ONCE", 1 << 22)
    table = pa.table({"v": pa.array(list(np.random.default_rng(0).random((800, 2000))))})
    pq.write_table(table, tmp_path / "t.parquet")
    batches = list(open_table(tmp_path / "t.parquet").batches())
    assert max(batch.nbytes for batch in batches) < 1 << 23
    assert len(batches) > 1
    assert sum(map(len, batches)) == 800


TYPES: dict[str, tuple[list[str], pa.DataType]] = {
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
def test_csv_types_fit_every_row(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_csv_is_read_as_text_is_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ['he said "no"', "two\nlines", "a,b", "ü"], "b": [1, 2, 3, 4]})
    text = frame.to_csv(index=False)
    (tmp_path / "t.csv").write_text("\ufeff" + text, encoding="utf-8")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "t.tsv").write_text(frame.to_csv(index=False, sep="\t"))
    for name in ("t.csv", "t.csv.gz", "t.tsv"):
        source = open_table(tmp_path / name)
        assert read_whole(source).to_pydict() == frame.to_dict("list")
        assert [b.column(0)[0].as_py() for b in source.batches(["b"])] == [1]


def test_bad_csv(tmp_path: Path) -> None:
    for content, word in ((b"a,b\n1,2\n1\n", "2 fields"), (b"a,b\n\xff\xfe,1\n", "UTF-8")):
        (tmp_path / "t.csv").write_bytes(content)
        with pytest.raises(InputError, match=word):
            read_whole(open_table(tmp_path / "t.csv"))
    for name in ("t1.csv", "t2.csv"):
        (tmp_path / name).write_text("a\n1\n")
    with pytest.raises(InputError, match="Several files"):
        open_table(tmp_path / "t?.csv")
