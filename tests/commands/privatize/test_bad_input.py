"""Bad input: one line, exit status 2, and nothing written."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import Command, frame
from processes import heed_interrupts

RR = ("--mechanism", "randomized-response")
WEEKS = ("--label", "weeks", "--labels", "0:10:1", "--epsilon", "1")


def refused(command: Command, folder: Path, *words: Any) -> str:
    """Run a command that must fail; return its message."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    status, printed = command(*words)
    assert status == 2, printed
    lines = [line for line in printed.splitlines() if not line.endswith("…")]
    assert len(lines) == 1, printed
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    return lines[0]


OPTIONS: dict[str, tuple[tuple[str, ...], str]] = {
    "epsilon 0": ((*RR, "--epsilon", "0"), "above 0"),
    "epsilon negative": ((*RR, "--epsilon", "-1"), "above 0"),
    "epsilon infinite": ((*RR, "--epsilon", "inf"), "finite"),
    "epsilon nan": ((*RR, "--epsilon", "nan"), "number"),
    "epsilon beyond floats": ((*RR, "--epsilon", "800"), "from 1e-06 to 50"),
    "lambda above": ((*RR, "--lambda", "1.5"), "[0, 1]"),
    "lambda below": ((*RR, "--lambda", "-0.1"), "[0, 1]"),
    "lambda zero": ((*RR, "--lambda", "0"), "every true label"),
    "both": ((*RR, "--lambda", "0.5", "--epsilon", "1"), "not both"),
    "neither": (RR, "--epsilon or --lambda"),
    "foreign option": ((*RR, "--epsilon", "1", "--sigma", "2"), "does not belong"),
    "unknown mechanism": (("--mechanism", "magic", "--epsilon", "1"), "choose one"),
    "no mechanism": (("--mechanism", "unknown"), "cannot be applied"),
    "seed": ((*RR, "--epsilon", "1", "--seed", "3"), "--experimental"),
    "negative seed": ((*RR, "--epsilon", "1", "--experimental", "--seed", "-3"), "negative"),
    "label": ((*RR, "--epsilon", "1", "--label", "labell"), "is most like it"),
    "drop": ((*RR, "--epsilon", "1", "--drop", "towm"), "the name of column 2 is most like it"),
    "drop the label": ((*RR, "--epsilon", "1", "--drop", "label"), "must not be dropped"),
    "one class": ((*RR, "--epsilon", "1", "--classes", "no"), "two classes"),
    "classes twice": ((*RR, "--epsilon", "1", "--classes", "no,no,yes"), "distinct"),
    "undeclared class": ((*RR, "--epsilon", "1", "--classes", "no,yes"), "rows hold another"),
    "classes and labels": ((*RR, "--epsilon", "1", "--classes", "0,1", "--labels", "0:1"), "both"),
    "words in a range": ((*RR, "--epsilon", "1", "--labels", "0:1:1"), "must be numbers"),
    "backwards": (
        ("--mechanism", "laplace", *WEEKS[:2], "--labels", "9:0", "--epsilon", "1"),
        "below",
    ),
    "unordered": (
        ("--mechanism", "debiased-rr", *WEEKS[:2], "--classes", "3,1,2", "--epsilon", "1"),
        "increasing",
    ),
    "infinite labels": (
        ("--mechanism", "laplace", *WEEKS[:2], "--labels", "0:inf", "--epsilon", "1"),
        "finite",
    ),
    "outside": (
        ("--mechanism", "exponential", *WEEKS[:2], "--labels", "0:9:1", "--epsilon", "1"),
        "declared range",
    ),
    "no range": (("--mechanism", "discrete-laplace", *WEEKS[:2], "--epsilon", "1"), "--labels"),
    "no labels": (("--mechanism", "debiased-rr", *WEEKS[:2], "--epsilon", "1"), "--classes"),
    "no prior": (("--mechanism", "rr-top-k", *WEEKS), "--private-prior"),
    "prior takes all": (
        ("--mechanism", "rr-top-k", *WEEKS, "--private-prior", "1"),
        "leaves nothing",
    ),
    "prior epsilon": (("--mechanism", "rr-top-k", *WEEKS, "--private-prior", "0"), "above 0"),
    "no channel": (("--mechanism", "channel"), "--channel"),
    "no synthetic": (("--mechanism", "double-rr", "--epsilon", "1"), "--synthetic"),
    "double lambda 1": (
        ("--mechanism", "double-rr", "--lambda", "1", "--synthetic", "data.parquet"),
        "nothing",
    ),
    "double lambda 0": (
        ("--mechanism", "double-rr", "--lambda", "0", "--synthetic", "data.parquet"),
        "every true label",
    ),
    "no public": (("--mechanism", "model-based-rr", "--epsilon", "1"), "--public"),
    "floor": (
        ("--mechanism", "model-based-rr", "--epsilon", "1", "--public", "x", "--floor", "0"),
        "above 0",
    ),
    "floor above": (
        ("--mechanism", "model-based-rr", "--lambda", "1", "--public", "x", "--floor", "0.5"),
        "floor",
    ),
    "no radius": (("--mechanism", "gaussian-rr", "--epsilon", "1", "--sigma", "1"), "--radius"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options(case: str, data: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data.parent)
    options, word = OPTIONS[case]
    assert word in refused(command, data.parent, data, "-o", "r.parquet", *options)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--radius", "1", "--sigma", "0", "--delta", "1e-5"), "sigma"),
        (("--radius", "1", "--sigma", "-1", "--delta", "1e-5"), "sigma"),
        (("--radius", "1", "--sigma", "1", "--delta", "0"), "delta"),
        (("--radius", "1", "--sigma", "1", "--delta", "1"), "delta"),
        (("--radius", "0", "--sigma", "1", "--delta", "1e-5"), "radius"),
        (("--radius", "1", "--delta", "1e-5"), "--feature-epsilon"),
        (("--radius", "1", "--sigma", "1"), "--delta"),
        (("--radius", "50", "--sigma", "50", "--delta", "1e-5"), "Column 2 of the features"),
        (("--radius", "1", "--sigma", "1", "--delta", "1e-5", "--drop", "town"), "norm"),
    ],
)
def test_gaussian_options(
    options: tuple[str, ...], word: str, data: Path, command: Command
) -> None:
    common = ("--mechanism", "gaussian-rr", "--epsilon", "1", "--experimental")
    out = data.parent / "r.parquet"
    assert word in refused(command, data.parent, data, "-o", out, *common, *options)


