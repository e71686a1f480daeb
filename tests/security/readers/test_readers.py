"""Bad tables at random never end in an internal fault; many more in :mod:`bad_tables` itself."""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from security.readers import bad_tables, fronts
from security.readers.bad_tables import FORMATS, damaged
from security.readers.fronts import here

import ldpaudit
from ldpaudit.datasets import read_release
from ldpaudit.datasets.features import encode_numbers
from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.names import header_of
from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.extras.kinds.files.sparse import open_sparse
from ldpaudit.extras.kinds.files.written import TableFile
from ldpaudit.options import FileOptions
from ldpaudit.work.files import WholeFiles


def test_some_bad_tables(tmp_path):
    for number in range(6):
        folder = tmp_path / str(number)
        folder.mkdir()
        words = bad_tables.case(number, 0, folder)
        status, text = fronts.here(words, folder)
        assert not fronts.Outcome(status, text, 0.0, 0).faulty, (number, words, text)


@pytest.mark.parametrize("number", [57])
def test_a_table_that_once_was_a_fault(number, tmp_path):
    words = bad_tables.case(number, 20261122, tmp_path)  # A column of lists without any value.
    status, text = fronts.here(words, tmp_path)
    assert "fault" not in text, (status, text)


def test_a_fault_is_seen():
    for status, text in (
        (2, "Internal fault (KeyError)"),
        (-11, ""),
        (2, "two\nlines"),
        (1, "a UserWarning: b"),
    ):
        assert fronts.Outcome(status, text, 0.0, 0).faulty
    assert not fronts.Outcome(2, "ldpaudit: reading the labels …\nldpaudit: No.", 0.0, 0).faulty


def test_a_case_is_the_same_each_time(tmp_path):
    made = []
    for name in "ab":
        folder = tmp_path / name
        folder.mkdir()
        words = bad_tables.case(7, 3, folder)
        made.append((words, sorted(p.name for p in folder.iterdir())))
    assert made[0] == made[1]
    assert bad_tables.damaged(b"", np.random.default_rng(0))


@pytest.mark.validate
def test_many_bad_tables():
    assert bad_tables.main(["1000", "--seed", "20261122"]) == 0


LEAST, MOST = 0.123456789, 0.987654321


@pytest.mark.parametrize("stated", [1e300, -5.0, 0.5])
def test_statistics_that_are_not_of_the_values_change_nothing(stated, tmp_path):
    """A forged range once made all values of a column equal: a leak was not seen."""
    values = np.where(np.arange(200) % 2, LEAST, MOST)
    words = np.array(["no", "yes"])[np.arange(200) // 3 % 2]
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"label": words, "x": values}), path)
    honest = read_release(path, label="label").release.features.numeric
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    forged = content[footer:].replace(np.float64(MOST).tobytes(), np.float64(stated).tobytes())
    path.write_bytes(content[:footer] + forged)
    found = read_release(path, label="label").release.features.numeric
    np.testing.assert_array_equal(found, honest)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_long_integers_that_differ_stay_different(kind):
    """As float64, 2**53 and 2**53 + 1 are one number: a column of them told every label."""
    for zero in (1 << 53, (1 << 63) - 2):
        column = pa.chunked_array([pa.array([zero, None, zero + 1], kind)])
        np.testing.assert_array_equal(encode_numbers(column), [[0], [np.nan], [1]])
    ends = pa.chunked_array([pa.array([-(1 << 63), (1 << 63) - 1])])
    assert encode_numbers(ends).tolist() == [[0], [1]]


CODES = 5_000_000_000 + np.arange(200) // 3 % 2
SUBTLE = {
    "long codes beside a zero": pa.array([0, *CODES[1:]]),
    "the same with fractions allowed": pa.array([0.0, *CODES[1:]], pa.float64()),
    "two zeros": pa.array(np.where(CODES % 2, -0.0, 0.0)),
    "missing and no number": pa.array([None if odd else np.nan for odd in CODES % 2], pa.float64()),
}


@pytest.mark.parametrize("name", SUBTLE)
def test_what_float32_makes_equal_is_told_to_models(name, tmp_path):
    """Such a column told every label, and the answer was to publish."""
    words = np.array(["no", "yes"])[np.arange(200) // 3 % 2]
    table = pa.table({"label": words, "x": SUBTLE[name], "y": np.arange(200) % 5})
    pq.write_table(table, tmp_path / "r.parquet")
    features = read_release(tmp_path / "r.parquet", label="label").release.features
    assert len(np.unique(features.numeric[1:, 0])) == 1
    extra = features.expanded().numeric[1:, -1]
    assert len(np.unique(extra)) == 2
    assert (extra == extra.max()).tolist() in [(words == w).tolist()[1:] for w in ("no", "yes")]


ROWS = [
    [
        f"{17 * i % 53 + 18}",
        f"{i * 911 % 4000 / 8}",
        "mf"[i % 2],
        f"name{i}",
        ["yes", "no"][i % 3 > 0],
    ]
    for i in range(60)
]
NAMES = ["age", "pay", "sex", "name", "ill"]


def _file(path, rows, separator):
    if path.suffix == ".xlsx":
        book = pytest.importorskip("openpyxl").Workbook()
        for row in rows:
            book.active.append([float(c) if c[0].isdigit() else c for c in row])
        book.save(path)
    else:
        path.write_text("\n".join(separator.join(row) for row in rows), "utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("name", "separator"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.xlsx", "")]
)
def test_a_file_without_names_is_refused_unless_said(tmp_path, name, separator):
    path = _file(tmp_path / name, ROWS, separator)
    with pytest.raises(InputError, match="looks like a row of the table") as refused:
        open_table(path)
    assert not any(cell in str(refused.value).split() for cell in ROWS[0])
    assert len(open_table(path, FileOptions(header=True)).names) == 5
    named = _file(tmp_path / f"named-{name}", [NAMES, *ROWS], separator)
    assert open_table(named).names == tuple(NAMES)


