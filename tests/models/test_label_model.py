import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.naive_bayes import GaussianNB

from ldpaudit.errors import InsufficientDataError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.counts import hash_rows
from ldpaudit.models.label_model import (
    PROBABILITY_FLOOR,
    _normal,
    blend_weights,
    fit_posterior,
)
from ldpaudit.release import FeatureTable


def numeric_table(values):
    values = np.asarray(values, dtype=np.float32)
    none = np.zeros((len(values), 0), np.int32)
    return FeatureTable(values, none, (), values.shape[1])


def categorical_table(codes, cardinalities):
    codes = np.asarray(codes, dtype=np.int32)
    none = np.zeros((len(codes), 0), np.float32)
    return FeatureTable(none, codes, tuple(cardinalities), codes.shape[1])


def gaussian(n, d, rng, shift=0.5):
    truth = (rng.random(n) < 0.4).astype(np.int32)
    values = rng.normal(size=(n, d)) + np.where(truth[:, None] == 1, shift, -shift)
    eta = expit(2 * shift * values.sum(axis=1) + np.log(0.4 / 0.6))
    return numeric_table(values), truth, eta


def assert_probabilities(posterior, n, k):
    assert posterior.shape == (n, k)
    assert posterior.dtype == np.float64
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-9)
    assert posterior.min() >= PROBABILITY_FLOOR * 0.999
    assert posterior.max() < 1.0


def test_finds_the_posterior_of_gaussian_classes():
    table, truth, eta = gaussian(6000, 4, np.random.default_rng(0))
    train, test = np.arange(4000), np.arange(4000, 6000)
    model = fit_posterior(table.take(train), truth[train], 2, np.random.default_rng(1), 1)
    posterior = model.predict(table.take(test))
    assert_probabilities(posterior, 2000, 2)
    assert np.sqrt(np.mean((posterior[:, 1] - eta[test]) ** 2)) < 0.03


def test_learns_an_interaction_that_a_linear_model_misses():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(6000, 2))
    eta = np.where(values[:, 0] * values[:, 1] > 0, 0.9, 0.1)
    truth = (rng.random(6000) < eta).astype(np.int32)
    table = numeric_table(values)
    model = fit_posterior(table.take(np.arange(4000)), truth[:4000], 2, rng, 1)
    posterior = model.predict(table.take(np.arange(4000, 6000)))[:, 1]
    assert np.sqrt(np.mean((posterior - eta[4000:]) ** 2)) < 0.12


def two_scales(rng):
    label = rng.random(6000) < 0.5
    values = rng.normal(size=(6000, 10)) * np.where(label[:, None], 1.6, 1.0)
    return values + 0.2 * label[:, None], label


def households(rng):
    home, label = rng.permutation(6000) // 8, rng.random(750) < 0.5
    return rng.normal(size=(750, 6))[home] + rng.normal(0, 0.02, (6000, 6)), label[home]


@pytest.mark.parametrize(
    ("world", "simple"),
    [(two_scales, GaussianNB()), (households, HistGradientBoostingClassifier())],
)
def test_guesses_as_well_as_the_simple_model_that_is_right(world, simple, monkeypatch):
    monkeypatch.setenv("LDPAUDIT_EFFORT", "full")
    values, label = world(np.random.default_rng(4))
    train, test, truth = np.arange(3000), np.arange(3000, 6000), label.astype(np.int32)
    table, theirs = numeric_table(values), simple.fit(values[train], truth[train])
    model = fit_posterior(table.take(train), truth[train], 2, np.random.default_rng(5), 1)
    right = model.predict(table.take(test)).argmax(axis=1) == truth[test]
    assert right.mean() > (theirs.predict(values[test]) == truth[test]).mean() - 0.01


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_learns_the_true_label_from_released_ones(epsilon):
    rng = np.random.default_rng(3)
    table, truth, eta = gaussian(10_000, 4, rng)
    mechanism = RandomizedResponse.from_epsilon((0, 1), epsilon)
    released = mechanism.sample(truth, rng)
    model = fit_posterior(table, released, 2, rng, 1, channel=mechanism.channel)
    posterior = model.predict(table)
    assert_probabilities(posterior, 10_000, 2)
    assert np.sqrt(np.mean((posterior[:, 1] - eta) ** 2)) < 0.06


