import numpy as np
import pytest
from worlds import TURNED, gaussian_release_by

from ldpaudit.attacks import Knowledge, available_attacks, built_in_attacks, create_attack
from ldpaudit.attacks.interface import (
    as_seen_by,
    missing_need,
    without_truth,
)
from ldpaudit.errors import InputError
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.counts import clean_prior, measured_channel
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels


def cell_release(n, epsilon, seed, k=3):
    """Rows of six cells with known P(y | cell), released through randomized response."""
    rng = np.random.default_rng(seed)
    eta = np.random.default_rng(99).dirichlet(np.full(k, 0.6), size=6)
    cells = rng.integers(0, 6, n)
    truth = (rng.random((n, 1)) > np.cumsum(eta, axis=1)[cells, :-1]).sum(axis=1)
    mechanism = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon)
    released = mechanism.sample(truth.astype(np.int32), rng)
    table = FeatureTable(
        cells[:, None].astype(np.float32), cells[:, None].astype(np.int32), (6,), 2
    )
    release = Release(
        table,
        ReleasedLabels(released),
        mechanism.classes,
        mechanism.classes,
        TrueLabels(truth.astype(np.int32)),
    )
    return release, mechanism, eta


def fitted(name, release, mechanism, seed=0):
    known = None if mechanism is None else mechanism.channel
    attack = create_attack(name, Knowledge(known, seed=seed))
    return attack.fit(as_seen_by(attack, release), np.random.default_rng(seed))


GENERAL = [name for name in built_in_attacks() if name not in ("synthetic-aware", "row-order")]
"""The attacks on any mechanism, and on rows in any order."""


@pytest.mark.parametrize("name", GENERAL)
def test_every_attack_gives_probabilities(name):
    release, mechanism, _ = cell_release(200, 1.0, 0)
    posterior = fitted(name, release, mechanism).posterior(without_truth(release))
    assert posterior.shape == (200, 3)
    assert posterior.dtype == np.float64
    assert posterior.min() >= 0
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, atol=1e-9)


@pytest.mark.parametrize("name", ["bayes", "oracle", "knn"])
@pytest.mark.parametrize("epsilon", [2.0])
def test_informed_attacks_come_close_to_the_optimum(name, epsilon):
    release, mechanism, eta = cell_release(3000, epsilon, 1)
    test, _, _ = cell_release(3000, epsilon, 2)
    cells = np.bincount(test.features.categorical[:, 0], minlength=6).astype(float)
    optimum = np.average(mechanism.channel.informed_accuracy(eta), weights=cells)
    posterior = fitted(name, release, mechanism).posterior(without_truth(test))
    accuracy = np.mean(posterior.argmax(axis=1) == test.truth)
    # The standard error is 0.009; fixed seeds.
    assert optimum - 0.04 < accuracy < optimum + 0.025


def test_attacks_never_see_true_labels_they_do_not_declare():
    release, mechanism, _ = cell_release(100, 1.0, 4)
    for name in built_in_attacks():
        attack = create_attack(name, Knowledge(mechanism.channel))
        sees = as_seen_by(attack, release).truth is not None
        assert sees == ("truth" in attack.needs) == (name in ("features-only", "oracle"))


@pytest.mark.parametrize(
    ("name", "known", "truth", "reason"),
    [
        ("bayes", False, True, "declared channel"),
        ("oracle", True, False, "true labels"),
        ("classifier", False, True, None),
        ("released-label", False, False, None),
    ],
)
def test_what_is_missing_is_said(name, known, truth, reason):
    release, mechanism, _ = cell_release(100, 1.0, 5)
    release = release if truth else without_truth(release)
    knowledge = Knowledge(mechanism.channel if known else None)
    found = missing_need(create_attack(name, knowledge), release, knowledge)
    assert found is None if reason is None else reason in found


def test_outputs_that_are_no_classes_need_a_channel():
    release, _, _ = cell_release(100, 1.0, 6)
    other = Release(
        release.features, release.released, ("a", "b", "c"), release.classes, release.truth
    )
    attack = create_attack("released-label", Knowledge(None))
    assert "not the classes" in missing_need(attack, other, Knowledge(None))


@pytest.mark.parametrize("name", ["released-label", "classifier", "knn", "oracle"])
def test_without_a_channel_labels_are_taken_at_their_word(name):
    release, _, _ = cell_release(400, 4.0, 7)
    posterior = fitted(name, release, None).posterior(without_truth(release))
    if name == "released-label":
        np.testing.assert_array_equal(posterior.argmax(axis=1), release.released)
    assert np.mean(posterior.argmax(axis=1) == release.truth) > 0.45


def test_prior_behind_a_channel_that_hides_nearly_everything():
    labels = tuple(range(53))
    mechanism = RandomizedResponse.from_epsilon(labels, 0.5)
    frequencies = np.array([0.47, 0.18, *[0.35 / 51] * 51])
    rng = np.random.default_rng(8)
    truth = rng.choice(53, 120_000, p=frequencies).astype(np.int32)
    prior = clean_prior(mechanism.sample(truth, rng), mechanism.channel.matrix)
    assert prior.argmax() == 0
    assert prior[0] == pytest.approx(0.47, abs=0.25)
    assert prior[0] > 1.65 * prior[1:].max()  # so that nobody is guessed to be in a rare class
    assert np.abs(prior - frequencies).sum() < 0.7


def test_a_false_claim_is_outvoted_by_counts():
    honest = RandomizedResponse.from_epsilon((0, 1), 4.0)
    truth = np.tile(np.arange(2, dtype=np.int32), 5000)
    released = honest.sample(truth, np.random.default_rng(9))
    claimed = RandomizedResponse.from_epsilon((0, 1), 0.5).channel.matrix
    found = measured_channel(truth, released, (2, 2), claimed)
    np.testing.assert_allclose(found, honest.channel.matrix, atol=0.02)
    np.testing.assert_allclose(measured_channel(truth[:0], released[:0], (2, 2), claimed), claimed)


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="choose one of"):
        create_attack("guesswork", Knowledge(None))
    assert list(available_attacks())[: len(built_in_attacks())] == list(built_in_attacks())


@pytest.mark.parametrize("name", ["released-label", "bayes", "oracle"])
def test_a_channel_that_turns_labels_is_read_the_right_way_round(name):
    release = gaussian_release_by(TURNED, 1_500, 4, shift=0.0)
    guess = fitted(name, release, TURNED).posterior(without_truth(release)).argmax(axis=1)
    # The best guess is right for 77 %; five standard errors are 0.055.
    assert np.mean(guess == release.truth) > 0.7
    assert np.mean(release.released == release.truth) < 0.25
