"""Compressed text files, archives, other names of text files, and files of statistics packages."""

import bz2
import gzip
import lzma
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError, LdpAuditError
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize

ROWS = 120
FRAME = pd.DataFrame(
    {
        "x": np.arange(ROWS) % 11 + 0.5,
        "town": [f"t{i % 5}" for i in range(ROWS)],
        "label": ["no", "yes"] * (ROWS // 2),
    }
)
TEXT = FRAME.to_csv(index=False).encode()
TABS = FRAME.to_csv(index=False, sep="\t").encode()


def zipped(path, entries):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def packed(path, content):
    end = path.suffix
    if end == ".zip":
        zipped(path, {"data.csv": content})
    elif end == ".zst":
        stream = pa.BufferOutputStream()
        with pa.CompressedOutputStream(stream, "zstd") as file:
            file.write(content)
        path.write_bytes(stream.getvalue().to_pybytes())
    else:
        codec = {".gz": gzip, ".bz2": bz2, ".xz": lzma}.get(end)
        path.write_bytes(content if codec is None else codec.compress(content))
    return path


NAMES = ["csv", "txt", "data", "dat", "csv.gz", "csv.bz2", "csv.zst", "csv.xz", "csv.zip", "zip"]


@pytest.mark.parametrize("name", [*NAMES, "tab", "tsv.bz2", "txt.gz"])
def test_text_files_of_all_names(name, tmp_path):
    tabs = name.startswith(("tab", "tsv", "txt.gz"))
    path = packed(tmp_path / f"r.{name}", TABS if tabs else TEXT)
    read = read_release(path).release
    expected = read_release(FRAME).release
    np.testing.assert_array_equal(read.features.numeric, expected.features.numeric)
    np.testing.assert_array_equal(read.features.categorical, expected.features.categorical)
    np.testing.assert_array_equal(read.released, expected.released)


@pytest.mark.parametrize(
    "name", ["r.csv.bz2", "r.csv.zst", "r.csv.xz", "r.tab", "r.txt", "r.jsonl.zst"]
)
def test_releases_are_written_as_their_names_say(name, tmp_path):
    request = PrivatizeRequest(
        FRAME, tmp_path / name, label=["label"], mechanism="rr", epsilon=4.0,
        secret=tmp_path / f"s{name}",
    )  # fmt: skip
    privatize(request)
    read = read_release(tmp_path / name, truth=tmp_path / f"s{name}").release
    assert (read.released == read.truth).mean() > 0.8
    np.testing.assert_array_equal(
        read.features.numeric, read_release(FRAME).release.features.numeric
    )


def test_an_archive_must_hold_one_table(tmp_path):
    path = tmp_path / "r.zip"
    zipped(path, {"a.csv": TEXT, "b.csv": TEXT})
    with pytest.raises(InputError, match=r"must hold one CSV file; it holds 2 among 2 files"):
        read_release(path)
    zipped(path, {"readme.pdf": b"%PDF", "data/r.csv": TEXT, "__MACOSX/r.csv": b"x"})
    assert len(read_release(path).release) == ROWS
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"r\.zip"):
        read_release(path)
    with pytest.raises(LdpAuditError, match="cannot be written"):
        privatize(
            PrivatizeRequest(FRAME, tmp_path / "o.parquet.gz", label=["label"], mechanism="rr",
                             epsilon=1.0)
        )  # fmt: skip


@pytest.mark.parametrize("end", [".gz", ".bz2", ".zst", ".xz", ".zip"])
def test_bombs_of_every_codec_are_refused(end, tmp_path, monkeypatch):
    monkeypatch.setattr("ldpaudit.datasets.formats.locations.UNPACKED_FREE", 1 << 20)
    content = b"x,label\n" + b"1,a\n" * 1_000_000
    path = packed(tmp_path / f"r.csv{end}", content)
    with pytest.raises(InputError, match=r"too large when unpacked"):
        read_release(path)
    whole = packed(tmp_path / f"t.csv{end}", TEXT)
    whole.write_bytes(whole.read_bytes()[: len(whole.read_bytes()) // 2])
    with pytest.raises(InputError, match=r"truncated|damaged|readable"):
        read_release(whole)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("r.rds", "write.csv writes"),
        ("r.sqlite", "copy the table"),
        ("r.por", r"save it as \.sav"),
        ("r.7z", "zip the one CSV file"),
        ("r.something", r"plain text.*call it \.csv"),
        ("r.other", r"is not Parquet.*name it \.csv.*\.sav"),
    ],
)
def test_other_files_say_what_name_is_expected(name, words, tmp_path):
    content = b"\1\2\3" if name == "r.other" else b"something else"
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=words):
        read_release(tmp_path / name)


