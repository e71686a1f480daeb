"""A table that is too wide is refused by its header, in one line."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.formats import width
from ldpaudit.datasets.formats.opening import open_batches, open_table
from ldpaudit.errors import InputError


@pytest.fixture
def narrow(monkeypatch):
    monkeypatch.setattr(width, "COLUMNS", 10)


def _table(columns):
    return pa.table({f"c{i}": np.arange(3.0) for i in range(columns)})


@pytest.mark.parametrize("reader", [open_table, open_batches])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_a_wide_file_is_refused(tmp_path, narrow, reader, suffix):
    path = tmp_path / f"wide{suffix}"
    if suffix == ".parquet":
        pq.write_table(_table(11), path)
    else:
        separator = "\t" if suffix == ".tsv" else ","
        _table(11).to_pandas().to_csv(path, sep=separator, index=False)
    with pytest.raises(InputError, match="has 11 columns; at most 10") as error:
        reader(path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("columns", [31, 40, 5000])
def test_a_parquet_footer_tells_the_width_before_it_is_parsed(tmp_path, narrow, columns):
    path = tmp_path / "wide.parquet"
    pq.write_table(_table(columns), path)
    content = path.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") :][:16]
    with pytest.raises(InputError, match=f"has {columns:,} columns"):
        width.check_footer(footer, "wide.parquet")


@pytest.mark.parametrize("footer", [b"", b"\x15", b"\x15\x04", b"\x15\x04\x19", b"\x00" * 16])
def test_a_footer_of_another_form_is_left_to_the_reader(footer):
    width.check_footer(footer, "odd.parquet")


def test_a_list_column_counts_once(tmp_path, narrow):
    path = tmp_path / "lists.parquet"
    pq.write_table(pa.table({f"c{i}": [[1.0] * 20, [2.0] * 20] for i in range(10)}), path)
    assert len(open_table(path).names) == 10


def test_a_frame_and_an_arrow_table_are_refused(narrow):
    for table in (_table(11), pd.DataFrame(np.zeros((2, 11)))):
        with pytest.raises(InputError, match="11 columns"):
            open_table(table)


def test_a_first_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(width, "HEADER_BYTES", 1000)
    path = tmp_path / "long.csv"
    path.write_text("a" * 2000)
    with pytest.raises(InputError, match="longer than 1,000 characters"):
        open_table(path)
