"""Fresh, remembered and reused noise are told apart, with and without true labels."""

import numpy as np
import pytest
from estimators.person.drawing import Repeated, drawn
from scipy.stats import binom

from ldpaudit.arrays import IndexArray
from ldpaudit.estimators.person.answers import log_likelihoods
from ldpaudit.estimators.person.noise import (
    agreement_share,
    association_p_value,
    changed_by_noise,
    fresh_agreement,
)
from ldpaudit.estimators.person.votes import best_guess, estimated_prior, guesses
from ldpaudit.estimators.person.without_truth import (
    fresh_mixture,
    fresh_p_value,
    least_changed,
    remembered_mixture,
    remembered_p_value,
    remembered_share_lower,
)


def _counts(made: Repeated) -> IndexArray:
    m = made.channel.shape[1]
    flat = made.released[:, 0].astype(np.int64) * m + made.released[:, 1]
    return np.bincount(flat, minlength=m * m).reshape(m, m)


def _p_value(made: Repeated, *, changed: bool = False) -> float | None:
    rows = (made.truth[:, 0] != made.truth[:, 1]) == changed
    truth, released = made.truth[rows], made.released[rows]
    noise = [changed_by_noise(truth[:, t], released[:, t]) for t in (0, 1)]
    strata = truth[:, 0].astype(np.int64) * made.channel.shape[0] + truth[:, 1]
    return association_p_value(*noise, strata)


@pytest.mark.parametrize("classes", [2, 6])
def test_remembered_noise_is_found_with_true_labels(classes: int) -> None:
    rng = np.random.default_rng(1)
    kept = _p_value(drawn(rng, n=1_000, classes=classes, remembered=1.0, changing=0.2))
    fresh = _p_value(drawn(rng, n=1_000, classes=classes, changing=0.2))
    assert kept is not None
    assert fresh is not None
    assert kept < 1e-9
    assert fresh > 1e-4


def test_noise_that_is_used_again_is_found_where_labels_changed() -> None:
    rng = np.random.default_rng(2)
    again = _p_value(drawn(rng, n=2_000, changing=0.5, reused=True), changed=True)
    memory = _p_value(drawn(rng, n=2_000, changing=0.5, remembered=1.0), changed=True)
    assert again is not None
    assert memory is not None
    assert again < 1e-9
    assert memory > 1e-4


def test_few_people_are_not_tested() -> None:
    few = np.zeros(10, dtype=bool)
    assert association_p_value(few, few, np.zeros(10, dtype=np.int64)) is None
    none = np.zeros(100, dtype=bool)
    assert association_p_value(none, none, np.zeros(100, dtype=np.int64)) == 1.0


def test_the_test_of_association_is_exact() -> None:
    rng = np.random.default_rng(3)
    p_values = []
    for _ in range(300):
        strata = rng.integers(0, 3, 200)
        chances = np.array([0.1, 0.3, 0.5])[strata]
        drawn_twice = rng.random((2, 200)) < chances
        p_values.append(association_p_value(*drawn_twice, strata))
    found = sum(p is not None and p <= 0.1 for p in p_values)
    assert found <= binom.isf(1e-6, 300, 0.1)


def test_without_true_labels_remembered_noise_cannot_be_fresh() -> None:
    rng = np.random.default_rng(4)
    made = drawn(rng, remembered=1.0, changing=0.1)
    one = made.channel
    assert fresh_p_value(_counts(made), one, one) < 1e-9
    agreeing = int((made.released[:, 0] == made.released[:, 1]).sum())
    assert 0.7 < remembered_share_lower(agreeing, 5_000, one, one, 0.05) < 0.95


def test_without_true_labels_fresh_noise_would_need_many_changes() -> None:
    made = drawn(np.random.default_rng(5), changing=0.05)
    one, counts = made.channel, _counts(made)
    assert fresh_p_value(counts, one, one) > 1e-3
    assert remembered_p_value(counts, one, one) is not None
    fresh = least_changed(counts, fresh_mixture(one, one), 0.05)
    remembered = least_changed(counts, remembered_mixture(one, one), 0.05)
    assert fresh is not None
    assert remembered is not None
    assert fresh < 0.06
    assert remembered > 0.5


@pytest.mark.validate
@pytest.mark.parametrize("classes", [2, 4])
def test_tests_without_true_labels_are_valid(classes: int) -> None:
    found = 0
    for seed in range(500):
        rng = np.random.default_rng(seed)
        made = drawn(rng, n=400, classes=classes, changing=0.3 * (seed % 2))
        found += fresh_p_value(_counts(made), made.channel, made.channel) <= 0.1
    assert found <= binom.isf(1e-6, 500, 0.1)


def test_the_share_of_remembered_answers_is_bounded() -> None:
    held = 0
    for seed in range(60):
        made = drawn(np.random.default_rng(seed), n=600, remembered=0.4)
        same = int((made.released[:, 0] == made.released[:, 1]).sum())
        sizes = np.bincount(made.truth[:, 0])
        expected = fresh_agreement(made.channel, made.channel, sizes)
        _, low, high = agreement_share(same, 600, expected, 0.1)
        held += low <= 0.4 <= high
    assert held >= 60 - binom.isf(1e-6, 60, 0.1)


def test_votes_wear_the_noise_away() -> None:
    made = drawn(np.random.default_rng(6), n=2_000, releases=8)
    right = []
    for t in (1, 8):
        channels = [made.channel] * t
        prior = estimated_prior(log_likelihoods(channels, made.released[:, :t]))
        found = guesses(channels, made.released[:, :t], prior)
        right.append((found == made.truth[:, 0]).mean())
    assert right[0] < 0.76
    assert right[1] > 0.92
    exact = best_guess([made.channel] * 2)
    assert exact is not None
    assert np.isclose(exact, np.exp(1) / (1 + np.exp(1)))


def test_answers_that_are_not_the_commonest_of_their_label_were_changed() -> None:
    """Of two labels and three outputs, and of three labels and two."""
    labels, answers = np.array([0, 0, 0, 1, 1, 1]), np.array([2, 2, 0, 1, 1, 2])
    assert changed_by_noise(labels, answers).tolist() == [False, False, True, False, False, True]
    labels, answers = np.array([0, 0, 1, 2, 2, 2]), np.array([1, 1, 0, 0, 0, 1])
    assert changed_by_noise(labels, answers).tolist() == [False] * 5 + [True]
