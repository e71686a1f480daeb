"""Noise within the labels of each group, as statisticians post-randomize: classes by stratum."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from ldpaudit.datasets.probabilities import embedded
from ldpaudit.datasets.reading import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.release.privatize.request import PrivatizeRequest
from ldpaudit.extras.release.privatize.work import privatize
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.mechanisms.view import DeclaredCoding

LABELS = {"north": ["coal", "fish"], "south": ["fish", "wine", "corn"]}
ROWS = 1_200


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    region = rng.choice([*LABELS], ROWS)
    work = [rng.choice(LABELS[one]) for one in region]
    return pd.DataFrame({"x": rng.normal(size=ROWS), "region": region, "work": work})


def plan(north, south):
    strata = {"north": north, "south": south}
    return {"labels": [{"label": "work", "by": "region", "mechanism": "rr", "strata": strata}]}


def check(folder, data, epsilon):
    report = read_release(folder / "r.csv", truth=folder / "s.csv", coding=DeclaredCoding).release
    released = pd.read_csv(folder / "r.csv")
    for region, labels in LABELS.items():
        assert {*released.loc[released["region"] == region, "work"]} == {*labels}
    assert (report.released == report.truth).mean() > 0.5
    declared = json.loads((folder / "r.csv.ldpaudit.json").read_text())
    strata = declared["labels"][0]["mechanism"]["strata"]
    for one in strata:
        channel = one["mechanism"]
        matrix = np.array(channel["matrix"])
        exact = Channel(matrix, tuple(channel["classes"]), tuple(channel["outputs"])).epsilon
        assert exact == pytest.approx(epsilon, abs=1e-9)
        mine = [label in LABELS[one["value"]] for label in channel["classes"]]
        assert (matrix[:, ~np.array(mine)] == 0).all()
    assert (released["work"] != data["work"]).any()


def test_a_plan_with_classes_by_stratum(tmp_path, data):
    by = {region: {"epsilon": 1.5, "classes": labels} for region, labels in LABELS.items()}
    privatize(
        PrivatizeRequest(data, tmp_path / "r.csv", plan=plan(**by), secret=tmp_path / "s.csv")
    )
    check(tmp_path, data, 1.5)


def test_a_table_of_channels_with_labels_of_their_own(tmp_path, data):
    keep, third = math.exp(1.5) / (math.exp(1.5) + 1), math.exp(1.5) / (math.exp(1.5) + 2)
    rows = ["region,from,to,probability"]
    for region, labels in LABELS.items():
        own = keep if len(labels) == 2 else third
        rows += [
            f"{region},{one},{two},{own if one == two else (1 - own) / (len(labels) - 1)!r}"
            for one in labels
            for two in labels
        ]
    (tmp_path / "c.csv").write_text("\n".join(rows) + "\n")
    privatize(
        PrivatizeRequest(
            data, tmp_path / "r.csv", label=[f"work:channel={tmp_path / 'c.csv'}:by=region"],
            secret=tmp_path / "s.csv",
        )
    )  # fmt: skip
    check(tmp_path, data, 1.5)


def test_every_label_is_one_of_some_stratum(data, tmp_path):
    by = {region: {"epsilon": 1.0, "classes": ["coal", "gold"]} for region in LABELS}
    with pytest.raises(InputError, match="must be one of the declared classes"):
        privatize(PrivatizeRequest(data, tmp_path / "r.csv", plan=plan(**by)))


def test_an_embedded_channel_costs_what_it_cost():
    own = [[0.8, 0.2], [0.4, 0.6]]
    whole = embedded(own, ["a", "b"], ["a", "b"], ["c", "a", "b"])
    np.testing.assert_allclose(whole, [[0, 0.6, 0.4], [0, 0.8, 0.2], [0, 0.4, 0.6]])
    names = ("c", "a", "b")
    ours, theirs = Channel(whole, names, names), Channel(np.array(own), ("a", "b"), ("a", "b"))
    assert ours.epsilon == pytest.approx(theirs.epsilon, abs=1e-12)
