"""Readers as a property: what is written is read again, and bytes are a table or one line."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from security.readers.bad_tables import FORMATS, damaged

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.sparse import open_svmlight
from ldpaudit.datasets.writing import TableFile
from ldpaudit.errors import LdpAuditError
from ldpaudit.work.files import WholeFiles

QUICK = settings(
    max_examples=10, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
WRITTEN = ("parquet", "feather", "csv", "csv.gz", "tsv", "jsonl")
LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))
CELLS: dict[str, tuple[st.SearchStrategy[Any], pa.DataType]] = {
    "whole": (st.integers(-(2**53), 2**53), pa.int64()),
    "number": (st.floats(allow_nan=False, allow_infinity=False), pa.float64()),
    "text": (st.text(LETTERS, max_size=9).map(lambda text: f"t{text}"), pa.large_string()),
    "flag": (st.booleans(), pa.bool_()),
}


@st.composite
def tables(draw: Any) -> pa.Table:
    """Draw a table without missing values."""
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    columns = {}
    for place, (cells, kind) in enumerate(CELLS[kind] for kind in kinds):
        drawn = draw(st.lists(cells, min_size=rows, max_size=rows))
        columns[f"c{place}"] = pa.array(drawn, kind)
    return pa.table(columns)


def written(table: pa.Table, place: Path) -> None:
    with WholeFiles() as files:
        out = TableFile(files.add(place), table.schema)
        for batch in table.to_batches():
            out.write(batch)


def read(place: Path) -> dict[str, list[Any]]:
    """Return all columns that a file holds."""
    if place.suffix == ".svm":
        labels, features = open_svmlight(str(place)).read()
        return {"label": labels.to_pylist(), "features": features.tolist()}
    table = open_table(place)
    return {name: column.to_pylist() for name, column in table.columns(table.names)}


@pytest.mark.parametrize("form", WRITTEN)
@QUICK
@given(table=tables())
def test_what_is_written_is_read_again(form: str, table: pa.Table) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"t.{form}"
        written(table, place)
        assert read(place) == table.to_pydict()


@pytest.mark.parametrize("form", FORMATS)
@QUICK
@given(content=st.binary(max_size=200))
def test_bytes_are_a_table_or_one_line(form: str, content: bytes) -> None:
    check(content, form)


@pytest.mark.parametrize("form", WRITTEN)
@QUICK
@given(table=tables(), seed=st.integers(0, 2**32))
def test_a_damaged_file_is_a_table_or_one_line(form: str, table: pa.Table, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"t.{form}"
        written(table, place)
        content = place.read_bytes()
    check(damaged(content, np.random.default_rng(seed)), form)


def check(content: bytes, form: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"t.{form}"
        place.write_bytes(content)
        said = ""
        try:
            read(place)
        except LdpAuditError as error:
            said = str(error)
        except UnicodeDecodeError:  # Read out as Python's texts, by this test alone.
            assert form in ("parquet", "feather", "arrow")
    assert len(said.splitlines()) < 2
    assert folder not in said
