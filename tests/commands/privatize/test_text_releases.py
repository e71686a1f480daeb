"""Releases as text: every unchanged letter is kept, and the declaration lies beside the file."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import Command, frame

import ldpaudit
from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError
from ldpaudit.mechanisms.view import DeclaredCoding

RR = ("--mechanism", "rr", "--epsilon", "1")
LINES = [
    '1.50;007;a "b";1e5;2020-01-31;ja',
    '2;012;"c;d";3.0;31.12.1999;nein',
    "-0.25;3;;1;;ja",
]


@pytest.mark.parametrize("name", ["r.csv", "r.csv.gz"])
def test_unchanged_letters_are_kept(name: str, tmp_path: Path, command: Command) -> None:
    rows = [line.replace('a "b"', '"a ""b"""').split(";ja")[0].split(";nein")[0] for line in LINES]
    labels = ["ja", "nein"] * 60
    header = "x;code;word;big;day;label"
    content = [f"{rows[i % 3]};{label}" for i, label in enumerate(labels)]
    data = tmp_path / "d.csv"
    data.write_text("\n".join([header, *content]) + "\n")
    out = tmp_path / name
    status, printed = command(data, "-o", out, *RR, "--decimal", ".")
    assert status == 0, printed
    assert f"{name}.ldpaudit.json" in printed
    raw = out.read_bytes()
    text = (gzip.decompress(raw) if name.endswith(".gz") else raw).decode()
    written = text.splitlines()
    assert written[0] == header
    assert [line.rsplit(";", 1)[0] for line in written[1:]] == [
        line.rsplit(";", 1)[0] for line in content
    ]
    assert {line.rsplit(";", 1)[1] for line in written[1:]} == {"ja", "nein"}


def test_the_dialect_of_the_data_is_kept(tmp_path: Path, command: Command) -> None:
    table = frame(400)
    table["town"] = table["town"].replace("oslo", "Køge")
    data, out, secret = tmp_path / "d.csv", tmp_path / "r.csv", tmp_path / "s.csv"
    table.to_csv(data, sep=";", decimal=",", encoding="cp1252", index=False)
    status, printed = command(data, "-o", out, *RR, "--secret", secret)
    assert status == 0
    assert "Read the data as CSV with ';' between its fields, decimal comma" in printed
    released = pd.read_csv(out, sep=";", decimal=",", encoding="cp1252")
    original = pd.read_csv(data, sep=";", decimal=",", encoding="cp1252")
    pd.testing.assert_frame_equal(released.drop(columns="label"), original.drop(columns="label"))
    assert secret.stat().st_mode & 0o777 == 0o600
    report = read_release(out, truth=secret)
    assert report.release.declaration is not None
    assert report.release.declaration.parameters["classes"] == ["no", "perhaps", "yes"]
    assert 0.3 < (report.release.truth == report.release.released).mean() < 1


@pytest.mark.parametrize("name", ["r.feather", "r.jsonl", "r.jsonl.gz", "r.tsv"])
def test_other_formats(name: str, tmp_path: Path, data: Path, command: Command) -> None:
    out = tmp_path / name
    assert command(data, "-o", out, *RR)[0] == 0
    release = read_release(out, truth=data).release
    usual = read_release(data).release
    assert release.declaration is not None
    assert release.features.columns == usual.features.columns
    assert len(release) == 2000
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        {"data.parquet", name, *([f"{name}.ldpaudit.json"] if name != "r.feather" else [])}
    )


