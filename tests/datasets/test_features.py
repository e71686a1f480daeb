"""Free texts and dates as numbers: what is read out, and that models of the label use it."""

import datetime
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ldpaudit.datasets import features, read_release
from ldpaudit.datasets.features import encode_features, narrowed, read_out
from ldpaudit.errors import InputError
from ldpaudit.models.label_model import fit_posterior


def encoded(values, kind=None):
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


def days(kind, units):
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
def test_numbers_dates_and_lists(values, kind, expected):
    table = encoded(values, kind)
    assert (table.numeric.dtype, table.categorical.shape) == (np.float32, (len(table), 0))
    assert table.columns == 1
    found = [[None if np.isnan(v) else v for v in row] for row in table.numeric.tolist()]
    assert found == expected


def test_lists_in_slices_and_chunks():
    whole = pa.array([[1.0, 2.0], [3.0, 4.0], None, [5.0, 6.0]])
    column = pa.chunked_array([whole.slice(1, 2), whole.slice(3)])
    table = encode_features([("x", column)], 3, ["x"]).table()
    assert np.nan_to_num(table.numeric, nan=-1).tolist() == [[3, 4], [-1, -1], [5, 6]]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
)
def test_categories(kind):
    values = ["b", None, "", "a", "b"]
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        values = [None if v is None else v.encode() for v in values]
    table = encoded(values, kind)
    assert table.categorical.dtype == np.int32
    assert (table.categorical[:, 0].tolist(), table.cardinalities) == ([2, -1, 0, 1, 2], (3,))
    assert table.numeric.shape == (5, 0)


def test_pandas_categories_that_do_not_occur_are_not_counted():
    frame = pd.Categorical(["b", None, "a"], categories=["z", "b", "a", "q"])
    table = encoded(pa.array(frame))
    assert (table.categorical[:, 0].tolist(), table.cardinalities) == ([1, -1, 0], (2,))


def test_dictionaries_of_numbers_are_categories():
    assert encoded(pa.array([30, 10, 30]).dictionary_encode()).categorical[:, 0].tolist() == [
        1,
        0,
        1,
    ]


def test_codes_do_not_depend_on_the_order_of_rows():
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
        ([["zzz", "z"], ["yyy", "y"]], None, "Column 1 must hold lists of numbers"),
        ([[{"a": 1}]], None, "Column 1 holds nested objects"),
        ([[1.0], [1.0, 2.0]], None, "Column 1 must hold lists of one length"),
        ([[[1.0]], [[1.0, 2.0]]], None, "must hold lists of one length"),
        (
            [1.0, np.inf, -np.inf],
            None,
            "must be finite; infinite values: 2",
        ),
        ([[1.0, np.inf]], None, "infinite values: 1"),
        ([np.float32(np.inf)], pa.float32(), "infinite values: 1"),
    ],
)
def test_columns_that_cannot_be_features(values, kind, message):
    with pytest.raises(InputError, match=message):
        encoded(values, kind)


def test_no_feature_at_all_and_constant_ones():
    empty = encode_features([], 7, []).table()
    assert len(empty) == 7
    assert empty.width == empty.columns == 0
    assert empty.is_constant()
    assert encoded([4.0, 4.0, 4.0]).is_constant()
    assert encoded(["a", "a"]).is_constant()
    assert encoded([[], []], pa.list_(pa.float64())).width == 0


FINITE = st.floats(allow_nan=True, allow_infinity=False, width=64)


@given(arrays(np.float64, st.integers(1, 30), elements=FINITE))
def test_narrowed_numbers_are_finite_and_keep_their_order(values):
    found = narrowed(values)
    assert found.dtype == np.float32
    assert (np.isnan(found) == np.isnan(values)).all()
    assert not np.isinf(found).any()
    known = values[~np.isnan(values)]
    assert (np.diff(found[~np.isnan(values)][np.argsort(known)]) >= 0).all()


