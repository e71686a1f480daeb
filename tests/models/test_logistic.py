import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit
from worlds import TURNED

from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.logistic import ForwardLoss, Stopping, fit_forward_logistic, fit_logistic

TIGHT = Stopping(2000, 1e-10, 1e-15)


def losses(n, k, rng):
    channel = RandomizedResponse(tuple(range(k)), 0.5).channel
    likelihood = channel.matrix.T[rng.integers(0, k, n)]
    weights = rng.random((n, 1)) + 0.5
    return [ForwardLoss(likelihood), ForwardLoss(likelihood, weights)]


@pytest.mark.parametrize("which", [0, 1])
def test_gradients(which):
    rng = np.random.default_rng(which)
    loss, logits = losses(7, 3, rng)[which], rng.normal(size=(3, 7))
    numeric = approx_fprime(logits.ravel(), lambda flat: loss(flat.reshape(3, 7).copy())[0], 1e-7)
    np.testing.assert_allclose(loss(logits.copy())[1].ravel() / 7, numeric, atol=1e-6)


def test_whole_numbers_as_weights_are_repeated_rows():
    rng = np.random.default_rng(3)
    matrix, codes = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    times = rng.integers(1, 4, 200)
    likelihood = RandomizedResponse((0, 1), 0.5).channel.matrix.T[codes]
    weights = times[:, None] / times.mean()
    one = fit_logistic(matrix, ForwardLoss(likelihood, weights), 2, 1.0, None, TIGHT)
    again = np.repeat(np.arange(200), times)
    penalty = len(again) / 200
    two = fit_logistic(matrix[again], ForwardLoss(likelihood[again]), 2, penalty, None, TIGHT)
    np.testing.assert_allclose(one.weights, two.weights, atol=1e-6)


def test_forward_logistic_without_noise_matches_scikit_learn():
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(11)
    matrix = rng.normal(size=(500, 3)).astype(np.float32)
    codes = (rng.random(500) < expit(matrix[:, 0] - matrix[:, 1])).astype(np.int32)
    ours = fit_forward_logistic(matrix, codes, np.eye(2), 2.0).predict(matrix)
    # Two symmetric weight vectors share one penalty: half of it for their difference.
    theirs = LogisticRegression(C=1.0, tol=1e-8).fit(matrix, codes).predict_proba(matrix)
    np.testing.assert_allclose(ours, theirs, atol=2e-3)


def test_forward_logistic_finds_the_true_label_behind_a_turned_channel():
    rng, channel = np.random.default_rng(6), TURNED.label_channel.matrix
    truth = rng.integers(0, 3, 3_000)
    matrix = (3 * np.eye(3)[truth] + rng.normal(size=(3_000, 3)) - 1).astype(np.float32)
    released = (rng.random((3_000, 1)) > channel.cumsum(axis=1)[truth]).sum(axis=1)
    model = fit_forward_logistic(matrix, released.astype(np.int32), channel, 1.0)
    found = model.predict(matrix).argmax(axis=1)
    # The best guess is right for 97 %; read the wrong way round, the channel names another label.
    assert (found == truth).mean() > 0.9
    assert (released == truth).mean() < 0.2
