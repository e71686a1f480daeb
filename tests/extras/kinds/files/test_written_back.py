"""Releases in the format of their source: statistics packages with value labels, ORC, archives."""

import datetime
import zipfile
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pyreadstat
import pytest
from processes import called

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.tables import held_to, read_whole
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError, OutputError
from ldpaudit.extras.kinds.files import orc as orc_file
from ldpaudit.extras.kinds.files.written import TableFile
from ldpaudit.work.files import WholeFiles

ROWS = 600
RR = ("--mechanism", "rr", "--epsilon", "2", "--experimental", "--seed", "1")
CODED = pd.DataFrame(
    {
        "town": np.arange(ROWS) % 4 + 1.0,
        "x": np.arange(ROWS) % 11 + 0.5,
        "label": np.arange(ROWS) % 3 * 10.0 + 10,
    }
)
LABELS = {
    "town": {1.0: "Oslo", 2.0: "Rome", 3.0: "Bonn", 4.0: "Bern", 9.0: "Thule"},
    "label": {10.0: "never", 20.0: "often", 30.0: "always", 99.0: "refused"},
}
TITLES = {"town": "Place of residence", "label": "How often?"}
WRITE = {"dta": pyreadstat.write_dta, "sav": pyreadstat.write_sav, "zsav": pyreadstat.write_sav}
READ = {"dta": pyreadstat.read_dta, "sav": pyreadstat.read_sav, "zsav": pyreadstat.read_sav}


def written(table, path, **options):
    """Write a table as privatize does."""
    with WholeFiles() as files:
        out = TableFile(files.add(path), table.schema, **options)
        for batch in table.to_batches(max_chunksize=250):
            out.write(batch)
    return path


@pytest.mark.parametrize("end", WRITE)
def test_values_and_their_labels_come_back(end, tmp_path):
    source, out = tmp_path / f"d.{end}", tmp_path / f"r.{end}"
    options = {"variable_value_labels": LABELS, "column_labels": TITLES}
    WRITE[end](CODED, source, **options, **({"compress": True} if end == "zsav" else {}))
    secret = tmp_path / f"s.{end}"
    assert called("privatize", source, "-o", out, *RR, "--secret", secret)[0] == 0
    values, head = READ[end](out)
    pd.testing.assert_frame_equal(values.drop(columns="label"), CODED.drop(columns="label"),
                                  check_dtype=False)  # fmt: skip
    assert 0.6 < (values["label"] == CODED["label"]).mean() < 0.95  # e² / (e² + 2) = 0.79
    assert dict(zip(head.column_names, head.column_labels, strict=True)) == {"x": None, **TITLES}
    # Of those that nobody has, none: nor would the release show who was left out.
    for name, labels in LABELS.items():
        used = {v: label for v, label in labels.items() if v not in (9.0, 99.0)}
        assert head.variable_value_labels[name] == used
    sure = tmp_path / "sure.toml"  # No draw looks like a leak.
    sure.write_text('schema = 1\nextends = "ldpaudit:default"\n[audit]\nconfidence = 0.9999\n')
    for truth in (source, secret):
        status, text = called("run", out, "--truth", truth, "--only", "mechanism", "--policy", sure)
        assert status in (0, 3), text
    declared = read_release(out, truth=source).release
    assert set(declared.classes) == {"never", "often", "always"}
    assert read_release(out, truth=secret).release.classes == declared.classes


def test_labels_of_some_values_stay_with_them(tmp_path):
    some = {"town": {1.0: "Oslo"}, "label": {10.0: "never", 99.0: "refused"}}
    pyreadstat.write_sav(CODED, tmp_path / "d.sav", variable_value_labels=some)
    assert called("privatize", tmp_path / "d.sav", "-o", tmp_path / "r.sav", *RR)[0] == 0
    values, head = pyreadstat.read_sav(tmp_path / "r.sav")
    assert head.variable_value_labels == {"town": {1.0: "Oslo"}, "label": {10.0: "never"}}
    assert set(values["label"]) == {10, 20, 30}