def test_what_tells_rows_apart_survives():
    for offset in (0.0, 1.7e9, 2.0**40, -1e12):
        values = offset + np.arange(1000.0)
        assert len(np.unique(narrowed(values))) == 1000
    ids = np.array([2**24, 2**24 + 1, 2**24 + 2], dtype=np.float64)
    assert narrowed(ids).tolist() == [0, 1, 2]
    assert narrowed(np.array([1e300, 3e300, 2e300])) == pytest.approx([0, 1, 0.5])
    assert narrowed(np.array([1e-300, 3e-300, 2e-300])) == pytest.approx([0, 1, 0.5])
    assert narrowed(np.array([-1.7e308, 1.7e308])).tolist() == [0, 1]


@given(st.lists(st.one_of(st.none(), st.integers(-1000, 1000)), min_size=1, max_size=50))
def test_round_trip(values):
    table = encoded(values, pa.int64())
    back = [None if np.isnan(v) else v for v in table.numeric[:, 0].tolist()]
    known = [v for v in values if v is not None]
    shift = 0
    if known and back[values.index(known[0])] != known[0]:
        shift = min(known)
    assert back == [None if v is None else v - shift for v in values]


WORDS = np.array([f"w{i}" for i in range(300)])


def texts(n, rng, signs=None):
    rows = [" ".join(rng.choice(WORDS, 8)) for _ in range(n)]
    if signs is not None:
        rows = [f"{row} {'ill' if sign else 'well'}" for row, sign in zip(rows, signs, strict=True)]
    return pa.chunked_array([rows])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_free_texts_become_hashed_words(kind):
    column = texts(400, np.random.default_rng(0)).cast(kind)
    (block,) = read_out(column)
    assert (block.shape, block.dtype) == ((400, 128), np.float32)
    np.testing.assert_allclose(np.linalg.norm(block, axis=1), 1.0, atol=1e-5)
    (again,) = read_out(column.cast(pa.string()).dictionary_encode())
    np.testing.assert_array_equal(block, again)


def test_categories_names_and_numbers_are_no_free_texts():
    rng = np.random.default_rng(1)
    few = pa.chunked_array([rng.choice(["a b c", "d e f"], 500)])
    keys = pa.chunked_array([[f"id-{i}" for i in range(500)]])
    assert read_out(few) == read_out(keys) == read_out(pa.chunked_array([np.arange(5)])) == []


LAST = 1 << 40
HIDDEN = {
    "zeros": [0.0, 1.5, 2.0, 3.0, 4.0, 5.0, -0.0],
    "gaps": [1.0, None, 2.0, 3.0, float("nan"), 4.0, -float("nan")],
    "codes": [LAST + 3, 1, 2, 3, None, 5, LAST + 7],
    "codes as floats": [1.0, 2.0, 3.0, 4.0, 5.0, float(LAST + 7), -1.0],
    "a fraction last": [float(LAST), 2.0, 3.0, 4.0, 5.0, 6.0, 0.5],
    "plain": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
}


