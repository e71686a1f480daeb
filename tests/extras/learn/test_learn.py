"""``ldpaudit learn``: a corrected learner on test rows, beside the truth's and a constant's."""

import json
import re
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from processes import called, refused

from ldpaudit.commands.outputs import Outputs
from ldpaudit.datasets import read_release
from ldpaudit.errors import InputError
from ldpaudit.extras.compare.request import CompareRequest
from ldpaudit.extras.compare.work import ReleaseInput, fingerprints, read_inputs
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.extras.learn.utility.learner import Learner
from ldpaudit.extras.learn.utility.scores import utility
from ldpaudit.release import Declaration
from ldpaudit.synthesis import generator
from ldpaudit.work.progress import NoProgress


def table(rows, seed):
    """Return features in the unit ball, a class and a skewed amount that depend on them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=(rows, 2)) / np.sqrt(2)
    yes = rng.random(rows) < 1 / (1 + np.exp(-8 * x[:, 0] + 4 * x[:, 1]))
    amount = np.clip(np.exp(1 + 2 * x[:, 0] + 0.5 * rng.standard_normal(rows)), 0, 20)
    return pd.DataFrame(
        {"wfirst": x[:, 0], "wsecond": x[:, 1], "wkind": np.where(yes, "yv", "xu")}
    ).assign(amount=amount)


@pytest.fixture(scope="module")
def released(tmp_path_factory):
    """Release 4,000 rows, once for the same words; return the words of ``learn`` for it."""

    @cache
    def made(label, words):
        folder, other = tmp_path_factory.mktemp("learn"), {"wkind": "amount"}.get(label, "wkind")
        for seed, name in enumerate(("data", "test")):
            rows = table(4000 - 2000 * seed, seed).drop(columns=other)
            rows.to_parquet(folder / f"{name}.parquet")
        places = ("-o", folder / "r.parquet", "--secret", folder / "truth.parquet")
        more = ("--label", label, "--experimental", "--seed", 3, "--mechanism", *words.split())
        status, said = called("privatize", folder / "data.parquet", *places, *more)
        assert status == 0, said
        return ["learn", folder / "r.parquet", "--test", folder / "test.parquet"]

    return made


@pytest.fixture
def learnt(tmp_path):
    """Learn; return what was printed and stored."""

    def call(*words):
        status, said = called(*words, "--json", tmp_path / "learnt.json")
        assert status == 0, said
        Outputs(json=tmp_path / "learnt.json").check()  # A later run may replace it.
        return said, json.loads((tmp_path / "learnt.json").read_text())

    return call


NOISY = "gaussian-rr --epsilon 2 --radius 1 --delta 1e-5 --sigma"
LAPLACE = "discrete-laplace --epsilon 3 --labels 0:20 --round nearest"


@pytest.mark.parametrize("learner", ["logistic", "boosting", "network", "iwp"])
def test_every_learner_of_classes(learner, released, learnt):
    words = released("wkind", "rr --epsilon 1.5")
    truth = words[1].with_name("truth.parquet")
    said, found = learnt(*words, "--learner", learner, "--truth", truth)
    score, reference = found["score"], found["reference"]
    assert (score["id"], score["kind"], score["n"]) == ("test_accuracy", "certified", 2000)
    assert score["low"] < score["value"] < score["high"]
    assert found["constant"] + 0.2 < score["value"] <= reference["value"] + 0.03
    assert (found["learner"], "true labels" in said) == (learner, True)
    # No label and no name of a column.
    assert not any(token in json.dumps(found) for token in ("xu", "yv", "wkind", "wfirst"))


@pytest.mark.parametrize(
    ("sigma", "loss"),
    [(1, "quadratic"), (1, "exponential"), (1, "log"), (3, "exponential"), (3, "log")],
)
def test_noisy_features_and_the_losses_of_iwp(sigma, loss, released, learnt):
    """Strong noise shrinks the ball: in one of radius 5 the log loss is refused, another strays."""
    words = released("wkind", f"{NOISY} {sigma}")
    said, found = learnt(*words, "--learner", "iwp", "--loss", loss)
    assert found["score"]["value"] > 0.75
    assert "inverse-Weierstrass" in said


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_amounts_with_rounding(loss, released, learnt):
    words = released("amount", "optimal-unbiased --epsilon 3 --labels 0:20 --round unbiased")
    _, found = learnt(*words, "--loss", loss)
    assert (found["score"]["id"], found["learner"]) == ("test_squared_error", "linear")
    assert found["score"]["value"] < 0.8 * found["constant"]
    assert "unbiased under the declared mechanism" in found["correction"]
    deviance = [one for one in found["beside"] if one["id"] == "test_poisson_deviance"]
    assert len(deviance) == ("Poisson loss" in found["correction"]) == (loss == "poisson")


@pytest.mark.parametrize(
    ("label", "mechanism", "more", "said"),
    [
        ("wkind", "rr --epsilon 1.5", "--loss poisson", "does not belong"),
        ("wkind", "rr --epsilon 1.5", "--confidence 2", "between 0.5 and 1"),
        ("wkind", "rr --epsilon 1.5", "--seed -1", "seed"),
        ("wkind", "rr --epsilon 1.5", "", "--test"),
        ("amount", LAPLACE, "--learner iwp --loss log", "does not belong"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(label, mechanism, more, said, released):
    words = released(label, mechanism)
    assert said in refused(*(words if more else words[:2]), *more.split())


def test_numbers_by_iwp(released, learnt):
    said, found = learnt(*released("amount", LAPLACE), "--learner", "iwp")
    assert found["score"]["value"] < 0.6 * found["constant"]
    assert "inverse-Weierstrass" in found["correction"]
    assert " % below it" in said


def test_a_model_that_is_no_better_than_a_constant_is_named(released, learnt):
    said, found = learnt(*released("wkind", "rr --epsilon 0.01"))
    assert found["score"]["value"] <= found["constant"]
    assert "no better on the test rows" in said
    by_id = {one["id"]: one["value"] for one in found["beside"]}
    assert by_id["test_constant"] == found["constant"]
    assert 0 < by_id["test_auc"] < 1


def table_of_learn_beside(rows, seed):
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


def files(folder, *words, keep, rows=4000):
    """Release some rows; return the words of ``learn`` for them."""
    columns = ["x", "region", *keep]
    table_of_learn_beside(rows, 0)[columns].to_parquet(folder / "data.parquet")
    table_of_learn_beside(3000, 1)[columns].to_parquet(folder / "test.parquet")
    places = ("-o", folder / "r.parquet", "--secret", folder / "truth.parquet")
    status, said = called(
        "privatize", folder / "data.parquet", *places, "--experimental", "--seed", 3, *words
    )
    assert status == 0, said
    return ["learn", folder / "r.parquet", "--test", folder / "test.parquet"]


def accuracy(said):
    (found,) = re.findall(r"Accuracy on test rows: ([\d.]+) %", said)
    return float(found)


INDEPENDENT = ("--label", "kind:rr:epsilon=2", "--label", "ill:rr:epsilon=1")


@pytest.fixture(scope="module")
def independent(tmp_path_factory):
    return files(tmp_path_factory.mktemp("two"), *INDEPENDENT, keep=("ill", "kind"))


def test_a_noisy_column_beside_helps_and_the_truth_helps_more(independent, learnt, tmp_path):
    folder = independent[1].parent
    said, found = learnt(*independent, "--label", "kind", "--truth", folder / "truth.parquet")
    assert "what they reveal about their true values" in said
    for name in ("r", "test"):
        alone = pd.read_parquet(folder / f"{name}.parquet").drop(columns="ill")
        alone.to_csv(tmp_path / f"{name}.csv", index=False)
    claim = ("--mechanism", "rr", "--epsilon", 2, "--label", "kind")
    _, without = called("learn", tmp_path / "r.csv", "--test", tmp_path / "test.csv", *claim)
    # 3,000 test rows: a point and a half is two standard errors of a difference at least.
    assert accuracy(said) > accuracy(without) + 1.5
    assert found["reference"]["value"] >= found["score"]["low"]
    assert not any(word in json.dumps(found) for word in ("ill", "ux", "vx"))


@pytest.mark.parametrize("joint", ["joint-rr", "rs-fd"])
def test_columns_that_were_released_together(joint, tmp_path):
    labels = ("--label", "kind", "--label", "ill", "--joint", joint, "--epsilon", 2)
    words = files(tmp_path, *labels, keep=("ill", "kind"))
    status, said = called(*words, "--label", "kind")
    assert status == 0, said
    assert "through the channel of all private columns together" in said
    _, boosted = called(*words, "--label", "kind", "--learner", "boosting")
    assert "with all values that the other private columns may have" in boosted
    assert abs(accuracy(said) - accuracy(boosted)) < 5


def test_numbers_beside_classes(tmp_path):
    labels = ("--label", "weeks:discrete-laplace:labels=0:20:epsilon=1", *INDEPENDENT[2:])
    words = files(tmp_path, *labels, keep=("ill", "weeks"))
    for label, score in (("weeks", "Squared error"), ("ill", "Accuracy")):
        status, said = called(*words, "--label", label)
        assert (status, f"{score} on test rows" in said) == (0, True), said
        assert "what they reveal about their true values" in said
    _, said = called(*words, "--label", "weeks", "--learner", "boosting")
    assert "the other private columns at their word" in said


def test_claims_on_the_command_line_name_what_is_learnt_first(independent, tmp_path):
    bare = tmp_path / "bare.csv"
    pd.read_parquet(independent[1]).to_csv(bare, index=False)
    status, said = called("learn", bare, *independent[2:], *INDEPENDENT)
    assert (status, "what they reveal about their true values" in said) == (0, True), said


def test_the_column_to_learn_must_be_named_and_declared(independent):
    assert "declares 2 private columns; name the one to learn" in refused(*independent)
    assert "'region' is none of the private columns" in refused(*independent, "--label", "region")


def test_channels_by_stratum(tmp_path):
    """North is released as it is nearly, south nearly at random: the pooled channel is neither."""
    data = table_of_learn_beside(6000, 0)[["x", "region", "kind"]]
    rng = np.random.default_rng(4)
    drawn = rng.random(6000) < np.where(data["region"] == "north", 0.05, 0.9)
    data["kind"] = np.where(drawn, rng.choice(["nk", "yk"], 6000), data["kind"])
    data.to_csv(tmp_path / "r.csv", index=False)
    table_of_learn_beside(3000, 1)[["x", "region", "kind"]].to_csv(
        tmp_path / "test.csv", index=False
    )
    strata = [
        {"value": region, "mechanism": {"name": "randomized-response", "lambda": noise}}
        for region, noise in (("north", 0.05), ("south", 0.9))
    ]
    mechanism = {"name": "by-stratum", "classes": ["nk", "yk"], "strata": strata}
    declared = {"version": 2, "labels": [{"label": "kind", "by": "region", "mechanism": mechanism}]}
    (tmp_path / "r.csv.ldpaudit.json").write_text(json.dumps(declared))
    words = ("learn", tmp_path / "r.csv", "--test", tmp_path / "test.csv")
    status, said = called(*words)
    assert (status, "through the declared channels of the strata" in said) == (0, True), said
    assert accuracy(said) > 71  # The true labels reach 73.
    _, boosted = called(*words, "--learner", "boosting")
    assert "average of the strata" in boosted


def test_compare_learns_from_the_other_columns_and_pairs_rows_without_them(tmp_path):
    """The same people twice: their other released columns differ, and are no sign of other data."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        files(tmp_path / name, *INDEPENDENT, keep=("ill", "kind"), rows=400)
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


