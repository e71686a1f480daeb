import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ldpaudit.datasets.features import encode_features, narrowed
from ldpaudit.errors import InputError
from ldpaudit.release import FeatureTable


def encoded(values: Any, kind: pa.DataType | None = None) -> FeatureTable:
    array = pa.array(values, kind)
    return encode_features([("x", pa.chunked_array([array]))], len(array), ["x"]).table()


INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint64())
DAYS = {
    pa.timestamp("s"): 86_400,
    pa.timestamp("ns", "Europe/Berlin"): 86_400 * 10**9,
    pa.duration("us"): 86_400 * 10**6,
    pa.date32(): 1,
    pa.date64(): 86_400_000,
}
LISTS = (pa.list_(pa.float64()), pa.large_list(pa.int32()), pa.list_view(pa.float64()))
IMAGE = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]
FLAT = [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]


def days(kind: pa.DataType, units: int) -> pa.Array:
    whole = pa.int32() if units == 1 else pa.int64()
    return pa.array([units * 20_000, units * 20_003, None], whole).cast(kind)


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        *(([3, None, 1], kind, [[3], [None], [1]]) for kind in (*INTEGERS, pa.float64())),
        ([np.float16(3), None, np.float16(1)], pa.float16(), [[3], [None], [1]]),
        ([Decimal("3"), None, Decimal("1")], pa.decimal128(9, 2), [[3], [None], [1]]),
        ([Decimal("3"), None, Decimal("1")], pa.decimal256(50, 2), [[3], [None], [1]]),
        ([True, None, False], None, [[1], [None], [0]]),
        ([None, None], pa.null(), [[None], [None]]),
        ([np.nan, None], pa.float64(), [[None], [None]]),
        ([None, None], pa.int64(), [[None], [None]]),
        *((days(kind, units), None, [[0], [3], [None]]) for kind, units in DAYS.items()),
        ([datetime.time(0), datetime.time(18)], pa.time32("s"), [[0], [0.75]]),
        *(
            ([[1, 0], None, [0, None]], kind, [[1, 0], [None, None], [0, None]])
            for kind in (*LISTS, pa.list_(pa.float32(), 2))
        ),
        ([[True, False], None], pa.list_(pa.bool_()), [[1, 0], [None, None]]),
        (IMAGE, None, FLAT),
        (IMAGE, pa.list_(pa.list_(pa.float64(), 2), 2), FLAT),
        (pa.FixedShapeTensorArray.from_numpy_ndarray(np.array(IMAGE)), None, FLAT),
    ],
)
def test_numbers_dates_and_lists(values: Any, kind: Any, expected: list[list[Any]]) -> None:
    table = encoded(values, kind)
    assert table.numeric.dtype == np.float32
    assert table.categorical.shape == (len(table), 0)
    assert table.columns == 1
    found = [[None if np.isnan(v) else v for v in row] for row in table.numeric.tolist()]
    assert found == expected


def test_lists_in_slices_and_chunks() -> None:
    whole = pa.array([[1.0, 2.0], [3.0, 4.0], None, [5.0, 6.0]])
    column = pa.chunked_array([whole.slice(1, 2), whole.slice(3)])
    table = encode_features([("x", column)], 3, ["x"]).table()
    assert np.nan_to_num(table.numeric, nan=-1).tolist() == [[3, 4], [-1, -1], [5, 6]]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
)
def test_categories(kind: pa.DataType) -> None:
    values = ["b", None, "", "a", "b"]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        values = [None if v is None else v.encode() for v in values]  # type: ignore[misc]
    table = encoded(values, kind)
    assert table.categorical.dtype == np.int32
    assert table.categorical[:, 0].tolist() == [2, -1, 0, 1, 2]
    assert table.cardinalities == (3,)
    assert table.numeric.shape == (5, 0)


