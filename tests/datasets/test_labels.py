import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.datasets.labels import (
    canonical,
    in_order,
    most_classes,
    positions,
    read_labels,
)
from ldpaudit.errors import InputError


def column(values: Any, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind)])


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        (["no", "yes", "yes", "no"], pa.string(), ("no", "yes")),
        (["no", "yes", "yes", "no"], pa.large_string(), ("no", "yes")),
        (["no", "yes", "yes", "no"], pa.string_view(), ("no", "yes")),
        ([b"no", b"yes", b"yes", b"no"], pa.binary(), ("no", "yes")),
        ([0, 1, 1, 0], pa.int8(), (0, 1)),
        ([0, 1, 1, 0], pa.uint64(), (0, 1)),
        ([0.0, 1.0, 1.0, 0.0], pa.float64(), (0, 1)),
        ([-0.0, 1.0, 1.0, 0.0], pa.float32(), (0, 1)),
        ([0.5, 1.1, 1.1, 0.5], pa.float32(), (0.5, 1.1)),
        ([0.5, 1.5, 1.5, 0.5], pa.float16(), (0.5, 1.5)),
        ([False, True, True, False], pa.bool_(), (False, True)),
        ([Decimal("0.0"), Decimal("1.0")] * 2, pa.decimal128(5, 1), (0, 1)),
        ([datetime.date(2020, 1, 1), datetime.date(2021, 1, 1)] * 2, pa.date32(),
         ("2020-01-01", "2021-01-01")),
    ],
)  # fmt: skip
def test_types_of_labels(values: list[Any], kind: pa.DataType, expected: tuple[Any, ...]) -> None:
    found = read_labels(column(values * 5, kind), "released")
    assert found.values == expected
    assert [type(value) for value in found.values] == [type(value) for value in expected]
    assert len(found.codes) == 5 * len(values)
    assert set(found.codes) == {0, 1}


def test_a_dictionary_in_chunks() -> None:
    chunks = [
        pa.array(["b", "a"] * 8).dictionary_encode(),
        pa.array(["c"] * 20).dictionary_encode(),
    ]
    found = read_labels(pa.chunked_array(chunks), "true")
    assert found.values == ("b", "a", "c")
    assert found.codes.tolist() == [0, 1] * 8 + [2] * 20


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "0"], (1, 0)),
        (["1.0", "0.5"], (1, 0.5)),
        (["true", "False"], (True, False)),
        (["01", "1"], ("01", "1")),
        (["yes", "1"], ("yes", "1")),
        (["nan", "inf"], ("nan", "inf")),
        (["1_0", "2"], ("1_0", "2")),
    ],
)
def test_labels_of_a_text_file(values: list[str], expected: tuple[Any, ...]) -> None:
    assert read_labels(column(values * 10), "released", from_text=True).values == expected
    assert read_labels(column(values * 10), "released").values == tuple(values)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (["yes", None, None] * 5, pa.string(), "10 of 15 are missing"),
        ([0.0, np.nan, 1.0] * 5, pa.float64(), "5 of 15 are missing"),
        ([0.0, np.inf, 1.0] * 5, pa.float64(), "5 are infinite"),
        ([None] * 20, pa.null(), "20 of 20 are missing"),
        ([[1.0], [2.0]], pa.list_(pa.float64()), "no nested object"),
        ([{"a": 1}], pa.struct({"a": pa.int8()}), "no nested object"),
        ([b"\xff", b"a"] * 9, pa.binary(), "UTF-8"),
        (["True", "true"] * 9, pa.string(), "spelling"),
        (["1", "1.0"] * 9, pa.string(), "spelling"),
        (list(range(11)) * 5, pa.int64(), "11 different values in 55 rows, and at most 5"),
        (["a", "b", "c"], pa.string(), "at most 2"),
    ],
)
def test_labels_that_cannot_be_used(values: list[Any], kind: pa.DataType, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(column(values, kind), "released")


def test_how_many_classes_rows_allow() -> None:
    assert [most_classes(n) for n in (1, 29, 30, 9_999, 10**8)] == [2, 2, 3, 999, 1000]


def test_canonical_forms() -> None:
    assert {canonical(v) for v in (1, 1.0, "1", "1.0")} == {"1"}
    assert {canonical(v) for v in (True, "true", "TRUE")} == {"true"}
    assert canonical(0.1) == canonical("0.1")
    assert len({canonical(v) for v in ("01", "1", " 1", "+1", "1e0", "one", True)}) == 7
    assert canonical("9" * 10_000) == "9" * 10_000


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()))
def test_a_label_matches_its_own_text(label: int | float | str) -> None:
    assert canonical(str(label)) == canonical(label)


LABELS = st.one_of(st.integers(-99, 99), st.text(max_size=4), st.floats(-9, 9))


@given(st.lists(LABELS, unique_by=canonical, min_size=1), st.randoms())
def test_labels_are_found_again(labels: list[Any], random: Any) -> None:
    shuffled = random.sample(labels, len(labels))
    found = positions(labels, shuffled)
    assert [canonical(shuffled[place]) for place in found] == [canonical(v) for v in labels]


def test_booleans_match_zero_and_one_alone() -> None:
    assert positions([True, False], [0, 1]).tolist() == [1, 0]
    assert positions(["0", "1"], [False, True]).tolist() == [0, 1]
    assert positions([True, False], [0, 1, 2]).tolist() == [-1, -1]
    assert positions([1, 2], [True, False]).tolist() == [-1, -1]


def test_order() -> None:
    assert in_order(["b", 10, 9.5, "a", 2]) == (2, 9.5, 10, "a", "b")
    assert in_order([True, False]) == (False, True)


LEVELS = st.sampled_from(["text", "int", "float", "bool"])


@given(LEVELS, st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_round_trip(kind: str, k: int, seed: int) -> None:
    k = 2 if kind == "bool" else k
    rng = np.random.default_rng(seed)
    names: list[Any] = {
        "text": [f"class-{i}" for i in range(k)],
        "int": list(range(k)),
        "float": [i / 2 for i in range(k)],
        "bool": [False, True],
    }[kind]
    rows = [names[i] for i in rng.integers(0, k, 100)]
    found = read_labels(column(rows), "released")
    assert [found.values[code] for code in found.codes] == rows
    as_text = read_labels(column([str(v) for v in rows]), "released", from_text=True)
    assert [as_text.values[code] for code in as_text.codes] == rows
