import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.loss.bound_if_claim_holds import claimed_mean_loss
from ldpaudit.estimators.loss.critic import HeldOut, ModelCritic
from ldpaudit.estimators.loss.donsker_varadhan import certified_mean_loss, strongest
from ldpaudit.estimators.loss.instance_loss import row_loss
from ldpaudit.estimators.loss.payoff import Payoff
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.release import FloatArray

FORMS = ("cells", "donsker-varadhan")


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
    matrix = RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel.matrix
    return np.array(matrix)


def binary_world() -> World:
    return World(np.array([0.543, 0.457]), randomized_response(2, 2.0))


def bounds_of(data: HeldOut, seed: int, alpha: float) -> dict[str, float]:
    found = certified_mean_loss(data, rng=np.random.default_rng(seed))
    values = {name: bound.at(alpha) for name, bound in found.items()}
    return values | {"strongest": values[strongest(found)]}


def test_the_world_is_the_closed_form() -> None:
    # KL of two unit Gaussians one apart is 1/2; flips π add (1 − 2π) log((1 − π)/π).
    assert binary_world().mean_loss() == pytest.approx(0.5 + 2 * np.tanh(1.0), abs=0.01)


# 40 runs at level 0.8 each (200 under `validate`); a count above the limit has probability below
# 3e-7 in all.
def test_the_bounds_miss_no_more_often_than_their_level() -> None:
    world, rng = binary_world(), np.random.default_rng(0)
    truth = 0.5 + 2 * np.tanh(1.0)
    runs = [bounds_of(world.draw(1500, rng), seed, 0.2) for seed in range(40)]
    for name in (*FORMS, "strongest"):
        assert sum(run[name] > truth for run in runs) <= binom.isf(1e-7, 40, 0.2)


@pytest.mark.validate
@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_the_bounds_miss_no_more_often_than_their_level_at_length(k: int, alpha: float) -> None:
    world, rng = World(np.full(k, 1 / k), randomized_response(k, 2.0)), np.random.default_rng(k)
    truth = world.mean_loss(1_000_000) + 0.003
    runs = [bounds_of(world.draw(8000, rng), seed, alpha) for seed in range(200)]
    for name in (*FORMS, "strongest"):
        assert sum(run[name] > truth for run in runs) <= binom.isf(1e-8, 200, alpha)


# The mean of 4 runs has a standard deviation below 0.01 of the truth.
def test_the_strongest_bound_is_close() -> None:
    world, rng = binary_world(), np.random.default_rng(4)
    truth = 0.5 + 2 * np.tanh(1.0)
    runs = [bounds_of(world.draw(50_000, rng), seed, 0.05) for seed in range(4)]
    for name in (*FORMS, "strongest"):
        assert 0.94 < np.mean([run[name] for run in runs]) / truth < 1.0


@pytest.mark.parametrize(("k", "least"), [(3, 0.9), (10, 0.75)])
def test_more_labels(k: int, least: float) -> None:
    world = World(np.full(k, 1 / k), randomized_response(k, 2.0))
    truth, rng = world.mean_loss(), np.random.default_rng(k)
    found = bounds_of(world.draw(60_000, rng), 0, 0.05)
    assert least < found["strongest"] / truth < 1.0


def test_rare_labels_are_left_out_not_guessed() -> None:
    prior = np.concatenate([np.full(3, 0.3), np.full(50, 0.1 / 50)])
    world = World(prior, randomized_response(53, 3.0), 0.3)
    found = bounds_of(world.draw(10_000, np.random.default_rng(1)), 0, 0.05)
    truth = world.mean_loss(100_000)
    assert 0.5 * truth < found["strongest"] < truth


def test_nothing_released_is_nothing_certified() -> None:
    world = World(np.array([0.3, 0.7]), np.full((2, 2), 0.5), distance=0.0)
    found = bounds_of(world.draw(20_000, np.random.default_rng(5)), 0, 0.01)
    assert max(found.values()) == 0.0