@pytest.mark.parametrize("case", HIDDEN)
def test_a_column_is_looked_at_in_pieces(case, monkeypatch):
    column = pa.chunked_array([HIDDEN[case][:2], HIDDEN[case][2:]])
    whole = read_out(column), features.lost_in_arrays(column)
    monkeypatch.setattr(features, "_PIECE", 3)
    pieces = read_out(column), features.lost_in_arrays(column)
    assert len(whole[0]) == len(pieces[0]) == (case not in ("a fraction last", "plain"))
    assert [kind for kind, _ in whole[1]] == [kind for kind, _ in pieces[1]]
    for one, other in zip(whole[0], pieces[0], strict=True):
        np.testing.assert_array_equal(one, other)
    for (_, one), (_, other) in zip(whole[1], pieces[1], strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("expected", range(5))
def test_however_many_numbers_are_expected_the_table_is_the_same(expected):
    numbers = np.arange(12.0).reshape(3, 4)
    columns = [
        ("a", pa.chunked_array([numbers[0]])),
        ("b", pa.chunked_array([["x", "y", "x", "z"]])),
        ("c", pa.chunked_array([numbers[1]])),
        ("d", pa.chunked_array([numbers[2]])),
    ]
    whole = encode_features(columns, 4, list("abcd"), expected)
    for encoded, rows in ((whole, slice(0, 4)), (whole.part(1, 3), slice(1, 3))):
        table = encoded.table()
        np.testing.assert_array_equal(table.numeric, numbers.T[rows])
        assert table.numeric.flags.c_contiguous
        np.testing.assert_array_equal(table.categorical[:, 0], np.array([0, 1, 0, 2])[rows])


def test_dates_give_month_day_and_weekday():
    column = pa.chunked_array([[datetime.date(2024, 2, 29), None]])
    (block,) = read_out(column)
    np.testing.assert_array_equal(block[0], [2, 29, 3])
    assert np.isnan(block[1]).all()
    (times,) = read_out(pa.chunked_array([[datetime.datetime(2024, 2, 29, 17, 5)]]))
    np.testing.assert_array_equal(times[0], [2, 29, 3, 17])


def accuracy(columns, truth):
    table = encode_features(columns, len(truth), [name for name, _ in columns]).table()
    half = len(truth) // 2
    first, rest = np.arange(half), np.arange(half, len(truth))
    rng = np.random.default_rng(0)
    model = fit_posterior(table.take(first), truth[:half], 2, rng, 1)
    return (model.predict(table.take(rest)).argmax(axis=1) == truth[rest]).mean()


def test_a_word_that_gives_the_label_away_is_learnt():
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 2, 1200).astype(np.int32)
    assert accuracy([("note", texts(1200, rng, truth == 1))], truth) > 0.9


def test_a_weekday_that_gives_the_label_away_is_learnt():
    rng = np.random.default_rng(3)
    days = [
        datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 1500, 2000)
    ]
    truth = np.array([day.weekday() >= 5 for day in days], dtype=np.int32)
    assert accuracy([("seen", pa.chunked_array([days]))], truth) > 0.95


def test_a_table_without_some_columns_keeps_nothing_read_out():
    rng = np.random.default_rng(4)
    column = texts(300, rng)
    table = encode_features(
        [("a", column), ("b", pa.chunked_array([np.arange(300)]))], 300, ["a", "b"]
    ).table()
    assert table.expanded().numeric.shape[1] == 129
    assert table.take(np.arange(5)).expanded().numeric.shape == (5, 129)
    assert table.without([1]).extra is None


def frame(n=60):
    rng = np.random.default_rng(0)
    town = rng.choice(["oslo", "rome", "bonn"], n)
    label = rng.choice(["no", "yes"], n)
    return pd.DataFrame({"x": rng.standard_normal(n), "town": town, "label": label})


def test_without_companions_there_are_none():
    release = read_release(frame()).release
    assert release.original is None
    assert release.synthetic is None


def test_values_are_coded_alike_in_all_tables():
    released = frame()
    original = released.drop(columns="label")
    original.loc[3, "town"] = "aarhus"
    original.loc[5, "x"] = 9.5
    synthetic = frame(20).assign(town="zagreb")
    release = read_release(released, original=original, synthetic=synthetic).release
    same = release.original.categorical[:, 0] == release.features.categorical[:, 0]
    assert np.flatnonzero(~same).tolist() == [3]
    moved = release.original.numeric[:, 0] != release.features.numeric[:, 0]
    assert (np.flatnonzero(moved).tolist(), release.features.cardinalities) == ([5], (5,))
    assert set(release.synthetic.features.categorical[:, 0]) == {4}
    names = [release.classes[code] for code in release.synthetic.labels]
    assert names == synthetic["label"].tolist()
    half = release.take(np.arange(30))
    assert len(half.original) == 30


