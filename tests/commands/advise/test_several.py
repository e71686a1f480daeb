"""Several private columns: ε is shared out, the command names each, and others' noise counts."""

import json
import shlex
from pathlib import Path

import pytest
from advised import called, table

from ldpaudit.commands.advise.closed_forms.utility import Worth
from ldpaudit.commands.advise.several import shared_out

CLAIM = """
schema = 1
[claim]
epsilon = 1.5
[checks.claimed-epsilon]
level = "error"
"""


def worth(cost: float) -> Worth:
    return Worth("x", "x", "1", cost, cost, 0.0, "exact", "")


def column(*costs: float) -> list[tuple[float, Worth]]:
    return [(0.5 * place, worth(cost)) for place, cost in enumerate(costs, 1)]


def test_alike_columns_share_alike():
    alike = column(8, 4, 2, 1)
    assert shared_out([alike, alike], 2.0) == [1.0, 1.0]


def test_epsilon_goes_where_it_is_worth_most():
    early, late = column(8, 1, 0.9, 0.8), column(8, 6, 4, 2)
    assert shared_out([early, late], 2.5) == [1.0, 1.5]


def test_all_of_it_is_used_where_it_suffices():
    assert shared_out([column(3, 2), column(3, 2, 1)], 9.0) == [1.0, 1.5]


def test_too_little_is_nothing():
    assert shared_out([column(2, 1), column(2, 1)], 0.9) is None


def test_a_later_gain_is_seen_behind_a_flat_start():
    assert shared_out([column(5, 5, 0)], 1.5) == [1.5]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("several")
    table(1500).to_csv(folder / "people.csv", index=False)
    (folder / "claim.toml").write_text(CLAIM)
    return folder


def test_each_column_gets_its_mechanism_and_the_command_runs(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    words = ("--label", "ill", "--label", "weeks:labels=0:7:7", "--policy", "claim.toml")
    assert called("advise", "people.csv", *words, "--json", "-").status == 0
    found = json.loads(capsys.readouterr().out)["recommendations"][0]
    assert len(found["labels"]) == 2
    assert found["epsilon"] == pytest.approx(sum(one["epsilon"] for one in found["labels"]))
    assert found["epsilon"] <= 1.5 + 1e-9
    command = shlex.split(found["command"])
    assert sum(word == "--label" for word in command) == 2
    assert called(*command[1:]).status == 0


def test_a_mechanism_is_not_the_users_to_choose(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert called("advise", "people.csv", "--label", "ill:rr:epsilon=1").status == 2
    assert "advise chooses the mechanism" in capsys.readouterr().err


def test_a_column_named_twice_is_refused(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert called("advise", "people.csv", "--label", "ill", "--label", "ill").status == 2
    assert "twice" in capsys.readouterr().err


def test_a_column_that_several_leave_out_counts_once(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    people = table(1500).assign(born=[f"1980-01-{1 + n % 28:02d}" for n in range(1500)])
    people.assign(person=range(1500)).to_csv("named.csv", index=False)
    words = ("--label", "ill", "--label", "weeks", "--for", "counts")
    called("advise", "named.csv", *words, "--json", "-")
    found = json.loads(capsys.readouterr().out)
    command = shlex.split(found["recommendations"][0]["command"])
    gone = sum(word == "--drop" for word in command)
    assert gone > 0
    assert sum(one["columns"] for one in found["dropped"]) == gone
    assert f"Leave out {gone} column" in found["sentence"]


WEAK = (
    CLAIM
    + """
[audit]
max_undetected_excess = 0.24
"""
)


def test_what_an_audit_of_all_columns_could_miss_is_held_against_the_policy(
    place, monkeypatch, capsys
):
    monkeypatch.chdir(place)
    (place / "weak.toml").write_text(WEAK)
    one = ("advise", "people.csv", "--policy", "weak.toml", "--for", "counts", "--label", "ill")
    assert called(*one, "--quiet").status == 0
    capsys.readouterr()
    assert called(*one, "--label", "weeks", "--json", "-").status == 3
    found = json.loads(capsys.readouterr().out)
    assert found["recommendations"] == []
    assert "2 private columns together could miss an excess of" in found["sentence"]
