"""Attacks that know more than the channel: the generator, the public model, another prior."""

import numpy as np
import pytest
from scipy.special import expit

from ldpaudit.attacks import Knowledge, create_attack
from ldpaudit.attacks.interface import missing_need, without_truth
from ldpaudit.attacks.models.synthetic_rows import Discrimination, Recognition
from ldpaudit.attacks.prior_shift import PriorShiftAttack
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.response.double_rr import DoubleRR
from ldpaudit.mechanisms.response.model_based_rr import ModelBasedRR
from ldpaudit.release import (
    FeatureTable,
    Release,
    ReleasedLabels,
    SyntheticTable,
    TrueLabels,
)

NOISE = 0.4


def table(values):
    values = np.asarray(values, dtype=np.float32)
    return FeatureTable(values, np.zeros((len(values), 0), np.int32), (), values.shape[1])


def generated(rng, labels, spread, grid):
    values = rng.normal(scale=spread, size=(len(labels), 3)) + 0.8 * (2 * labels[:, None] - 1)
    return np.clip(np.round(values), -1, 1) if grid else values


def double_release(n, seed, *, known="table", grid=False):
    """Double randomized response of two Gaussian classes, and which rows are original."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(np.int32)
    made = rng.integers(0, 2, 3000).astype(np.int32)
    rows, mechanism = generated(rng, made, 0.9, grid), DoubleRR((0, 1), NOISE)
    drawn = mechanism.sample(truth, made, rng)
    original = drawn.synthetic_rows < 0
    features = generated(rng, truth, 1.0, grid)
    features[~original] = rows[drawn.synthetic_rows[~original]]
    if known == "generator":
        made = rng.integers(0, 2, 3000).astype(np.int32)
        rows = generated(rng, made, 0.9, grid)
    release = Release(
        table(features),
        ReleasedLabels(drawn.labels),
        (0, 1),
        (0, 1),
        TrueLabels(truth),
        synthetic=SyntheticTable(table(rows), made),
    )
    return release, mechanism, original


def halves(release):
    rows = np.arange(len(release))
    return release.take(rows % 2 == 0), release.take(rows % 2 == 1)


def accuracy(name, knowledge, release):
    fitting, asked = halves(release)
    attack = create_attack(name, knowledge).fit(without_truth(fitting), np.random.default_rng(0))
    posterior = attack.posterior(without_truth(asked))
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-9)
    return np.mean(posterior.argmax(axis=1) == asked.truth), attack


def test_recognised_synthetic_rows_are_discounted():
    release, mechanism, original = double_release(6000, 0)
    knowledge = Knowledge(mechanism.label_channel, claim=mechanism)
    aware, attack = accuracy("synthetic-aware", knowledge, release)
    plain, _ = accuracy("bayes", knowledge, release)
    # The standard error of the difference is below 0.006: over four of them.
    assert aware > plain + 0.025
    assert isinstance(attack.model.share, Recognition)
    share = attack.model.share.predict(release.features)
    assert share[original].min() == 1.0
    assert share[~original].mean() < 0.1


def test_a_generator_without_its_table_is_told_by_a_discriminator():
    release, mechanism, _ = double_release(4000, 1, known="generator")
    knowledge = Knowledge(mechanism.label_channel, claim=mechanism)
    aware, attack = accuracy("synthetic-aware", knowledge, release)
    plain, _ = accuracy("released-label", knowledge, release)
    assert isinstance(attack.model.share, Discrimination)
    share = attack.model.share.predict(release.features)
    assert share.mean() == pytest.approx(1 - NOISE, abs=0.08)
    assert aware > plain - 0.01


def test_equal_rows_of_few_values_are_not_taken_for_synthetic():
    release, mechanism, original = double_release(6000, 2, grid=True)
    knowledge = Knowledge(mechanism.label_channel, claim=mechanism)
    aware, attack = accuracy("synthetic-aware", knowledge, release)
    plain, _ = accuracy("released-label", knowledge, release)
    share = attack.model.share.predict(release.features)
    assert share.mean() == pytest.approx(original.mean(), abs=0.05)
    assert aware > plain - 0.01


def test_the_generator_must_be_known():
    release, mechanism, _ = double_release(200, 3)
    knowledge = Knowledge(mechanism.label_channel, claim=mechanism)
    attack = create_attack("synthetic-aware", knowledge)
    assert missing_need(attack, release, knowledge) is None
    plain = RandomizedResponse((0, 1), NOISE)
    other = Knowledge(plain.channel, claim=plain)
    assert "synthetic table" in missing_need(attack, release, other)


def model_based(n, seed):
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(np.int32)
    values = rng.normal(size=(n, 3)) + 0.5 * (2 * truth[:, None] - 1)
    eta = expit(values.sum(axis=1) + np.log(0.4 / 0.6))
    public = expit(values[:, 0])
    public = np.stack([1 - public, public], axis=1)
    mechanism = ModelBasedRR((0, 1), 0.6, 0.05)
    released = mechanism.sample(truth, public, rng)
    release = Release(
        table(values),
        ReleasedLabels(released),
        (0, 1),
        (0, 1),
        TrueLabels(truth),
        public_posterior=public,
    )
    exact = np.stack([1 - eta, eta], axis=1)
    return release, mechanism, exact


def test_bayes_uses_the_channel_of_each_row():
    release, mechanism, exact = model_based(8000, 4)
    knowledge = Knowledge(None, claim=mechanism)
    channels = mechanism.channels(release.public_posterior)
    likelihood = channels[np.arange(len(release)), :, release.released]
    np.testing.assert_allclose(knowledge.likelihood(release), likelihood)
    found, _ = accuracy("bayes", knowledge, release)
    optimum = np.mean((exact * likelihood).argmax(axis=1)[1::2] == release.truth[1::2])
    assert optimum - 0.02 < found
    assert found > accuracy("released-label", knowledge, release)[0] + 0.03


def test_without_the_public_model_the_reason_is_said():
    release, mechanism, _ = model_based(100, 5)
    knowledge = Knowledge(None, claim=mechanism)
    bare = Release(release.features, release.released, (0, 1), (0, 1), release.truth)
    reason = missing_need(create_attack("bayes", knowledge), bare, knowledge)
    assert "channel of its own" in reason
    assert "--public-posterior" in reason


def test_another_prior_finds_the_rare_class():
    rng = np.random.default_rng(6)
    truth = (rng.random(8000) < 0.1).astype(np.int32)
    values = rng.normal(size=(8000, 2)) + 0.6 * truth[:, None]
    mechanism = RandomizedResponse.from_epsilon((0, 1), 1.0)
    release = Release(
        table(values),
        ReleasedLabels(mechanism.sample(truth, rng)),
        (0, 1),
        (0, 1),
        TrueLabels(truth),
    )
    fitting, asked = halves(release)
    knowledge, found = Knowledge(mechanism.channel), {}
    for name in ("bayes", "prior-shift"):
        attack = create_attack(name, knowledge)
        attack.fit(without_truth(fitting), np.random.default_rng(0))
        right = attack.posterior(without_truth(asked)).argmax(axis=1) == asked.truth
        found[name] = np.mean([right[asked.truth == y].mean() for y in (0, 1)])
    # Each is within 0.04 of its expectation at five standard errors.
    assert found["prior-shift"] > found["bayes"] + 0.1


def test_the_release_s_own_prior_shifts_nothing():
    release, mechanism, _ = double_release(600, 7)
    knowledge = Knowledge(mechanism.label_channel)
    bayes = create_attack("bayes", knowledge).fit(release, np.random.default_rng(0))
    from ldpaudit.attacks.models.counts import clean_prior

    own = clean_prior(release.released, mechanism.label_channel.matrix)
    same = PriorShiftAttack(knowledge, own).fit(release, np.random.default_rng(0))
    np.testing.assert_allclose(same.posterior(release), bayes.posterior(release), atol=1e-9)
