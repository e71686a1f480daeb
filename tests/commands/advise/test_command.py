"""Advice on a small table, from the command line: it runs, it keeps what it says, it says no."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from advised import called, table

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


LEAKING = """
schema = 1
extends = "ldpaudit:default"
[claim]
epsilon = 1.0
[checks.features-reveal-label]
level = "error"
max = 0.9
"""


@pytest.fixture(scope="module")
def leaking(place) -> Path:
    """Return the folder with a table whose columns give labels and people away."""
    made, rng = table(1200).drop(columns="weeks"), np.random.default_rng(4)
    ill = (made["ill"] == "yes").to_numpy()
    made["test result"] = 5 * ill + rng.standard_normal(len(made))
    made["code"] = np.where(ill, "p", "q")
    made["number"] = rng.permutation(len(made)) + 10_000
    made.to_csv(place / "leaking.csv", index=False)
    (place / "leaking.toml").write_text(LEAKING)
    return place


def test_columns_that_give_labels_or_people_away_are_left_out(leaking, monkeypatch, capsys):
    monkeypatch.chdir(leaking)
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", "--json", "-")
    assert called("advise", *words).status == 0
    found = json.loads(capsys.readouterr().out)
    command = shlex.split(found["recommendations"][0]["command"])
    left_out = {command[i + 1] for i, word in enumerate(command) if word == "--drop"}
    assert left_out == {"code", "number", "test result"}
    told = found["dropped"][-1]
    assert told["before"]["advice.features_auc"]["low"] > 0.9
    assert told["after"]["advice.features_auc"]["value"] < 0.9
    assert "test result" not in json.dumps(found["dropped"])


def test_nothing_in_reach_is_an_answer(leaking, monkeypatch, capsys):
    monkeypatch.chdir(leaking)
    keep = ("--keep", "test result", "--keep", "code", "--keep", "number")
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", *keep)
    assert called("advise", *words).status == 1
    assert "Nothing in reach passes" in capsys.readouterr().out


def test_a_search_that_ran_out_of_time_decides_nothing(leaking, monkeypatch, capsys):
    monkeypatch.chdir(leaking)
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", "--minutes", "0.001")
    assert called("advise", *words).status == 3
    assert "--minutes" in capsys.readouterr().out


def test_a_release_and_its_table_are_enough(advised, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    words = ("people.csv", "-o", "made.parquet", "--label", "ill", "--mechanism", "rr")
    assert called("privatize", *words, "--epsilon", "3", "--overwrite").status == 0
    options = ("--policy", "policy.toml", "--minutes", "0.001", "--json", "-")
    capsys.readouterr()
    assert called("advise", "made.parquet", "--truth", "people.csv", *options).status == 0
    found = json.loads(capsys.readouterr().out)
    assert found["recommendations"][0]["epsilon"] == advised["recommendations"][0]["epsilon"]
    assert "privatize people.csv" in found["recommendations"][0]["command"]


def test_true_labels_in_a_file_of_their_own_are_joined_by_row(advised, place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    words = ("people.csv", "-o", "again.csv", "--label", "ill", "--mechanism", "rr")
    secret = ("--epsilon", "3", "--overwrite", "--secret", "truth.csv")
    assert called("privatize", *words, *secret).status == 0
    options = ("--policy", "policy.toml", "--minutes", "0.001", "--json", "-", "--seed", "1")
    capsys.readouterr()
    assert called("advise", "again.csv", "--truth", "truth.csv", *options).status == 0
    apart = json.loads(capsys.readouterr().out)["recommendations"][0]
    assert called("advise", "people.csv", "--label", "ill", *options).status == 0
    whole = json.loads(capsys.readouterr().out)["recommendations"][0]
    assert apart["leakage"] == whole["leakage"]
    assert "privatize TABLE" in apart["command"]


def test_true_labels_of_other_rows_are_refused(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    (place / "labels.csv").write_text("ill\nno\n")
    words = ("--label", "ill", "--truth", "labels.csv")
    assert called("advise", "people.csv", *words).status == 2
    assert "row by row" in capsys.readouterr().err