pyreadstat = pytest.importorskip("pyreadstat")
CODED = FRAME.assign(label=[1.0, 2.0] * (ROWS // 2), town=np.arange(ROWS) % 5 + 1.0)
LABELS = {"label": {1: "no", 2: "yes"}, "town": {i + 1: f"t{i}" for i in range(5)}}


def statistics(path, frame, labels=None):
    if path.suffix == ".dta":
        pyreadstat.write_dta(frame, str(path), variable_value_labels=labels)
    elif path.suffix == ".xpt":
        pyreadstat.write_xport(frame, str(path))
    else:
        compress = {"compress": True} if path.suffix == ".zsav" else {}
        pyreadstat.write_sav(frame, str(path), variable_value_labels=labels, **compress)
    return path


@pytest.mark.parametrize("end", [".dta", ".sav", ".zsav"])
def test_value_labels_are_categories(end, tmp_path):
    path = statistics(tmp_path / f"r{end}", CODED, LABELS)
    report, expected = read_release(path), read_release(FRAME).release
    read = report.release
    assert read.classes == ("no", "yes")
    np.testing.assert_array_equal(read.released, expected.released)
    np.testing.assert_array_equal(read.features.categorical, expected.features.categorical)
    np.testing.assert_array_equal(read.features.numeric, expected.features.numeric)
    privatize(
        PrivatizeRequest(path, tmp_path / "o.parquet", label=["label"], mechanism="rr", epsilon=4.0)
    )
    released = read_release(tmp_path / "o.parquet", truth=path).release
    assert (released.classes, (released.released == released.truth).mean() > 0.8) == (
        ("no", "yes"),
        True,
    )


@pytest.mark.parametrize("end", [".dta", ".sav", ".xpt"])
def test_texts_numbers_and_missing_values(end, tmp_path):
    gaps = FRAME.assign(
        x=FRAME["x"].where(FRAME["x"] > 1), town=FRAME["town"].where(FRAME.index > 3)
    )
    path = statistics(tmp_path / f"r{end}", gaps.fillna({"town": ""}))
    read = read_release(path).release
    expected = read_release(gaps).release
    np.testing.assert_array_equal(read.features.numeric, expected.features.numeric)
    np.testing.assert_array_equal(read.features.categorical, expected.features.categorical)


def test_stata_as_pandas_writes_it(tmp_path):
    frame = FRAME.assign(label=FRAME["label"].astype("category"))
    frame.to_stata(tmp_path / "r.dta", write_index=False)
    read = read_release(tmp_path / "r.dta").release
    np.testing.assert_array_equal(read.released, read_release(FRAME).release.released)


@pytest.mark.parametrize(
    "labels",
    [{1: "none"}, {1: "a", 2: "a", 3: "b", 4: "c", 5: "d"}],
    ids=["some values", "one text"],
)
def test_columns_that_are_labelled_in_part_are_said(labels, tmp_path):
    path = statistics(tmp_path / "r.sav", CODED, {"town": labels, "label": LABELS["label"]})
    report = read_release(path)
    assert any("where only some values have a label of their own (column 2)" in remark
               for remark in report.remarks)  # fmt: skip
    assert report.release.columns[1].kind == "number"


@pytest.mark.parametrize("end", [".dta", ".sav", ".xpt", ".sas7bdat", ".zsav"])
def test_damaged_files_of_statistics_packages(end, tmp_path):
    path = tmp_path / f"r{end}"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="is empty"):
        read_release(path)
    path.write_bytes(b"\1" + TEXT)
    with pytest.raises(InputError, match="is no file of"):
        read_release(path)
    if end != ".sas7bdat":
        content = statistics(path, FRAME).read_bytes()
        path.write_bytes(content[: len(content) // 3])
        with pytest.raises(InputError, match=r"damaged or truncated|no rows|no label"):
            read_release(path)


@pytest.mark.parametrize("title", ["A survey of 2020", "# made by hand", "id"])
def test_lines_above_the_names_are_said(title, tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(title.encode() + b"\n" + TEXT)
    with pytest.raises(InputError, match="delete titles and comments above the names"):
        read_release(path)


def test_a_mark_at_the_end_of_the_names_is_said(tmp_path):
    path = tmp_path / "r.csv"
    path.write_bytes(TEXT.replace(b"label\n", b"label,\n", 1))
    with pytest.raises(InputError, match="line of names ends with a mark"):
        read_release(path)


def test_consecutive_ids_number_the_rows_in_every_format(tmp_path):
    frame = FRAME.assign(id=range(1, ROWS + 1))
    frame.to_csv(tmp_path / "r.csv", index=False)
    frame.to_parquet(tmp_path / "r.parquet")
    for name in ("r.csv", "r.parquet"):
        for key in (None, "id"):
            columns = read_release(tmp_path / name, id_column=key).release.columns
            assert [column.concern for column in columns if column.name == "id"] == ["index"]