def test_a_wrong_model_and_a_wrong_channel_only_weaken_the_bound() -> None:
    world, rng = binary_world(), np.random.default_rng(6)
    truth = 0.5 + 2 * np.tanh(1.0)
    data = world.draw(40_000, rng)
    reversed_scores = data.posterior[:, ::-1] ** 2
    reversed_scores /= reversed_scores.sum(axis=1, keepdims=True)
    wrong = HeldOut(
        reversed_scores, data.labels, data.released, np.array([0.9, 0.1]), np.full((2, 2), 0.5)
    )
    found = bounds_of(wrong, 0, 0.05)
    assert found["donsker-varadhan"] < 0.9 * truth
    # Cells learn anew what a score means, but with this channel z does not enter the score.
    assert 0.15 < found["cells"] < truth


def test_a_channel_that_depends_on_the_features_is_no_obstacle() -> None:
    # Released truly where x > 0 and at random elsewhere: the average channel is a wrong one.
    rng = np.random.default_rng(7)
    world = binary_world()
    data = world.draw(60_000, rng)
    truly = data.posterior[:, 1] > 0.5
    random = rng.integers(0, 2, len(data)).astype(np.int32)
    released = np.where(truly, data.labels, random).astype(np.int32)
    mixed = HeldOut(data.posterior, data.labels, released, data.prior, np.eye(2) * 0.5 + 0.25)
    assert bounds_of(mixed, 0, 0.05)["cells"] > 0.5 + 0.1


def test_payoffs_stay_in_their_range() -> None:
    for k in (2, 4, 12):
        world = World(np.full(k, 1 / k), randomized_response(k, 4.0), 2.0)
        found = certified_mean_loss(
            world.draw(5000, np.random.default_rng(k)), rng=np.random.default_rng(0)
        )
        for bound in found.values():
            low, high = bound.payoff.range()
            assert low <= bound.values.min()
            assert bound.values.max() <= high


def test_the_payoffs_mean_is_the_loss_for_the_true_log_odds() -> None:
    world = binary_world()
    data = world.draw(1_000_000, np.random.default_rng(8))
    payoff = Payoff(ModelCritic(world.channel), world.prior, np.full(2, 12.0))
    mean = payoff.values(data).mean() + payoff.constant
    assert mean == pytest.approx(0.5 + 2 * np.tanh(1.0), abs=0.05)


def test_more_confidence_means_a_lower_bound() -> None:
    data = binary_world().draw(5000, np.random.default_rng(9))
    bound = certified_mean_loss(data, rng=np.random.default_rng(0))["donsker-varadhan"]
    assert 0 < bound.at(0.001) < bound.at(0.05) < bound.at(0.5) < bound.centre * 1.01


def test_too_few_rows() -> None:
    data = binary_world().draw(99, np.random.default_rng(0))
    with pytest.raises(InsufficientDataError):
        certified_mean_loss(data, rng=np.random.default_rng(0))
    with pytest.raises(InsufficientDataError):
        claimed_mean_loss(
            data.posterior, data.released, data.channel, data.prior, rng=np.random.default_rng(0)
        )


def claimed(world: World, n: int, rng: np.random.Generator, alpha: float) -> float:
    data = world.draw(n, rng)
    seen = data.posterior @ world.channel
    found = claimed_mean_loss(seen, data.released, world.channel, world.prior, rng=rng)
    return found.at(alpha)


# As above: 60 runs at level 0.8, flake probability below 1e-7.
def test_the_outsiders_bound_misses_no_more_often_than_its_level_under_the_claim() -> None:
    world, rng = binary_world(), np.random.default_rng(10)
    truth = 0.5 + 2 * np.tanh(1.0)
    misses = sum(claimed(world, 1500, rng, 0.2) > truth for _ in range(60))
    assert misses <= binom.isf(1e-7, 60, 0.2)


@pytest.mark.parametrize("k", [2, 4])
def test_the_outsiders_bound_is_close(k: int) -> None:
    world = World(np.full(k, 1 / k), randomized_response(k, 2.0))
    found = claimed(world, 60_000, np.random.default_rng(11), 0.05)
    assert 0.85 < found / world.mean_loss() < 1.0
