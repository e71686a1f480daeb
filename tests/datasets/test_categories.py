"""Categories of numbers and times: what they are does not depend on the format they came in."""

import contextlib
import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest
from processes import called

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import read_whole
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.files.written import TableFile
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize
from ldpaudit.work.files import WholeFiles

ROWS = 300
HOUR = datetime.datetime(2020, 1, 1, 10)
# Neither in order nor, as labels, all of them whole.
VALUES = {
    "whole": pa.array([30, 1, 2]),
    "unsigned": pa.array([2**40, 1, 2], pa.uint64()),
    "whole floats": pa.array([3.0, 1.0, 2.0]),
    "half": pa.array(np.array([0.5, 2.5, 1.0], dtype=np.float16)),
    "decimals": pa.array([Decimal("2.50"), Decimal("1.25"), Decimal("9.00")]),
    "booleans": pa.array([True, False]),
    "times": pa.array([HOUR, HOUR.replace(hour=3), HOUR.replace(hour=5)], pa.timestamp("us")),
    "text": pa.array(["b", "a", "c"]),
}


def categories(values, seed=0):
    codes = np.random.default_rng(seed).integers(0, len(values), ROWS)
    codes[: len(values)] = np.arange(len(values))
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), values)


def sources(table, folder):
    pq.write_table(table, folder / "t.parquet")
    pyarrow.feather.write_feather(table, folder / "t.feather")
    with pyarrow.ipc.new_stream(folder / "t.arrow", table.schema) as writer:
        writer.write_table(table)
    return table, folder / "t.parquet", folder / "t.feather", folder / "t.arrow"


def of(read):
    """What must be the same: the labels of all rows, and their features."""
    features = read.features
    labels = [str(read.classes[code]) for code in read.released]
    return labels, features.categorical.tolist(), features.numeric.tolist(), features.cardinalities


@pytest.mark.parametrize("kind", VALUES)
def test_categories_come_back_as_such_from_every_format(kind, tmp_path):
    values = VALUES[kind]
    label = pa.DictionaryArray.from_arrays(pa.array(np.arange(ROWS) % len(values)), values)
    table = pa.table({"x": np.arange(ROWS) % 7 / 2, "f": categories(values), "label": label})
    made = {}
    for source in sources(table, tmp_path):
        assert of(read_release(source).release) == of(read_release(table).release)
        for end in ("parquet", "feather"):
            out, secret = tmp_path / f"r.{end}", tmp_path / f"s.{end}"
            privatize(
                PrivatizeRequest(
                    source, out, label=["label"], mechanism="rr", epsilon=2.0, secret=secret,
                    overwrite=True, experimental=True, seed=1,
                )
            )  # fmt: skip
            for place in (out, secret):
                kinds = open_table(place).schema
                text = kind == "text" and end == "feather"  # These are categories all the same.
                for name in {"f", "label"} & {*kinds.names}:
                    assert pa.types.is_dictionary(kinds.field(name).type) is not text
            read = [read_release(out, truth=truth).release for truth in (source, secret)]
            np.testing.assert_array_equal(read[0].truth, read[1].truth)
            assert 0.6 < (read[0].released == read[0].truth).mean() < 0.95
            assert read[0].features.categorical.shape == read[0].features.numeric.shape == (ROWS, 1)
            made[str(source), end] = (*of(read[0]), read[0].truth.tolist())
    assert len({str(one) for one in made.values()}) == 1
    if kind != "half":
        frame = pd.read_feather(tmp_path / "r.feather")
        assert (str(frame["f"].dtype) == "category") is (kind != "text")


def test_frames_of_pandas_with_categories(tmp_path):
    codes = np.arange(ROWS) % 3
    whole = pd.Categorical.from_codes(codes, [3, 1, 2], ordered=True)
    frame = pd.DataFrame({"x": np.arange(ROWS) % 5, "f": whole, "label": whole})
    frame.to_parquet(tmp_path / "d.parquet")
    frame.to_feather(tmp_path / "d.feather")
    read = [
        read_release(frame),
        *map(read_release, (tmp_path / "d.parquet", tmp_path / "d.feather")),
    ]
    assert len({str(of(one.release)) for one in read}) == 1
    privatize(
        PrivatizeRequest(frame, tmp_path / "r.feather", mechanism="rr", epsilon=1.0, keep=["f"])
    )
    released = pd.read_feather(tmp_path / "r.feather")
    assert released["f"].astype(int).tolist() == frame["f"].astype(int).tolist()
    assert {*released["label"].cat.categories} == {1, 2, 3}


def test_rows_that_come_later_add_to_the_categories_of_a_feather_file(tmp_path):
    schema = pa.schema({"f": pa.dictionary(pa.int8(), pa.int64()), "x": pa.int64()})
    with WholeFiles() as files:
        out = TableFile(files.add(tmp_path / "t.feather"), schema)
        for start in range(0, 400, 100):
            own = pa.DictionaryArray.from_arrays(
                pa.array([*range(100)], pa.int8()), pa.array(range(start, start + 100))
            )
            out.write(pa.RecordBatch.from_arrays([own, pa.array(range(100))], schema=schema))
        gaps = pa.DictionaryArray.from_arrays(pa.array([None, 0], pa.int8()), pa.array([7]))
        out.write(pa.RecordBatch.from_arrays([gaps, pa.array([1, 2])], schema=schema))
    expected = [*range(400), None, 7]
    assert pyarrow.feather.read_table(tmp_path / "t.feather")["f"].to_pylist() == expected
    assert read_whole(open_table(tmp_path / "t.feather"))["f"].to_pylist() == expected


