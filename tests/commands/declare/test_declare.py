"""``ldpaudit declare``: a claim that fits goes into the file or beside it; nothing else changes."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from ldpaudit import cli
from ldpaudit.datasets import read_release

Command = Callable[..., tuple[int, str]]
RR = ("--mechanism", "rr", "--epsilon", "1")
PRAM = (
    '"","roof.Rs.2","roof.Rs.4","roof.pd","roof.alpha"\n"2",0.9,0.1,0.8,0.5\n"4",0.2,0.8,0.8,0.5\n'
)


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Run ``ldpaudit declare``; return its status and everything that it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*words: Any) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["ldpaudit", "declare", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0), "".join(capsys.readouterr())

    return call


def frame(rows: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "x": rng.standard_normal(rows),
            "roof": rng.choice([2, 4], rows),
            "y": ["zzq", "b"] * (rows // 2),
        }
    )


def write(path: Path) -> Path:
    if path.suffix == ".parquet":
        frame().to_parquet(path, row_group_size=90)
    elif path.suffix == ".feather":
        frame().to_feather(path)
    elif path.suffix == ".jsonl":
        frame().to_json(path, orient="records", lines=True)
    else:
        frame().to_csv(path, index=False)
    return path


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".csv", ".jsonl"])
def test_a_declaration_goes_where_it_is_read(suffix: str, tmp_path: Path, command: Command) -> None:
    path = write(tmp_path / f"t{suffix}")
    plain = read_release(path, label="y").release
    status, printed = command(path.name, "--label", "y", *RR)
    assert (status, "'zzq'" in printed) == (0, True), printed
    release = read_release(path).release
    assert release.declaration is not None
    assert release.declaration.parameters["classes"] == ["b", "zzq"]
    np.testing.assert_array_equal(release.features.numeric, plain.features.numeric)
    np.testing.assert_array_equal(release.released, plain.released)
    assert "randomized response on 2 labels" in command(path.name)[1]
    names = sorted(p.name for p in tmp_path.iterdir())
    before = {name: (tmp_path / name).stat().st_mtime_ns for name in names}
    assert "Nothing was written" in command(path.name, *RR)[1]
    status, printed = command(path.name, "--mechanism", "rr", "--epsilon", "2")
    assert (status, "--overwrite replaces it" in printed) == (2, True)
    assert {name: (tmp_path / name).stat().st_mtime_ns for name in names} == before
    assert command(path.name, "--mechanism", "rr", "--epsilon", "2", "--overwrite")[0] == 0
    declared = read_release(path).release.declaration
    assert declared is not None
    assert declared.parameters["lambda"] == pytest.approx(2 / (np.exp(2) + 1))
    assert sorted(p.name for p in tmp_path.iterdir()) == names


def test_a_parquet_file_keeps_its_rows_types_and_metadata(tmp_path: Path, command: Command) -> None:
    table = pa.Table.from_pandas(frame()).append_column(
        "kind", pa.array(["a", "b"] * (len(frame()) // 2)).dictionary_encode()
    )
    table = table.replace_schema_metadata({**table.schema.metadata, b"k": b"v"})
    path = tmp_path / "t.parquet"
    pq.write_table(table, path, row_group_size=70, compression="zstd")
    path.chmod(0o640)
    old = path.read_bytes()
    assert command("t.parquet", "--label", "y", *RR, "-o", "copy.parquet")[0] == 0
    assert path.read_bytes() == old
    assert command("t.parquet", "--label", "y", *RR)[0] == 0
    assert (tmp_path / "copy.parquet").read_bytes() == path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o640
    file = pq.ParquetFile(tmp_path / "t.parquet")
    assert file.read().equals(table)
    metadata = file.schema_arrow.metadata
    assert metadata.pop(b"ldpaudit")
    assert metadata == table.schema.metadata
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_large_parquet_file_is_not_written_again(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "t.parquet")
    before = path.read_bytes()
    monkeypatch.setattr("ldpaudit.datasets.writing._REWRITTEN", 100)
    assert command("t.parquet", "--label", "y", *RR)[0] == 0
    assert path.read_bytes() == before
    assert (tmp_path / "t.parquet.ldpaudit.json").exists()
    assert read_release(path).release.declaration is not None


def test_a_folder_is_declared_file_by_file(tmp_path: Path, command: Command) -> None:
    (tmp_path / "d").mkdir()
    for name in ("a", "b"):
        write(tmp_path / "d" / f"{name}.parquet")
    assert command("d", "--label", "y", *RR)[0] == 0
    assert read_release(tmp_path / "d").release.declaration is not None
    assert "leave out -o" in command("d", "--label", "y", *RR, "-o", "e.parquet", "--overwrite")[1]


def test_a_matrix_of_sdcmicro(tmp_path: Path, command: Command) -> None:
    path = write(tmp_path / "t.csv")
    (tmp_path / "m.csv").write_text(PRAM)
    assert command(path.name, "--label", "roof", "--channel", "m.csv")[0] == 0
    declared = read_release(path).release.declaration
    assert declared is not None
    assert declared.parameters["classes"] == [2, 4]
    assert declared.parameters["matrix"] == [[0.9, 0.1], [0.2, 0.8]]
    assert "no label column 'root'" in command(path.name, "--label", "root", *RR)[1]
    status, printed = command(path.name, "--label", "y", "--channel", "m.csv", "--overwrite")
    assert (status, "rows hold another value" in printed, "zzq" in printed) == (2, True, False)


def test_what_is_refused(tmp_path: Path, command: Command) -> None:
    path = write(tmp_path / "t.csv")
    before = sorted(tmp_path.iterdir())
    for words, word in (
        (("--label", "y"), "Say what made the labels"),
        (("-o", "u.csv"), "Say what made the labels"),
        (("--label", "y", *RR, "--classes", "b,c"), "rows hold another value"),
        (("--label", "y", "--epsilon", "-1"), "epsilon"),
        (("--label", "y", "--mechanism", "rrr", "--epsilon", "1"), "choose one of"),
        (("--label", "y", *RR, "-o", "t.csv"), "exists already"),
        (("--label", "y", *RR, "-o", "t.csv", "--overwrite"), "is an input"),
        (("--label", "y", *RR, "-o", "no/u.csv"), "folder"),
    ):
        status, printed = command(path.name, *words)
        assert (status, word in printed) == (2, True), printed
        assert "zzq" not in printed
    assert sorted(tmp_path.iterdir()) == before
    assert "declares nothing" in command(path.name)[1]


def test_a_broken_declaration_can_be_replaced(tmp_path: Path, command: Command) -> None:
    path = write(tmp_path / "t.csv")
    beside = tmp_path / "t.csv.ldpaudit.json"
    beside.write_text("{")
    assert command(path.name)[0] == 2
    assert command(path.name, "--label", "y", *RR)[0] == 2
    assert command(path.name, "--label", "y", *RR, "--overwrite")[0] == 0
    assert json.loads(beside.read_text())["label"] == "y"


def test_a_copy_of_a_text_file(tmp_path: Path, command: Command) -> None:
    path = write(tmp_path / "t.csv")
    assert command(path.name, "--label", "y", *RR, "-o", "u.csv")[0] == 0
    assert (tmp_path / "u.csv").read_bytes() == path.read_bytes()
    assert not (tmp_path / "t.csv.ldpaudit.json").exists()
    assert read_release(tmp_path / "u.csv").release.declaration is not None


def test_what_sdcmicro_released_is_found_by_its_variable(
    command: Command,
) -> None:
    rng = np.random.default_rng(0)
    released = rng.choice(["high", "low"], 400)
    pd.DataFrame({"x": rng.random(400), "pay_pram": released}).to_csv("r.csv", index=False)
    Path("pram.csv").write_text(
        '"","pay.Rs.high","pay.Rs.low","pay.pd","pay.alpha"\n'
        '"high",0.8,0.2,0.8,0.5\n"low",0.3,0.7,0.8,0.5\n'
    )
    for words in (["--label", "pay"], []):
        status, printed = command("r.csv", *words, "--channel", "pram.csv")
        assert status == 0, printed
        assert "'pay_pram'" in printed