def test_a_decimal_comma_hides_no_row(tmp_path):
    rows = [[row[0], f"{row[1]}1".replace(".", ","), *row[2:]] for row in ROWS]
    with pytest.raises(InputError, match="looks like a row"):
        open_table(_file(tmp_path / "a.csv", rows, ";"), FileOptions(separator=";"))


@pytest.mark.parametrize(
    ("names", "values"),
    [
        (["0"], ["0", "1"]),
        ([str(i) for i in range(65)], ["0", "1", "7"]),
        (["label", *map(str, range(1, 30))], ["1", "9", "25"]),
        (["place", "1990", "2000", "2010"], ["1500", "2100", "900"]),
        (["2021", "2020", "2019", "where"], ["1500", "2100", "900"]),
        (["spam", "length", "caps"], ["spam", "ham"]),
        (["7157", "672", "1956"], ["0", "3", "11"]),
        (["", "label"], ["3", "4"]),
        (["a", "b"], []),
    ],
)
def test_names_of_any_kind_are_names(names, values):
    header_of(names, [values * 5] * len(names), "a.csv")


def test_a_repeated_cell_is_no_other_fault(tmp_path):
    rows = [[row[2], row[4], row[4]] for row in ROWS]
    with pytest.raises(InputError, match="looks like a row"):
        open_table(_file(tmp_path / "a.csv", rows, ","))


N = 60
WORDS = [f"w{i % 3}" for i in range(N)]
PLACES = pa.array([i % 3 for i in range(N)], pa.int32())
STRUCTURES = pa.array([{"f": word} for word in "abc"])
COLUMNS = {
    "views of texts": pa.array(WORDS, pa.string_view()),
    "views of bytes": pa.array([word.encode() for word in WORDS], pa.binary_view()),
    "a dictionary of views": pa.DictionaryArray.from_arrays(
        PLACES, pa.array(["a", "b", "c", "unused"], pa.string_view())
    ),
    "a dictionary of nothing": pa.DictionaryArray.from_arrays(
        pa.array([None] * N, pa.int32()), pa.array([], pa.null())
    ),
    "lists of a dictionary of structures": pa.ListArray.from_arrays(
        np.arange(N + 1, dtype=np.int32), pa.DictionaryArray.from_arrays(PLACES, STRUCTURES)
    ),
}
RELEASE = "privatize t.feather -o r.parquet --mechanism rr --epsilon 1 --secret s.parquet --id id"
COMMANDS = {
    "privatize": RELEASE,
    "run": "run t.feather --only mechanism --mechanism rr --epsilon 1",
    "sweep": "sweep t.feather --mechanism rr --epsilon 1 --repeats 1 --processes 1 --only power",
}


@pytest.mark.parametrize(
    ("kind", "command"),
    [
        pytest.param(kind, command, marks=pytest.mark.validate if is_long else ())
        for command in COMMANDS
        for kind in COLUMNS
        for is_long in [command == "sweep" and kind != "views of texts"]
    ],
)
def test_an_odd_type_is_no_internal_fault(kind, command, tmp_path):
    columns = {"odd": COLUMNS[kind], "id": np.arange(N), "label": np.arange(N) * 7 % 5 < 2}
    feather.write_feather(pa.table(columns), tmp_path / "t.feather")
    status, said = here(COMMANDS[command].split(), tmp_path)
    refused = kind.startswith(("views of b", "lists", "a dictionary of v"))
    assert status in ((0, 2, 3) if refused else (0, 3)), said
    assert "Internal" not in said


N_FROM_PYTHON = 400


def frame():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {"age": rng.integers(18, 90, N_FROM_PYTHON), "label": rng.choice(["a", "b"], N_FROM_PYTHON)}
    )


def audited(table, **claim):
    stated = claim or {"label": "label", "mechanism": "rr", "epsilon": 1.0}
    return ldpaudit.audit(table, only=["mechanism"], **stated)


