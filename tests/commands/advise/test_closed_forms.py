"""Closed forms against sums over everything, and against draws."""

import math
from functools import partial

import numpy as np
import pytest

from ldpaudit.commands.advise.closed_forms.candidates import GRID
from ldpaudit.commands.advise.closed_forms.limits import Limits
from ldpaudit.commands.advise.closed_forms.study import Rows
from ldpaudit.commands.advise.closed_forms.utility import information_share, share_error
from ldpaudit.commands.advise.sentence import no_use
from ldpaudit.judging.policy import STARTER, parse_policy
from ldpaudit.result import Estimate


def response(k: int, epsilon: float) -> np.ndarray:
    weight = math.exp(epsilon)
    return (np.ones((k, k)) + (weight - 1) * np.eye(k)) / (weight + k - 1)


@pytest.fixture
def rows() -> Rows:
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(4), 500)
    truth = np.array([rng.choice(4, p=p) for p in posterior], dtype=np.int32)
    return Rows(posterior, truth)


def test_guesses_are_averaged_over_the_noise_exactly(rows):
    channel, rng = response(4, 1.0), np.random.default_rng(1)
    expected = rows.right(channel)
    drawn = np.zeros(500)
    for _ in range(400):
        released = (rng.random((500, 1)) > channel[rows.truth].cumsum(axis=1)).sum(axis=1)
        guess = (rows.posterior * channel.T[released]).argmax(axis=1)
        drawn += guess == rows.truth
    # The mean of 200,000 independent draws: six standard errors.
    assert abs(drawn.mean() / 400 - expected.mean()) < 6 * 0.5 / math.sqrt(200_000)


def test_no_release_tells_no_more_than_the_features(rows):
    assert np.array_equal(rows.right(np.ones((4, 1))), rows.alone)
    assert rows.right(np.eye(4)).all()


def test_a_true_label_is_worth_one_and_noise_nothing():
    posterior = np.random.default_rng(2).dirichlet(np.ones(3), 50)
    assert information_share(posterior, np.eye(3)) == pytest.approx(1)
    assert information_share(posterior, np.full((3, 2), 0.5)) == pytest.approx(0)


def test_the_information_of_two_labels_is_the_textbooks():
    eta, flip = np.array([0.1, 0.5, 0.8]), 0.3
    noisy = eta * (1 - flip) + (1 - eta) * flip
    wanted = (1 - 2 * flip) ** 2 * eta * (1 - eta) / (noisy * (1 - noisy))
    channel = np.array([[1 - flip, flip], [flip, 1 - flip]])
    posterior = np.stack([1 - eta, eta], axis=1)
    assert information_share(posterior, channel) == pytest.approx(wanted.mean())


def test_the_error_of_shares_is_that_of_draws():
    rng, channel, n = np.random.default_rng(3), response(3, 1.0), 2000
    prior = np.array([0.5, 0.3, 0.2])
    inverse, errors = np.linalg.inv(channel), []
    counts = (prior * n).astype(int)
    for _ in range(3000):
        released = sum(rng.multinomial(c, row) for c, row in zip(counts, channel, strict=True))
        errors.append((released / n @ inverse - prior) ** 2)
    # The root mean square of 9,000 errors: within 5 %, far beyond six standard errors.
    assert math.sqrt(np.mean(errors)) == pytest.approx(share_error(prior, channel, n), rel=0.05)


def test_a_channel_that_loses_a_label_has_no_error():
    assert share_error(np.array([0.5, 0.5]), np.full((2, 2), 0.5), 100) == math.inf


def test_the_starter_policy_limits_what_it_says():
    limits = Limits.of(parse_policy(STARTER), 2)
    found = {limit.measure: limit for limit in limits.limits}
    assert found.keys() == {"excess", "exceedance", "advantage"}
    assert found["exceedance"].at(1.0) == 6.0
    assert found["advantage"].most(1.0) == 0.05
    assert limits.confidence == 0.99
    assert limits.min_rows == 1000


def test_a_claimed_lambda_is_a_largest_epsilon():
    claim = '[claim]\nmechanism = "randomized-response"\nlambda = 0.5\n'
    text = f'schema = 1\nextends = "ldpaudit:default"\n{claim}'
    limit = Limits.of(parse_policy(text), 3).of_measure("epsilon")
    assert limit.most(0.0) == pytest.approx(math.log1p(3))


def test_the_grid_ascends():
    assert list(GRID) == sorted(set(GRID))


def test_what_can_be_learnt_is_held_against_the_commonest_label():
    made = partial(Estimate.estimated, "test_accuracy", "accuracy", unit="proportion", method="")
    (text,) = no_use(made(value=0.722), 0.74)
    assert "right in 74" in text
    assert not list(no_use(made(value=0.8), 0.74))