def test_finite_cells_are_counted():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 6, size=(20_000, 2)).astype(np.int32)
    eta = rng.random((6, 6))[codes[:, 0], codes[:, 1]]
    truth = (rng.random(20_000) < eta).astype(np.int32)
    table = categorical_table(codes, (6, 6))
    model = fit_posterior(table, truth, 2, rng, 1)
    assert np.abs(model.predict(table)[:, 1] - eta).max() < 0.1


@pytest.mark.parametrize("columns", [0, 2])
def test_without_varying_features_it_is_the_class_frequencies(columns):
    table = numeric_table(np.ones((500, columns)))
    truth = np.repeat(np.arange(4, dtype=np.int32), [250, 125, 125, 0])
    posterior = fit_posterior(table, truth, 4, np.random.default_rng(0), 1).predict(table)
    assert_probabilities(posterior, 500, 4)
    np.testing.assert_allclose(posterior[0], [0.5, 0.25, 0.25, 0.0], atol=0.005)


@pytest.mark.parametrize(("n", "k"), [(1, 2), (3, 3), (25, 2), (60, 60), (200, 120), (400, 60)])
def test_survives_few_rows_and_many_classes(n, k):
    rng = np.random.default_rng(n)
    table = numeric_table(rng.normal(size=(n, 2)))
    truth = rng.integers(0, k, size=n).astype(np.int32)
    assert_probabilities(fit_posterior(table, truth, k, rng, 1).predict(table), n, k)


def test_missing_values_many_levels_and_levels_never_seen():
    rng = np.random.default_rng(10)
    values = rng.normal(size=(1000, 3)).astype(np.float32)
    values[rng.random((1000, 3)) < 0.3] = np.nan
    values[:, 2] = np.nan
    codes = rng.integers(-1, 400, size=(1000, 1)).astype(np.int32)
    table = FeatureTable(values, codes, (500,), 4)
    truth = (codes[:, 0] % 2 == 0).astype(np.int32)
    model = fit_posterior(table, truth, 2, rng, 1)
    unseen = FeatureTable(values, codes + 99, (500,), 4)
    assert_probabilities(model.predict(table), 1000, 2)
    assert_probabilities(model.predict(unseen), 1000, 2)


def test_no_row_is_an_error():
    with pytest.raises(InsufficientDataError, match="at least one row"):
        fit_posterior(
            numeric_table(np.zeros((0, 1))), np.zeros(0, np.int32), 2, np.random.default_rng(0), 1
        )


def test_blend_prefers_the_better_part():
    rng = np.random.default_rng(12)
    eta = rng.random(4000)
    truth = rng.random(4000) < eta
    good = np.log(np.stack([1 - eta, eta], axis=1))
    poor = np.log(np.full((4000, 2), 0.5))
    weights = blend_weights(np.stack([poor, good]), np.eye(2)[truth.astype(int)])
    assert 0.85 < weights[1] < 1.15


@settings(max_examples=30)
@given(st.integers(0, 1000))
def test_equal_rows_share_a_hash(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(-1, 2, size=(50, 2)).astype(np.float32)
    values[rng.random((50, 2)) < 0.2] = np.nan
    values[rng.random((50, 2)) < 0.2] = -0.0
    codes = rng.integers(-1, 2, size=(50, 1)).astype(np.int32)
    hashes = hash_rows(FeatureTable(values, codes, (2,), 3))
    rows = [
        (*np.nan_to_num(v, nan=9.0).tolist(), int(c[0])) for v, c in zip(values, codes, strict=True)
    ]
    rows = [tuple(float(e) + 0.0 for e in row) for row in rows]
    assert len(set(rows)) == len(np.unique(hashes))
    assert len(set(zip(rows, hashes.tolist(), strict=True))) == len(set(rows))


def test_normal_numbers_of_a_rare_label_have_one_more_row_as_usual_as_any():
    """By hand: of three rows with label 1 the mean is their sum over four."""
    values = np.array([[0.0], [2.0], [1.0], [3.0], [4.0], [8.0]])
    codes = np.array([0, 0, 0, 1, 1, 1], dtype=np.int32)
    found = _normal(numeric_table(values), codes, 2)
    x = found.design.transform(numeric_table(values)).astype(np.float64)
    rare = x[3:, 0]
    assert found.means[1, 0] == pytest.approx(rare.sum() / 4)
    squares = (np.sum(rare**2) + 1) / 4
    assert found.variances[1, 0] == pytest.approx(squares - (rare.sum() / 4) ** 2)
