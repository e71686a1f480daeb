"""Advice on a small table, from the command line: it runs, it keeps what it says, it says no."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from advised import called, table

from ldpaudit.commands.advise import candidates
from ldpaudit.commands.advise.page import Advice
from ldpaudit.commands.advise.work import Search, Tried

CLAIM = """
schema = 1
[claim]
epsilon = {}
[audit]
max_undetected_excess = {}
[checks.claimed-epsilon]
level = "error"
"""
LEAKING = """
schema = 1
extends = "ldpaudit:default"
[claim]
epsilon = 1.0
[checks.features-reveal-label]
level = "error"
max = 0.9
"""
POLICIES = {
    "claim": CLAIM.format(0.5, 2.0),
    "both": CLAIM.format(1.5, 2.0),
    "weak": CLAIM.format(0.1, 0.3),
    "leaking": LEAKING,
}
QUICK = ("--minutes", "0.000001", "--json", "-")


def leaking(rows: int):
    """Return a table whose columns give labels and people away."""
    made, rng = table(rows).drop(columns="weeks"), np.random.default_rng(4)
    ill = (made["ill"] == "yes").to_numpy()
    made["test result"] = 5 * ill + rng.standard_normal(len(made))
    made["code"] = np.where(ill, "p", "q")
    made["number"] = rng.permutation(len(made)) + 10_000
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("advice")
    table(600).drop(columns="weeks").to_csv(folder / "people.csv", index=False)
    table(600).to_csv(folder / "both.csv", index=False)
    leaking(1200).to_csv(folder / "leaking.csv", index=False)
    for name, text in POLICIES.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture
def place(folder, monkeypatch) -> Path:
    monkeypatch.chdir(folder)
    return folder


def asked(capsys, *words: str) -> tuple[int, dict]:
    capsys.readouterr()
    status = called("advise", *words).status
    return status, json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def advised(folder) -> dict:
    words = ("people.csv", "--label", "ill", "--policy", "claim.toml", "--json", "a.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(candidates, "MOST", 1)
        assert called("advise", *words, "--html", "a.html").status == 0
    return json.loads((folder / "a.json").read_text())


def test_the_best_is_simulated_and_keeps_the_claim(advised):
    first = Advice.model_validate(advised).recommendations[0]
    assert first.mechanism == "randomized-response"
    assert first.epsilon == 0.5
    assert first.simulated
    assert first.kind == "certified"
    assert first.utility.low > 0.5
    gain = first.leakage["advice.advantage"]
    assert gain.low <= gain.value <= gain.high
    assert advised["run"]["simulated"] >= 2
    assert any(one["passes"] and not one["why_not"] for one in advised["candidates"])
    assert '"yes"' not in json.dumps(advised)


def test_the_command_runs_and_the_page_shows_it(advised, place):
    words = shlex.split(advised["recommendations"][0]["command"])
    assert words[:3] == ["ldpaudit", "privatize", "people.csv"]
    assert called(*words[1:]).status == 0
    assert (place / "people.released.parquet").is_file()
    page = (place / "a.html").read_text()
    assert "Leakage against utility" in page
    assert "ldpaudit privatize people.csv" in page


def test_when_the_time_ends_what_is_known_is_told(place, capsys):
    words = ("people.csv", "--label", "ill", "--policy", "claim.toml", "--missing", "drop")
    status, found = asked(capsys, *words, *QUICK)
    assert status == 3
    assert found["recommendations"][0]["command"].endswith("--missing drop")
    assert found["run"]["simulated"] == 0
    first = found["recommendations"][0]
    assert not first["simulated"]
    assert first["utility"] is None
    assert first["kind"] == "estimated"
    assert found["candidates"][0]["why_not"] == "it was not simulated"
    assert "--minutes" in found["sentence"]
    assert "first try randomized-response ε = 0.5" in found["sentence"]


REFUSED = {
    "range": (("people.csv", "--label", "y", "--for", "regression"), "--labels LO:HI:STEP"),
    "column": (("people.csv", "--label", "il"), "il"),
    "minutes": (("people.csv", "--label", "ill", "--minutes", "0"), "--minutes"),
    "rows": (("people.csv", "--label", "ill", "--truth", "labels.csv"), "row by row"),
    "mechanism": (("both.csv", "--label", "ill:rr:epsilon=1"), "advise chooses the mechanism"),
    "twice": (("both.csv", "--label", "ill", "--label", "ill"), "twice"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_advised_on_is_one_line(case, place, capsys):
    (place / "labels.csv").write_text("ill\nno\n")
    words, expected = REFUSED[case]
    assert called("advise", *words).status == 2
    assert expected in capsys.readouterr().err


def test_a_kept_column_that_tells_is_not_made_up_for_by_leaving_out_others(place, capsys):
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", "--json", "-")
    status, found = asked(capsys, *words, "--keep", "test result")
    assert status == 1
    assert sum(one["columns"] for one in found["dropped"]) == 2
    assert "more time" not in found["sentence"]
    assert "features alone" in found["sentence"]
    assert "with --public FILE" in found["sentence"]


def test_double_rr_is_simulated_where_a_public_table_is_given(place, capsys):
    leaking(900).drop(columns=["code", "number"]).to_csv("public.csv", index=False)
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", "--keep", "test result")
    more = ("--public", "public.csv", "--json", "-")
    assert asked(capsys, *words, *more, "--minutes", "0.000001")[0] == 3
    status, found = asked(capsys, *words, *more)
    assert status == 0, found["sentence"]
    first = found["recommendations"][0]
    assert first["mechanism"] == "double-rr"
    assert {"advice.accuracy", "advice.advantage"} <= first["leakage"].keys()
    assert "--generator-data public.csv" in first["command"]
    assert called(*shlex.split(first["command"])[1:]).status == 0


def test_columns_that_give_labels_or_people_away_are_left_out(place, monkeypatch, capsys):
    monkeypatch.setattr(Search, "least_noise", lambda *_: False)
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", "--json", "-")
    status, found = asked(capsys, *words)
    assert status == 3
    command = shlex.split(found["recommendations"][0]["command"])
    left_out = {command[i + 1] for i, word in enumerate(command) if word == "--drop"}
    assert left_out == {"code", "number", "test result"}
    told = found["dropped"][-1]
    assert told["before"]["advice.features_auc"]["low"] > 0.85
    assert told["before"]["advice.features_auc"]["value"] > 0.9
    assert told["after"]["advice.features_auc"]["value"] < 0.9
    assert "test result" not in json.dumps(found["dropped"])
    assert "Leave out 3 columns" in found["sentence"]


def test_nothing_in_reach_is_an_answer(place, capsys):
    keep = ("--keep", "test result", "--keep", "code", "--keep", "number")
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", *keep)
    assert called("advise", *words).status == 1
    assert "Nothing in reach passes" in capsys.readouterr().out


def test_a_search_that_ran_out_of_time_decides_nothing(place, capsys):
    words = ("leaking.csv", "--label", "ill", "--policy", "leaking.toml", "--minutes", "0.001")
    assert called("advise", *words).status == 3
    assert "--minutes" in capsys.readouterr().out


def test_a_release_and_true_labels_in_either_file_are_enough(place, capsys):
    words = ("people.csv", "-o", "made.csv", "--label", "ill", "--mechanism", "rr")
    secret = ("--epsilon", "3", "--overwrite", "--secret", "truth.csv")
    assert called("privatize", *words, *secret).status == 0
    options = ("--policy", "claim.toml", "--seed", "1", *QUICK)
    whole = asked(capsys, "people.csv", "--label", "ill", *options)[1]["recommendations"][0]
    table = asked(capsys, "made.csv", "--truth", "people.csv", *options)[1]["recommendations"][0]
    apart = asked(capsys, "made.csv", "--truth", "truth.csv", *options)[1]["recommendations"][0]
    assert "privatize people.csv" in table["command"]
    assert "privatize TABLE" in apart["command"]
    assert table["leakage"] == apart["leakage"] == whole["leakage"]


def test_each_column_gets_its_mechanism_and_the_command_runs(place, capsys):
    words = ("both.csv", "--label", "ill", "--label", "weeks:labels=0:7:7", "--policy", "both.toml")
    status, advice = asked(capsys, *words, "--json", "-")
    assert status == 0
    found = advice["recommendations"][0]
    assert found["simulated"]
    assert len(found["labels"]) == 2
    assert found["epsilon"] == pytest.approx(sum(one["epsilon"] for one in found["labels"]))
    assert found["epsilon"] <= 1.5 + 1e-9
    command = shlex.split(found["command"])
    assert sum(word == "--label" for word in command) == 2
    assert called(*command[1:]).status == 0


def test_a_column_that_several_leave_out_counts_once(place, capsys):
    people = table(600).assign(born=[f"1980-01-{1 + n % 28:02d}" for n in range(600)])
    people.assign(person=range(600)).to_csv("named.csv", index=False)
    words = ("named.csv", "--label", "ill", "--label", "weeks", "--for", "counts")
    found = asked(capsys, *words, *QUICK)[1]
    command = shlex.split(found["recommendations"][0]["command"])
    gone = sum(word == "--drop" for word in command)
    assert gone > 0
    assert sum(one["columns"] for one in found["dropped"]) == gone
    assert f"Leave out {gone} column" in found["sentence"]


def test_what_an_audit_of_all_columns_could_miss_is_held_against_the_policy(place, capsys):
    words = ("both.csv", "--label", "ill", "--label", "weeks", "--for", "counts")
    status, found = asked(capsys, *words, "--policy", "weak.toml", "--json", "-")
    assert status == 3
    assert found["recommendations"] == []
    assert "could have gone unnoticed" in found["sentence"]
    assert "more rows, or fewer private columns" in found["sentence"]


@pytest.mark.parametrize(
    ("surest", "said"),
    [(0.1, "It takes a policy that allows more."), (0.0, "It takes more rows")],
)
def test_rows_are_asked_for_only_where_they_help(surest, said, place, monkeypatch, capsys):
    def measured(self, parts, until, draws=1):
        self.tried[parts] = Tried(parts, why_not="broken", unclear=parts[0].value > surest)
        return self.tried[parts]

    monkeypatch.setattr(Search, "measured", measured)
    words = ("people.csv", "--label", "ill", "--policy", "claim.toml", "--json", "-")
    status, found = asked(capsys, *words)
    assert status == 3
    assert said in found["sentence"]


def test_what_was_not_simulated_is_named_when_the_time_ends(place, capsys):
    words = ("both.csv", "--label", "ill", "--label", "weeks", "--for", "counts", *QUICK)
    status, found = asked(capsys, *words)
    assert status == 3
    (note,) = [text for text in found["notes"] if text.startswith("Not simulated: ")]
    assert note.count("ε = ") == 2
    assert [one["epsilon"] for one in found["recommendations"][0]["labels"]]
