"""Who draws the same labels a second time is told so; two releases tell more than one."""

import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import ldpaudit
from ldpaudit.work.files import WholeFiles

Command = Callable[..., tuple[int, str, str]]
TOLD = "second, independent draw"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    place = tmp_path / "d.csv"
    people = [f"p{number}" for number in range(60)]
    frame = pd.DataFrame({"person": people, "x": range(60), "label": ["A", "B", "B"] * 20})
    frame.assign(other=frame["label"].str.lower()).to_csv(place, index=False)
    return place


def released(command: Command, table: Path, *words: Any, quiet: bool = True) -> str:
    options = ["--mechanism", "rr", "--epsilon", "1", "--drop", "other", "--drop", "person"]
    status, out, err = command("privatize", table, *options, *words, *["--quiet"] * quiet)
    assert status == 0, err
    return err if quiet else f"{out}{err}"


@pytest.mark.parametrize("name", ["r.parquet", "r.csv"])
def test_a_release_that_is_replaced(
    name: str, tmp_path: Path, table: Path, command: Command
) -> None:
    words = ("-o", tmp_path / name, "--overwrite")
    assert released(command, table, *words) == ""
    told = released(command, table, *words)
    assert told.count("\n") == 1
    assert f"'{name}', which is replaced, was a release" in told
    assert TOLD in told
    assert released(command, table, *words, quiet=False).count(TOLD) == 2  # At once, and at last.


def test_true_labels_that_are_replaced(tmp_path: Path, table: Path, command: Command) -> None:
    words = ("--secret", tmp_path / "s.parquet", "--overwrite")
    released(command, table, "-o", tmp_path / "one.parquet", *words)
    told = released(command, table, "-o", tmp_path / "two.parquet", *words)
    assert "'s.parquet', which is replaced, held the true values" in told
    assert TOLD in told


def test_without_leave_to_overwrite_it_is_told_what_that_would_be(
    tmp_path: Path, table: Path, command: Command
) -> None:
    words = ("-o", tmp_path / "r.parquet")
    released(command, table, *words)
    before = (tmp_path / "r.parquet").read_bytes()
    status, _, err = command("privatize", table, "--mechanism", "rr", "--epsilon", "1", *words)
    assert status == 2
    assert "a second draw of the same labels reveals more than one" in err
    assert (tmp_path / "r.parquet").read_bytes() == before


def test_what_is_no_second_draw(tmp_path: Path, table: Path, command: Command) -> None:
    place = tmp_path / "r.parquet"
    place.write_bytes(b"no table")
    words = ("-o", place, "--overwrite")
    assert released(command, table, *words) == ""
    other = ("--label", "other", "--drop", "label", "--mechanism", "rr", "--epsilon", "1")
    status, _, err = command("privatize", table, *other, *words, "--quiet")
    assert (status, err) == (0, "")


def test_answers_that_are_remembered(tmp_path: Path, table: Path, command: Command) -> None:
    words = ("-o", tmp_path / "r.parquet", "--overwrite", "--id", "person")
    words += ("--remember", tmp_path / "m")
    assert released(command, table, *words) == ""
    before = pd.read_parquet(tmp_path / "r.parquet")
    assert released(command, table, *words) == ""
    assert pd.read_parquet(tmp_path / "r.parquet").equals(before)


def test_a_file_that_changes_after_publication_is_no_reason_to_draw_again(
    tmp_path: Path, table: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is told that it failed does it again."""
    publish = WholeFiles._publish

    def then_changes(files: WholeFiles) -> None:
        publish(files)
        table.write_text("")

    monkeypatch.setattr(WholeFiles, "_publish", then_changes)
    released(command, table, "-o", tmp_path / "r.parquet")


def test_in_python_it_is_a_warning(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": range(60), "label": ["A", "B", "B"] * 20})
    options: Any = {"output": tmp_path / "r.parquet", "epsilon": 1.0, "overwrite": True}
    told = []
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ldpaudit.privatize(frame, "rr", **options)
        told.append([TOLD in str(one.message) for one in caught])
    assert [any(one) for one in told] == [False, True]


def test_two_runs_at_once_remember_one_draw(tmp_path: Path, table: Path) -> None:
    """Two draws of the same people would be twice their ε."""
    words = ["privatize", table, "--mechanism", "rr", "--epsilon", "1", "--quiet", "--id", "person"]
    words += ["--drop", "other", "--remember", tmp_path / "m", "-o"]
    names = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    command = [sys.executable, "-m", "ldpaudit", *map(str, words)]
    runs = [subprocess.Popen([*command, str(name)]) for name in names]
    assert [run.wait(60) for run in runs] == [0, 0]
    one, two = map(pd.read_parquet, names)
    assert one.equals(two)


def test_two_runs_at_once_leave_one_pair(tmp_path: Path, table: Path) -> None:
    """A release of one run beside the true labels of another would audit as a leak, or as none."""
    rows = pd.read_csv(table)
    pair = tmp_path / "r.parquet", tmp_path / "s.parquet"
    words = ["--mechanism", "rr", "--epsilon", "1", "--quiet", "--drop", "other", "--overwrite"]
    words += ["-o", str(pair[0]), "--secret", str(pair[1])]
    runs = []
    for k in (1, 2):
        rows.iloc[: len(rows) // k].to_parquet(tmp_path / f"{k}.parquet")
        command = [sys.executable, "-m", "ldpaudit", "privatize", str(tmp_path / f"{k}.parquet")]
        runs.append(subprocess.Popen([*command, *words]))
    assert 0 in [run.wait(60) for run in runs]
    release, secret = map(pd.read_parquet, pair)
    assert len(release) == len(secret)
