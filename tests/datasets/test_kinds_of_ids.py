"""What a number or an id is, whatever type a file gives it: one function decides."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ldpaudit.datasets.column_survey import survey_column
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError

ROWS = 300
IDS = (10**8 + np.random.default_rng(0).permutation(10**6)[:ROWS]).tolist()
COUNT = list(range(1, ROWS + 1))
TYPES = {
    "int64": lambda ids: pa.array(ids, pa.int64()),
    "uint64": lambda ids: pa.array(ids, pa.uint64()),
    "float64": lambda ids: pa.array(ids, pa.float64()),
    "decimal(38, 0)": lambda ids: pa.array(map(Decimal, ids), pa.decimal128(38, 0)),
    "decimal(10, 0)": lambda ids: pa.array(map(Decimal, ids), pa.decimal128(10, 0)),
    "decimal(12, 2)": lambda ids: pa.array(map(Decimal, ids), pa.decimal128(12, 2)),
    "decimal256": lambda ids: pa.array(map(Decimal, ids), pa.decimal256(60, 0)),
    "list": lambda ids: pa.array([[i] for i in ids]),
    "list of decimals": lambda ids: pa.array(
        [[Decimal(i)] for i in ids], pa.list_(pa.decimal128(38, 0))
    ),
    "fixed list": lambda ids: pa.array([[i] for i in ids], pa.list_(pa.int32(), 1)),
    "duration": lambda ids: pa.array(ids, pa.duration("ms")),
    "time32": lambda ids: pa.array([i % 86_000_000 for i in ids], pa.time32("ms")),
    "time64": lambda ids: pa.array(ids, pa.time64("us")),
    "dictionary": lambda ids: pa.array(ids).dictionary_encode(),
    "run-end encoded": lambda ids: pa.RunEndEncodedArray.from_arrays(
        np.arange(1, ROWS + 1, dtype=np.int32), pa.array(ids)
    ),
}


@pytest.mark.parametrize("kind", TYPES)
def test_ids_are_ids(kind):
    column = pa.chunked_array([TYPES[kind](IDS)])
    assert survey_column("person", column).concern == "identifier"
    assert survey_column("x", pa.chunked_array([TYPES[kind](COUNT)])).concern == "index"


@pytest.mark.parametrize("kind", TYPES)
def test_ids_of_any_type_join(kind, tmp_path):
    if kind in ("duration", "time32", "time64"):
        return
    label = ["a", "b"] * (ROWS // 2)
    release = pa.table({"id": TYPES[kind](IDS), "x": COUNT, "label": label})
    if kind != "run-end encoded":
        pq.write_table(release, tmp_path / "r.parquet")
        release = tmp_path / "r.parquet"
    truth = pa.table({"id": IDS[::-1], "label": label[::-1]})
    read = read_release(release, truth=truth, id_column="id").release
    assert (read.truth == read.released).all()


@pytest.mark.parametrize("make", [str, int], ids=["text", "number"])
def test_ids_that_some_people_lack_are_ids(make):
    some = [None if i % 16 == 0 else make(one) for i, one in enumerate(IDS)]
    assert survey_column("x", pa.chunked_array([some])).concern == "identifier"
    rare = [make(one) if i % 16 == 0 else None for i, one in enumerate(IDS)]
    assert survey_column("x", pa.chunked_array([rare])).concern is None


def test_measurements_are_no_ids():
    numbers = [Decimal(i) / 7 for i in COUNT]
    column = pa.chunked_array([pa.array([round(n, 4) for n in numbers], pa.decimal128(20, 4))])
    assert survey_column("x", column).concern is None


def test_whole_decimals_keep_their_last_digits():
    close = [Decimal(10**17 + i) for i in COUNT]
    table = pa.table({"x": pa.array(close, pa.decimal128(38, 0)), "label": ["a", "b"] * 150})
    features = read_release(table).release.features
    assert len(np.unique(features.numeric[:, 0])) == ROWS


def test_decimals_beyond_all_integers_are_ids():
    ids = [Decimal(10**30 + i) for i in COUNT]
    assert survey_column("x", pa.chunked_array([pa.array(ids)])).concern == "identifier"


SPELLINGS = {
    "zeros": (lambda i: f"{i:012d}", "All of these would match without zeros in front"),
    "spaces": (lambda i: f"P{i} ", "without spaces around them"),
    "case": (lambda i: f"p{i}", "if upper and lower case were the same"),
    "other": (lambda i: f"q{i}q", ""),
    "floats": (lambda i: f"{i}.0", None),
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_what_would_make_ids_match_is_said(case, tmp_path):
    spell, words = SPELLINGS[case]
    label = ["a", "b"] * (ROWS // 2)
    letter = "" if case in ("zeros", "floats") else "P"
    truth = pd.DataFrame({"id": [f"{letter}{i}" for i in IDS], "label": label})
    release = pd.DataFrame({"id": [spell(i) for i in IDS], "x": COUNT, "label": label})
    for name in ("r.csv", "r.parquet"):
        path = tmp_path / name
        release.to_csv(path, index=False) if name == "r.csv" else release.to_parquet(path)
        if words is None:
            assert read_release(path, truth=truth, id_column="id").release.truth is not None
            continue
        with pytest.raises(InputError, match=f"300 of 300 are not.*{words}") as caught:
            read_release(path, truth=truth, id_column="id")
        assert str(IDS[0]) not in str(caught.value)
        assert bool(words) == ("would match" in str(caught.value))


def test_bytes_and_texts_are_not_joined():
    label = ["a", "b"] * (ROWS // 2)
    names = [str(i) for i in IDS]
    truth = pa.table({"id": names, "label": label})
    release = pa.table({"id": pa.array(map(str.encode, names)), "x": COUNT, "label": label})
    with pytest.raises(InputError, match="are bytes, those of the other text"):
        read_release(release, truth=truth, id_column="id")
