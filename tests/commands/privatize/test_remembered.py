"""Answers that the next release repeats: what is kept, what is drawn anew, what is refused."""

import stat
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from commands.privatize.conftest import Command, declared_json, frame

from ldpaudit.commands.privatize.request import PrivatizeRequest
from ldpaudit.commands.privatize.work import privatize
from ldpaudit.datasets import read_release

MEMORY = Path("memory.parquet")
TWO = ("label:rr:epsilon=0.5", "weeks:discrete-laplace:epsilon=0.5:labels=0:10")


@pytest.fixture
def people(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """The table of one year, in the current folder; returned, too."""
    monkeypatch.chdir(tmp_path)
    table = frame(390).assign(person=[f"P{i:03d}" for i in range(390)])
    table.to_parquet("data.parquet")
    return table


def applied(data: str = "data.parquet", **options: Any) -> pd.DataFrame:
    """Release a table with remembered answers; return the release by person."""
    common: dict[str, Any] = {"remember": MEMORY, "id_column": "person", "overwrite": True}
    privatize(PrivatizeRequest(data, Path("r.parquet"), **{**common, **options}))
    return pq.read_table("r.parquet").to_pandas().set_index("person")


def test_who_has_not_changed_gets_the_same_answer(people: pd.DataFrame) -> None:
    first = applied(label=TWO)
    assert declared_json(Path("r.parquet"))["provenance"]["answers"] == "remembered"
    assert stat.S_IMODE(MEMORY.stat().st_mode) == 0o600
    later = people.sample(frac=1, random_state=0).iloc[:350].assign(x=0.0)
    changed = later.index[:150]
    later.loc[changed, "weeks"] = (later.loc[changed, "weeks"] + 1) % 11
    came = frame(30, seed=9).assign(person=[f"N{i:03d}" for i in range(30)])
    pd.concat([later, came]).to_csv("later.csv", index=False)  # Another format, and another order.
    second = applied("later.csv", label=TWO)
    both = [name for name in second.index if name in first.index]
    assert len(both) == 350
    assert (first.loc[both, "label"] == second.loc[both, "label"]).all()
    same = people.set_index("person").loc[both, "weeks"] == later.set_index("person")["weeks"][both]
    repeated = first.loc[both, "weeks"] == second.loc[both, "weeks"]
    assert repeated[same].all()
    assert repeated[~same].mean() < 0.5  # Of noise of scale 20 hardly any value comes twice.
    # Who left is not forgotten.
    third = applied(label=TWO)
    assert (first["label"] == third["label"]).all()
    assert (first["weeks"] == third["weeks"]).all()


def test_types_stay(people: pd.DataFrame) -> None:
    people.assign(label=people["label"].astype("category")).to_parquet("data.parquet")
    labels = ("label:rr:epsilon=0.5", "flag:rr:epsilon=0.5")
    pd.testing.assert_frame_equal(applied(label=labels), applied(label=labels))


def test_a_joint_mechanism_answers_anew_where_any_label_changed(people: pd.DataFrame) -> None:
    options: dict[str, Any] = {"joint": "rs-fd", "label": ("label", "flag"), "epsilon": 0.5}
    first = applied(**options)
    people.loc[:199, "flag"] = ~people.loc[:199, "flag"]
    people.to_parquet("data.parquet")
    second = applied(**options)
    same = (first["label"] == second["label"]) & (first["flag"] == second["flag"])
    assert same[200:].all()
    assert same[:200].mean() < 0.6


def test_strata_and_mechanisms_that_change_are_answered_anew(people: pd.DataFrame) -> None:
    strata = {town: {"epsilon": 0.1} for town in ("oslo", "rome", "bonn")}
    plan = {"labels": [{"label": "flag", "by": "town", "mechanism": "rr", "strata": strata}]}
    first = applied(plan=plan)
    people.assign(town=np.where(people.index < 200, "oslo", people["town"])).to_parquet(
        "d2.parquet"
    )
    second = applied("d2.parquet", plan=plan)
    moved = (people["town"] != "oslo").to_numpy() & (np.arange(390) < 200)
    same = (first["flag"] == second["flag"]).to_numpy()
    assert same[~moved].all()
    assert not same[moved].all()
    options: dict[str, Any] = {"remember": MEMORY, "id_column": "person", "overwrite": True}
    request = PrivatizeRequest(
        "data.parquet", Path("r.parquet"), label="flag:rr:epsilon=2", **options
    )
    assert any("No answer of 'flag' is repeated" in text for text in privatize(request).warnings)


def test_a_release_never_repeats_what_an_experiment_drew(people: pd.DataFrame) -> None:
    drawn = applied(label="weeks:rr:epsilon=0.01:labels=0:10", experimental=True, seed=1)
    released = applied(label="weeks:rr:epsilon=0.01:labels=0:10")
    assert (drawn["weeks"] == released["weeks"]).mean() < 0.5  # A chance of 1/11 for each.


def test_the_id_may_stay_at_home(people: pd.DataFrame, command: Command) -> None:
    options = (
        "data.parquet",
        "--label",
        "label:rr:epsilon=1",
        "--remember",
        MEMORY,
        "--id",
        "person",
    )
    for name in ("a.csv", "b.csv"):
        status, printed = command(*options, "-o", name, "--drop", "person")
        assert status == 0, printed
        assert ("new file" in printed) == (name == "a.csv")
    assert "a changed answer shows that a label changed" in printed
    assert "people's answers, readable by you only" in printed
    assert Path("a.csv").read_text() == Path("b.csv").read_text()
    assert "P001" not in Path("a.csv").read_text()
    stored = MEMORY.read_bytes()
    assert b"P001" not in stored


def test_the_secret_tells_people_apart(people: pd.DataFrame) -> None:
    options: dict[str, Any] = {"id_column": "person", "secret": Path("s.csv"), "drop": ("x",)}
    release = PrivatizeRequest("data.parquet", Path("r.csv"), label="flag:rr:epsilon=1", **options)
    privatize(release)
    kept = pd.read_csv("s.csv").sample(frac=1, random_state=0)
    assert sorted(kept) == ["flag", "person"]
    kept.to_csv("turned.csv", index=False)
    read = read_release("r.csv", truth="turned.csv", id_column="person").release
    assert read.truth is not None
    assert [read.classes[code] for code in read.truth] == people["flag"].tolist()