@pytest.mark.filterwarnings("ignore:Few people are in this table")
def test_bins_of_pandas_are_categories():
    weeks = np.random.default_rng(2).integers(1, 99, N_FROM_PYTHON)
    binned = frame().assign(label=pd.cut(weeks, [0, 40, 60, 99]))
    released = ldpaudit.privatize(binned, "rr", label="label", epsilon=1.0)
    assert set(released["label"].astype(str)) == {"(0, 40]", "(40, 60]", "(60, 99]"}
    assert audited(released, label="label").run is not None
    plain = frame().assign(age=lambda d: pd.IntervalIndex(pd.cut(d["age"], 4)))
    assert audited(plain).run is not None


@pytest.mark.filterwarnings("ignore:Few people are in this table")
def test_a_bin_that_is_missing_stays_missing():
    outside = frame().assign(label=lambda d: pd.cut(d["age"], [0, 40, 60]))
    with pytest.raises(InputError, match="Every row must have a label"):
        ldpaudit.privatize(outside, "rr", label="label", epsilon=1.0)


@pytest.mark.filterwarnings("ignore:Few people are in this table")
def test_a_stream_is_read_once():
    stream = pa.Table.from_pandas(frame()).to_reader()
    assert audited(stream)["mechanism.epsilon"].value == 1.0


@pytest.mark.filterwarnings("ignore:Few people are in this table")
@pytest.mark.parametrize("name", ["a::b.csv", "file:x.csv", "::error ::x.csv", "~x.csv", "-x.csv"])
def test_a_file_is_found_by_its_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame().to_csv(tmp_path / name, index=False)
    assert open_table(name).names == ("age", "label")


@pytest.mark.filterwarnings("ignore:Few people are in this table")
def test_a_name_in_no_utf_8_is_said_to_be_one():
    with pytest.raises(InputError, match=r"^The name of 'bad.*' is not in UTF-8; rename the file"):
        open_table("bad\udcff.csv")


@pytest.mark.filterwarnings("ignore:Few people are in this table")
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("threads", "2"),
        ("threads", True),
        ("timeout", "1"),
        ("exact", "no"),
        ("seed", 1.5),
        ("seed", "one"),
        ("policy", {"claim": {"epsilon": 1.0}}),
    ],
)
def test_a_value_of_another_type_is_one_line(option, value):
    with pytest.raises(InputError, match=option):
        audited(frame(), label="label", mechanism="rr", epsilon=1.0, **{option: value})


@pytest.mark.filterwarnings("ignore:Few people are in this table")
def test_numbers_of_numpy_are_numbers():
    stated = {"label": "label", "mechanism": "rr", "epsilon": np.float32(1.0)}
    options = {"seed": np.int64(1), "threads": np.int32(1), "exact": np.bool_(0)}
    assert audited(frame(), **stated, **options)["mechanism.epsilon"].value == 1.0


QUICK = settings(
    max_examples=10, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
WRITTEN = ("parquet", "feather", "csv", "csv.gz", "tsv", "jsonl")
LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"))
CELLS = {
    "whole": (st.integers(-(2**53), 2**53), pa.int64()),
    "number": (st.floats(allow_nan=False, allow_infinity=False), pa.float64()),
    "text": (st.text(LETTERS, max_size=9).map(lambda text: f"t{text}"), pa.large_string()),
    "flag": (st.booleans(), pa.bool_()),
}


@st.composite
def tables(draw):
    """Draw a table without missing values."""
    rows = draw(st.integers(1, 12))
    kinds = draw(st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=4))
    columns = {}
    for place, (cells, kind) in enumerate(CELLS[kind] for kind in kinds):
        drawn = draw(st.lists(cells, min_size=rows, max_size=rows))
        columns[f"c{place}"] = pa.array(drawn, kind)
    return pa.table(columns)


def written(table, place):
    with WholeFiles() as files:
        out = TableFile(files.add(place), table.schema)
        for batch in table.to_batches():
            out.write(batch)


def read(place):
    """Return all columns that a file holds."""
    if place.suffix == ".svm":
        labels, features = open_sparse(str(place)).read()
        return {"label": labels.to_pylist(), "features": features.tolist()}
    table = open_table(place)
    return {name: column.to_pylist() for name, column in table.columns(table.names)}


@pytest.mark.parametrize("form", WRITTEN)
@QUICK
@given(table=tables())
def test_what_is_written_is_read_again(form, table):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"t.{form}"
        written(table, place)
        assert read(place) == table.to_pydict()


@pytest.mark.parametrize("form", FORMATS)
@QUICK
@given(content=st.binary(max_size=200))
def test_bytes_are_a_table_or_one_line(form, content):
    check(content, form)


@pytest.mark.parametrize("form", WRITTEN)
@QUICK
@given(table=tables(), seed=st.integers(0, 2**32))
def test_a_damaged_file_is_a_table_or_one_line(form, table, seed):
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / f"t.{form}"
        written(table, place)
        content = place.read_bytes()
    check(damaged(content, np.random.default_rng(seed)), form)


def check(content, form):
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
