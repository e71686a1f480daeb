"""The options of the label-inference audit, from the command line to the report."""

import json

import numpy as np
import pandas as pd
import pytest

import ldpaudit
from ldpaudit.commands.outputs import Outputs
from ldpaudit.commands.requests import RunRequest
from ldpaudit.commands.run.work import run_and_write
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.with_features import ModelBasedRR

REGIONS = np.array(["zzwest", "zznorth", "zzeast"])


def survey(n=300):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, n)
    frame = pd.DataFrame({"x": rng.normal(size=n) + truth, "qzregion": REGIONS[np.arange(n) % 3]})
    public = np.full((n, 2), 0.5)
    mechanism = ModelBasedRR(("no", "yes"), 0.5, 0.0)
    released = mechanism.sample(truth.astype(np.int32), public, rng)
    labels = np.array(["no", "yes"], dtype=object)
    return frame.assign(label=labels[released]), labels[truth], public


def test_slices_and_the_public_model_reach_the_report(tmp_path):
    frame, truth, public = survey()
    release, secret, model = (tmp_path / f"{n}.parquet" for n in ("release", "truth", "public"))
    frame.to_parquet(release)
    pd.DataFrame({"label": truth}).to_parquet(secret)
    pd.DataFrame(public, columns=["no", "yes"]).to_parquet(model)
    request = RunRequest(
        release=(str(release),),
        truth=str(secret),
        mechanism=ldpaudit.release.Declaration(
            "model-based-rr", {"classes": ["no", "yes"], "lambda": 0.5, "floor": 0.0}, "options"
        ),
        only=("label-inference",),
        slices=("qzregion",),
        public_posterior=str(model),
    )
    paths = Outputs().or_beside(str(release), "audit")
    run_and_write(request, paths, quiet=True)
    found = {e["id"]: e for e in json.loads(paths.json.read_text())["estimates"]}
    assert "attack.bayes.accuracy" in found
    assert "attack.best.slice-1-3.advantage" in found
    page = paths.html.read_text()
    assert "column 1, slice 3" in page
    assert "What the references mean" in page
    assert "Slices 1 are by the column qzregion: 1 has the most rows" in page
    assert "zz" not in page + paths.json.read_text()


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"slices": ["nowhere"]}, "no column"),
        ({"public_posterior": np.ones((2, 2))}, "300 rows"),
    ],
)
def test_bad_options_are_refused_before_anything_runs(options, word):
    frame, truth, _ = survey()
    with pytest.raises(InputError, match=word):
        ldpaudit.audit(frame, truth, only=("label-inference",), **options)


def test_one_row_of_each_group_is_scored() -> None:
    """Ten rows a person, with one true label: as ten guesses they would be counted ten times."""
    rng = np.random.default_rng(4)
    people = 150
    side = rng.integers(0, 2, people)
    truth = np.repeat(np.where(rng.random(people) < 0.7, side, 1 - side), 10)
    released = np.where(rng.random(len(truth)) < 0.57, truth, 1 - truth)
    frame = pd.DataFrame({"x": np.repeat(side, 10), "label": released})
    frame["person"] = [f"p{i}" for i in np.repeat(np.arange(people), 10)]
    claim = {"name": "randomized-response", "epsilon": 0.3, "classes": [0, 1]}
    result = ldpaudit.audit(frame, truth, claim, group="person", only=("label-inference",))
    accuracy = next(e for e in result.estimates if e.id == "attack.features-only.accuracy")
    assert accuracy.n == people
    assert accuracy.kind == "certified"
    assert accuracy.high - accuracy.low > 0.1
    assert any("one row of each group" in note.text for note in result.notes)