PRIORS = {
    "sum": ("label,probability\n" + "".join(f"{i},0.08\n" for i in range(11)), "sum to 1"),
    "negative": (
        "label,probability\n0,-0.5\n1,1.5\n" + "".join(f"{i},0\n" for i in range(2, 11)),
        "negative",
    ),
    "lacking": ("label,probability\n0,0.5\n1,0.5\n", "9 have none"),
    "foreign": (
        "label,probability\n99,0\n" + "".join(f"{i},{1 / 11}\n" for i in range(11)),
        "1 row(s) are of other labels",
    ),
    "no number": ("label,probability\n0,many\n", "must be numbers"),
    "no header": ("0,0.5\n1,0.5\n", "header"),
}


@pytest.mark.parametrize("case", PRIORS)
def test_priors(case: str, data: Path, command: Command) -> None:
    content, word = PRIORS[case]
    path = data.parent / "prior.csv"
    path.write_text(content)
    options = ("--mechanism", "rr-on-bins", *WEEKS, "--prior", path)
    assert word in refused(command, data.parent, data, "-o", data.parent / "r.parquet", *options)


TABLES: dict[str, tuple[Callable[[pd.DataFrame], Any], str]] = {
    "no rows": (lambda f: f.iloc[:0], "no rows"),
    "missing": (
        lambda f: f.assign(label=[None, None, *f["label"][2:]]),
        "; 2 of 2000 are missing",
    ),
    "one class": (lambda f: f.assign(label="no"), "two values"),
    "infinite": (lambda f: f.assign(label=[np.inf, *[1.0, 2.0] * 999, 1.0]), "infinite"),
    "nan": (
        lambda f: f.assign(label=[np.nan, *[1.0, 2.0] * 999, 1.0]),
        "; 1 of 2000 are missing",
    ),
    "continuous": (lambda f: f.assign(label=f["x"]), "different values"),
    "nested": (lambda f: f.assign(label=[[1]] * len(f)), "label must be"),
    "copy": (lambda f: f.assign(copy=f["label"].str.upper()), "Column 7 of 7"),
}


@pytest.mark.parametrize("case", TABLES)
def test_tables(case: str, tmp_path: Path, command: Command) -> None:
    change, word = TABLES[case]
    change(frame()).to_parquet(tmp_path / "bad.parquet")
    out = ("-o", tmp_path / "r.parquet", "--secret", tmp_path / "s.parquet")
    options = (*RR, "--epsilon", "1", *out)
    assert word in refused(command, tmp_path, tmp_path / "bad.parquet", *options)


SYNTHETIC: dict[str, tuple[Callable[[pd.DataFrame], Any], str]] = {
    "column missing": (lambda f: f.drop(columns="town"), "column 2 of the data's"),
    "column more": (lambda f: f.assign(more=1), "such as column 7"),
    "type": (lambda f: f.assign(town=1), "Column 2 of the"),
    "loss": (lambda f: f.assign(weeks=0.5), "without a loss"),
    "class missing": (lambda f: f[f["label"] != "yes"], "1 have none"),
    "class more": (lambda f: f.assign(label=["maybe", *f["label"][1:]]), "1 of 2000 rows"),
    "no rows": (lambda f: f.iloc[:0], "no rows"),
    "no label": (lambda f: f.drop(columns="label"), "must have the label's column"),
}


