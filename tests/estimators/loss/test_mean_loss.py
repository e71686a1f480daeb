"""Lower bounds of E[ν]: payoffs by hand, misses and power, with true labels and under a claim."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.instance_loss import (
    row_loss,
)
from ldpaudit.estimators.mean_loss import (
    AveragedPayoff,
    HeldOut,
    MeanLossBound,
    Payoff,
    certified_mean_loss,
    claimed_mean_loss,
    share_slope,
)
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.models.corrections import onto_simplex
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


def missed(world: World, truth: float, n: int, runs: int, alpha: float) -> int:
    """Return how often the worst of the bounds lies above the truth."""
    found = np.array([both(world, n, alpha, seed) for seed in range(runs)])
    return int((found > truth).sum(axis=0).max())


def test_the_world_is_the_closed_form() -> None:
    assert BINARY.mean_loss() == pytest.approx(TRUTH, abs=0.01)


# A count above the limit has a probability below 1e-7 for each bound.
def test_the_bounds_miss_no_more_often_than_their_level() -> None:
    assert missed(BINARY, TRUTH, 1500, 40, 0.2) <= binom.isf(1e-7, 40, 0.2)


@pytest.mark.validate
@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_the_bounds_miss_no_more_often_than_their_level_at_length(k: int, alpha: float) -> None:
    truth = even(k).mean_loss(1_000_000) + 0.003
    assert missed(even(k), truth, 8000, 200, alpha) <= binom.isf(1e-8, 200, alpha)


# One run has a standard deviation below 0.02 of the truth.
@pytest.mark.parametrize(
    ("world", "n", "least", "outsiders"),
    [
        (BINARY, 50_000, 0.92, 0.85),
        (even(3), 60_000, 0.9, 0.85),
        (even(4), 60_000, 0.88, 0.85),
        (even(10), 60_000, 0.75, 0.0),
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


def test_the_payoffs_mean_is_the_loss_for_the_true_log_odds() -> None:
    data = BINARY.draw(1_000_000, np.random.default_rng(8))
    payoff = Payoff(BINARY.prior, np.full(2, 12.0))
    bound = MeanLossBound(payoff.values(data), payoff.range(), BINARY.prior, lambda _: 0 * PRIOR)
    assert bound.centre == pytest.approx(TRUTH, abs=0.05)


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


CHANNEL = RandomizedResponse.from_epsilon((0, 1, 2), 1.0).channel.matrix
PRIOR = np.array([0.5, 0.3, 0.2])


def odds(p: float) -> float:
    return p / (1 - p)


CLAIMED_PRIOR = np.array([0.6, 0.399, 0.001])
FLOOR = math.exp(-3)


def game() -> AveragedPayoff:
    return AveragedPayoff.of(CHANNEL, CLAIMED_PRIOR, 2_000)


def payoff(y: int, posterior: FloatArray, mine: AveragedPayoff) -> float:
    """E[h(y, x, Z)] over Z ~ T[y]: log odds plus g′ where y is the label, the odds' loss else."""
    eta = onto_simplex(mine.offset + posterior[None] @ mine.inverse)[0]
    eta = np.maximum(eta, FLOOR * CLAIMED_PRIOR)
    eta /= eta.sum()
    total = 0.0
    for z in range(3):
        for c in np.flatnonzero(mine.kept):
            own = eta[c] * CHANNEL[c, z]
            odds = own / max(eta @ CHANNEL[:, z] - own, math.exp(-30) * own)
            if y == c:
                total += CHANNEL[y, z] * (
                    math.log(odds) + 1 + share_slope(CLAIMED_PRIOR[c : c + 1])[0]
                )
            else:
                total -= CHANNEL[y, z] * odds
    return total


def test_the_weights_invert_the_channel() -> None:
    assert CHANNEL @ game().weights == pytest.approx(np.eye(3))
