"""``ldpaudit learn`` on a release of several private columns."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldpaudit import cli
from ldpaudit.commands.compare.work import ReleaseInput, fingerprints, read_inputs
from ldpaudit.commands.requests import CompareRequest
from ldpaudit.errors import InputError
from ldpaudit.work.progress import NoProgress


@pytest.fixture
def ldpaudit(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the command line; return its status and everything that it printed."""

    def call(*words: Any) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["ldpaudit", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0), "".join(capsys.readouterr())

    return call


def table(rows: int, seed: int) -> pd.DataFrame:
    """Return a feature, a region, an illness, and a class and a number that depend on the illness.

    ``ill`` has three values, ``kind`` two, ``weeks`` 0 … 20.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    ill = np.clip(np.round(1 + 0.8 * x + 0.5 * rng.normal(size=rows)), 0, 2).astype(int)
    yes = rng.random(rows) < 1 / (1 + np.exp(-3.0 * (ill - 1)))
    weeks = np.clip(np.round(10 + 8 * (ill - 1) + 3 * rng.normal(size=rows)), 0, 20).astype(int)
    return pd.DataFrame(
        {
            "x": x,
            "region": np.where(rng.random(rows) < 0.5, "north", "south"),
            "ill": np.array(["ux", "vx", "wx"])[ill],
            "kind": np.where(yes, "yk", "nk"),
            "weeks": weeks,
        }
    )


def files(
    ldpaudit: Any, folder: Path, *words: Any, keep: tuple[str, ...], rows: int = 4000
) -> list[Any]:
    """Release some rows; return the words of ``learn`` for them."""
    columns = ["x", "region", *keep]
    table(rows, 0)[columns].to_parquet(folder / "data.parquet")
    table(3000, 1)[columns].to_parquet(folder / "test.parquet")
    places = ("-o", folder / "r.parquet", "--secret", folder / "truth.parquet")
    status, said = ldpaudit(
        "privatize", folder / "data.parquet", *places, "--experimental", "--seed", 3, *words
    )
    assert status == 0, said
    return ["learn", folder / "r.parquet", "--test", folder / "test.parquet"]


def accuracy(said: str) -> float:
    (found,) = re.findall(r"Accuracy on test rows: ([\d.]+) %", said)
    return float(found)


INDEPENDENT = ("--label", "kind:rr:epsilon=2", "--label", "ill:rr:epsilon=1")


def test_a_noisy_column_beside_helps_and_the_truth_helps_more(ldpaudit, tmp_path):
    words = files(ldpaudit, tmp_path, *INDEPENDENT, keep=("ill", "kind"))
    told = tmp_path / "learnt.json"
    extra = ("--truth", tmp_path / "truth.parquet", "--json", told)
    status, said = ldpaudit(*words, "--label", "kind", *extra)
    assert status == 0, said
    assert "what they reveal about their true values" in said
    alone = pd.read_parquet(tmp_path / "r.parquet").drop(columns="ill")
    alone.to_csv(tmp_path / "alone.csv", index=False)
    pd.read_parquet(tmp_path / "test.parquet").drop(columns="ill").to_csv(
        tmp_path / "alone-test.csv", index=False
    )
    claim = ("--mechanism", "rr", "--epsilon", 2, "--label", "kind")
    _, without = ldpaudit(
        "learn", tmp_path / "alone.csv", "--test", tmp_path / "alone-test.csv", *claim
    )
    # 3,000 test rows: a point and a half is two standard errors of a difference at least.
    assert accuracy(said) > accuracy(without) + 1.5
    found = json.loads(told.read_text())
    assert found["reference"]["value"] >= found["score"]["low"]
    assert not any(word in json.dumps(found) for word in ("ill", "ux", "vx"))


@pytest.mark.parametrize("joint", ["joint-rr", "rs-fd"])
def test_columns_that_were_released_together(joint, ldpaudit, tmp_path):
    labels = ("--label", "kind", "--label", "ill", "--joint", joint, "--epsilon", 2)
    words = files(ldpaudit, tmp_path, *labels, keep=("ill", "kind"))
    status, said = ldpaudit(*words, "--label", "kind")
    assert status == 0, said
    assert "through the channel of all private columns together" in said
    _, boosted = ldpaudit(*words, "--label", "kind", "--learner", "boosting")
    assert "with all values that the other private columns may have" in boosted
    assert abs(accuracy(said) - accuracy(boosted)) < 5


def test_numbers_beside_classes(ldpaudit, tmp_path):
    labels = ("--label", "weeks:discrete-laplace:labels=0:20:epsilon=1", *INDEPENDENT[2:])
    words = files(ldpaudit, tmp_path, *labels, keep=("ill", "weeks"))
    for label, score in (("weeks", "Squared error"), ("ill", "Accuracy")):
        status, said = ldpaudit(*words, "--label", label)
        assert status == 0, said
        assert f"{score} on test rows" in said
        assert "what they reveal about their true values" in said
    _, said = ldpaudit(*words, "--label", "weeks", "--learner", "boosting")
    assert "the other private columns at their word" in said


def test_claims_on_the_command_line_name_what_is_learnt_first(ldpaudit, tmp_path):
    words = files(ldpaudit, tmp_path, *INDEPENDENT, keep=("ill", "kind"))
    bare = tmp_path / "bare.csv"
    pd.read_parquet(tmp_path / "r.parquet").to_csv(bare, index=False)
    status, said = ldpaudit("learn", bare, *words[2:], *INDEPENDENT)
    assert status == 0, said
    assert "what they reveal about their true values" in said


def test_the_column_to_learn_must_be_named_and_declared(ldpaudit, tmp_path):
    words = files(ldpaudit, tmp_path, *INDEPENDENT, keep=("ill", "kind"))
    status, said = ldpaudit(*words)
    assert (status, "declares 2 private columns; name the one to learn" in said) == (2, True)
    status, said = ldpaudit(*words, "--label", "region")
    assert (status, "'region' is none of the 2 private" in said) == (2, True)


def test_channels_by_stratum(ldpaudit, tmp_path):
    """North is released as it is nearly, south nearly at random: the pooled channel is neither."""
    data = table(6000, 0)[["x", "region", "kind"]]
    rng = np.random.default_rng(4)
    drawn = rng.random(6000) < np.where(data["region"] == "north", 0.05, 0.9)
    data["kind"] = np.where(drawn, rng.choice(["nk", "yk"], 6000), data["kind"])
    data.to_csv(tmp_path / "r.csv", index=False)
    table(3000, 1)[["x", "region", "kind"]].to_csv(tmp_path / "test.csv", index=False)
    strata = [
        {"value": region, "mechanism": {"name": "randomized-response", "lambda": noise}}
        for region, noise in (("north", 0.05), ("south", 0.9))
    ]
    mechanism = {"name": "by-stratum", "classes": ["nk", "yk"], "strata": strata}
    declared = {"version": 2, "labels": [{"label": "kind", "by": "region", "mechanism": mechanism}]}
    (tmp_path / "r.csv.ldpaudit.json").write_text(json.dumps(declared))
    words = ("learn", tmp_path / "r.csv", "--test", tmp_path / "test.csv")
    status, said = ldpaudit(*words)
    assert status == 0, said
    assert "through the declared channels of the strata" in said
    assert accuracy(said) > 71  # The true labels reach 73.
    _, boosted = ldpaudit(*words, "--learner", "boosting")
    assert "average of the strata" in boosted


def test_compare_learns_from_the_other_columns_and_pairs_rows_without_them(ldpaudit, tmp_path):
    """The same people twice: their other released columns differ, and are no sign of other data."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files(ldpaudit, tmp_path / name, *INDEPENDENT, keep=("ill", "kind"), rows=400)
    releases = tuple(str(tmp_path / name / "r.parquet") for name in ("one", "two"))
    test = str(tmp_path / "one" / "test.parquet")
    request = CompareRequest(inputs=releases, label=("kind",), test=test)
    inputs = read_inputs(request, NoProgress())
    assert [print_.mismatch for print_ in fingerprints(request, inputs)] == [(), ()]
    for item in inputs:
        assert isinstance(item, ReleaseInput)
        assert item.column.beside is not None
        assert item.column.release.features.columns == 2
    with pytest.raises(InputError, match="2 private columns; say which one is meant"):
        read_inputs(CompareRequest(inputs=releases, test=test), NoProgress())
