"""What training reveals of labels: bounds that hold, leaks that are found, and inputs refused."""

import html
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import binom
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import ldpaudit
from ldpaudit.errors import InputError
from ldpaudit.estimators.epsilon.guesses import GuessCounts
from ldpaudit.extras.kinds.noisy_features.one_run import (
    detectable_in_one_run,
    one_run_epsilon,
    one_run_p_value,
)
from ldpaudit.extras.kinds.noisy_features.tradeoff import gaussian_mu
from ldpaudit.extras.probe.models import game
from ldpaudit.extras.probe.models.game import Coins
from ldpaudit.mechanisms import RandomizedResponse

Table = tuple[np.ndarray, np.ndarray]


class Memory:
    """A model that says of each row the label it was given, with a chance of 90 %."""

    def __init__(self, labels: Any) -> None:
        self.classes_ = np.unique(np.asarray(labels))
        self.labels = np.asarray(labels)

    def predict_proba(self, features: Any) -> np.ndarray:
        said = self.labels[:, None] == self.classes_
        rest = 0.1 / max(len(self.classes_) - 1, 1)
        return np.where(said, 0.9, rest)


class Deaf:
    """A model that says the same of every row."""

    def predict_proba(self, features: Any) -> np.ndarray:
        return np.full((len(features), 2), 0.5)


def world(n: int, rng: np.random.Generator, k: int = 2) -> Table:
    features = rng.normal(size=(n, 3))
    return features, (features[:, 0] + rng.normal(size=n) > 0).astype(np.int64) + (
        rng.integers(0, k - 1, n) if k > 2 else 0
    )


def randomized(epsilon: float, rng: np.random.Generator, units: np.ndarray | None = None) -> Any:
    """Return training that randomizes its binary labels, once for each unit, and remembers them."""

    def fit(features: Any, labels: np.ndarray) -> Memory:
        unit = np.arange(len(labels)) if units is None else units
        kept = (rng.random(unit.max() + 1) < 1 / (1 + math.exp(-epsilon)))[unit]
        return Memory(np.where(kept, labels, 1 - labels))

    return fit


def remembering(features: Any, labels: Any) -> Memory:
    return Memory(labels)


def test_published_bounds_are_reproduced() -> None:
    """n = 10,000 guesses of binary randomized response: the expected 95 % bounds."""
    for epsilon, published in ((1, 0.963), (2, 1.949), (4, 3.874), (8, 7.162)):
        right = round(10_000 / (1 + math.exp(-epsilon)))
        bound = one_run_epsilon(GuessCounts(10_000, right, 10_000 - right), 0.05)
        assert bound == pytest.approx(published, abs=0.03)


def test_delta_costs_what_the_theorem_says() -> None:
    counts, q = GuessCounts(50, 18, 2), 1 / (1 + math.exp(-1.0))
    tail = sum(binom.pmf(j, 20, q) for j in range(18, 21))
    worst = max(sum(binom.pmf(j, 20, q) for j in range(18 - i, 18)) / i for i in range(1, 19))
    exact = tail + 2 * 50 * 1e-3 * worst
    assert one_run_p_value(counts, 1.0, 1e-3) == pytest.approx(exact, rel=1e-9)
    bounds = [one_run_epsilon(counts, 0.05, delta) for delta in (0.0, 1e-9, 1e-3, 0.5)]
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] == pytest.approx(bounds[1], abs=1e-3)
    assert bounds[-1] == 0
    assert one_run_epsilon(GuessCounts(9, 0, 0), 0.05) == 0


def test_what_can_be_found_is_found_nine_times_in_ten() -> None:
    rng = np.random.default_rng(1)
    for delta in (0.0, 1e-5):
        counts = GuessCounts(1_000, 800, 200)
        least = detectable_in_one_run(counts, 1.0, 0.05, delta)
        right = rng.binomial(1_000, 1 / (1 + math.exp(-least)), 60)
        found = [one_run_epsilon(GuessCounts(1_000, v, 1_000 - v), 0.05, delta) > 1 for v in right]
        assert np.mean(found) == pytest.approx(0.9, abs=0.12)
    assert math.isinf(detectable_in_one_run(GuessCounts(5, 5, 0), 4.0, 0.05))