CLASSES = ("no", "yes")


def table_of_double(rows, rng):
    """Return features that say a little of a label of which one in five is a yes."""
    codes = (rng.random(rows) < 0.2).astype(np.int32)
    x = rng.normal(size=(rows, 4)) + 0.5 * codes[:, None]
    return pa.table({f"x{j}": x[:, j] for j in range(4)}), codes


def labelled(features, codes):
    return features.append_column("label", pa.array([CLASSES[code] for code in codes]))


@pytest.mark.parametrize("noise", [0.3, 0.8])
def test_the_chosen_loss_is_not_far_below_the_better_one(noise):
    rng = np.random.default_rng(int(10 * noise))
    claim = DoubleRR(CLASSES, noise)
    public, test = table_of_double(2_000, rng), table_of_double(4_000, rng)
    own, codes = table_of_double(5_000, rng)
    made = generator("mixture", trained_on="public").fit(*public, 2, rng=rng)
    asked = rng.integers(0, 2, len(codes)).astype(np.int32)
    drawn = claim.sample(codes, asked, rng)
    synthetic = made.sample(asked, rng)
    places = np.arange(len(codes))
    rows = np.where(drawn.synthetic_rows >= 0, len(codes) + drawn.synthetic_rows, places)
    released = pa.concat_tables([own, synthetic.cast(own.schema)]).take(rows)
    reading = read_release(
        labelled(released, drawn.labels),
        label="label",
        declaration=Declaration("double-rr", {"classes": list(CLASSES), "lambda": noise}, "api"),
        synthetic=labelled(synthetic, asked),
        test=labelled(*test),
    )
    found = utility(reading.release, reading.test, Learner("logistic"), 0.95, rng)
    by_id = {one.id: one.value for one in found.beside}
    # At λ = 0.8 the unbiased loss alone is right for 67 to 73 % of such rows.
    assert found.correction.name == ("unbiased" if noise < 0.5 else "backward")
    assert found.estimate.value > by_id["test_constant"] + (0.005 if noise < 0.5 else -0.01)
    if noise < 0.5:
        assert by_id["test_auc"] > 0.7
    # Either it is better than a constant, or it says that it is not.
    assert bool(found.warnings) == (found.estimate.value <= by_id["test_constant"])
