"""Which rows of two files have the same features, whatever their types."""

import datetime

import numpy as np
import pandas as pd
import pyarrow as pa

from ldpaudit.cli.commands import compare
from ldpaudit.cli.parameters import recorded_command
from ldpaudit.commands.compare.inputs import equal_rows


def test_equal_rows_of_all_types() -> None:
    day = datetime.date(2020, 1, 1)
    columns = {
        "number": [1.0, None, float("nan"), 4.0],
        "text": ["a", "b", None, "d"],
        "kind": pa.array(["x", "y", "x", "y"]).dictionary_encode(),
        "list": [[1.0, 2.0]] * 4,
        "day": [day] * 4,
        "truth": [True, False, True, False],
    }
    a = pa.table(columns)
    same = equal_rows(a, a, tuple(columns))
    assert same.all()
    for name, other in {
        "number": [1.0, None, float("nan"), 5.0],
        "text": ["a", "b", None, "e"],
        "kind": ["x", "y", "x", "z"],
        "list": [[1.0, 2.0]] * 3 + [[1.0, 3.0]],
        "truth": [True, False, True, True],
    }.items():
        found = equal_rows(a, pa.table(columns | {name: other}), tuple(columns))
        assert found.tolist() == [True, True, True, False], name


def test_types_may_differ() -> None:
    a = pa.table({"x": pa.array([1, 2, 3], pa.int32()), "y": [1, 2, 3]})
    b = pd.DataFrame({"x": np.array([1.0, 2.0, 4.0]), "y": ["1", "2", "3"]})
    assert equal_rows(a, b, ("x",)).tolist() == [True, True, False]  # type: ignore[union-attr]
    assert equal_rows(a, b, ("y",)).all()  # type: ignore[union-attr]


def test_what_cannot_be_compared() -> None:
    a = pa.table({"x": [1, 2, 3]})
    assert equal_rows(a, pa.table({"x": [1, 2]}), ("x",)) is None
    assert equal_rows(a, a, ()) is None
    nested = pa.table({"x": [{"k": 1}, {"k": 2}]})
    assert equal_rows(nested, nested, ("x",)) is None


def test_the_stored_command_names_no_file_and_no_column() -> None:
    words = ["ldpaudit", "compare", "secret/a.parquet", "b.parquet", "--truth", "t.parquet"]
    words += ["--seed", "7", "--drop=name", "--only=mechanism", "--force"]
    assert recorded_command(words, compare) == (
        "ldpaudit compare … … --truth … --seed 7 --drop=… --only=mechanism --force"
    )