@pytest.mark.parametrize(
    ("epsilon", "n", "least", "known"),
    [(2.0, 400, 1.0, {}), (1.0, 50, 0.3, {"one_person": True, "runs": 40})],
)
def test_honest_training_is_accused_no_more_often_than_the_level_says(
    epsilon: float, n: int, least: float, known: dict[str, Any]
) -> None:
    """At 70 % more than 15 of 20 have a chance of 1e-5; three times as many misses fail in 96 %.

    Memory of all labels: the coin of one is as well hidden as randomized response hides it.
    """
    bounds = []
    for draw in range(20):
        rng = np.random.default_rng([draw, n])
        features, truth = world(n, rng)
        fit, asked = randomized(epsilon, rng), {"seed": draw, "confidence": 0.7} | known
        found = ldpaudit.audit_model(fit, features.tolist(), truth, epsilon, **asked)
        bounds.append(found["model.epsilon"].value)
    assert np.sum(np.array(bounds) > epsilon) <= binom.isf(1e-5, 20, 0.3)
    assert np.mean(bounds) > least


def test_training_on_labels_as_they_are_is_found() -> None:
    model = RandomForestClassifier(15, random_state=0)
    features, truth = world(2_000, np.random.default_rng(3))
    found = ldpaudit.audit_model(model.fit, features, truth, "rr:epsilon=1")
    assert found.verdict == "fail"
    assert found["model.epsilon"].value > 1.2
    assert found["model.epsilon"].kind == "certified"
    assert found.sentence.startswith("Violation found: training claims ε = 1, but at least ε = ")


def test_one_persons_coin_shows_what_a_logistic_regression_reveals() -> None:
    features, truth = world(1_000, np.random.default_rng(3))
    fit = LogisticRegression().fit
    assert ldpaudit.audit_model(fit, features, truth, 1.0).verdict == "inconclusive"
    found = ldpaudit.audit_model(fit, features, truth, 1.0, one_person=True, runs=20)
    assert found.verdict == "fail"
    assert found["model.guesses"].count == 15
    assert found["model.epsilon"].value == pytest.approx(
        math.log(0.05 ** (1 / 15) / (1 - 0.05 ** (1 / 15)))
    )
    assert "for one person, while all other labels were true" in found.to_html()


def test_a_model_that_shows_nothing_proves_nothing() -> None:
    features, truth = world(400, np.random.default_rng(3))
    found = ldpaudit.audit_model(lambda X, y: Deaf(), features, truth, 1.0)
    assert found["model.epsilon"].value == 0
    assert found.verdict == "inconclusive"
    assert found.sentence.startswith("Inconclusive: ")
    assert ldpaudit.audit_model(remembering, features, truth).verdict == "inconclusive"


def test_rows_of_a_person_share_a_coin() -> None:
    """Noise that is drawn once a person: as single rows they would refute it."""
    rng = np.random.default_rng(2)
    people = np.repeat(np.arange(300), 5)
    features = rng.normal(size=(1_500, 2))
    truth = (rng.random(300) < 0.5).astype(np.int64)[people]
    fit = randomized(1.0, rng, people)
    of_people = ldpaudit.audit_model(fit, features, truth, 1.0, group=people, runs=6)
    assert of_people.candidates == 6 * 150
    assert of_people.verdict != "fail"
    assert of_people["model.epsilon"].value > 0.2
    of_rows = ldpaudit.audit_model(remembering, features, truth, 1.0, group=people)
    assert of_rows.verdict == "fail"


