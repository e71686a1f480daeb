"""What predictions for training rows reveal: bounds that hold, stored labels found, bad input."""

import json
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from sklearn.ensemble import RandomForestClassifier
from typer.testing import CliRunner
from worlds import feature_table

import ldpaudit
from ldpaudit.audits.interface import Plan
from ldpaudit.cli import app
from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.noisy_features.tradeoff import gaussian_mu
from ldpaudit.extras.probe.models.predictions import Curve, fair_coins, of_canaries
from ldpaudit.release import Release, ReleasedLabels

CLASSES = ("no", "yes")


def world(seed: int, n: int = 600) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Return features, the chance of "yes", and labels drawn with it: canaries, all of them."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    chance = 1 / (1 + np.exp(-table["a"].to_numpy()))
    return table, chance, (rng.random(n) < chance).astype(np.int32)


def remembered(labels: np.ndarray, epsilon: float, rng: np.random.Generator) -> np.ndarray:
    """Return the probabilities of a model that remembers each label, randomized with ε."""
    kept = rng.random(len(labels)) < 1 / (1 + math.exp(-epsilon))
    yes = np.where(np.where(kept, labels, 1 - labels) == 1, 0.9, 0.1)
    return np.c_[1 - yes, yes]


def bound(seed: int, epsilon: float, n: int = 400) -> float:
    table, chance, labels = world(seed, n)
    release = Release(feature_table(table), ReleasedLabels(labels), CLASSES, CLASSES)
    said = remembered(labels, epsilon, np.random.default_rng([seed, 1]))
    drawn = np.c_[1 - chance, chance]
    return of_canaries(release, said, drawn, Plan(seed=seed, confidence=0.7))[0].value


def parity(seed: int) -> float:
    """Rows that depend on one another: one bit of noise for all, at most log 3 for a single one."""
    rng = np.random.default_rng(seed)
    table, chance, labels = world(seed, 200)
    release = Release(feature_table(table), ReleasedLabels(labels), CLASSES, CLASSES)
    # The parity of all labels through randomized response says nothing more of each.
    odd = (labels.sum() + (rng.random() < 0.25)) % 2
    said = np.tile([1 - 0.8 * odd, 0.8 * odd], (200, 1)).clip(0.1, 0.9)
    drawn = np.c_[1 - chance, chance]
    return of_canaries(release, said, drawn, Plan(seed=seed, confidence=0.7))[0].value


@pytest.mark.parametrize(
    ("draw", "epsilon", "least"),
    [
        (partial(bound, epsilon=0.5), 0.5, 0.2),
        (partial(bound, epsilon=3.0), 3.0, 1.7),
        # So many rows are compared with similar ones.
        (partial(bound, epsilon=1.0, n=1_000), 1.0, 0.5),
        (parity, math.log(3), 0.0),
    ],
    ids=["0.5", "3", "many rows", "one model of all labels"],
)
def test_drawn_labels_accuse_no_more_often_than_the_level_says(
    draw: Callable[[int], float], epsilon: float, least: float
) -> None:
    """At 70 % more than 9 of 12 have a chance of 2e-4; three times as many misses fail in 89 %."""
    bounds = np.array([draw(seed) for seed in range(12)])
    assert (bounds > epsilon).sum() <= binom.isf(1e-3, 12, 0.3)
    assert bounds.mean() >= least