@pytest.mark.parametrize("case", SYNTHETIC)
@pytest.mark.parametrize(
    ("name", "option"), [("double-rr", "--synthetic"), ("model-based-rr", "--public")]
)
def test_tables_that_go_along(
    name: str, option: str, case: str, data: Path, command: Command
) -> None:
    change, word = SYNTHETIC[case]
    path = data.parent / "beside.parquet"
    change(frame()).to_parquet(path, index=False)
    if case == "no rows":  # pandas would forget the types
        pq.write_table(pq.read_table(data).slice(0, 0), path)
    options = ("--mechanism", name, "--epsilon", "1", option, path)
    assert word in refused(command, data.parent, data, "-o", data.parent / "r.parquet", *options)


def test_files_are_not_overwritten(data: Path, command: Command) -> None:
    folder, options = data.parent, (*RR, "--epsilon", "1")
    there = folder / "there.parquet"
    there.write_bytes(b"something else")
    (folder / "link.parquet").symlink_to(data)
    (folder / "hard.parquet").hardlink_to(data)

    def message(*words: Any) -> str:
        return refused(command, folder, data, *options, *words)

    assert "exists already" in message("-o", there)
    assert "exists already" in message("-o", folder / "r.parquet", "--secret", there)
    for same in (data, folder / "link.parquet", folder / "hard.parquet"):
        assert "is an input" in message("-o", same, "--overwrite")
        secret = ("--secret", same, "--overwrite")
        assert "is an input" in message("-o", folder / "r.parquet", *secret)
    out = folder / "r.parquet"
    assert "two files" in message("-o", out, "--secret", folder / "." / "r.parquet")
    assert "folder" in message("-o", folder / "nowhere" / "r.parquet")
    assert "is a folder" in message("-o", folder, "--overwrite")
    assert ".parquet" in message("-o", folder / "r.xlsx")
    (folder / "r.csv.ldpaudit.json").write_text("mine")
    assert "exists already" in message("-o", folder / "r.csv")
    status, _ = command(data, *options, "-o", there, "--overwrite")
    assert status == 0
    assert pq.read_table(there).num_rows == 2000


def test_no_release_into_the_folder_that_is_read(tmp_path: Path, command: Command) -> None:
    (tmp_path / "parts").mkdir()
    frame().to_parquet(tmp_path / "parts" / "one.parquet")
    options = (*RR, "--epsilon", "1", "-o", tmp_path / "parts" / "two.parquet")
    assert "folder that is read" in refused(command, tmp_path, tmp_path / "parts", *options)


def test_a_file_that_is_none(tmp_path: Path, command: Command) -> None:
    options = (*RR, "--epsilon", "1", "-o", tmp_path / "r.parquet")
    assert "nowhere" in refused(command, tmp_path, tmp_path / "nowhere.parquet", *options)
    for name, content in {
        "a.parquet": b"",
        "b.parquet": b"words",
        "c.csv": b"",
        "d.csv": b"a,b\n1\n",
    }.items():
        (tmp_path / name).write_bytes(content)
        message = refused(command, tmp_path, tmp_path / name, *options, "--label", "a")
        assert name in message


def test_a_table_of_a_header_only_is_said_to_have_no_rows(tmp_path: Path, command: Command) -> None:
    (tmp_path / "head.csv").write_text("age,diagnosis\n")
    options = (*RR, "--epsilon", "1", "-o", tmp_path / "r.parquet", "--label", "diagnosis")
    assert "the table no rows" in refused(command, tmp_path, tmp_path / "head.csv", *options)


def test_damage_found_half_way_leaves_nothing(tmp_path: Path, command: Command) -> None:
    path = tmp_path / "d.parquet"
    table = pa.Table.from_pandas(frame(30_000), preserve_index=False)
    pq.write_table(table, path, row_group_size=1000, write_page_checksum=True, compression="none")
    content = bytearray(path.read_bytes())
    content[-len(content) // 10] ^= 0xFF
    path.write_bytes(content)
    out = ("-o", tmp_path / "r.parquet", "--secret", tmp_path / "s.parquet")
    assert "damaged" in refused(command, tmp_path, path, *RR, "--epsilon", "1", *out)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    path, out = tmp_path / "wide.csv", tmp_path / "out"
    out.mkdir()
    rows = "".join(f"{i % 2},{i}.5,word{i % 7}\n" for i in range(200_000))
    path.write_text("label,x,y\n" + rows)
    words = ("privatize", path, "-o", out / "r.parquet", "--secret", out / "s.parquet", *RR)
    command = [sys.executable, "-m", "ldpaudit.cli", *map(str, words), "--epsilon", "1"]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=os.environ, preexec_fn=heed_interrupts
    )
    assert process.stderr is not None
    while "releasing" not in process.stderr.readline():
        pass
    while not list(out.iterdir()) and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2, err
    assert err.strip().splitlines()[-1] == "ldpaudit: Interrupted; nothing was written."
    assert list(out.iterdir()) == []