def test_labels_keep_their_form_and_only_candidates_get_others() -> None:
    rng = np.random.default_rng(0)
    features, codes = world(900, rng, k=4)
    truth = pd.Series(np.array(["a", "b", "c", "d"])[codes], index=range(5, 905), name="y")
    seen = []

    def fit(X: Any, y: Any) -> Memory:
        seen.append(y)
        return Memory(y)

    frame = pd.DataFrame(features).assign(town=truth.str.upper())
    found = ldpaudit.audit_model(fit, frame, truth, RandomizedResponse.from_epsilon("abcd", 1.0))
    assert isinstance(seen[0], pd.Series)
    assert seen[0].index.equals(truth.index)
    assert 0.2 < (seen[0] != truth).mean() < 0.3
    assert found.verdict == "fail"
    ldpaudit.audit_model(fit, features, truth.tolist(), seed=3)
    assert isinstance(seen[1], list)


def test_other_labels_are_other_and_as_frequent_as_labels_are() -> None:
    codes = np.repeat([0, 1, 2], [600, 300, 100])
    coins = Coins.flipped(codes, np.arange(1_000), 1.0, np.random.default_rng(0))
    true, other = coins.either.T
    assert (true != other).all()
    assert np.mean(other[true == 0] == 1) == pytest.approx(0.75, abs=0.06)
    assert coins.coin.mean() == pytest.approx(0.5, abs=0.06)
    assert ((coins.labels(codes) == codes) == ~coins.coin[coins.unit]).all()


def test_of_a_sorted_table_people_of_every_part_are_chosen() -> None:
    codes, unit = np.repeat([0, 1, 2], 400), np.repeat(np.arange(600), 2)
    coins = Coins.flipped(codes, unit, 0.5, np.random.default_rng(0))
    assert len(coins.coin) == 300
    assert (np.bincount(coins.unit) == 2).all()
    # 300 of 600 people: in each third 100, with a standard deviation of 5.8.
    chosen = unit[coins.rows]
    assert np.bincount(chosen // 200) / 2 == pytest.approx(100, abs=30)
    assert (codes[coins.rows] == coins.either[:, 0]).all()


def test_the_score_that_varies_less_over_candidates_of_several_rows_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unit, codes = np.array([0, 0, 1, 2, 3]), np.array([0, 1, 0, 0, 1])
    coins = Coins(np.arange(5), unit, np.c_[codes, 1 - codes], np.zeros(4, bool))
    # Of candidates 0 to 3 the log ratios are 1 + 2, 3, 3 and 0.
    ratio = np.array([1.0, 2.0, 3.0, 3.0, 0.0])
    other = 1 / (1 + np.exp(-ratio))
    found = np.where(np.eye(2, dtype=bool)[1 - codes], other[:, None], 1 - other[:, None])
    assert game.scores(coins, found, None)[1] == pytest.approx([3.0, 3.0, 3.0, 0.0])
    for left, way in (([0.0, 4.0, 0.0, 0.0, 0.0], "memory"), ([4.0, 4.0, 0, 0, 0], "likelihood")):
        monkeypatch.setattr(game, "expected", lambda ratio, _, left=left: ratio - np.array(left))
        assert game.scores(coins, found, np.zeros((5, 1)))[0] == way


def test_a_feature_that_nobody_has_says_nothing_of_a_score() -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(300, 3))
    ratio = rng.normal(size=300) + features[:, 0]
    empty = np.where(np.arange(3) == 2, np.nan, features)
    constant = np.where(np.arange(3) == 2, 0.0, features)
    assert game.expected(ratio, empty) == pytest.approx(game.expected(ratio, constant))


def test_training_certifies_nearly_what_all_its_coins_could() -> None:
    """Against the exact binomial bound of all coins: methods and shares are chosen without them."""
    bounds, best = [], []
    for draw in range(12):
        rng = np.random.default_rng([draw, 3])
        features, truth = world(400, rng)
        found = ldpaudit.audit_model(randomized(1.0, rng), features, truth, 1.0, seed=draw)
        bounds.append(found["model.epsilon"].value)
        right = int(rng.binomial(200, 1 / (1 + math.exp(-1.0))))
        best.append(one_run_epsilon(GuessCounts(200, right, 200 - right), 0.05))
    assert np.mean(bounds) > 0.8 * np.mean(best)


