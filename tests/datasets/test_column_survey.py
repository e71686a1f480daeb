"""What the survey says of a column, and what it says of ordinary ones: nothing."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.columns import ColumnSurvey
from ldpaudit.datasets.column_survey import survey_column

N = 2000
ROW = np.arange(N)
RNG = np.random.default_rng(2)
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(int(i)) for i in RNG.integers(0, 900, N)]


def surveyed(values: Any, name: str = "column") -> ColumnSurvey:
    """Return the survey of one column."""
    return survey_column(name, pa.chunked_array([pa.array(values)]))


CONCERNS = {
    "index from 0": (ROW, "index"),
    "index from 1": (ROW + 1.0, "index"),
    "random number": (RNG.permutation(10 * N)[:N], "identifier"),
    "random text": ([f"p{i}" for i in RNG.permutation(N)], "identifier"),
    "text, one twice": ([f"p{i}" for i in [*ROW[1:], 1]], "identifier"),
    "free text": ([f"came in on day {i} with pain" for i in ROW], "text"),
    "dates": (DAYS, "date"),
    "dates as text": ([day.isoformat() for day in DAYS], "date"),
    "times": ([datetime.datetime(2020, 3, day.day, 7, 5) for day in DAYS], "date"),
    "measurement": (RNG.normal(size=N), None),
    "age": (RNG.integers(18, 90, N), None),
    "weight in the survey": (RNG.integers(0, 4000, N), None),
    "town": (RNG.choice(["oslo", "rome"], N), None),
    "address": (RNG.choice([f"{i} Long Main Street" for i in range(50)], N), None),
    "months": ([day.replace(day=1) for day in DAYS], None),
    "flag": (ROW % 2 == 0, None),
    "empty": (pa.nulls(N), None),
    "pixels": ([[1.0, 2.0]] * N, None),
}


@pytest.mark.parametrize("case", CONCERNS)
def test_concerns(case: str) -> None:
    values, concern = CONCERNS[case]
    assert surveyed(values).concern == concern


@pytest.mark.parametrize("name", ["patient_nbr", "id", "PatientID", "case-no"])
def test_a_name_of_an_identifier_is_believed_where_values_differ(name: str) -> None:
    assert surveyed(RNG.integers(0, N, N), name).concern == "identifier"
    assert surveyed(RNG.integers(0, 8, N), name).concern is None


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "Unnamed: 12", "__index_level_0__"])
def test_names_of_an_index(name: str) -> None:
    assert surveyed(RNG.integers(0, 8, N), name).concern == "index"


def test_what_else_is_said() -> None:
    unused = pd.Categorical(["b"] * N, categories=["a", "b", "c"])
    found = surveyed(unused)
    assert (found.unused, found.kind, found.ordered) == (2, "category", False)
    assert surveyed(np.sort(RNG.normal(size=N))).ordered
    assert surveyed(ROW).unique
    assert not surveyed(ROW[:20]).unique
    assert surveyed(ROW % 100).distinct == pytest.approx(0.05)
    assert surveyed([{"a": 1}] * N).kind == "nested"


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("adult", {}),
        ("skin", {}),
        ("military", {}),
        ("fertility", {"rownames": "index"}),
        ("diabetes130", {"encounter_id": "identifier", "patient_nbr": "identifier"}),
    ],
)
def test_ordinary_tables(file: str, expected: dict[str, str], shared_data: Path) -> None:
    table = pq.read_table(shared_data / f"{file}.parquet")
    found = {name: survey_column(name, table[name]).concern for name in table.schema.names}
    assert {name: concern for name, concern in found.items() if concern} == expected
