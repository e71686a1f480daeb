"""Predictions of boosting without walking its trees: those of scikit-learn, bit for bit."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from ldpaudit.models import trees
from ldpaudit.models.trees import probabilities


def table(n: int, kind: str, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return rows, labels, and which columns are categorical."""
    rows = rng.standard_normal((n, 5)).astype(np.float32)
    categorical = np.zeros(5, dtype=np.bool_)
    if kind != "numbers":
        rows[:, 0], rows[:, 3] = rng.integers(0, 40, n), rng.integers(0, 3, n)
        categorical[[0, 3]] = True
    if kind == "gaps":
        rows[rng.random(rows.shape) < 0.1] = np.nan
        rows[rng.random(n) < 0.3, 2] = 0.5
    signal = np.nan_to_num(rows[:, 0]) % 3 + np.nan_to_num(rows[:, 1]) + rng.standard_normal(n)
    return rows, np.digitize(signal, [0.0, 1.5] if kind == "gaps" else [0.7]), categorical


@pytest.mark.parametrize("kind", ["numbers", "categories", "gaps"])
def test_probabilities_are_those_of_walking(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_FEWEST", 1)
    monkeypatch.setattr(trees, "_BLOCK", 700)
    rng = np.random.default_rng(3)
    rows, labels, categorical = table(3000, kind, rng)
    model = HistGradientBoostingClassifier(
        max_iter=12, max_leaf_nodes=15, categorical_features=categorical, random_state=0
    ).fit(rows[:1500], labels[:1500])
    asked = rows[1500:].copy()
    asked[:30, 0] = 77  # Categories, or numbers, that the model has not seen.
    # Numbers at thresholds, and just beside them.
    found = np.unique([node["num_threshold"] for one in model._predictors for node in one[0].nodes])
    exact = np.resize(found, len(asked)).astype(np.float32)
    asked[:, 1] = np.where(rng.random(len(asked)) < 0.5, exact, np.nextafter(exact, np.float32(9)))
    walked, used = model.predict_proba(asked), list[int]()
    inner = trees._raw
    monkeypatch.setattr(trees, "_raw", lambda *given: used.append(1) or inner(*given))
    assert np.array_equal(probabilities(model, asked), walked)
    assert len(used) == 3


def test_what_is_unknown_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trees, "_FEWEST", 1)
    rows, labels, _ = table(800, "numbers", np.random.default_rng(3))
    model = HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=40, min_samples_leaf=2)
    walked = model.fit(rows, labels).predict_proba(rows)
    assert np.array_equal(probabilities(model, rows), walked)
    model = HistGradientBoostingClassifier(max_iter=5, max_leaf_nodes=15).fit(rows, labels)
    walked = model.predict_proba(rows)
    # Another way to count leaves would give other numbers, which are noticed.
    monkeypatch.setattr(trees, "_PLACES", trees._PLACES[::-1].copy())
    assert np.array_equal(probabilities(model, rows), walked)
    monkeypatch.delattr(model, "_baseline_prediction")
    monkeypatch.setattr(type(model), "predict_proba", lambda *_: walked)
    assert np.array_equal(probabilities(model, rows), walked)
