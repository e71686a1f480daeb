"""``ldpaudit learn``: a corrected learner on test rows, beside the truth's and a constant's."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ldpaudit import cli


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
    """Return features in the unit ball, a class and a skewed amount that depend on them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(rows, 2)) / np.sqrt(2)
    yes = rng.random(rows) < 1 / (1 + np.exp(-8 * x[:, 0] + 4 * x[:, 1]))
    amount = np.clip(np.exp(1 + 2 * x[:, 0] + 0.5 * rng.standard_normal(rows)), 0, 20)
    return pd.DataFrame(
        {"wfirst": x[:, 0], "wsecond": x[:, 1], "wkind": np.where(yes, "yv", "xu")}
    ).assign(amount=amount)


def released(ldpaudit: Any, folder: Path, label: str, *words: Any) -> list[Any]:
    """Release 4,000 rows; return the words of ``learn`` for it."""
    other = "amount" if label == "wkind" else "wkind"
    table(4000, 0).drop(columns=other).to_parquet(folder / "data.parquet")
    table(2000, 1).drop(columns=other).to_parquet(folder / "test.parquet")
    places = ("-o", folder / "r.parquet", "--secret", folder / "truth.parquet")
    common = ("--label", label, "--experimental", "--seed", 3)
    status, said = ldpaudit("privatize", folder / "data.parquet", *places, *common, *words)
    assert status == 0, said
    return ["learn", folder / "r.parquet", "--test", folder / "test.parquet"]


@pytest.mark.parametrize("learner", ["logistic", "boosting", "network", "iwp"])
def test_every_learner_of_classes(learner, ldpaudit, tmp_path):
    words = released(ldpaudit, tmp_path, "wkind", "--mechanism", "rr", "--epsilon", 1.5)
    stored = tmp_path / "learnt.json"
    status, said = ldpaudit(
        *words, "--learner", learner, "--truth", tmp_path / "truth.parquet", "--json", stored
    )
    assert status == 0, said
    found = json.loads(stored.read_text())
    score, reference = found["score"], found["reference"]
    assert (score["id"], score["kind"], score["n"]) == ("test_accuracy", "certified", 2000)
    assert score["low"] < score["value"] < score["high"]
    assert found["constant"] + 0.2 < score["value"] <= reference["value"] + 0.03
    assert found["learner"] == learner
    assert "true labels" in said
    # No label and no name of a column.
    assert not any(token in stored.read_text() for token in ("xu", "yv", "wkind", "wfirst"))


def test_noisy_features_and_the_losses_of_iwp(ldpaudit, tmp_path):
    noise = ("--epsilon", 2, "--radius", 1, "--sigma", 1.0, "--delta", 1e-5)
    words = released(ldpaudit, tmp_path, "wkind", "--mechanism", "gaussian-rr", *noise)
    for loss in ("quadratic", "exponential", "log"):
        status, said = ldpaudit(*words, "--learner", "iwp", "--loss", loss)
        assert status == 0, said
        assert float(said.split("rows: ")[1].split(" %")[0]) > 75, said
        assert "inverse-Weierstrass" in said


@pytest.mark.parametrize("loss", ["exponential", "log"])
def test_strong_noise_shrinks_the_ball(loss, ldpaudit, tmp_path):
    noise = ("--epsilon", 2, "--radius", 1, "--sigma", 3.0, "--delta", 1e-5)
    words = released(ldpaudit, tmp_path, "wkind", "--mechanism", "gaussian-rr", *noise)
    status, said = ldpaudit(*words, "--learner", "iwp", "--loss", loss)
    assert status == 0, said
    # In a ball of radius 5 the log loss is refused, and the exponential one goes astray.
    assert float(said.split("rows: ")[1].split(" %")[0]) > 75, said


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_amounts_with_rounding(loss, ldpaudit, tmp_path):
    how = ("--mechanism", "optimal-unbiased", "--epsilon", 3, "--labels", "0:20")
    words = released(ldpaudit, tmp_path, "amount", *how, "--round", "unbiased")
    stored = tmp_path / "learnt.json"
    status, said = ldpaudit(*words, "--loss", loss, "--json", stored)
    assert status == 0, said
    found = json.loads(stored.read_text())
    assert found["score"]["id"] == "test_squared_error"
    assert found["score"]["value"] < 0.8 * found["constant"]
    assert "unbiased under the declared mechanism" in found["correction"]
    assert found["learner"] == "linear"
    deviance = [one for one in found["beside"] if one["id"] == "test_poisson_deviance"]
    assert len(deviance) == (loss == "poisson")
    assert ("Poisson loss" in found["correction"]) == (loss == "poisson")


def test_what_does_not_fit_is_said_in_one_line(ldpaudit, tmp_path):
    words = released(ldpaudit, tmp_path, "wkind", "--mechanism", "rr", "--epsilon", 1)
    for more, wanted in (
        (("--loss", "poisson"), "does not belong"),
        (("--confidence", 2), "between 0.5 and 1"),
        (("--seed", -1), "seed"),
    ):
        status, said = ldpaudit(*words, *more)
        assert status == 2
        assert wanted in said
    status, said = ldpaudit(*words[:2])
    assert status == 2
    assert "--test" in said
    how = ("--mechanism", "discrete-laplace", "--epsilon", 3, "--labels", "0:20")
    words = released(ldpaudit, tmp_path, "amount", *how, "--round", "nearest", "--overwrite")
    status, said = ldpaudit(*words, "--learner", "iwp", "--loss", "log")
    assert status == 2
    assert "does not belong" in said


def test_numbers_by_iwp(ldpaudit, tmp_path):
    how = ("--mechanism", "discrete-laplace", "--epsilon", 3, "--labels", "0:20")
    words = released(ldpaudit, tmp_path, "amount", *how, "--round", "nearest")
    stored = tmp_path / "learnt.json"
    status, said = ldpaudit(*words, "--learner", "iwp", "--json", stored)
    assert status == 0, said
    found = json.loads(stored.read_text())
    assert found["score"]["value"] < 0.6 * found["constant"]
    assert "inverse-Weierstrass" in found["correction"]
    assert " % below it" in said


def test_a_model_that_is_no_better_than_a_constant_is_named(ldpaudit, tmp_path):
    words = released(ldpaudit, tmp_path, "wkind", "--mechanism", "rr", "--epsilon", 0.01)
    stored = tmp_path / "learnt.json"
    status, said = ldpaudit(*words, "--json", stored)
    assert status == 0, said
    found = json.loads(stored.read_text())
    poor = found["score"]["value"] <= found["constant"]
    assert poor == ("no better on the test rows" in said)
    assert poor
    by_id = {one["id"]: one for one in found["beside"]}
    assert by_id["test_constant"]["value"] == found["constant"]
    assert 0 < by_id["test_auc"]["value"] < 1
