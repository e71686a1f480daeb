"""From two files to a proof: the command, as a user runs it."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from processes import called, refused

RELEASED = Path(__file__).parents[2] / "commands" / "released"


@pytest.fixture
def _folder(tmp_path, monkeypatch):
    for path in RELEASED.iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_folder")
def test_a_release_is_proven_and_a_changed_label_is_found():
    status, printed = called("verify", "release.csv", "--truth", "truth.csv")
    assert status == 0, printed
    assert "Proven: all 300 released labels" in printed
    table = pd.read_csv("release.csv", keep_default_na=False)
    table.loc[7, "diagnosis"] = "none" if table.loc[7, "diagnosis"] == "flu" else "flu"
    table.to_csv("release.csv", index=False)
    status, printed = called("verify", "release.csv", "--truth", "truth.csv")
    assert status != 0
    assert "299 of 300 labels are as drawn" in printed


@pytest.mark.parametrize(("rows", "label"), [(40, "none"), (2, "none"), (1, "none")])
def test_people_of_one_true_label_are_proven_though_no_audit_takes_them(
    tmp_path, monkeypatch, rows, label
):
    monkeypatch.chdir(tmp_path)
    values = [*range(rows)]
    pd.DataFrame({"age": values, "diagnosis": [label] * rows}).to_csv("people.csv", index=False)
    claim = ("--mechanism", "rr", "--epsilon", 1, "--classes", "none,flu", "--label", "diagnosis")
    words = ("people.csv", "-o", "r.csv", "--secret", "t.csv", *claim)
    status, printed = called("privatize", *words)
    assert status == 0, printed
    counted = "1 row" if rows == 1 else f"{rows} rows"
    assert f"Released {counted} by" in printed
    assert f"({counted}, 2 labels)" in printed
    line = refused("run", "r.csv", "--truth", "t.csv", folder=tmp_path)
    assert "at least two values; it takes one only." in line
    assert "ldpaudit verify RELEASE --truth TRUTH" in line
    status, printed = called("verify", "r.csv", "--truth", "t.csv")
    assert status == 0, printed
    assert ("the one released label is" if rows == 1 else f"all {rows} released labels") in printed
    assert ("1 of 1 label is as drawn" in printed) == (rows == 1)
