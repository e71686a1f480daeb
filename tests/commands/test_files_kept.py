"""What nothing can bring back is never overwritten, and no table is taken for what it is not."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def folder(tmp_path, command, monkeypatch):
    """Stand in a folder with patients, other people, two releases of them, and the key of one."""
    place = tmp_path
    monkeypatch.chdir(place)
    rng = np.random.default_rng(5)
    for name, rows in (("patients", 300), ("others", 200)):
        x = rng.normal(size=(rows, 3))
        label = np.where(x[:, 0] + rng.normal(size=rows) > 0, "yes", "no")
        table = pd.DataFrame(x.round(6), columns=["a", "b", "c"]).assign(label=label)
        table.to_csv(place / f"{name}.csv", index=False)
    claim = ("--mechanism", "rr", "--label", "label")
    for epsilon, name, more in (
        ("2", "first", ("--secret", place / "truth.csv")),
        ("1", "second", ()),
    ):
        words = ("-o", place / f"{name}.csv", *claim, "--epsilon", epsilon, *more)
        assert command("privatize", place / "patients.csv", *words)[0] == 0
    frame = pd.read_csv(place / "patients.csv")
    frame.sort_values("a").to_csv(place / "sorted.csv", index=False)
    return place


def contents(place: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file()}


RR = "--label label --mechanism rr --epsilon 1"
KEPT = {
    f"declare truth.csv {RR} --overwrite": "holds true labels and the key",
    f"privatize patients.csv -o truth.csv {RR} --overwrite": "holds true labels and the key",
    f"declare patients.csv {RR} -o out.parquet": "must end as that of 'patients.csv' does",
    f"declare patients.csv {RR} -o out.tsv": "must end as",
    "verify first.csv --truth truth.csv --json truth.csv.ldpaudit.json": "is an input",
    "learn first.csv --test others.csv --json first.csv.ldpaudit.json": "is an input",
    "compare first.csv second.csv --html first.csv.ldpaudit.json": "is an input",
    "run first.csv --truth truth.csv --json truth.csv.ldpaudit.json": "is an input",
    "verify first.csv --truth truth.csv --scores others.csv": "ldpaudit did not write it",
    "learn first.csv --test patients.csv": "The test rows must be of other people",
    "learn first.csv --test second.csv": "The test table is a release",
    "compare first.csv second.csv --test patients.csv": "The test rows must be of other people",
    "sweep patients.csv --label label --mechanism rr --epsilon 1 --test patients.csv --only "
    "mechanism": "The test rows must be of other people",
    "sweep first.csv --label label --mechanism rr --epsilon 1": "The table is a release",
    "learn first.csv --test others.csv --truth sorted.csv": "reveal nothing about the released",
    "compare first.csv second.csv --epsilon 3": "is about none of them",
    "advise first.csv": "The table is a release",
    f"privatize first.csv -o again.csv {RR}": "The table is a release",
    "advise first.csv --truth others.csv": "as many rows as the release",
    "verify first.csv --truth truth.csv --id nowhere": "no id column 'nowhere'",
}


@pytest.mark.parametrize("words", KEPT)
def test_it_is_one_line_and_every_file_is_as_before(words, folder, command):
    before = contents(folder)
    status, _, error = command(*words.split())
    assert (status, KEPT[words] in error) == (2, True), error
    assert contents(folder) == before


def test_a_label_that_the_release_spells_otherwise_is_named_by_its_place(folder, command):
    text = (folder / "first.csv").read_text().replace("label", "Label", 1)
    (folder / "other.csv").write_text(text)
    (folder / "other.csv.ldpaudit.json").write_bytes(
        (folder / "first.csv.ldpaudit.json").read_bytes()
    )
    status, _, error = command("verify", "other.csv", "--truth", "truth.csv")
    assert status == 2
    assert "differs only in case" in error


def test_privatize_says_where_the_key_is(folder, command):
    words = ("--mechanism", "rr", "--epsilon", "1", "--label", "label")
    files = ("patients.csv", "-o", "r.csv", "--secret", "t.csv")
    status, printed, _ = command("privatize", *files, *words)
    assert status == 0
    assert "t.csv.ldpaudit.json (of the noise" in printed
    assert "secret" in json.loads((folder / "t.csv.ldpaudit.json").read_text())