def test_a_declaration_leaves_categories_as_they_are(tmp_path):
    table = pa.table(
        {"f": categories(VALUES["whole"]), "label": categories(VALUES["whole floats"], 1)}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    before = of(read_release(tmp_path / "t.parquet").release)
    words = ("--mechanism", "rr", "--epsilon", "1")
    assert called("declare", tmp_path / "t.parquet", *words)[0] == 0
    after = read_release(tmp_path / "t.parquet").release
    assert after.declaration is not None
    assert (of(after)[1:], sorted(of(after)[0])) == (before[1:], sorted(before[0]))


@pytest.mark.parametrize("end", ["csv", "feather", "parquet"])
def test_other_tables_hold_the_numbers_of_categories_in_any_form(end, tmp_path):
    plain = pd.DataFrame(
        {"f": np.arange(ROWS) % 3 * 10, "g": np.arange(ROWS) % 2, "label": ["a", "b"] * (ROWS // 2)}
    )
    coded = plain.astype({"f": "category"})
    coded.to_parquet(tmp_path / "c.parquet")
    plain.to_csv(tmp_path / "p.csv", index=False)
    getattr(plain, f"to_{end}")(tmp_path / f"p.{end}", **({"index": False} if end == "csv" else {}))
    for release, original in (("c.parquet", f"p.{end}"), (f"p.{end}", "c.parquet")):
        read = read_release(tmp_path / release, original=tmp_path / original).release
        assert read.original is not None
        np.testing.assert_array_equal(read.features.categorical, read.original.categorical)
        np.testing.assert_array_equal(read.features.numeric, read.original.numeric)
        assert read.features.categorical.shape[1] == (release == "c.parquet")


@pytest.mark.parametrize("end", ["csv", "jsonl", "orc", "dta", "sav", "xpt"])
@pytest.mark.parametrize("kind", VALUES)
def test_other_formats_hold_the_values(kind, end, tmp_path):
    column = categories(VALUES[kind])
    table = pa.table({"f": column, "label": ["a", "b"] * (ROWS // 2)})
    words = {"label": ["label"], "mechanism": "rr", "epsilon": 1.0, "overwrite": True}
    privatize(PrivatizeRequest(table, tmp_path / f"r.{end}", **words))
    read = read_whole(open_table(tmp_path / f"r.{end}"))["f"].to_pylist()
    codes = {value: place for place, value in enumerate(dict.fromkeys(map(str, read)))}
    ours = {value: place for place, value in enumerate(dict.fromkeys(map(str, column.to_pylist())))}
    places = [ours[str(value)] for value in column.to_pylist()]
    assert [codes[str(value)] for value in read] == places


@pytest.mark.parametrize("extra", [("--stages", "2"), ("--public", "p.parquet")])
def test_models_of_a_mechanism_see_categories_of_numbers(extra, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    codes = np.arange(1200) % 3
    frame = pd.DataFrame({"f": pd.Categorical.from_codes(codes, [5, 1, 3]), "g": codes[::-1] / 2})
    frame["label"] = np.where(np.arange(1200) % 5 < 4, codes, (codes + 1) % 3)
    frame[:900].to_parquet("p.parquet")
    frame.to_parquet("d.parquet")
    words = ("--mechanism", "model-based-rr", "--epsilon", "1", "--experimental", "--seed", "1")
    status, text = called("privatize", "d.parquet", "-o", "r.parquet", *words, *extra)
    assert status == 0, text


def test_a_damaged_description_of_types_is_of_no_use(tmp_path):
    table = pa.table({"f": categories(VALUES["whole"]), "label": ["a", "b"] * (ROWS // 2)})
    pq.write_table(table, tmp_path / "t.parquet")
    content = (tmp_path / "t.parquet").read_bytes()
    at = content.index(b"ARROW:schema") + 20
    for cut in range(at, at + 200, 8):
        (tmp_path / "t.parquet").write_bytes(content[:cut] + b"!" + content[cut + 1 :])
        with contextlib.suppress(InputError):
            assert len(read_release(tmp_path / "t.parquet").release) == ROWS


def test_categories_of_texts_and_numbers_are_named_as_such():
    mixed = pd.DataFrame(
        {"x": [1, 2] * 10, "f": pd.Categorical(["low", 7] * 10), "label": [0, 1] * 10}
    )
    with pytest.raises(
        InputError, match=r"Column 2 has categories of texts and of numbers.*\.dta"
    ) as at:
        read_release(mixed)
    assert "low" not in str(at.value)


@pytest.mark.parametrize("made", [pd.DataFrame, lambda frame: pa.table(frame)])
def test_a_frame_read_without_its_header_does_not_show_its_first_row(made):
    frame = pd.DataFrame({"39": [50, 38], "lung cancer": ["none", "flu"]})
    for name in ("lung cancers", "income"):
        with pytest.raises(InputError) as at:
            read_release(made(frame), label=name)
        assert "lung cancer'" not in str(at.value)
