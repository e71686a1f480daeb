"""From two files to a proof: the command, as a user runs it."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from processes import called

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
