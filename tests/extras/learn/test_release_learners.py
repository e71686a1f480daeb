import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.gaussian import GaussianRR
from ldpaudit.learners import (
    IWPClassifier,
    IWPRegressor,
    ReleaseClassifier,
    ReleaseRegressor,
    expected_failed_checks,
)
from ldpaudit.mechanisms import (
    LabelRange,
    Laplace,
    RandomizedResponse,
    from_declaration,
)
from ldpaudit.models.corrections import nearest_source
from ldpaudit.models.network import NetworkOptions
from ldpaudit.release import Declaration

SMALL = NetworkOptions(hidden=(16,), epochs=40, learning_rate=0.02)
SHORT = NetworkOptions(hidden=(16,), epochs=6, batch_size=256, learning_rate=0.02)
STATED = {"name": "rr", "epsilon": 2.0}
"""Noise on the labels that occur."""
DECLARED = RandomizedResponse.from_epsilon((0, 1), 2.0)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@pytest.mark.parametrize(
    ("learner", "most"),
    [
        (ReleaseClassifier(), 1),
        (ReleaseClassifier(model="network", network=replace(SMALL, epochs=8)), 3),
        (ReleaseClassifier(STATED), 1),
        (ReleaseRegressor(), 0),
        (ReleaseRegressor(loss="poisson"), 0),
        (ReleaseRegressor(loss="poisson", model="boosting"), 0),
        (ReleaseRegressor(STATED), 2),
        (ReleaseRegressor(DECLARED), 36),
        (IWPClassifier(), 1),
        (IWPClassifier(DECLARED), 36),
        (IWPRegressor(), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_scikit_learn_accepts_it(learner, most):
    expected = expected_failed_checks(learner)
    assert len(expected) <= most
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(learner, expected_failed_checks=expected, on_skip=None)


def test_a_regressor_takes_noise_on_a_range_without_a_step():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(2000, 1))
    noise = Laplace(LabelRange(0, 10), 2.0)
    model = ReleaseRegressor(noise).fit(X, noise.release(X[:, 0], rng))
    # Fixed seed; the standard error at the margin is 0.25.
    np.testing.assert_allclose(model.predict([[1.0], [9.0]]), [1, 9], atol=1.0)
    with pytest.raises(InputError, match="must not be clipped"):
        ReleaseRegressor(Laplace(LabelRange(0, 10), 2.0, clipped=True)).fit(X, X[:, 0])


def test_a_stated_mechanism_is_on_the_labels_that_occur():
    rng = np.random.default_rng(1)
    X, _, released, mechanism = binary(500, 2.0, rng)
    declared = ReleaseClassifier(mechanism).fit(X, released).predict_proba(X)
    stated = ReleaseClassifier(STATED).fit(X, released).predict_proba(X)
    np.testing.assert_allclose(declared, stated)
    for noise in ({"epsilon": 1.0}, {"name": "rr", "epsilo": 1.0}, "rr"):
        with pytest.raises(InputError, match=r"'name'|'epsilon'|Channel|its parameters"):
            ReleaseClassifier(noise).fit(X, released)


def binary(n, epsilon, rng):
    X = rng.normal(size=(n, 3))
    eta = expit(2 * X[:, 0] - X[:, 1])
    truth = (rng.random(n) < eta).astype(np.int32)
    mechanism = RandomizedResponse.from_epsilon(("no", "yes"), epsilon)
    return X, eta, np.array(["no", "yes"])[mechanism.sample(truth, rng)], mechanism


@pytest.mark.parametrize("correction", ["forward", "backward"])
@pytest.mark.parametrize(
    ("model", "error"), [("logistic", 0.05), ("boosting", 0.16), ("network", 0.16)]
)
def test_learns_the_posterior_of_the_true_label(model, error, correction):
    rng = np.random.default_rng(0)
    X, eta, released, mechanism = binary(10_000, 1.0, rng)
    learner = ReleaseClassifier(
        mechanism, model=model, correction=correction, network=SHORT, rounds=50
    )
    found = clone(learner).fit(X, released).predict_proba(X)[:, 1]
    naive = learner.set_params(correction=None).fit(X, released).predict_proba(X)[:, 1]
    # Fixed seed; what is learnt without correction is drawn to 1/2 by 0.17 to 0.2.
    assert np.sqrt(np.mean((found - eta) ** 2)) < error < np.sqrt(np.mean((naive - eta) ** 2))


def test_values_and_codes_are_the_same_rows():
    rng = np.random.default_rng(1)
    X, _, released, mechanism = binary(500, 2.0, rng)
    one = ReleaseClassifier(mechanism).fit(X, released)
    two = ReleaseClassifier(mechanism, labels="codes").fit(X, (released == "yes").astype(int))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    assert set(one.predict(X)) <= {"no", "yes"}
    assert list(two.classes_) == [0, 1]


@pytest.mark.parametrize("correction", ["forward", "backward", None])
def test_boosting_takes_labels_that_are_all_alike(correction):
    learner = ReleaseClassifier(DECLARED, model="boosting", correction=correction)
    learner.fit(np.arange(40.0)[:, None], np.ones(40, dtype=int))
    np.testing.assert_allclose(learner.predict_proba([[3.0]]), [[0, 1]], atol=1e-6)


def test_weights_drop_rows():
    rng = np.random.default_rng(2)
    X, _, released, mechanism = binary(400, 2.0, rng)
    kept = rng.random(400) < 0.5
    for correction in ("forward", "backward"):
        learner = ReleaseClassifier(mechanism, correction=correction)
        one = learner.fit(X, released, kept.astype(float)).predict_proba(X)
        two = learner.fit(X[kept], released[kept]).predict_proba(X)
        np.testing.assert_allclose(one, two, atol=1e-5)


def test_images_and_the_same_seed():
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 1500).astype(np.int32)
    X = rng.normal(size=(1500, 64))
    X.reshape(-1, 8, 8)[truth == 1, 2:6, 2:6] += 1.0
    mechanism = RandomizedResponse.from_epsilon((0, 1), 2.0)
    state = torch.get_rng_state()
    options = NetworkOptions("convolutional", (16,), epochs=4)
    learner = ReleaseClassifier(mechanism, model="network", network=options, labels="codes")
    first = learner.fit(X, mechanism.sample(truth, np.random.default_rng(4)))
    assert np.mean(first.predict(X) == truth) > 0.95
    again = clone(first).fit(X, mechanism.sample(truth, np.random.default_rng(4)))
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert torch.equal(state, torch.get_rng_state())
    with pytest.raises(InputError, match="square images"):
        clone(first).fit(X[:, :63], truth)


def test_the_nearest_source_beats_every_other():
    rng = np.random.default_rng(5)
    channel = RandomizedResponse((0, 1, 2), 0.5).channel.matrix
    inside = rng.dirichlet(np.ones(3), size=20)
    np.testing.assert_allclose(nearest_source(inside @ channel, channel), inside, atol=1e-9)
    outside = rng.dirichlet(np.full(3, 0.2), size=20)
    found = nearest_source(outside, channel)
    value = (outside * np.log(found @ channel)).sum(axis=1)
    for other in rng.dirichlet(np.full(3, 0.3), size=500):
        assert (value >= (outside * np.log(other @ channel)).sum(axis=1) - 1e-6).all()


def test_regression_on_a_biased_channel():
    rng = np.random.default_rng(6)
    labels = tuple(range(5))
    mechanism = RandomizedResponse.from_epsilon(labels, 1.5)
    X = rng.normal(size=(8_000, 2))
    mean = 4 * expit(X[:, 0])
    truth = rng.binomial(4, expit(X[:, 0])).astype(np.int32)
    released = mechanism.sample(truth, rng)
    for model in ("linear", "boosting", "network"):
        learner = ReleaseRegressor(mechanism, model=model, network=SHORT, rounds=20)
        error = np.mean((learner.fit(X, released).predict(X) - mean) ** 2)
        learner.set_params(correction=None)
        assert error < 0.6 * np.mean((learner.fit(X, released).predict(X) - mean) ** 2)


FLAT, GAUSSIAN = RandomizedResponse((0, 1), 1.0), GaussianRR((0, 1), 0.2)


@pytest.mark.parametrize(
    ("learner", "labels", "words"),
    [
        (ReleaseClassifier(RandomizedResponse((0, 1), 0.2)), [0, 1, 2], r"(outside|rows): \d"),
        (ReleaseClassifier(FLAT, correction="backward"), [0, 1, 0], "cannot be inverted"),
        (ReleaseRegressor(FLAT), [0, 1, 0], "cannot be debiased"),
        (ReleaseClassifier(GAUSSIAN, correction="unbiased"), [0, 1, 0], "IWPClassifier"),
        (ReleaseClassifier(from_declaration(None, (0, 1))), [0, 1, 2], "one label channel"),
    ],
)
def test_bad_input_names_its_limit(learner, labels, words):
    with pytest.raises(InputError, match=words):
        learner.fit(np.zeros((3, 1)), np.array(labels))


@pytest.mark.parametrize("model", ["linear", "network"])
def test_the_poisson_loss_learns_means_through_unbiased_noise(model):
    rng = np.random.default_rng(8)
    X = rng.uniform(-1, 1, size=(10_000, 2))
    mean = np.exp(0.5 + 1.2 * X[:, 0] - 0.8 * X[:, 1])
    truth = np.minimum(rng.poisson(mean), 20)
    noise = from_declaration(
        Declaration("discrete-laplace", {"low": 0, "high": 20, "epsilon": 8.0}), ()
    )
    released = noise.release(truth, rng)
    assert (released < 0).mean() > 0.05
    settings = {"model": model, "loss": "poisson", "network": SHORT}
    found = ReleaseRegressor(noise, **settings).fit(X, released).predict(X)
    assert (found > 0).all()
    # Deviance from the true means: half of what the best constant has, and far less.
    assert np.mean(found - mean * np.log(found)) < np.mean(mean - mean * np.log(mean)) + 0.05
    if model == "linear":
        weights = ReleaseRegressor(noise, **settings).fit(X, released).model_.weights
        ratio = weights[0] / weights[1]
        assert ratio == pytest.approx(-1.5, abs=0.25)


def test_the_poisson_loss_says_what_it_cannot_take():
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.linspace(-1, 2, 40)
    with pytest.raises(InputError, match="no labels below 0"):
        ReleaseRegressor(model="boosting", loss="poisson").fit(X, y)
    with pytest.raises(InputError, match="mean above 0"):
        ReleaseRegressor(loss="poisson").fit(X, y - 2)
    with pytest.raises(InputError, match="'squared' or 'poisson'"):
        ReleaseRegressor(loss="log").fit(X, y)
    assert (ReleaseRegressor(model="boosting", loss="poisson").fit(X, y + 2).predict(X) > 0).all()
