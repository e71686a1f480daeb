"""``ldpaudit declare`` of several private columns: in groups, in words, as tables name them."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

from ldpaudit import cli
from ldpaudit.datasets import read_file_columns
from ldpaudit.mechanisms.joint import marginal_claims
from ldpaudit.mechanisms.view import DeclaredCoding

Command = Callable[..., tuple[int, str]]
STRATA = (
    "region,label,1,2,3\nnorth,1,.8,.1,.1\nnorth,2,.1,.8,.1\nnorth,3,.1,.1,.8\n"
    "south,1,.6,.2,.2\nsouth,2,.2,.6,.2\nsouth,3,.2,.2,.6\n"
)
SDCMICRO = (
    '"","roof.Rs.2","roof.Rs.4","roof.pd","roof.alpha","walls.Rs.brick","walls.Rs.wood",'
    '"walls.pd","walls.alpha"\n'
    '"2",0.9,0.1,0.8,0.5,0.7,0.3,0.8,0.5\n"4",0.2,0.8,0.8,0.5,0.4,0.6,0.8,0.5\n'
)
TRANSITIONS = "variable,region,Var1,Var2,Freq\n" + "".join(
    f"{variable},{region},{a},{b},{kept if a == b else 1 - kept}\n"
    for variable, labels in (("roof", (2, 4)), ("walls", ("brick", "wood")))
    for region, kept in (("north", 0.75), ("south", 0.5 + 1 / 8))
    for a in labels
    for b in labels
)


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Run ``ldpaudit declare`` beside a release; return its status and everything it printed."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    options = {
        **{"region": ["north", "south"], "a": ["no", "yes"], "b": [1, 2, 3]},
        **{"roof_pram": [2, 4], "walls_pram": ["brick", "wood"], "other:x": ["p", "q"]},
    }
    frame = pd.DataFrame({name: rng.choice(values, 200) for name, values in options.items()})
    frame.insert(0, "x", rng.standard_normal(200))
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    Path("strata.csv").write_text(STRATA)
    Path("pram.csv").write_text(SDCMICRO)
    Path("long.csv").write_text(TRANSITIONS)

    def call(*words: Any) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["ldpaudit", "declare", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0), "".join(capsys.readouterr())

    return call


def content(path: str) -> Any:
    """Return what a file declares."""
    if path.endswith(".parquet"):
        return json.loads(pq.read_schema(path).metadata[b"ldpaudit"])
    return json.loads(Path(f"{path}.ldpaudit.json").read_text())


@pytest.mark.parametrize("path", ["t.csv", "t.parquet"])
@pytest.mark.parametrize(
    "words",
    [
        "--label a:rr:epsilon=1 --label b:channel=strata.csv:by=region",
        "--label a:rr:epsilon=1 --label b --channel strata.csv --by region",
    ],
)
def test_options_in_groups_or_words(path: str, words: str, command: Command) -> None:
    status, printed = command(path, *words.split())
    assert (status, "2 private columns" in printed, "north" in printed) == (0, True, True), printed
    assert "ε = 3.07944 nats together" in printed
    labels = content(path)["labels"]
    assert [(one["label"], one.get("by")) for one in labels] == [("a", None), ("b", "region")]
    assert labels[1]["mechanism"]["strata"][1]["value"] == "south"
    vector = read_file_columns(path, coding=DeclaredCoding).file
    assert vector.columns[1].strata is not None
    assert "Nothing was written" in command(path, *words.split())[1]
    assert "'region'" in command(path)[1]
    status, printed = command(path, "--label", "a", "--mechanism", "rr", "--epsilon", "1")
    assert (status, "--overwrite replaces it" in printed) == (2, True)
    assert command(path, "--label", "b", "--overwrite")[0] == 0
    assert [one["label"] for one in content(path)["labels"]] == ["b"]


@pytest.mark.parametrize(("table", "together"), [("pram.csv", "2.77259"), ("long.csv", "2.19722")])
def test_tables_of_sdcmicro_name_their_columns(table: str, together: str, command: Command) -> None:
    status, printed = command("t.csv", "--channel", table)
    assert (status, f"ε = {together} nats together" in printed) == (0, True), printed
    assert [one["label"] for one in content("t.csv")["labels"]] == ["roof_pram", "walls_pram"]
    status, printed = command("t.parquet", "--label", "walls_pram", "--channel", table)
    assert status == 0, printed
    # One column without strata is what version 1 holds.
    assert content("t.parquet")["version"] == (1 if table == "pram.csv" else 2)


def test_what_is_beside_a_post_randomized_column_is_said(command: Command) -> None:
    frame = pd.read_csv("t.csv").assign(roof=2)
    frame.to_csv("t.csv", index=False)
    printed = command("t.csv", "--channel", "pram.csv")[1]
    assert "do not publish it along with the released one" in printed


def test_one_claim_for_all_and_joint_mechanisms(command: Command) -> None:
    shared = ("--label", "a", "--label", "b", "--mechanism", "rr", "--epsilon", "0.5")
    assert "ε = 1 nats together" in command("t.csv", *shared)[1]
    joint = ("--label", "a", "--label", "b", "--joint", "rs-fd", "--epsilon", "1", "--overwrite")
    assert "random sampling" in command("t.csv", *joint)[1]
    assert content("t.csv")["mechanism"] == {
        **{"name": "rs-fd", "epsilon": 1.0},
        "domains": [["no", "yes"], [1, 2, 3]],
    }
    vector = read_file_columns("t.csv", coding=DeclaredCoding, marginals=marginal_claims).file
    assert vector.columns[0].classes == ("no", "yes")
    assert "random sampling" in command("t.csv")[1]
    stated = ("--label", "a:classes=no,yes,zzq", "--label", "b", *joint[4:])
    assert command("t.csv", *stated)[0] == 0
    assert content("t.csv")["mechanism"]["domains"][0] == ["no", "yes", "zzq"]


def test_a_column_may_have_a_colon_in_its_name(command: Command) -> None:
    plain = ("t.csv", "--label", "other:x", "--mechanism", "rr", "--epsilon", "1")
    assert command(*plain)[0] == 0
    assert content("t.csv")["label"] == "other:x"


def test_names_with_spaces_may_come_from_the_environment(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    pd.read_csv("t.csv").rename(columns={"a": "my label"}).to_csv("t.csv", index=False)
    for stated, names in (("my label", ["my label"]), ("my label\nb", ["my label", "b"])):
        monkeypatch.setenv("LDPAUDIT_LABEL", stated)
        assert command("t.csv", "--mechanism", "rr", "--epsilon", "1", "--overwrite")[0] == 0
        found = content("t.csv")
        assert [one["label"] for one in found.get("labels", [found])] == names


MISTAKES = {
    "--label a --label a --mechanism rr --epsilon 1": "named twice",
    "--label a:rr:epsilon=1 --label gone:rr:epsilon=1": "no label column 'gone'",
    "--label a:rr:epsilon=1 --label b": "Say what made the labels of 'b'",
    "--label a:rr:epsilon=1 --label b:rr:epsilon=1 --epsilon 2": "about none of the columns",
    "--label a:rr:epsilon=1 --mechanism rr": "--mechanism is about none of the columns",
    "--label a --mechanism rr --epsilon=1 --label b": "--mechanism stands between two --label",
    "--label a --epsilon=1 --label b:rr:epsilon=1": "--epsilon stands between two --label",
    "--label a --label b --mechanism rr --epsilon 1 --classes no,yes": "NAME:classes=VALUE",
    "--label a:rr:epsilon=1:prior=p.csv --label b:rr:epsilon=1": "prior is no part of a claim",
    "--label a:rr:epsilon=1:by=region --label b:rr:epsilon=1": "need a table",
    "--label b --channel strata.csv --by regin": "no strata (--by) column 'regin'",
    "--label b --channel strata.csv --by label": "no strata column 'label' among the 7 columns",
    "--label region:rr:epsilon=1 --label b:channel=strata.csv:by=region": "column 2 is private",
    "--label a --channel strata.csv --by region": "rows hold another value",
    "--label b --channel pram.csv": "none of the column 'b'",
    "--label b --channel strata.csv --by region --epsilon 1": "complete claim",
    "--by region": "need a table",
    "--label a --joint rs-fd --epsilon 1": "at least two columns",
    "--label a --label b --joint rs-fd": "given by --epsilon",
    "--label a --label b --joint rsfd --epsilon 1": "did you mean 'rs-fd'",
    "--label a:classes=no,no2 --label b --joint rs-fd --epsilon 1": "Private column 'a': Every",
    "--label a:rr:epsilon=1 --label b --joint rs-fd --epsilon 1": "only its classes",
    "--label a --label b --joint joint-rr --epsilon 1 --by region": "by nothing else",
}


def test_mistakes_are_one_line_and_nothing_is_written(command: Command) -> None:
    before = sorted(Path().iterdir())
    for words, message in MISTAKES.items():
        status, printed = command("t.csv", *words.split())
        assert status == 2, words
        assert message in printed, (words, printed)
        (line,) = [one for one in printed.splitlines() if not one.endswith("…")]
        assert line.startswith("ldpaudit: ")
    assert sorted(Path().iterdir()) == before


def test_files_whose_declaration_does_not_fit(command: Command) -> None:
    rr = {"name": "randomized-response", "classes": ["no", "yes"], "epsilon": 1.0}
    for labels, message in (
        ([{"label": "a", "mechanism": rr}, {"label": "gone", "mechanism": rr}], "declares"),
        ([{"label": "a", "mechanism": rr}] * 2, "different columns"),
    ):
        Path("t.csv.ldpaudit.json").write_text(json.dumps({"version": 2, "labels": labels}))
        assert message in command("t.csv")[1]
    Path("t.csv.ldpaudit.json").write_text(json.dumps({"version": 3}))
    assert "version 1 or 2" in command("t.csv")[1]
