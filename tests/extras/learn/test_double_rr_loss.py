import numpy as np
import pytest
import torch

from ldpaudit.errors import InputError
from ldpaudit.extras.kinds.mechanisms.with_features import DoubleRR
from ldpaudit.extras.learn.corrections import double_targets
from ldpaudit.learners import ReleaseClassifier
from ldpaudit.models.network import NetworkOptions


def expectations(seed, k=3, cells=4, noise=0.4):
    """Everything about double RR on a finite space, by enumeration: truth, estimate, misprint."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.ones(k))
    real = rng.dirichlet(np.ones(cells), size=k)
    fake = rng.dirichlet(np.ones(cells), size=k)
    loss = rng.exponential(size=(cells, k))
    joint = np.zeros((cells, k))  # of released features and released label
    for y in range(k):
        features = (1 - noise) * real[y] + noise * fake.mean(axis=0)
        label = (1 - noise) * np.eye(k)[y] + noise / k
        joint += prior[y] * np.outer(features, label)
    truth = float((prior[:, None] * real * loss.T).sum())
    mechanism = DoubleRR(tuple(range(k)), noise)
    # One weighted row for each cell and label stands for the expectation.
    x, z = (part.ravel() for part in np.meshgrid(range(cells), range(k), indexing="ij"))
    released, synthetic = double_targets(z, np.arange(k), mechanism, joint.ravel())
    first = float((released * loss[x]).sum())
    estimate = first + float((synthetic * (fake @ loss)).sum())
    last = float((fake @ loss @ prior).sum())
    misprint = first + noise / (1 - noise) * last
    return truth, estimate, misprint


@pytest.mark.parametrize("seed", range(4))
def test_the_corrected_loss_is_unbiased_and_the_published_sign_is_not(seed):
    truth, estimate, misprint = expectations(seed)
    assert estimate == pytest.approx(truth, abs=1e-9)
    assert abs(misprint - truth) > 0.1


def released(n, rng, noise):
    """Features N(±1, 1) in the first of two columns; the generator mixes up the labels."""
    truth = rng.integers(0, 2, n).astype(np.int32)
    X = rng.normal(size=(n, 2))
    X[:, 0] += 2 * truth - 1
    synthetic_labels = rng.integers(0, 2, n).astype(np.int32)
    synthetic = rng.normal(size=(n, 2))
    synthetic[:, 1] += 3 * (2 * synthetic_labels - 1)
    mechanism = DoubleRR((0, 1), noise)
    draw = mechanism.sample(truth, synthetic_labels, rng)
    fake = draw.synthetic_rows >= 0
    features = np.where(fake[:, None], synthetic[draw.synthetic_rows], X)
    fresh = rng.normal(size=(n, 2))
    fresh[:, 1] += 3 * (2 * synthetic_labels - 1)
    return mechanism, features, draw.labels, fresh, synthetic_labels


@pytest.mark.parametrize("model", ["logistic", "network"])
def test_a_model_learns_the_true_posterior(model):
    rng = np.random.default_rng(0)
    torch.set_num_threads(1)
    n = 20_000 if model == "logistic" else 10_000
    mechanism, X, z, synthetic, synthetic_labels = released(n, rng, 0.3)
    options = NetworkOptions(hidden=(16,), epochs=6, learning_rate=0.01)
    learner = ReleaseClassifier(mechanism, correction="unbiased", model=model, network=options)
    learner.fit(X, z, synthetic=synthetic, synthetic_labels=synthetic_labels)
    grid = rng.normal(size=(2000, 2))
    error = learner.predict_proba(grid)[:, 1] - 1 / (1 + np.exp(-2 * grid[:, 0]))
    naive = ReleaseClassifier(mechanism, correction=None).fit(X, z)
    off = naive.predict_proba(grid)[:, 1] - 1 / (1 + np.exp(-2 * grid[:, 0]))
    # Fixed seed.
    assert np.sqrt(np.mean(error**2)) < 0.1 < 0.13 < np.sqrt(np.mean(off**2))


def test_what_the_mechanism_forbids_is_refused():
    rng = np.random.default_rng(1)
    mechanism, X, z, synthetic, labels = released(50, rng, 0.3)
    with pytest.raises(InputError, match="needs samples of the synthetic"):
        ReleaseClassifier(mechanism, correction="unbiased").fit(X, z)
    with pytest.raises(InputError, match="must be 'unbiased'"):
        ReleaseClassifier(mechanism).fit(X, z)
    learner = ReleaseClassifier(mechanism, correction="unbiased", model="boosting")
    with pytest.raises(InputError, match="negative weight"):
        learner.fit(X, z, synthetic=synthetic, synthetic_labels=labels)