def test_noisy_numbers_and_typed_sources(tmp_path: Path, data: Path, command: Command) -> None:
    out = tmp_path / "r.csv"
    words = ("--label", "weeks", "--labels", "0:10:1", "--mechanism", "laplace", "--epsilon", "1")
    assert command(data, "-o", out, *words)[0] == 0
    whole = pd.read_csv(out)
    original = pq.read_table(data).to_pandas()
    pd.testing.assert_frame_equal(
        whole.drop(columns="weeks"), original.drop(columns="weeks"), check_dtype=False
    )
    assert read_release(out, coding=DeclaredCoding).release.declaration is not None


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.decimal128(10, 2)])
@pytest.mark.filterwarnings("ignore:(Few people|The order):UserWarning")
def test_fractions_are_written_as_they_are_declared(
    name: str, kind: pa.DataType, tmp_path: Path
) -> None:
    """A decimal 0.10 was written so, and a narrow 0.1 as 0.10000000149011612: no class is."""
    label = pa.array(["0.10", "0.25", "1.00"] * 40).cast(kind)
    table = pa.table({"x": [0.5] * 120, "label": label})
    release = ldpaudit.privatize(table, "rr", tmp_path / name, epsilon=1.0)
    read = read_release(release, truth=table, coding=DeclaredCoding).release
    assert read.classes == (0.1, 0.25, 1.0)


def test_lists_are_written_where_the_format_holds_them(tmp_path: Path, command: Command) -> None:
    table = pa.Table.from_pandas(frame(200)).append_column("image", pa.array([[0.5, 1.0]] * 200))
    pq.write_table(table, tmp_path / "d.parquet")
    assert command(tmp_path / "d.parquet", "-o", tmp_path / "r.jsonl", *RR)[0] == 0
    assert read_release(tmp_path / "r.jsonl").release.features.numeric.shape[1] >= 4


def test_a_declaration_beside_a_file(tmp_path: Path) -> None:
    path, beside = tmp_path / "r.csv", tmp_path / "r.csv.ldpaudit.json"
    path.write_text("label,x\n" + "a,1\nb,2\n" * 200)
    claim = {"version": 1, "label": "label", "mechanism": {"name": "randomized-response"}}
    claim["mechanism"] |= {"classes": ["a", "b"], "epsilon": 1.0}  # type: ignore[operator]
    beside.write_text(json.dumps(claim))
    assert read_release(path).release.declaration is not None
    result = ldpaudit.audit(path, only=["mechanism"])
    assert result.mechanism.epsilon == pytest.approx(1.0)
    with pytest.raises(InputError, match="one mechanism's parameters and the options another"):
        ldpaudit.audit(path, mechanism="rr", epsilon=2)
    with pytest.raises(InputError, match="none of the 1 private"):
        read_release(path, label="x")
    for content, word in (
        ("{", "must be valid JSON"),
        (json.dumps(claim | {"version": 9}), "must have version 1"),
        (
            json.dumps(claim | {"label": "zzz"}),
            "no label column, which the file's declaration names",
        ),
        (json.dumps(claim).replace('"b"', '"c"'), "rows hold another value"),
    ):
        beside.write_text(content)
        with pytest.raises(InputError, match=word):
            read_release(path)


@pytest.mark.parametrize(("how", "rows"), [("drop", 580), ("class", 600)])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_rows_without_a_label_are_left_out_or_a_class(
    how: str, rows: int, suffix: str, tmp_path: Path, command: Command
) -> None:
    """The true labels kept aside fit the release, and the letters of a text file stay."""
    table = frame(600).assign(price=[f"{i}.50" for i in range(600)])
    table.loc[:19, "label"] = None
    data, out, secret = (tmp_path / f"{name}.{suffix}" for name in ("d", "r", "s"))
    table.to_csv(data, index=False) if suffix == "csv" else table.to_parquet(data)
    options = ("--mechanism", "rr", "--epsilon", "2", "--keep", "price", "--secret", secret)
    status, printed = command(data, "-o", out, *options, "--missing", how)
    assert status == 0, printed
    read = pd.read_csv if suffix == "csv" else pd.read_parquet
    released, true = read(out, dtype=str) if suffix == "csv" else read(out), read(secret)
    assert len(released) == len(true) == rows
    assert released["price"].tolist() == table["price"].tolist()[600 - rows :]
    expected = table["label"].dropna() if how == "drop" else table["label"].fillna("missing")
    assert true["label"].tolist() == expected.tolist()
    assert set(released["label"]) == set(expected)
