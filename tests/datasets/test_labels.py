"""What the survey says of a column, and what it says of ordinary ones: nothing."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ldpaudit.datasets import read_release
from ldpaudit.datasets.column_survey import survey_column
from ldpaudit.datasets.domains import encode_labels, find_domains, read_numbers
from ldpaudit.datasets.formats.tables import unified
from ldpaudit.datasets.labels import (
    LabelColumn,
    canonical,
    check_inside,
    in_order,
    most_classes,
    positions,
    read_labels,
)
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.view import DeclaredCoding
from ldpaudit.release import Declaration


def column(values, kind=None):
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
def test_types_of_labels(values, kind, expected):
    found = read_labels(column(values * 5, kind), "released")
    assert found.values == expected
    assert [type(value) for value in found.values] == [type(value) for value in expected]
    assert (len(found.codes), set(found.codes)) == (5 * len(values), {0, 1})


def test_a_dictionary_in_chunks():
    chunks = [
        pa.array(["b", "a"] * 8).dictionary_encode(),
        pa.array(["c"] * 20).dictionary_encode(),
    ]
    found = read_labels(pa.chunked_array(chunks), "true")
    assert (found.values, found.codes.tolist()) == (("b", "a", "c"), [0, 1] * 8 + [2] * 20)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "0"], (1, 0)),
        (["-0", "1"], (0, 1)),
        (["1.0", "0.5"], ("1.0", "0.5")),
        (["250.0", "250.00", "250"], ("250.0", "250.00", "250")),
        (["1", "1e+05"], ("1", "1e+05")),
        (["1", " 1"], ("1", " 1")),
        (["true", "False"], (True, False)),
        (["01", "1"], ("01", "1")),
        (["yes", "1"], ("yes", "1")),
        (["nan", "inf"], ("nan", "inf")),
        (["1_0", "2"], ("1_0", "2")),
    ],
)
def test_labels_of_a_text_file(values, expected):
    assert read_labels(column(values * 10), "released", from_text=True).values == expected
    assert read_labels(column(values * 10), "released").values == tuple(values)


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (["yes", None, None] * 5, pa.string(), "missing in 10 of 15"),
        ([0.0, np.nan, 1.0] * 5, pa.float64(), "missing in 5 of 15"),
        ([0.0, np.inf, 1.0] * 5, pa.float64(), "infinite in 5 of 15"),
        ([None] * 20, pa.null(), "missing in 20 of 20"),
        ([[1.0], [2.0]], pa.list_(pa.float64()), "no nested object"),
        ([{"a": 1}], pa.struct({"a": pa.int8()}), "no nested object"),
        ([b"\xff", b"a"] * 9, pa.binary(), "UTF-8"),
        (["True", "true"] * 9, pa.string(), "spelling"),
        (list(range(11)) * 5, pa.int64(), "11 different values in 55 rows, and at most 5"),
        (["a", "b", "c"], pa.string(), "at most 2"),
    ],
)
def test_labels_that_cannot_be_used(values, kind, message):
    with pytest.raises(InputError, match=message):
        read_labels(column(values, kind), "released")


def test_how_many_classes_rows_allow():
    assert [most_classes(n) for n in (1, 29, 30, 9_999, 10**8)] == [2, 2, 3, 999, 1000]


def test_canonical_forms():
    assert {canonical(v) for v in (1, 1.0, "1", "1.0")} == {"1"}
    assert {canonical(v) for v in (True, "true", "TRUE")} == {"true"}
    assert canonical(0.1) == canonical("0.1")
    assert len({canonical(v) for v in ("01", "1", " 1", "+1", "1e0", "one", True)}) == 7
    assert canonical("9" * 10_000) == "9" * 10_000


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text()))
def test_a_label_matches_its_own_text(label):
    assert canonical(str(label)) == canonical(label)


LABELS = st.one_of(st.integers(-99, 99), st.text(max_size=4), st.floats(-9, 9))


@given(st.lists(LABELS, unique_by=canonical, min_size=1), st.randoms())
def test_labels_are_found_again(labels, random):
    shuffled = random.sample(labels, len(labels))
    found = positions(labels, shuffled)
    assert [canonical(shuffled[place]) for place in found] == [canonical(v) for v in labels]


def test_booleans_match_zero_and_one_alone():
    assert positions([True, False], [0, 1]).tolist() == [1, 0]
    assert positions(["0", "1"], [False, True]).tolist() == [0, 1]
    assert positions([True, False], [0, 1, 2]).tolist() == [-1, -1]
    assert positions([1, 2], [True, False]).tolist() == [-1, -1]


@pytest.mark.parametrize("values", [[" 1.5", "9007199254740993 "], [1, (1 << 53) + 1]])
def test_numbers_are_read_from_texts_and_long_integers(values):
    found = read_numbers(pa.chunked_array([pa.array(values)]), "released")
    assert found.tolist() == [float(values[0]), float(1 << 53)]


def test_order():
    assert in_order(["b", 10, 9.5, "a", 2]) == (2, 9.5, 10, "a", "b")
    assert in_order([True, False]) == (False, True)


LEVELS = st.sampled_from(["text", "int", "float", "bool"])


@given(LEVELS, st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_round_trip(kind, k, seed):
    k = 2 if kind == "bool" else k
    rng = np.random.default_rng(seed)
    names = {
        "text": [f"class-{i}" for i in range(k)],
        "int": list(range(k)),
        "float": [i / 2 for i in range(k)],
        "bool": [False, True],
    }[kind]
    rows = [names[i] for i in rng.integers(0, k, 100)]
    found = read_labels(column(rows), "released")
    assert [found.values[code] for code in found.codes] == rows
    as_text = read_labels(column([str(v) for v in rows]), "released", from_text=True)
    spelt = list(map(str, rows)) if kind == "float" else rows
    assert [as_text.values[code] for code in as_text.codes] == spelt


def labels(*values, rows=300):
    return LabelColumn(values, (np.arange(rows) % len(values)).astype(np.int32))


def response(**parameters):
    return Declaration("randomized-response", {"epsilon": 1.0, **parameters})


def test_declared_classes_keep_their_order():
    encoded = encode_labels(response(classes=["b", "a"]), labels("a", "b"), labels("a", "b"))
    assert encoded.domains.classes == encoded.domains.outputs == ("b", "a")
    assert (encoded.released[:2].tolist(), encoded.truth[:2].tolist()) == ([1, 0], [1, 0])


@pytest.mark.parametrize("declared", [[0, 1], ["0", "1"], [0.0, 1.0], [False, True]])
@pytest.mark.parametrize("found", [(1, 0), ("1", "0"), (True, False)])
def test_declared_classes_match_across_types(declared, found):
    encoded = encode_labels(response(classes=declared), labels(*found), None)
    assert (encoded.released[:2].tolist(), encoded.domains.classes) == ([1, 0], tuple(declared))


def test_a_channel_has_outputs_of_its_own():
    channel = Declaration("channel", {"classes": [1, 2], "outputs": ["low", "high", "none"]})
    encoded = encode_labels(channel, labels("high", "low"), labels(2, 1))
    assert (encoded.domains.classes, encoded.domains.outputs) == ((1, 2), ("low", "high", "none"))
    assert encoded.released[:2].tolist() == [1, 0]
    assert find_domains(Declaration("channel", {"classes": [1, 2]}), labels(1, 2), None) == (
        find_domains(response(classes=[1, 2]), labels(1, 2), None)
    )


@pytest.mark.parametrize("claim", [None, Declaration("unknown"), response()])
def test_undeclared_classes_are_the_union(claim):
    domains = find_domains(claim, labels(10, 9), labels(9, 2))
    assert domains.classes == domains.outputs == (2, 9, 10)
    assert find_domains(claim, labels("b", "a"), None).classes == ("a", "b")
    same = find_domains(claim, labels(1, 0), labels("1", "0", "2"))
    assert same.classes == (0, 1, "2")


def test_labels_with_nothing_in_common():
    domains = find_domains(None, labels("x", "w"), labels(1, 0))
    assert (domains.classes, domains.outputs, domains.apart) == ((0, 1), ("w", "x"), True)
    with pytest.raises(InputError, match="in the same way"):
        find_domains(response(), labels("x", "w"), labels(1, 0))


def test_outputs_of_a_mechanism_that_is_not_a_channel_on_the_classes():
    binned = Declaration("rr-on-bins", {"classes": [0, 1, 2, 3]})
    coding = DeclaredCoding(binned)
    assert find_domains(binned, labels(1.5, 0.5), None, coding).outputs == (0.5, 1.5)
    assert find_domains(binned, labels(3, 1), None, coding).outputs == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("claim", "released", "truth", "message"),
    [
        (response(classes=["a", "b"]), labels("a", "zzz"), None, "150 of 300 rows hold another"),
        (response(classes=["a", "b"]), labels("a", "b"), labels("a", "zzz"), "declared classes"),
        (response(classes=["a"]), labels("a", "b"), None, "at least 2 declared classes"),
        (response(classes="ab"), labels("a", "b"), None, "must be a list"),
        (response(classes=["a", None]), labels("a", "b"), None, "Got NoneType"),
        (response(classes=["a", float("nan")]), labels("a", "b"), None, "Got float"),
        (response(classes=["1", 1]), labels("1", "b"), None, "told apart"),
        (response(classes=[*range(31)]), labels(1, 2), None, "31 different values"),
        (response(), labels("a"), None, "one only"),
        (response(), labels("a", "b"), labels("a"), "true label must take at least two"),
        (Declaration("channel", {"matrix": [[1]]}), labels("a", "b"), None, "name its classes"),
        (None, labels(*np.linspace(0.1, 9, 60).tolist(), rows=900), None, "looks continuous"),
        (None, labels("a", "b", rows=900), labels(*np.linspace(0.1, 9, 60).tolist(), rows=900),
         "looks continuous"),
    ],
)  # fmt: skip
def test_labels_that_do_not_fit(claim, released, truth, message):
    with pytest.raises(InputError, match=message) as caught:
        encode_labels(claim, released, truth, DeclaredCoding(claim))
    assert "zzz" not in str(caught.value)


def test_rows_are_counted_alike():
    for outside, said in ((1, "1 of 1,601 rows holds another value"), (2, "2 of 1,602 rows hold")):
        codes = np.repeat([0, -1], [1600, outside]).astype(np.int32)
        with pytest.raises(InputError, match=said):
            check_inside(codes, "released label", "the declared outputs")


def test_declared_numbers_are_not_taken_for_measurements():
    outputs = np.linspace(0.1, 9, 60).tolist()
    claim = Declaration("channel", {"classes": [0, 1], "outputs": outputs})
    encoded = encode_labels(claim, labels(*outputs, rows=900), labels(0, 1, rows=900))
    assert encoded.released[:60].tolist() == list(range(60))


N = 2000
ROW = np.arange(N)
RNG = np.random.default_rng(2)
DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(int(i)) for i in RNG.integers(0, 900, N)]


def surveyed(values, name="column"):
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
def test_concerns(case):
    values, concern = CONCERNS[case]
    assert surveyed(values).concern == concern


@pytest.mark.parametrize("name", ["patient_nbr", "id", "PatientID", "case-no"])
def test_a_name_of_an_identifier_is_believed_where_values_differ(name):
    assert surveyed(RNG.integers(0, N, N), name).concern == "identifier"
    assert surveyed(RNG.integers(0, 8, N), name).concern is None


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "Unnamed: 12", "__index_level_0__"])
def test_a_name_of_an_index_is_believed_where_values_differ(name):
    assert surveyed(RNG.integers(0, N, N), name).concern == "index"
    assert surveyed(RNG.integers(0, 8, N), name).concern is None
    assert surveyed(RNG.normal(size=N), name).concern is None
    assert surveyed([None] * N, name).concern is None


def test_what_else_is_said():
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
def test_ordinary_tables(file, expected, shared_data):
    table = pq.read_table(shared_data / f"{file}.parquet")
    found = {name: survey_column(name, table[name]).concern for name in table.schema.names}
    assert {name: concern for name, concern in found.items() if concern} == expected


@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.int8()])
def test_labels_that_are_missing_everywhere_are_refused_in_any_chunks(kind):
    column = pa.chunked_array([pa.nulls(2, kind), pa.nulls(1, kind), pa.nulls(0, kind)])
    for labels in (column, column.combine_chunks()):
        with pytest.raises(InputError, match="it is missing in 3 of 3"):
            read_release(pa.table({"x": [1.0, 2.0, 3.0], "label": labels}))


def test_a_dictionary_may_hold_a_missing_value():
    parts = [["no", None, "yes"], [None, "yes", "no"]]
    places = [[0, 2] * 10, [1, 2] * 10]
    chunks = [
        pa.DictionaryArray.from_arrays(pa.array(place, pa.int8()), pa.array(part))
        for part, place in zip(parts, places, strict=True)
    ]
    found = read_release(pa.table({"x": np.arange(40.0), "label": pa.chunked_array(chunks)}))
    labels = ["no", "yes"] * 10 + ["yes", "no"] * 10
    plain = read_release(pa.table({"x": np.arange(40.0), "label": labels}))
    assert found.release.outputs == plain.release.outputs
    np.testing.assert_array_equal(found.release.released, plain.release.released)


def test_chunks_within_lists_have_one_dictionary():
    chunks = [
        pa.ListArray.from_arrays([0, 1, 2], pa.array(values).dictionary_encode())
        for values in (["a", "b"], ["b", "c"])
    ]
    column = unified(pa.chunked_array(chunks))
    first, second = (chunk.values.dictionary for chunk in column.chunks)
    assert first.equals(second)
    assert column.to_pylist() == [["a"], ["b"], ["b"], ["c"]]
