"""Attacks that know more than the channel: the generator, the public model."""

import numpy as np
import pytest
from scipy.special import expit
from worlds import feature_table

from ldpaudit.attacks import Knowledge, create_attack
from ldpaudit.attacks.interface import missing_need, without_truth
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR, ModelBasedRR
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import (
    Release,
    ReleasedLabels,
    SyntheticTable,
    TrueLabels,
)

NOISE = 0.4


def generated(rng, labels, spread, grid):
    values = rng.normal(scale=spread, size=(len(labels), 3)) + 0.8 * (2 * labels[:, None] - 1)
    return np.clip(np.round(values), -1, 1) if grid else values


def double_release(n, seed, *, known="table", grid=False, noise=NOISE):
    """Double randomized response of two Gaussian classes, and which rows are original."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(n) < 0.4).astype(np.int32)
    made = rng.integers(0, 2, 3000).astype(np.int32)
    rows, mechanism = generated(rng, made, 0.9, grid), DoubleRR((0, 1), noise)
    drawn = mechanism.sample(truth, made, rng)
    original = drawn.synthetic_rows < 0
    features = generated(rng, truth, 1.0, grid)
    features[~original] = rows[drawn.synthetic_rows[~original]]
    if known == "generator":
        made = rng.integers(0, 2, 3000).astype(np.int32)
        rows = generated(rng, made, 0.9, grid)
    release = Release(
        feature_table(features),
        ReleasedLabels(drawn.labels),
        (0, 1),
        (0, 1),
        TrueLabels(truth),
        synthetic=SyntheticTable(feature_table(rows), made),
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


# Against which attack, and by how much it must be better. The standard error of a difference is
# below 0.006.
KNOWN = {
    "its table": (4000, 0, {}, "bayes", 0.02),
    "other rows of the generator": (4000, 1, {"known": "generator"}, "released-label", -0.01),
    "equal rows of few values": (4000, 2, {"grid": True}, "released-label", -0.01),
}


def test_where_every_row_is_synthetic_features_reveal_nothing():
    release, mechanism, _ = double_release(300, 3, noise=1.0)
    right, attack = accuracy(
        "synthetic-aware", Knowledge(mechanism.label_channel, claim=mechanism), release
    )
    assert np.ptp(attack.posterior(without_truth(release)), axis=0).max() < 1e-9
    assert right < 0.7


@pytest.mark.parametrize("case", KNOWN)
def test_who_knows_the_generator_discounts_synthetic_rows(case):
    n, seed, options, other, gain = KNOWN[case]
    release, mechanism, original = double_release(n, seed, **options)
    knowledge = Knowledge(mechanism.label_channel, claim=mechanism)
    aware, attack = accuracy("synthetic-aware", knowledge, release)
    assert aware > accuracy(other, knowledge, release)[0] + gain
    share = attack.model.share(release.features)
    if case == "its table":
        assert share[original].min() == 1.0
        assert share[~original].mean() < 0.1
    else:
        assert share.mean() == pytest.approx(original.mean(), abs=0.08)


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
        feature_table(values),
        ReleasedLabels(released),
        (0, 1),
        (0, 1),
        TrueLabels(truth),
        public_posterior=public,
    )
    exact = np.stack([1 - eta, eta], axis=1)
    return release, mechanism, exact


def test_bayes_uses_the_channel_of_each_row():
    release, mechanism, exact = model_based(5000, 4)
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