def test_texts_with_labels_and_a_class_of_missing_ones(tmp_path):
    frame = CODED.assign(sex=["m", "f"] * (ROWS // 2))
    frame.loc[::7, "label"] = np.nan
    labels = {**LABELS, "sex": {"m": "male", "f": "female"}}
    pyreadstat.write_sav(frame, tmp_path / "d.sav", variable_value_labels=labels)
    out = tmp_path / "r.sav"
    words = ("privatize", tmp_path / "d.sav", "-o", out, *RR, "--missing", "class")
    assert called(*words)[0] == 0
    values, head = pyreadstat.read_sav(out)
    assert values["sex"].tolist() == frame["sex"].tolist()
    assert head.variable_value_labels["sex"] == labels["sex"]
    assert set(head.variable_value_labels["label"].values()) == {
        "never", "often", "always", "missing",
    }  # fmt: skip
    assert read_release(out).release.classes


def test_categories_of_other_formats_get_values(tmp_path):
    frame = CODED.assign(label=pd.Categorical(["b", "a", "c"] * (ROWS // 3), list("bacd")))
    frame.to_parquet(tmp_path / "d.parquet")
    for end in ("dta", "sav", "xpt", "orc"):
        out = tmp_path / f"r.{end}"
        assert called("privatize", tmp_path / "d.parquet", "-o", out, *RR)[0] == 0
        read = read_release(out, truth=tmp_path / "d.parquet").release
        assert (len(read.classes), (read.released == read.truth).mean() > 0.6) == (3, True)
    _, head = pyreadstat.read_dta(tmp_path / "r.dta")
    assert sorted(head.variable_value_labels["label"].values()) == ["a", "b", "c"]


ALL = pa.table(
    {
        "whole": pa.array([1, None, -(2**40)], pa.int64()),
        "small": pa.array([1, 2, None], pa.uint8()),
        "real": [0.1, None, -1e70],
        "single": pa.array([0.1, 2.5, None], pa.float32()),
        "yes": [True, False, None],
        "text": ["a", None, "né"],
        "kind": pa.array(["p", "q", None]).dictionary_encode(),
        "exact": pa.array([Decimal("1.10"), None, Decimal("-2.25")]),
        "day": [datetime.date(1900, 1, 2), datetime.date(2020, 2, 29), None],
        "time": [datetime.datetime(2020, 1, 1, 10, 0, 1, 5000), None,
                 datetime.datetime(1999, 12, 31, 23)],
        "hour": [datetime.time(10, 20, 30), None, datetime.time(0)],
    }
)  # fmt: skip


@pytest.mark.parametrize("end", ["dta", "sav", "zsav", "xpt", "orc"])
def test_every_type_comes_back(end, tmp_path):
    table = ALL.drop_columns("hour") if end == "orc" else ALL
    read = read_whole(open_table(written(table, tmp_path / f"t.{end}")))
    assert read.column_names == table.column_names
    for name in table.column_names:
        ours, theirs = table[name].to_pylist(), read[name].to_pylist()
        if name == "yes" and end != "orc":
            theirs = [None if v is None else bool(v) for v in theirs]
        if name in ("exact", "single"):
            ours = [None if v is None else float(str(v)[:5]) for v in ours]
            theirs = [None if v is None else float(str(v)[:5]) for v in theirs]
        if name == "hour":
            theirs = [v if v is None or isinstance(v, datetime.time) else v.time() for v in theirs]
        assert ours == theirs, name


@pytest.mark.parametrize(
    ("end", "columns", "message"),
    [
        ("dta", {"a b": [1]}, "Column 1 has a name that Stata does not allow"),
        ("dta", {"x" * 33: [1]}, "Column 1 has a name that Stata does not allow"),
        ("dta", {"in": [1]}, "Column 1 has a name"),
        ("sav", {"and": [1]}, "Column 1 has a name that SPSS does not allow"),
        ("sav", {"a": [1], "A": [1]}, "Column 2 has the name of column 1, but for"),
        ("xpt", {"1a": [1]}, "Column 1 has a name that SAS does not allow"),
        ("dta", {"a": [[1]]}, "Column 1 is of type list"),
        ("sav", {"a": [b"x"]}, "Column 1 is of type binary"),
        ("sav", {"a": pa.array([1], pa.timestamp("s", "UTC"))}, "Column 1 is of type timestamp"),
        ("dta", {"a": pa.array([1], pa.timestamp("us"))}, "times of less than a millisecond"),
        ("xpt", {"a": [2**53 + 1]}, "whole numbers of 2⁵³ or more"),
        ("sav", {"a": pa.array([2**63], pa.uint64())}, "whole numbers of 2⁵³ or more"),
        ("xpt", {"a": [1e80]}, "numbers outside of the range"),
        ("xpt", {"a": [1e-80]}, "numbers outside of the range"),
        ("dta", {"a": [float("inf")]}, "numbers outside of the range"),
        ("sav", {"a": ["x "]}, "texts that end in a space"),
        ("dta", {"a": [""]}, "empty texts"),
        ("dta", {"a": ["x" * 3000]}, "texts of more than 2,045 bytes"),
        ("sav", {"a": ["x\0y"]}, "texts with a character NUL"),
        ("orc", {"a": [[1]]}, "Column 1 is of type list.*not written to ORC"),
        ("orc", {"a": pa.array([1], pa.time32("s"))}, "Column 1 is of type time32"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(end, columns, message, tmp_path):
    from ldpaudit.extras.kinds.files.written import check_holds

    table = pa.table(columns)

    def attempt():
        check_holds(tmp_path / f"t.{end}", table.schema)
        written(table, tmp_path / f"t.{end}")

    with pytest.raises(OutputError, match=message) as caught:
        attempt()
    assert "\n" not in str(caught.value)
    assert "parquet" in str(caught.value)
    assert [*tmp_path.iterdir()] == []


def test_a_table_that_memory_cannot_hold_is_refused(tmp_path):
    table = pa.table({"a": np.arange(100_000)})
    with held_to(1 << 20), pytest.raises((InputError, OutputError), match="unpacks to"):
        written(table, tmp_path / "t.sav")


@pytest.mark.parametrize("end", ["dta", "sav", "xpt"])
def test_names_that_are_long_or_of_other_alphabets(end, tmp_path):
    names = ["a", "_c" if end != "sav" else "c_", "x" * (64 if end == "sav" else 32)]
    names += ["größe", "年齢"] if end != "xpt" else ["short"]
    table = pa.table({name: [1.0, 2.0] for name in names})
    assert open_table(written(table, tmp_path / f"t.{end}")).names == tuple(names)


def test_what_only_sas_writes(tmp_path):
    CODED.to_parquet(tmp_path / "d.parquet")
    status, text = called("privatize", tmp_path / "d.parquet", "-o", tmp_path / "r.sas7bdat", *RR)
    assert status == 2
    assert "only SAS itself writes .sas7bdat. Give a name that ends in .xpt" in text


@pytest.mark.parametrize("name", ["r.zip", "r.csv.zip", "r.tsv.zip", "r.jsonl.zip"])
def test_an_archive_holds_one_file_of_its_name(name, tmp_path):
    CODED.to_parquet(tmp_path / "d.parquet")
    assert called("privatize", tmp_path / "d.parquet", "-o", tmp_path / name, *RR)[0] == 0
    inner = zipfile.ZipFile(tmp_path / name).namelist()
    assert inner == [{"r.zip": "r.csv"}.get(name, name.removesuffix(".zip"))]
    read = read_release(tmp_path / name, truth=tmp_path / "d.parquet").release
    assert len(read) == ROWS


def test_orc_is_read_in_pieces(tmp_path):
    texts = pa.array([f"{i:06}" + "x" * (1 << 16) for i in range(400)])
    table = pa.table({"label": ["a", "b"] * 200, "x": texts, "n": np.arange(400)})
    pyarrow.orc.write_table(
        table, tmp_path / "t.orc", compression="zstd", dictionary_key_size_threshold=1.0
    )
    with held_to(16 << 20):
        file = open_table(tmp_path / "t.orc")
        sizes = [batch.nbytes for batch in file.batches()]
        assert max(sizes) < 4 << 20
        places = [n for batch in file.batches(["n", "label"]) for n in batch["n"].to_pylist()]
        assert places == [*range(400)]
        assert next(file.batches(["label", "n"])).schema.names == ["label", "n"]
        with pytest.raises(InputError, match=r"unpacks to .* give more --memory"):
            dict(file.columns(file.names))


def test_orc_of_which_nothing_is_asked_that_is_not_read(tmp_path):
    table = pa.table({"label": ["a"], "x": [[1]], "t": [datetime.datetime(3000, 1, 1)]})
    pyarrow.orc.write_table(table, tmp_path / "t.orc")
    file = open_table(tmp_path / "t.orc")
    assert next(file.batches(["label"])).to_pylist() == [{"label": "a"}]
    with pytest.raises(InputError, match=r"Column 2 .*lists or objects.*write Parquet"):
        next(file.batches(["x"]))
    with pytest.raises(InputError, match="times before 1678 or after 2261"):
        next(file.batches(["t"]))


@pytest.mark.parametrize("at", [0, -200, -20, -3])  # What lies between has no checksum.
def test_damaged_orc(at, tmp_path):
    path = tmp_path / "t.orc"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        open_table(path)
    pyarrow.orc.write_table(pa.Table.from_pandas(CODED), path)
    content = path.read_bytes()
    path.write_bytes(content[:at] + b"\xff\xff\xff" + content[at:][3:])
    with pytest.raises(InputError, match=r"not ORC|damaged or truncated"):
        read_whole(open_table(path))
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="damaged or truncated"):
        open_table(path)


def test_orc_at_the_command_line(tmp_path):
    frame = CODED.assign(label=np.array(["no", "yes", "0"])[np.arange(ROWS) % 3])
    pyarrow.orc.write_table(pa.Table.from_pandas(frame), tmp_path / "d.orc")
    assert called("privatize", tmp_path / "d.orc", "-o", tmp_path / "r.orc", *RR)[0] == 0
    words = ("--only", "mechanism", "--truth", tmp_path / "d.orc")
    assert called("run", tmp_path / "r.orc", *words)[0] in (0, 3)
    assert orc_file.OrcFile  # Read by Arrow alone: no extra is needed.
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "d.parquet")
    both = [read_release(tmp_path / "r.orc", truth=tmp_path / f"d.{end}") for end in
            ("orc", "parquet")]  # fmt: skip
    np.testing.assert_array_equal(both[0].release.truth, both[1].release.truth)