def test_pandas_categories_that_do_not_occur_are_not_counted() -> None:
    frame = pd.Categorical(["b", None, "a"], categories=["z", "b", "a", "q"])
    table = encoded(pa.array(frame))
    assert table.categorical[:, 0].tolist() == [1, -1, 0]
    assert table.cardinalities == (2,)


def test_dictionaries_of_numbers_are_categories() -> None:
    assert encoded(pa.array([30, 10, 30]).dictionary_encode()).categorical[:, 0].tolist() == [
        1,
        0,
        1,
    ]


def test_codes_do_not_depend_on_the_order_of_rows() -> None:
    rng = np.random.default_rng(5)
    words = np.array([f"w{i}" for i in rng.integers(0, 40, 300)])
    order = rng.permutation(300)
    codes = encoded(words).categorical[:, 0]
    assert (encoded(words[order]).categorical[:, 0] == codes[order]).all()


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        ([{"a": 1}], None, "Column 1 holds nested objects"),
        ([[("a", 1)]], pa.map_(pa.string(), pa.int8()), "Column 1 holds nested objects"),
        ([["zzz"], ["yyy"]], None, "Column 1 must hold lists of numbers"),
        ([[{"a": 1}]], None, "Column 1 holds nested objects"),
        ([[1.0], [1.0, 2.0]], None, "Column 1 must hold lists of one length"),
        ([[[1.0]], [[1.0, 2.0]]], None, "must hold lists of one length"),
        (
            [1.0, np.inf, -np.inf],
            None,
            "must be finite; 2 values are infinite",
        ),
        ([[1.0, np.inf]], None, "1 values are infinite"),
        ([np.float32(np.inf)], pa.float32(), "1 values are infinite"),
    ],
)
def test_columns_that_cannot_be_features(values: Any, kind: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        encoded(values, kind)


def test_no_feature_at_all_and_constant_ones() -> None:
    empty = encode_features([], 7, []).table()
    assert len(empty) == 7
    assert empty.width == empty.columns == 0
    assert empty.is_constant()
    assert encoded([4.0, 4.0, 4.0]).is_constant()
    assert encoded(["a", "a"]).is_constant()
    assert encoded([[], []], pa.list_(pa.float64())).width == 0


FINITE = st.floats(allow_nan=True, allow_infinity=False, width=64)


@given(arrays(np.float64, st.integers(1, 30), elements=FINITE))
def test_narrowed_numbers_are_finite_and_keep_their_order(values: np.ndarray[Any, Any]) -> None:
    found = narrowed(values)
    assert found.dtype == np.float32
    assert (np.isnan(found) == np.isnan(values)).all()
    assert not np.isinf(found).any()
    known = values[~np.isnan(values)]
    assert (np.diff(found[~np.isnan(values)][np.argsort(known)]) >= 0).all()


def test_what_tells_rows_apart_survives() -> None:
    for offset in (0.0, 1.7e9, 2.0**40, -1e12):
        values = offset + np.arange(1000.0)
        assert len(np.unique(narrowed(values))) == 1000
    ids = np.array([2**24, 2**24 + 1, 2**24 + 2], dtype=np.float64)
    assert narrowed(ids).tolist() == [0, 1, 2]
    assert narrowed(np.array([1e300, 3e300, 2e300])) == pytest.approx([0, 1, 0.5])
    assert narrowed(np.array([1e-300, 3e-300, 2e-300])) == pytest.approx([0, 1, 0.5])
    assert narrowed(np.array([-1.7e308, 1.7e308])).tolist() == [0, 1]


@given(st.lists(st.one_of(st.none(), st.integers(-1000, 1000)), min_size=1, max_size=50))
def test_round_trip(values: list[int | None]) -> None:
    table = encoded(values, pa.int64())
    back = [None if np.isnan(v) else v for v in table.numeric[:, 0].tolist()]
    known = [v for v in values if v is not None]
    shift = 0
    if known and back[values.index(known[0])] != known[0]:
        shift = min(known)
    assert back == [None if v is None else v - shift for v in values]
