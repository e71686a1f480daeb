"""Screened models: what they learn is there on rows that they have not seen, and only that."""

import numpy as np
import pytest
from worlds import feature_table

from ldpaudit.estimators import readable as telling
from ldpaudit.estimators.assumptions import learner
from ldpaudit.estimators.assumptions.learner import foreseen
from ldpaudit.estimators.row_noise import RowNoise, p_value
from ldpaudit.models import label_model
from ldpaudit.models.label_model import fit_posterior

ROWS, COLUMNS = 600, 400


@pytest.fixture
def narrow(monkeypatch):
    """Screens are used from few columns on."""
    monkeypatch.setattr(label_model, "MOST_COLUMNS", 60)
    monkeypatch.setattr(label_model, "TREE_COLUMNS", 20)
    monkeypatch.setattr(learner, "TREE_COLUMNS", 20)


def _noise(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, COLUMNS)), rng.integers(0, 2, ROWS).astype(np.int32)


def _accuracy(x, labels, seed=0):
    """Return the accuracy on the second half of a model fitted on the first."""
    table, half = feature_table(x), ROWS // 2
    rng = np.random.default_rng(seed)
    model = fit_posterior(table.take(np.arange(half)), labels[:half], 2, rng, 1)
    guess = model.predict(table.take(np.arange(half, ROWS))).argmax(axis=1)
    return float((guess == labels[half:]).mean()), model


def test_noise_tells_nothing_of_other_rows(narrow):
    # 600 guesses, each right with probability 1/2: P(beyond ±0.1) < 1e-6.
    found = [_accuracy(*_noise(seed), seed)[0] for seed in range(2)]
    assert abs(np.mean(found) - 0.5) < 0.1


def test_a_planted_column_is_found_wherever_it_is(narrow):
    x, labels = _noise(1)
    x[:, -1] += 2.5 * labels
    accuracy, model = _accuracy(x, labels)
    assert accuracy > 0.82
    assert COLUMNS - 1 in model.blend.screen.columns
    assert len(model.blend.screen.columns) == 60


def test_bets_on_chosen_columns_stay_valid(narrow):
    # At most 10 of 12 p-values at or below 0.3, if valid: P(more) < 2e-5.
    low = 0
    for seed in range(12):
        x, truth = _noise(seed)
        changed = np.random.default_rng([seed, 1]).random(ROWS) < 0.27
        low += p_value(_foreseen(x, changed, truth)) <= 0.3
    assert low <= 10


def test_a_column_of_the_noise_is_bet_on(narrow):
    x, truth = _noise(3)
    changed = np.random.default_rng(4).random(ROWS) < 0.3
    x[:, 321] += 2.5 * changed
    assert p_value(_foreseen(x, changed, truth)) < 1e-3


def _foreseen(x, changed, truth):
    outcomes = RowNoise(changed.astype(np.float64), truth.astype(np.int64))
    return next(foreseen(feature_table(x), [outcomes], np.random.default_rng(0)))


@pytest.mark.parametrize("lag", [0, 1, -3])
def test_a_telling_column_is_worth_scanning(monkeypatch, lag):
    monkeypatch.setattr(telling, "MOST_SCANNED", 28)
    x, labels = _noise(5)
    x[:, 200] = np.roll(labels, lag)
    x[:, 300] = np.arange(ROWS) + 0.3 * labels
    rows = np.random.default_rng(0).permutation(ROWS)
    kept = telling.worth_scanning(feature_table(x), labels, rows, list(range(COLUMNS)))
    assert {200, 300} <= set(kept)
    assert len(kept) <= 28
