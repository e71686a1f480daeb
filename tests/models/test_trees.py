"""Predictions of boosting without walking its trees: those of scikit-learn, bit for bit."""

from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from ldpaudit.models import trees
from ldpaudit.models.trees import fit_boosting, probabilities


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


@pytest.mark.parametrize(("filled", "stopping"), [(0, False), (1, True), (12, True), (19, False)])
def test_a_column_too_empty_for_a_leaf_changes_nothing(filled: int, stopping: bool) -> None:
    rows, labels, _ = table(800, "gaps", np.random.default_rng(3))
    nearly = np.full((len(rows), 2), np.nan, dtype=np.float32)
    nearly[:filled] = np.arange(2 * filled).reshape(-1, 2)
    more = np.hstack([nearly, rows])
    categorical = np.arange(more.shape[1]) == 1

    def fitted(some: Any, kinds: Any) -> Any:
        return fit_boosting(
            HistGradientBoostingClassifier(
                max_iter=8, early_stopping=stopping, categorical_features=kinds, random_state=0
            ),
            some,
            labels,
        )

    asked = np.vstack([more, np.where(np.isnan(more), np.float32(3), more)])
    without = probabilities(fitted(rows, None), asked[:, 2:])
    assert np.array_equal(probabilities(fitted(more, categorical), asked), without)


def test_of_very_many_rows_bins_are_those_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 300_000
    rows = np.full((n, 2), np.nan, dtype=np.float32)
    rows[:, 0], rows[:25, 1] = np.arange(n) % 7, np.arange(25)
    model = HistGradientBoostingClassifier(max_iter=1, early_stopping=False, random_state=0)
    shown = list[Any]()
    monkeypatch.setattr(model, "fit", lambda rows, *_: shown.append(rows) or model)
    fit_boosting(model, rows, rows[:, 0] > 3)
    assert (shown[0][:, 1] == 0).all()
    assert np.array_equal(shown[0][:, 0], rows[:, 0])