def test_kinds_of_numbers_and_of_texts_may_differ():
    released = frame().assign(x=np.arange(60))
    original = released.drop(columns="label").assign(
        x=np.arange(60) + 0.5, town=pd.Categorical(released["town"])
    )
    release = read_release(released, original=original).release
    gap = release.original.numeric - release.features.numeric
    np.testing.assert_allclose(gap, 0.5)
    assert (release.original.categorical == release.features.categorical).all()


DAY, HOUR = pa.timestamp("s"), pa.timestamp("us")
JOINED = {
    "days and times": (pa.date32(), [18_000], HOUR, [432_001 * 3_600_000_000], 1 / 24),
    "seconds and microseconds": (DAY, [60], HOUR, [60_000_001], 1 / 86.4e9),
    "short and long floats": (
        pa.list_(pa.float32()),
        [[0.5]],
        pa.list_(pa.float64()),
        [[0.1]],
        0.4,
    ),
    "decimals and floats": (pa.decimal128(5, 2), [Decimal("1.50")], pa.float64(), [1.254], 0.246),
    "short and long integers": (
        pa.int32(),
        [1],
        pa.int64(),
        [(1 << 53) + 1],
        1.0,
    ),  # the column is scaled
}


@pytest.mark.parametrize("case", JOINED)
@pytest.mark.parametrize("turned", [False, True])
def test_no_value_is_cut_where_types_differ(case, turned):
    one, first, two, second, gap = JOINED[case]
    tables = [pa.table({"x": pa.array(v * 30, k)}) for k, v in ((one, first), (two, second))]
    released, original = reversed(tables) if turned else tables
    released = released.append_column("label", [["a", "b"] * 15])
    release = read_release(released, original=original).release
    apart = release.original.numeric.astype(float) - release.features.numeric
    np.testing.assert_allclose(np.abs(apart), gap, rtol=1e-5)


def test_a_column_without_a_value_has_any_type():
    released = frame().assign(town=None)
    release = read_release(released, original=frame()).release
    assert set(release.features.categorical[:, 0]) == {-1}
    assert release.original.categorical.max() == 2


def test_times_with_a_zone_and_without_are_not_mixed():
    day = pa.array([0, 1] * 15, HOUR)
    released = pa.table({"x": day, "label": ["a", "b"] * 15})
    with pytest.raises(InputError, match="same kind"):
        read_release(released, original=pa.table({"x": day.cast(pa.timestamp("us", "UTC"))}))


def test_original_is_joined_on_the_id():
    released = frame().assign(id=np.arange(60))
    shuffled = released.drop(columns="label").sample(frac=1, random_state=1)
    release = read_release(released, original=shuffled, id_column="id").release
    assert (release.original.numeric == release.features.numeric).all()


@pytest.mark.parametrize(
    ("companions", "message"),
    [
        ({"original": frame(59)}, "as many rows"),
        ({"original": frame().drop(columns="town")}, "column 2 of the release"),
        ({"original": frame().assign(x="secret-cell")}, "same kind"),
        ({"synthetic": frame().drop(columns="label")}, "label"),
        ({"synthetic": frame().assign(label="secret-cell")}, "60 of 60 rows hold another"),
        ({"synthetic": frame().iloc[:0]}, "no rows"),
    ],
)
def test_what_does_not_fit_is_refused(companions, message):
    with pytest.raises(InputError, match=message) as caught:
        read_release(frame(), **companions)
    assert "secret-cell" not in str(caught.value)


def test_an_id_without_match_is_refused():
    released = frame().assign(id=np.arange(60))
    with pytest.raises(InputError, match="original features; 1 of 60"):
        read_release(released, original=released.assign(id=np.arange(1, 61)), id_column="id")


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.list_(pa.float32(), 2)], ids=str)
def test_lists_with_nan_are_marked_in_every_chunk(kind):
    first = pa.array([[1.0, math.nan], None, [None, 3.0]], kind)
    column = pa.chunked_array([first, pa.array([[1.0, 2.0]], kind), first])
    assert [one.ravel().tolist() for one in read_out(column)] == [[2, 0, 0, 0, 2, 0, 0]]
    assert read_out(pa.chunked_array([first[1:]])) == []