class Noisy:
    """A model that shows each label with Gaussian noise of a curve."""

    def __init__(self, labels: np.ndarray, mu: float, rng: np.random.Generator) -> None:
        self.said = rng.normal(mu * (labels - 0.5))

    def predict_proba(self, features: Any) -> np.ndarray:
        yes = 1 / (1 + np.exp(-self.said))
        return np.c_[1 - yes, yes]


@pytest.mark.parametrize("known", [{}, {"one_person": True, "runs": 400}])
def test_a_claimed_curve_is_judged_by_its_own_larger_bound(known: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    features, truth = world(60 if known else 2_000, rng)

    def audited(claim: float, **options: Any) -> Any:
        mu = gaussian_mu(4.0, 1e-5)
        fit = lambda X, y: Noisy(np.asarray(y), mu, rng)  # noqa: E731
        asked = {"delta": 1e-5, "curve": "gaussian"} | known | options
        return ldpaudit.audit_model(fit, features, truth, claim, **asked)

    found = audited(4.0)
    under, single = found["model.curve_epsilon"].value, found["model.epsilon"].value
    assert 1.2 * single < under < 4
    assert found.verdict != "fail"
    assert found["model.curve_epsilon"].kind == "certified"
    false = audited(1.0)
    assert false.verdict == "fail"
    assert "training claims ε = 1 and δ = 1e-05 by Gaussian noise" in false.sentence
    assert "certified without the curve" in false.to_html()
    assert "model.curve_epsilon" not in [e.id for e in audited(1.0, curve=None).estimates]


@pytest.mark.parametrize("known", [{"runs": 30}, {"one_person": True, "runs": 200}])
def test_an_audit_may_stop_as_soon_as_the_claim_is_refuted(known: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    features, truth = world(100, rng)
    asked = {"stop_early": True} | known
    stopped = ldpaudit.audit_model(randomized(2.5, rng), features, truth, 1.0, **asked)
    assert stopped.verdict == "fail"
    assert stopped.runs < known["runs"] / 2
    assert "by a test that allows for that" in stopped.to_html() or "one_person" in known
    honest = ldpaudit.audit_model(randomized(1.0, rng), features, truth, 1.0, **asked)
    assert honest.verdict != "fail"
    assert honest.runs == known["runs"]
    assert 0.3 < honest["model.epsilon"].value < 1
    assert "model.detectable" not in [e.id for e in honest.estimates]


def test_results_are_stored_and_repeat() -> None:
    features, truth = world(400, np.random.default_rng(3))
    one, two = (ldpaudit.audit_model(remembering, features, truth, 1.0) for _ in range(2))
    assert one == two
    stored = json.loads(one.to_json())
    assert stored["verdict"] == "fail"
    assert stored["sentence"] == str(one)
    assert one.to_frame().loc["model.epsilon", "kind"] == "certified"
    assert repr(one).startswith("ModelAudit(fail: ")
    with pytest.raises(KeyError):
        one["nothing"]


@pytest.mark.parametrize("claim", [1.0, None])
def test_its_page_says_what_was_found(claim: float | None, tmp_path: Path) -> None:
    features, truth = world(400, np.random.default_rng(3))
    found = ldpaudit.audit_model(remembering, features, truth, claim)
    page = found.to_html()
    assert found.sentence.partition(" The model's")[0] in page
    assert "features alone: 50 %" in page
    assert "<script" not in page
    shown = found._repr_html_()
    assert found.sentence in html.unescape(shown)
    assert set(re.findall("<([a-z]+)", shown)) == {"p", "table", "tr", "th", "td", "small", "br"}
    assert len(shown) < 1_500
    assert found.to_html(tmp_path / "a.html") is None
    assert found.to_html() == (tmp_path / "a.html").read_text()
    assert found.to_json(tmp_path / "a.json") is None
    assert found.to_json() == (tmp_path / "a.json").read_text()


def test_a_bound_just_above_the_claim_is_printed_above_it() -> None:
    features, truth = world(400, np.random.default_rng(3))
    found = ldpaudit.audit_model(remembering, features, truth, 1.0)
    bound = found["model.epsilon"].value
    close = found.model_copy(update={"claimed_epsilon": bound - 1e-5})
    value, claimed = close.epsilons("model.epsilon")
    assert float(value) > float(claimed)
    for text in (close.sentence, close.to_html(), close._repr_html_()):
        assert value in text
        assert claimed in text


class Wide:
    def predict_proba(self, features: Any) -> np.ndarray:
        return np.ones((len(features), 3))


class Foreign(Memory):
    """A model of the labels of another table."""

    def __init__(self, labels: Any) -> None:
        super().__init__(labels)
        self.classes_ = np.array(["a", "b"])


class Negative:
    def predict_proba(self, features: Any) -> np.ndarray:
        return -np.ones((len(features), 2))


@pytest.mark.parametrize("claim", [np.float32(8.0), Fraction(8)])
def test_a_claim_may_be_any_real_number_and_labels_an_arrow_array(claim: Any) -> None:
    features, truth = world(200, np.random.default_rng(3))
    found = ldpaudit.audit_model(remembering, features, pa.array(truth), claim)
    assert found.claimed_epsilon == 8.0
    assert found.estimates == ldpaudit.audit_model(remembering, features, truth, 8.0).estimates


def broken(features: Any, labels: Any) -> Any:
    raise RuntimeError("a cell: 4711")


@pytest.mark.parametrize(
    ("fit", "options", "said"),
    [
        (broken, {}, "it raised RuntimeError at line"),
        (lambda X, y: object(), {}, "it raised AttributeError"),
        (lambda X, y: Wide(), {}, "one row for each of the 100 rows"),
        (lambda X, y: Negative(), {}, "none of them negative"),
        (remembering, {"share": 0}, "share must lie in"),
        (remembering, {"share": 0.1}, "at least 40 people"),
        (lambda X, y: Foreign(y), {}, "classes_ must be labels of y"),
        (remembering, {"runs": 0}, "runs must be a whole number from 1 up"),
        (remembering, {"runs": 1.5}, "runs must be a whole number"),
        (remembering, {"seed": None}, "the seed a whole number"),
        (remembering, {"claim": RandomizedResponse(("a", "b"), 0.5)}, "on the labels of y"),
        (remembering, {"runs": 2}, "draws no new noise in each run"),
        (remembering, {"y": np.zeros((100, 2))}, "must be one column"),
        (remembering, {"y": np.arange(90) % 2}, "X and y must have the same rows. Got 100 and 90"),
        (remembering, {"one_person": True, "runs": 5}, "at least 20 runs. Got 5"),
        (remembering, {"delta": 1}, "delta must lie in"),
        (remembering, {"confidence": 1}, "confidence must lie in"),
        (remembering, {"max_undetected_excess": 0}, "must be above 0"),
        (remembering, {"curve": "laplace", "delta": 1e-5}, "curve must be 'gaussian'"),
        (remembering, {"curve": "gaussian"}, "at a delta above 0"),
        (remembering, {"stop_early": True}, "at least two runs"),
        (remembering, {"stop_early": True, "runs": 9, "claim": None}, "a claim of pure"),
        (remembering, {"claim": -1.0}, "a finite ε of at least 0"),
        (remembering, {"claim": "rr"}, "epsilon"),
        (remembering, {"claim": "nothing:epsilon=1"}, "nothing"),
        (remembering, {"group": [1, 2]}, "one value for each of 100 rows"),
        (remembering, {"group": [None] * 100}, "Every row must have a group"),
        (remembering, {"y": np.zeros(100)}, "at least two classes"),
        (remembering, {"y": [None, 1] * 50}, "missing labels: 50"),
        (remembering, {"y": pd.Series(["a", 1] * 50)}, "of one kind"),
    ],
)
def test_bad_input_is_one_clear_line(fit: Any, options: dict[str, Any], said: str) -> None:
    features, truth = world(100, np.random.default_rng(0))
    given = {"y": truth, "claim": 1.0} | options
    with pytest.raises(InputError) as refused:
        ldpaudit.audit_model(fit, features, **given)
    assert said in str(refused.value)
    assert "4711" not in str(refused.value)
