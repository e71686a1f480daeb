"""Advice on a small table, from the command line: it runs, it keeps what it says, it says no."""

import json
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ldpaudit import cli
from ldpaudit.commands.advise.stored import StoredAdvice

POLICY = """
schema = 1
[audit]
confidence = 0.95
max_undetected_excess = 0.5
[checks.claimed-epsilon]
level = "error"
[checks.label-inference-advantage]
level = "error"
max = 0.08
"""

CLAIM = """
schema = 1
[claim]
epsilon = 0.5
[checks.claimed-epsilon]
level = "error"
"""


def table(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 2, rows)
    x = rng.standard_normal((rows, 2)) + 0.9 * codes[:, None]
    return pd.DataFrame(
        {"x 1": x[:, 0], "y": x[:, 1], "ill": np.array(["no", "yes"])[codes], "weeks": codes * 7}
    )


def called(*words: str) -> SimpleNamespace:
    """Call the command line in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ldpaudit", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
    return SimpleNamespace(status=ended.value.code)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("advice")
    table().drop(columns="weeks").to_csv(folder / "people.csv", index=False)
    (folder / "policy.toml").write_text(POLICY)
    return folder


@pytest.fixture(scope="module")
def advised(place) -> dict:
    words = ("people.csv", "--label", "ill", "--policy", "policy.toml", "--json", "a.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert called("advise", *words, "--html", "a.html", "--minutes", "0.001").status == 0
    return json.loads((place / "a.json").read_text())


def test_what_is_stored_is_as_the_schema_says(advised):
    StoredAdvice.model_validate(advised)
    first = advised["recommendations"][0]
    assert {
        "mechanism",
        "parameter",
        "value",
        "epsilon",
        "utility",
        "leakage",
        "kind",
    } <= first.keys()
    assert first["mechanism"] == "randomized-response"


def test_the_recommendation_keeps_the_limit_on_other_rows(advised):
    first = advised["recommendations"][0]
    gain = first["leakage"]["advice.advantage"]
    assert gain["low"] <= gain["value"] <= gain["high"]
    assert gain["low"] <= 0.08
    assert first["kind"] == "estimated"
    assert all(limit["passes"] for limit in first["limits"])


def test_without_time_nothing_is_simulated_and_that_is_said(advised):
    assert not advised["recommendations"][0]["simulated"]
    assert advised["run"]["simulated"] == 0
    assert any("--minutes" in note for note in advised["notes"])


def test_a_claim_is_the_most_and_is_simulated(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    (place / "claim.toml").write_text(CLAIM)
    words = ("people.csv", "--label", "ill", "--policy", "claim.toml", "--json", "-")
    assert called("advise", *words).status == 0
    found = json.loads(capsys.readouterr().out)
    first = found["recommendations"][0]
    assert first["epsilon"] <= 0.5
    assert first["simulated"]
    assert first["utility"]["kind"] == "certified"
    assert first["utility"]["low"] > 0.5


def test_more_would_break_it(advised):
    first = advised["recommendations"][0]["epsilon"]
    beyond = [one for one in advised["candidates"] if one["epsilon"] > first + 0.5]
    assert beyond
    assert not any(one["passes"] for one in beyond)


def test_the_command_runs_as_printed(advised, place, monkeypatch):
    monkeypatch.chdir(place)
    words = shlex.split(advised["recommendations"][0]["command"])
    assert words[:3] == ["ldpaudit", "privatize", "people.csv"]
    assert called(*words[1:]).status == 0
    assert (place / "people.released.parquet").is_file()


def test_the_page_shows_the_answer_and_the_command(advised, place):
    page = (place / "a.html").read_text()
    assert "Leakage against utility" in page
    assert "ldpaudit privatize people.csv" in page


def test_class_names_stay_out_of_the_result(advised):
    assert '"yes"' not in json.dumps(advised)


def test_regression_needs_a_declared_range(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert called("advise", "people.csv", "--label", "y", "--for", "regression").status == 2
    assert "--labels LO:HI:STEP" in capsys.readouterr().err


def test_a_missing_column_is_one_line(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert called("advise", "people.csv", "--label", "il").status == 2
    assert "il" in capsys.readouterr().err


def test_minutes_must_be_minutes(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert called("advise", "people.csv", "--label", "ill", "--minutes", "0").status == 2
    assert "--minutes" in capsys.readouterr().err
