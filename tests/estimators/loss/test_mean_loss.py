"""Lower bounds of E[ν]: payoffs by hand, misses and power, with true labels and under a claim."""

import math

import numpy as np
import pytest
from worlds import TURNED

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.instance_loss import (
    row_loss,
)
from ldpaudit.estimators.mean_loss import (
    AveragedPayoff,
    HeldOut,
    centred_inverse,
    certified_mean_loss,
    claimed_mean_loss,
    share_slope,
)
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FloatArray


class World:
    """Gaussian classes on a line, one unit apart, behind a channel: every probability is known."""

    def __init__(self, prior: FloatArray, channel: FloatArray, distance: float = 1.0) -> None:
        self.prior, self.channel = prior, channel
        self.means = distance * np.arange(len(prior))

    def posterior(self, x: FloatArray) -> FloatArray:
        density = self.prior * np.exp(-0.5 * (x[:, None] - self.means) ** 2)
        density = np.maximum(density, 1e-300)
        return np.asarray(density / density.sum(axis=1, keepdims=True))

    def draw(self, n: int, rng: np.random.Generator) -> HeldOut:
        labels = rng.choice(len(self.prior), n, p=self.prior).astype(np.int32)
        x = self.means[labels] + rng.standard_normal(n)
        u = rng.random((n, 1))
        released = (u > np.cumsum(self.channel[labels], axis=1)[:, :-1]).sum(axis=1)
        posterior = self.posterior(x)
        return HeldOut(posterior, labels, released.astype(np.int32), self.prior, self.channel)

    def mean_loss(self, rows: int = 200_000) -> float:
        """E[ν] to about ± 0.005."""
        data = self.draw(rows, np.random.default_rng(99))
        losses = row_loss(data.posterior, data.labels, data.released, self.prior, self.channel)
        return float(losses.mean())


def randomized_response(k: int, epsilon: float) -> FloatArray:
    return np.array(RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel.matrix)


def even(k: int) -> World:
    return World(np.full(k, 1 / k), randomized_response(k, 2.0))


BINARY = World(np.array([0.543, 0.457]), randomized_response(2, 2.0))
TRUTH = 0.5 + 2 * math.tanh(1.0)
"""KL of two unit Gaussians one apart is 1/2; flips π add (1 − 2π) log((1 − π)/π)."""
RARE = World(np.r_[np.full(3, 0.3), np.full(50, 0.1 / 50)], randomized_response(53, 3.0), 0.3)
SILENT = World(np.array([0.3, 0.7]), np.full((2, 2), 0.5), distance=0.0)


def certified(data: HeldOut, alpha: float = 0.05, seed: int = 0) -> float:
    return certified_mean_loss(data, rng=np.random.default_rng(seed)).at(alpha)


def both(world: World, n: int, alpha: float, seed: int) -> tuple[float, float]:
    """Return the bound with true labels, and that of an outsider who takes the claim for true."""
    rng = np.random.default_rng([n, seed])
    data = world.draw(n, rng)
    seen = data.posterior @ world.channel
    claimed = claimed_mean_loss(seen, data.released, world.channel, world.prior, rng=rng)
    return certified(data, alpha, seed), claimed.at(alpha)


# One run has a standard deviation below 0.02 of the truth.
@pytest.mark.parametrize(
    ("world", "n", "least", "outsiders"),
    [
        (BINARY, 30_000, 0.9, 0.8),
        (even(4), 30_000, 0.8, 0.75),
        (even(10), 30_000, 0.65, 0.0),
        (RARE, 10_000, 0.5, 0.0),
    ],
)
def test_the_bounds_are_close(world: World, n: int, least: float, outsiders: float) -> None:
    truth = world.mean_loss(100_000)
    insiders, claimed = both(world, n, 0.05, 4)
    assert least < insiders / truth < 1.0
    assert outsiders <= claimed / truth < 1.0


def test_a_wrong_model_or_channel_only_weakens_the_bound() -> None:
    assert certified(SILENT.draw(20_000, np.random.default_rng(5)), 0.01) == 0.0
    data = BINARY.draw(40_000, np.random.default_rng(6))
    turned = data.posterior[:, ::-1] ** 2
    turned /= turned.sum(axis=1, keepdims=True)
    prior, flat = np.array([0.9, 0.1]), np.full((2, 2), 0.5)
    assert certified(HeldOut(turned, data.labels, data.released, prior, flat)) < 0.9 * TRUTH
    # Released truly where x > 0 and at random elsewhere: the average channel is a wrong one.
    anyone = np.random.default_rng(7).integers(0, 2, len(data)).astype(np.int32)
    released = np.where(data.posterior[:, 1] > 0.5, data.labels, anyone).astype(np.int32)
    mixed = HeldOut(data.posterior, data.labels, released, data.prior, np.eye(2) * 0.5 + 0.25)
    assert certified(mixed) > 0.5 + 0.1


@pytest.mark.parametrize("k", [2, 4, 12])
def test_payoffs_stay_in_their_range_and_bounds_fall_with_the_level(k: int) -> None:
    world = World(np.full(k, 1 / k), randomized_response(k, 4.0), 2.0)
    data = world.draw(5000, np.random.default_rng(k))
    bound = certified_mean_loss(data, rng=np.random.default_rng(0))
    low, high = bound.ends
    assert low <= bound.values.min() <= bound.values.max() <= high
    assert 0 < bound.at(0.001) < bound.at(0.05) < bound.at(0.5) < bound.centre * 1.01


def test_a_hundred_rows_are_enough() -> None:
    rng = np.random.default_rng(0)
    data = BINARY.draw(100, rng)
    few = data.take(slice(99))
    known = (data.posterior, data.released, data.channel, data.prior)
    found = claimed_mean_loss(*known, rng=rng)
    assert len(found.values) == 90
    assert found.ends[0] < found.values.min()
    with pytest.raises(InsufficientDataError, match="got 99"):
        certified_mean_loss(few, rng=rng)
    with pytest.raises(InsufficientDataError, match="got 99"):
        claimed_mean_loss(few.posterior, few.released, few.channel, few.prior, rng=rng)


def test_log_odds_and_averaged_payoffs_follow_the_direction_of_a_channel() -> None:
    channel, rng = TURNED.label_channel.matrix, np.random.default_rng(2)
    eta, prior = rng.dirichlet(np.full(3, 5.0), 6), np.array([0.5, 0.3, 0.2])
    codes = np.tile(np.arange(3, dtype=np.int32), 2)
    odds = HeldOut(eta, codes, codes, prior, channel).log_odds()
    payoff = AveragedPayoff(channel, prior, *centred_inverse(channel), np.ones(3, dtype=np.bool_))
    paid, gain = payoff._label_payoffs(eta @ channel, 1e-6), 1 + share_slope(prior)
    for row in range(6):
        joint = eta[row][:, None] * channel
        each = joint / (joint.sum(axis=0) - joint)
        assert odds[row] == pytest.approx(np.log(each[:, codes[row]]))
        for y in range(3):
            values = [
                gain[y] + math.log(each[y, z]) + each[y, z] - each[:, z].sum() for z in range(3)
            ]
            assert paid[row, y] == pytest.approx(channel[y] @ np.array(values), rel=1e-4)
