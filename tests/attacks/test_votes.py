"""The attacks in which other rows vote: what they find; a row's own label does not vote."""

import numpy as np
import pytest

from ldpaudit.attacks import Knowledge, create_attack
from ldpaudit.attacks.interface import missing_need, without_truth
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FeatureTable, Release, ReleasedLabels, TrueLabels

MECHANISM = RandomizedResponse.from_epsilon((0, 1), 1.0)


def release_of(values, truth, rng, places=True):
    truth = np.asarray(truth, dtype=np.int32)
    n = len(truth)
    features = FeatureTable(
        values.astype(np.float32), np.zeros((n, 0), np.int32), (), values.shape[1]
    )
    labels = ReleasedLabels(MECHANISM.sample(truth, rng))
    return Release(
        features,
        labels,
        (0, 1),
        (0, 1),
        TrueLabels(truth),
        places=np.arange(n) if places else None,
    )


def guessed(name, release, seed=0):
    half = np.random.default_rng(seed).permutation(len(release)) % 2
    fitting, asked = (release.take(np.flatnonzero(half == h)) for h in (0, 1))
    attack = create_attack(name, Knowledge(MECHANISM.channel, claim=MECHANISM))
    attack.fit(without_truth(fitting), np.random.default_rng(seed))
    return (attack.posterior(without_truth(asked)).argmax(axis=1) == asked.truth).mean()


def test_households_are_found_by_near_rows():
    rng = np.random.default_rng(0)
    home = rng.permutation(np.repeat(np.arange(250), 8))
    values = rng.normal(size=(250, 4))[home] + rng.normal(0, 0.01, (2000, 4))
    release = release_of(values, rng.integers(0, 2, 250)[home], rng)
    # The vote of eight: 90 %; a label alone is right in 73 %.
    assert guessed("near-rows", release) > 0.86


def test_equal_rows_are_neighbours_of_one_another_and_not_of_themselves():
    rng = np.random.default_rng(1)
    values = np.repeat(rng.normal(size=(500, 3)), 4, axis=0)
    release = release_of(values, rng.integers(0, 2, 2000), rng)
    # Labels are independent: who counted a row's own label twice would do no better, but worse.
    assert guessed("near-rows", release) == pytest.approx(0.731, abs=0.06)


def test_labels_that_go_with_the_order_are_found():
    rng = np.random.default_rng(2)
    truth = np.repeat(rng.integers(0, 2, 100), 20)
    release = release_of(rng.normal(size=(2000, 2)), truth, rng)
    assert guessed("row-order", release) > 0.82
    shuffled = release.take(rng.permutation(2000))
    assert guessed("row-order", shuffled) > 0.82  # Places are those of the file.


def test_an_order_that_says_nothing_gives_no_advantage():
    rng = np.random.default_rng(4)
    release = release_of(rng.normal(size=(2000, 2)), rng.integers(0, 2, 2000), rng)
    assert guessed("row-order", release) == pytest.approx(0.731, abs=0.06)


def test_without_places_it_is_said_why():
    rng = np.random.default_rng(5)
    release = release_of(rng.normal(size=(60, 2)), rng.integers(0, 2, 60), rng, places=False)
    knowledge = Knowledge(MECHANISM.channel)
    reason = missing_need(create_attack("row-order", knowledge), release, knowledge)
    assert reason is not None
    assert "order of the rows" in reason
