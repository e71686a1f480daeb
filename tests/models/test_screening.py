"""The statistic by which columns of wide tables are chosen."""

import numpy as np
import pytest
from worlds import feature_table

from ldpaudit.models.screening import (
    Screen,
    association,
    associations,
    strongest,
)

N = 2_000


@pytest.fixture(scope="module")
def planted():
    """Columns of noise; six of them tell the label in six different ways."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 3, N)
    x = rng.normal(size=(N, 60))
    x[:, 3] += 0.5 * label
    x[:, 7] *= 1 + 0.7 * (label == 1)
    x[:, 11] = rng.random(N) < 0.01 + 0.04 * (label == 2)
    x[rng.random(N) < 0.3 * (label == 0), 17] = np.nan
    codes = rng.integers(0, 300, (N, 5))
    codes[:, 1] = 100 * label + codes[:, 1] % 100
    codes[:, 4] = np.where(rng.random(N) < 0.2, -1, label)
    return feature_table(x, codes), label


def test_planted_columns_stand_out(planted):
    table, label = planted
    scores = association(table, label)
    assert set(strongest(scores, 6)) == {3, 7, 11, 17, 61, 64}


def test_noise_is_about_standard_normal():
    # 4,000 scores, each the larger of two dependent ones: P(a mean beyond the limits) < 1e-6.
    rng = np.random.default_rng(1)
    scores = association(feature_table(rng.normal(size=(500, 4_000))), rng.integers(0, 2, 500))
    assert 0.2 < scores.mean() < 0.8
    assert 0.6 < scores.std() < 1.1
    assert scores.max() < 6.5


def test_a_column_that_does_not_vary_is_last():
    table = feature_table(np.column_stack([np.ones(50), np.full(50, np.nan), np.arange(50)]))
    scores = association(table, np.arange(50) % 2)
    assert scores[0] == scores[1] == -np.inf < scores[2]


def test_many_rows_labels_and_several_label_vectors(monkeypatch):
    rng = np.random.default_rng(2)
    label = rng.integers(0, 90, 30_000)
    x = rng.normal(size=(30_000, 4))
    x[:, 2] += label / 10
    table = feature_table(x)
    assert association(table, label).argmax() == 2
    both = associations(table, [label, rng.integers(0, 2, 30_000)])
    assert both.shape == (2, 4)
    assert both[0].argmax() == 2
    assert both[1].max() < 6


def test_a_screen_keeps_the_columns_of_its_own_rows(planted):
    table, label = planted
    screen = Screen.fit(table, label, 6)
    assert screen.columns == (3, 7, 11, 17, 61, 64)
    kept = screen.transform(table)
    assert (kept.numeric[:, 0] == table.numeric[:, 3]).all()
    assert kept.width == 6
    assert kept.cardinalities == (300, 3)
    assert Screen.fit(table, label, 65).transform(table) is table
