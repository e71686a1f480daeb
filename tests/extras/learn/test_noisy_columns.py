"""Learning from several noisy columns: what is learnt holds for their true values."""

import numpy as np
import pytest
from worlds import TURNED

from ldpaudit.errors import InputError
from ldpaudit.extras.learn.noisy_columns import MixtureLoss, fit_mixture, posteriors, prior
from ldpaudit.extras.several.joint import RandomSampling
from ldpaudit.learners import ReleaseClassifier
from ldpaudit.mechanisms import RandomizedResponse

N, EFFECT = 20_000, np.array([-2.0, 0.0, 2.0])
B = RandomizedResponse.from_epsilon(("u", "v", "w"), 0.7)
Y = RandomizedResponse.from_epsilon((0, 1), 1.0)


def _drawn(seed=0, n=N):
    """Return features, a column b that depends on them, and a label that depends on both."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    odds = np.exp(x[:, :1] * np.array([1, 0, -1.0]))
    odds /= odds.sum(axis=1, keepdims=True)
    b = (odds.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).astype(np.int32)
    y = (rng.random(n) < 1 / (1 + np.exp(-EFFECT[b] - 0.7 * x[:, 1]))).astype(np.int32)
    return x, b, y, rng


X, TRUE_B, TRUE_Y, RNG = _drawn()
NOISY_B, NOISY_Y = B.sample(TRUE_B, RNG), Y.sample(TRUE_Y, RNG)
TEST = _drawn(1)


def _beside(x, b):
    return np.column_stack([x, b])


def _accuracy(learner, x):
    return float((learner.predict(x) == TEST[2]).mean())


def test_a_feature_whose_noise_turns_its_values_is_read_the_right_way_round():
    turned = TURNED.sample(TRUE_B[:3_000], np.random.default_rng(6))
    known = ReleaseClassifier(Y, model="logistic", noisy={2: TURNED}, rounds=30)
    known.fit(_beside(X[:3_000], turned), NOISY_Y[:3_000])
    best = ReleaseClassifier(Y, model="logistic", noisy={2: B}).fit(_beside(X, NOISY_B), NOISY_Y)
    asked = _beside(*TEST[:2])
    assert _accuracy(known, asked) > _accuracy(best, asked) - 0.05


def test_posteriors_are_calibrated():
    (found,) = posteriors(X, [B.channel.matrix.T[NOISY_B]])
    assert found.sum(axis=1) == pytest.approx(np.ones(N))
    for value in range(3):
        rows = found[:, value] > 0.4
        # 1,000 rows at least: 0.06 is 4 standard deviations.
        assert rows.sum() > 1_000
        assert abs(found[rows, value].mean() - (TRUE_B[rows] == value).mean()) < 0.06


@pytest.mark.parametrize("model", ["logistic", "boosting"])
def test_knowing_the_channel_of_a_feature_beats_taking_it_at_its_word(model):
    """Planted: the plain learner sees an effect weakened by noise, and loses by it."""
    x, b = TEST[:2]
    known = ReleaseClassifier(Y, model=model, noisy={2: B}, rounds=30)
    known.fit(_beside(X, NOISY_B), NOISY_Y)
    encoded = [np.hstack([a, np.eye(3)[c]]) for a, c in ((X, NOISY_B), (x, b))]
    plain = ReleaseClassifier(Y, model=model, rounds=30).fit(encoded[0], NOISY_Y)
    assert _accuracy(known, _beside(x, b)) > _accuracy(plain, encoded[1]) + 0.02


def test_the_mixture_learns_through_a_mechanism_that_releases_columns_together():
    joint = RandomSampling((Y.classes, B.classes), 2.0)
    released = joint.sample(np.column_stack([TRUE_Y, TRUE_B]), RNG)
    channel = joint.channel()
    assert channel is not None
    seen = channel.matrix[:, released[:, 0] * 3 + released[:, 1]].T.reshape(N, 2, 3)
    other = prior(X, joint.columns[1].channel.matrix.T[released[:, 1]])
    model = fit_mixture(X, [other], seen.transpose(0, 2, 1), np.eye(3))
    x, b, y, _ = TEST
    found = model.predict(np.hstack([x, np.eye(3)[b]])).argmax(axis=1)
    plain = ReleaseClassifier(joint.columns[0]).fit(X, released[:, 0])
    assert (found == y).mean() > (plain.predict(x) == y).mean() + 0.05


def test_the_gradient_of_the_mixture_is_that_of_its_loss():
    rng = np.random.default_rng(3)
    loss, logits = MixtureLoss(rng.random((4, 3, 2))), rng.normal(size=(2, 12))
    _, gradient = loss(logits.copy())
    step = np.zeros_like(logits)
    step[1, 7] = 1e-6
    slope = (loss(logits + step)[0] - loss(logits - step)[0]) / 2e-6
    assert gradient[1, 7] / 12 == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize(
    ("columns", "values", "words"),
    [
        ({5: B}, 0.0, "do not"),
        ({2: B}, 0.5, "whole numbers"),
        ({2: B}, 3.0, "outside"),
        ({"b": B}, 0.0, "from positions"),
        ({True: B}, 0.0, "from positions"),
        ([2], 0.0, "from positions"),
    ],
)
def test_noisy_columns_that_cannot_be_are_one_line(columns, values, words):
    rows = _beside(X[:50], np.full(50, values))
    with pytest.raises(InputError, match=words):
        ReleaseClassifier(Y, noisy=columns).fit(rows, NOISY_Y[:50])
