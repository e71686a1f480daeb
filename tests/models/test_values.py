"""Columns of many values and pairs of columns: what models learn from them, and no more."""

import numpy as np
import pytest

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.label_model import _pairs, fit_posterior, fit_values
from ldpaudit.models.screening import many_valued, unrepeated
from ldpaudit.release import FeatureTable


def table(numeric=None, codes=None):
    n = len(codes) if numeric is None else len(numeric)
    numeric = np.zeros((n, 0)) if numeric is None else numeric
    codes = np.zeros((n, 0)) if codes is None else codes
    sizes = tuple(int(c.max()) + 1 for c in codes.T)
    width = numeric.shape[1] + codes.shape[1]
    return FeatureTable(numeric.astype(np.float32), codes.astype(np.int32), sizes, width)


def zips(n, levels, rng, k=2):
    share = rng.dirichlet(np.full(k, 0.4), levels)
    code = rng.integers(0, levels, n)
    draws = (rng.random((n, 1)) > np.cumsum(share[code], axis=1)[:, :-1]).sum(axis=1)
    return code[:, None], draws.astype(np.int32)


def accuracy(features, labels, truth, k=2, channel=None):
    half = len(truth) // 2
    first, rest = np.arange(half), np.arange(half, len(truth))
    rng = np.random.default_rng(0)
    model = fit_posterior(features.take(first), labels[:half], k, rng, 1, channel)
    return float((model.predict(features.take(rest)).argmax(axis=1) == truth[rest]).mean())


@pytest.mark.parametrize("written", ["names", "numbers"])
def test_a_column_of_many_values_is_learnt(written):
    codes, truth = zips(6000, 1200, np.random.default_rng(0))
    features = table(codes=codes) if written == "names" else table(7.0 * codes + 10_000)
    assert accuracy(features, truth, truth) > 0.73  # Half of the rows fit 2.5 rows a value.


def test_three_classes_behind_a_channel_are_learnt():
    rng = np.random.default_rng(1)
    codes, truth = zips(6000, 150, rng, k=3)
    mechanism = RandomizedResponse.from_epsilon((0, 1, 2), 2.0)
    released = mechanism.sample(truth, rng)
    found = accuracy(table(codes=codes), released, truth, 3, mechanism.channel)
    assert found > np.bincount(truth).max() / len(truth) + 0.2


def test_the_number_of_a_training_row_does_not_know_its_label():
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 1500, (6000, 1))
    truth = rng.integers(0, 2, 6000).astype(np.int32)
    truth[:3000] = codes[:3000, 0] % 2  # Something is to be learnt from the values.
    encoder, encoded = fit_values(table(codes=codes), truth, 2, rng)
    assert [effect.columns for effect in encoder.effects] == [(0,)]
    assert encoded.categorical.shape[1] == 0
    random = np.arange(3000, 6000)
    numbers = encoded.numeric[random, 0]
    # Rows with random labels are drawn to their value's parity, and by their own label not at all.
    own = truth[random] == 1
    even = codes[random, 0] % 2 == 0
    for parity in (even, ~even):
        apart = numbers[parity & own].mean() - numbers[parity & ~own].mean()
        assert abs(apart) < 5 * numbers[parity].std() * 2 / np.sqrt(parity.sum())


def test_values_that_do_not_repeat_are_counted_and_not_encoded():
    rng = np.random.default_rng(4)
    unique, often = rng.permutation(4000), rng.integers(0, 300, 4000)
    features = table(codes=np.stack([unique, often], axis=1))
    assert many_valued(features) == [1]
    assert unrepeated(features) == 1


def test_pairs_are_chosen_where_columns_say_something_together_only():
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 4, (5000, 6))
    share = rng.beta(0.3, 0.3, (4, 4))
    truth = (rng.random(5000) < share[codes[:, 0], codes[:, 2]]).astype(np.int32)
    assert _pairs(table(codes=codes), truth, rng) == [(0, 2)]
    odd = (codes[:, 1] % 2 ^ codes[:, 3] % 2).astype(np.int32)
    assert (1, 3) in _pairs(table(codes=codes), odd, rng)


def test_effects_that_add_up_are_no_pair():
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 5, (6000, 5))
    logit = rng.normal(0, 1, (5, 5))
    score = sum(logit[j][codes[:, j]] for j in range(5))
    truth = (rng.random(6000) < 1 / (1 + np.exp(-score))).astype(np.int32)
    assert _pairs(table(codes=codes), truth, rng) == []