def test_labels_drawn_with_any_chances_become_fair_coins() -> None:
    rng, n = np.random.default_rng(2), 30_000
    prior = np.tile([0.6, 0.3, 0.1, 0.0], (n, 1))
    prior[: n // 2] = [0.8, 0.2, 0.0, 0.0]
    truth = (rng.random((n, 1)) > np.cumsum(prior, axis=1)).sum(axis=1).astype(np.int32)
    lift = np.zeros((n, 4))
    lift[np.arange(n), truth] = 1.0
    coin, score = fair_coins(prior, truth, lift, rng)
    assert ((score > 0) == coin).all()
    # With two labels as many are kept as can be, 2 · 0.2; with three (1 − Σ π²)/(1 − 0.1).
    assert len(coin) == pytest.approx(n / 2 * (0.4 + 0.6), rel=0.03)
    assert coin.mean() == pytest.approx(0.5, abs=5 * 0.5 / math.sqrt(len(coin)))


def under_curve(seed: int, epsilon: float, n: int) -> tuple[float, float]:
    """Return the bounds with and without the curve of training that shows labels with it."""
    table, chance, labels = world(seed, n)
    release = Release(feature_table(table), ReleasedLabels(labels), CLASSES, CLASSES)
    mu, rng = gaussian_mu(epsilon, 1e-5), np.random.default_rng([seed, 1])
    logit = np.log(chance / (1 - chance)) + mu * rng.normal(mu * (labels - 0.5))
    said = np.c_[1 / (1 + np.exp(logit)), 1 / (1 + np.exp(-logit))]
    found = of_canaries(
        *(release, said, np.c_[1 - chance, chance], Plan(seed=seed, confidence=0.7)),
        Curve(1e-5, mu),
    )
    assert found[-1].id == "predictions.curve_epsilon_lower"
    return found[-1].value, found[0].value


def test_a_claimed_curve_is_refuted_no_more_often_than_the_level_and_certifies_more() -> None:
    found = np.array([under_curve(seed, 4.0, 900) for seed in range(12)])
    assert (found[:, 0] > 4.0).sum() <= binom.isf(1e-3, 12, 0.3)
    assert found[:, 0].mean() > max(1.2 * found[:, 1].mean(), 1.5)


@pytest.fixture(scope="module")
def forest() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return predictions of a forest on labels as they are, its table, and canaries."""
    table, chance, labels = world(0)
    model = RandomForestClassifier(20, random_state=0).fit(table, labels)
    said = pd.DataFrame(model.predict_proba(table), columns=CLASSES)
    train = table.assign(bought=np.array(CLASSES)[labels])
    drawn = pd.DataFrame(np.c_[1 - chance, chance], columns=CLASSES)
    drawn[300:] = np.nan
    return said, train, drawn


def test_a_forest_on_labels_as_they_are_is_found(forest: tuple[pd.DataFrame, ...]) -> None:
    said, train, drawn = forest
    found = ldpaudit.audit_predictions(said, train, label="bought", epsilon=1.0, canaries=drawn)
    assert found.verdict == "fail"
    assert found.canaries == 300
    assert found["predictions.epsilon_lower"].value > 2
    assert found["predictions.epsilon_lower"].kind == "certified"
    assert found["predictions.gain"].low > 0.15
    assert {e.kind for e in found.estimates if "epsilon" not in e.id} == {"estimated"}
    assert found.sentence.startswith("Violation found: training claims ε = 1, and labels drawn")
    page = found.to_html()
    assert "is no bound of ε" in page
    assert "certifies" in page
    assert found.to_frame().loc["predictions.gain", "kind"] == "estimated"


def test_intervals_have_their_level_and_are_rounded_outwards(
    forest: tuple[pd.DataFrame, ...],
) -> None:
    said, train, _ = forest
    found = ldpaudit.audit_predictions(said, train, label="bought")
    # Each interval has the level of the audit; of the better of two attacks each end is corrected.
    assert {one.level for one in found.estimates if one.low is not None} == {0.95}
    for name, alpha in (("accuracy", 0.025), ("features_accuracy", 0.05)):
        one = found[f"predictions.{name}"]
        exact = binomtest(one.count, one.n).proportion_ci(1 - alpha, "exact")
        assert (one.low, one.high) == (pytest.approx(exact.low), pytest.approx(exact.high))
    gain = found["predictions.gain"].model_copy(update={"low": 0.12361, "high": 0.98341})
    estimates = tuple(gain if e.id == gain.id else e for e in found.estimates)
    shown = found.model_copy(update={"estimates": estimates})
    assert "12.3 to 98.4, by estimate" in shown.sentence
    assert "12.3 to 98.4, estimated" in shown.to_html()


def test_without_drawn_labels_nothing_is_said_of_epsilon(forest: tuple[pd.DataFrame, ...]) -> None:
    said, train, _ = forest
    found = ldpaudit.audit_predictions(said.to_numpy(), train, "rr", label="bought", epsilon=1.0)
    assert found.verdict == "inconclusive"
    assert "ε of the training was not measured" in found.sentence
    assert not [e for e in found.estimates if "epsilon" in e.id]
    assert "canaries=" in found.to_html()


def test_probabilities_that_know_no_label_add_nothing() -> None:
    """In 4 draws the 97.5 % bound lies above 0 twice with a chance of 0.4 %."""
    above = 0
    for seed in range(4):
        table, _, labels = world(seed, 300)
        said = np.random.default_rng(seed).dirichlet([1, 1], 300)
        found = ldpaudit.audit_predictions(said, table.assign(label=labels), threads=1)
        above += found["predictions.gain"].low > 0
    assert above <= 1


def test_the_command_says_the_same(forest: tuple[pd.DataFrame, ...], tmp_path: Path) -> None:
    said, train, drawn = forest
    places = {"p": said, "train": train, "drawn": drawn}
    for name, table in places.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    asked = ["run", f"{tmp_path}/p.csv", "--predictions", "--truth", f"{tmp_path}/train.csv"]
    asked += ["--label", "bought:rr:epsilon=1", "--seed", "0"]
    given = [*asked, "--canaries", f"{tmp_path}/drawn.csv"]
    result = CliRunner().invoke(app(), given)
    assert result.exit_code == 1, result.output
    assert "Violation found" in result.output
    stored = json.loads((tmp_path / "p.audit.json").read_text())
    again = ldpaudit.audit_predictions(said, train, label="bought", epsilon=1.0, canaries=drawn)
    assert stored["verdict"] == again.verdict
    assert stored["estimates"][0]["value"] == again.estimates[0].value
    assert (tmp_path / "p.audit.html").stat().st_mode & 0o777 == 0o600
    assert CliRunner().invoke(app(), [*given, "--exit-zero", "--quiet"]).exit_code == 0
    curve = CliRunner().invoke(app(), [*given, "--gaussian-delta", "1e-5"])
    assert curve.exit_code == 1
    assert "ε = 1 at δ = 1e-05 by Gaussian noise" in curve.output
    refused = {
        "--profile=public": "no other report",
        f"--sarif={tmp_path}/s": "no other report",
        "--policy=ldpaudit:strict": "--policy is about a release of labels",
        "--skip=power": "--skip is about a release of labels",
        f"{tmp_path}/train.csv": "one file at a time",
    }
    for option, why in refused.items():
        result = CliRunner().invoke(app(), [*asked, option])
        assert isinstance(result.exception, InputError), option
        assert why in str(result.exception), option


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"predictions": np.full((300, 2), 0.4)}, "sum to 1"),
        ({"predictions": np.full((299, 2), 0.5)}, "must have 300 rows"),
        ({"predictions": pd.DataFrame({"x": [1.0] * 300})}, "named after each of 2 classes"),
        ({"truth": None}, "need the table that the model was trained on"),
        ({"truth": pd.DataFrame({"x": [1.0] * 300})}, "and no other was chosen (label=)"),
        ({"features": ()}, "must have features"),
        ({"gaussian_delta": 1e-5}, "needs canaries"),
        ({"gaussian_delta": 1.0}, "must lie between 0 and 1"),
        ({"canaries": np.full((300, 2), np.nan)}, "at least 20 canaries"),
        ({"canaries": np.tile([1.0, 0.0], (300, 1))}, "must be ones that their probabilities"),
    ],
)
def test_bad_input_is_one_clear_line(changes: dict[str, Any], said: str) -> None:
    table, _, labels = world(1, 300)
    given = {"predictions": np.full((300, 2), 0.5), "truth": table.assign(label=labels)} | changes
    with pytest.raises(InputError) as refused:
        ldpaudit.audit_predictions(given.pop("predictions"), given.pop("truth"), **given)
    assert said in str(refused.value)
