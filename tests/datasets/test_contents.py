"""A file whose name promises something else than it holds: the one line says what it is."""

import gzip
import io
import zipfile

import numpy as np
import pandas as pd
import pytest

from ldpaudit.datasets.formats import open_table
from ldpaudit.datasets.formats.csv_file import small_csv
from ldpaudit.errors import InputError

TABLE = pd.DataFrame({"height": [1.5, 2.5, 3.5] * 20, "label": ["a", "b", "b"] * 20})
TEXT = TABLE.to_csv(index=False).encode()


def stored(kind: str) -> bytes:
    """Return the table in a format."""
    buffer = io.BytesIO()
    if kind == "text":
        return TEXT
    if kind == "gzip":
        return gzip.compress(TEXT)
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("table.csv", TEXT)
    elif kind == "npz":
        np.savez(buffer, label=np.arange(60))
    else:
        getattr(TABLE, f"to_{kind}")(buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("t.csv", "gzip", "is compressed with gzip.*add .gz"),
        ("t.csv", "zip", "is a zip archive"),
        ("t.csv", "parquet", "is a Parquet file.*call it .parquet"),
        ("t.jsonl", "parquet", "is a Parquet file"),
        ("t.arrow", "parquet", "is a Parquet file"),
        ("t.parquet", "feather", "is an Arrow file"),
        ("t.parquet", "gzip", "is compressed with gzip"),
        ("t.orc", "feather", "is an Arrow file"),
        ("t.csv.gz", "text", "is plain text, not compressed: take .gz"),
        ("t.csv.bz2", "gzip", "is compressed with gzip"),
        ("t.csv.xz", "text", "is plain text, not compressed: take .xz"),
        ("t.csv.zip", "text", "is plain text, not compressed: take .zip"),
        ("t.parquet", "text", "is plain text.*call it .csv"),
        ("t.xlsx", "text", "is plain text.*call it .csv"),
        ("t.npz", "text", "is plain text"),
        ("t.feather", "text", "is plain text"),
        ("t.dta", "text", "is plain text"),
        ("t.xlsx", "parquet", "is a Parquet file"),
    ],
)
def test_a_file_is_called_what_it_is(name, kind, words, tmp_path):
    path = tmp_path / name
    path.write_bytes(stored(kind))
    with pytest.raises(InputError, match=words) as caught:
        open_table(path)
    said = str(caught.value)
    assert repr(name) in said
    assert "height" not in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("name", ["t.json", "t.xls", "t.npy"])
def test_a_name_that_nothing_reads_keeps_its_own_advice(name, tmp_path):
    (tmp_path / name).write_bytes(TEXT)
    with pytest.raises(InputError, match="cannot be read: "):
        open_table(tmp_path / name)


def test_a_damaged_file_of_the_right_name_is_called_damaged(tmp_path):
    for name, kind in [("t.parquet", "parquet"), ("t.feather", "feather"), ("t.npz", "npz")]:
        (tmp_path / name).write_bytes(stored(kind)[:-20])
        with pytest.raises(InputError, match=r"damaged|truncated"):
            open_table(tmp_path / name)


def test_a_small_table_is_told_likewise(tmp_path):
    (tmp_path / "channel.csv").write_bytes(gzip.compress(b"0.5,0.5\n0.5,0.5\n"))
    with pytest.raises(InputError, match="compressed with gzip"):
        small_csv(tmp_path / "channel.csv", "The channel")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_text_of_two_bytes_a_letter_names_its_encoding(encoding, tmp_path):
    (tmp_path / "t.csv").write_bytes(TEXT.decode().encode(encoding))
    with pytest.raises(InputError, match=f"--encoding {encoding}"):
        open_table(tmp_path / "t.csv")


WORDS = {
    "cp1252": "Größe,Straße,Ärzte,façade,élève,niño,Öl,25°",
    "cp1251": "рост,улица,да,нет,врач,и",
    "cp1253": "ναι,όχι,ύψος,οδός",
    "gbk": "男,女,身高,是",
    "shift_jis": "男,女,身長,はい",
    "euc_kr": "남,여,예,아니오",
}


@pytest.mark.parametrize("encoding", WORDS)
def test_only_western_words_are_taken_for_western_text(encoding, tmp_path):
    words = WORDS[encoding].split(",")
    rows = [f"{words[i % len(words)]},{i}" for i in range(60)]
    (tmp_path / "t.csv").write_bytes("\n".join(["label,x", *rows]).encode(encoding))
    if encoding == "cp1252":
        table = open_table(tmp_path / "t.csv")
        assert table.remark == "CSV with the encoding cp1252"
        assert next(table.batches(["label"])).column(0)[0].as_py() == "Größe"
    else:
        with pytest.raises(InputError, match="neither UTF-8 nor Western European"):
            open_table(tmp_path / "t.csv")


def test_columns_without_a_name_of_their_own_are_told_by_their_places(tmp_path):
    for header, words in {
        "a,b,a,label": "columns 1, 3 do not",
        "Release of 2026,,,": "names one of 4 only: delete titles",
        "a,b,,": "columns 3, 4 have no name",
        "a,,,a": "columns 1, 2, 3, 4 do not",
    }.items():
        (tmp_path / "t.csv").write_text(header + "\n" + "1,2,3,4\n" * 9)
        with pytest.raises(InputError, match=words):
            open_table(tmp_path / "t.csv")


def test_complex_numbers_are_refused_by_name(tmp_path):
    np.savez(tmp_path / "t.npz", x=np.ones(9) * 1j, label=np.arange(9))
    with pytest.raises(InputError, match="complex numbers"):
        open_table(tmp_path / "t.npz")
