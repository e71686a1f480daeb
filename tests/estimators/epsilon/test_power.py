"""Power: the share of simulated releases whose bound exceeds a limit."""

import math

import numpy as np
import pytest
from estimators.worlds import counted, randomized_response
from scipy.stats import binom
from worlds import TURNED

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.bounds import GroupTest, Method
from ldpaudit.estimators.epsilon.power import (
    Claimed,
    further_rows,
    label_mixtures,
    sharpened,
    smallest_excess,
)
from ldpaudit.estimators.epsilon.strongest import design_bounds, gather_evidence
from ldpaudit.extras.kinds.observational.matched import target_chance
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel
from ldpaudit.release import FloatArray


def channel_of(matrix: FloatArray) -> Channel:
    k, m = np.shape(matrix)
    return Channel(np.asarray(matrix), tuple(range(k)), tuple(range(m)))


ASYMMETRIC = channel_of([[0.9, 0.1], [0.5, 0.5]])
RARE = channel_of([[0.5, 0.492, 0.008], [0.49, 0.45, 0.06]])
# Five labels have the third output at .3, five at .02.
GROUPED = channel_of(np.repeat([[0.35, 0.35, 0.3], [0.49, 0.49, 0.02]], 5, axis=0))
LOPSIDED = channel_of([[0.6, 0.25, 0.15], [0.15, 0.25, 0.6]])


@pytest.mark.parametrize(
    ("channel", "sizes", "exact"),
    [
        (channel_of(randomized_response(2, 1.0)), [500, 500], 0.2174),
        (channel_of(randomized_response(2, 0.5)), [900, 100], 0.3384),
        (ASYMMETRIC, [1500, 1500], 0.3053),
        (RARE, [25_000, 25_000], 0.2876),
        (GROUPED, [300] * 10, 0.9040),
    ],
)
def test_a_release_at_the_smallest_excess_is_found_nine_times_in_ten(
    channel: Channel, sizes: list[int], exact: float
) -> None:
    """The figures are of an exact computation, of the likelier method alone; one is 3 % larger."""
    rows, alpha, runs = np.array(sizes), 0.05, 80
    excess = Claimed(rows, channel, channel.epsilon).smallest_excess(alpha)
    assert excess == pytest.approx(exact, abs=0.03)
    design, rng, hits = design_bounds(rows, channel.matrix), np.random.default_rng(0), 0
    assert design is not None
    worse = sharpened(channel, channel.epsilon + excess).matrix
    for _ in range(runs):
        evidence = gather_evidence(counted(rows, worse, rng), design, rng)
        hits += evidence.bound(alpha).epsilon > channel.epsilon
    # Binomial(80, 0.88) and (80, 0.93) leave this range with probability below 1e-6.
    assert binom.isf(1 - 5e-7, runs, 0.88) <= hits <= binom.isf(5e-7, runs, 0.93)


def test_what_cannot_be_found() -> None:
    few = Claimed(np.array([30, 30]), channel_of(randomized_response(2, 8.0)), 8.0)
    assert few.smallest_excess(0.05) == math.inf
    assert smallest_excess(lambda _: False, 1.0) == further_rows(lambda _: False, 100) == math.inf
    one = Claimed(np.array([30, 0]), channel_of(randomized_response(2, 1.0)), 1.0)
    assert one.smallest_excess(0.05) == math.inf
    assert one.smallest_clear_share(0.05) == math.inf


def test_releases_in_the_clear() -> None:
    claimed = Claimed(np.array([5600, 2400]), channel_of(randomized_response(2, 1.0)), 1.0)
    assert 0.03 < claimed.smallest_clear_share(0.04) < 0.08
    assert 0.005 < claimed.smallest_clear_group(0.005, 1 / 3) < 0.1
    assert claimed.smallest_clear_group(1e-9, 1 / 3) > claimed.smallest_clear_group(0.005, 1 / 3)
    many = Claimed(np.arange(1, 21) * 10, channel_of(randomized_response(20, 2.0)), 2.0)
    assert 0 < many.smallest_clear_share(0.04) < 1


def test_sharpened_channels() -> None:
    for k in (2, 5):
        for epsilon in (0.3, 2.0, 5.0):
            found = sharpened(channel_of(randomized_response(k, 2.0)), epsilon)
            assert found.matrix == pytest.approx(randomized_response(k, epsilon), abs=1e-8)
    assert sharpened(ASYMMETRIC, 3.0).epsilon == pytest.approx(3.0)
    silent = RandomizedResponse((0, 1, 2), 1.0).channel
    assert sharpened(silent, 0.7).matrix == pytest.approx(randomized_response(3, 0.7))
    with pytest.raises(InsufficientDataError):
        sharpened(Channel(np.ones((2, 1)), (0, 1), ("x",)), 0.7)


@pytest.mark.parametrize("method", ["accuracy", "two-sided"])
def test_groups_of_rows_are_simulated_as_they_are_bounded(method: Method) -> None:
    shares, n, rng = np.array([[0.97, 0.03], [0.05, 0.95]]), 3000, np.random.default_rng(2)
    table = np.rint(n * shares @ LOPSIDED.matrix).astype(np.int64)
    means = np.array([0, 0, 1], np.int32)
    test = GroupTest(table, means, 1.0, "scores", method)
    outputs = shares @ sharpened(LOPSIDED, LOPSIDED.epsilon + 0.3).matrix
    simulated = test.simulated(outputs, 0.05, 2000, rng)
    drawn = [
        GroupTest(rng.multinomial(n, outputs), means, 1.0, "scores", method).bound(0.05).epsilon
        for _ in range(200)
    ]
    # Five standard errors of the mean of 200.
    assert np.mean(drawn) == pytest.approx(simulated.mean(), abs=5 * np.std(drawn) / 14)
    assert test.simulated(outputs, 0.05, 500, rng, 10.0).mean() > simulated.mean()
    nobody = GroupTest(np.zeros((2, 3), np.int64), means, 1.0, "scores", method)
    assert not nobody.simulated(outputs, 0.05, 3, rng).any()


def pairs(
    cases: int, case_hits: int, controls: int, hits: int, chance: float | None = None
) -> GroupTest:
    table = np.array([[controls - hits, hits], [cases - case_hits, case_hits]])
    return GroupTest(table, np.arange(2, dtype=np.int32), 1.0, "two-sided", "two-sided", chance)


def test_the_models_probability_is_read_from_the_counts_without_the_claim() -> None:
    rng = np.random.default_rng(1)
    for noise, chance in ((0.5, 0.1), (0.2, 0.1), (0.6, 0.4)):
        hits = rng.binomial(10**6, 1 - noise + noise * chance)
        false = rng.binomial(4 * 10**6, noise * chance)
        found = target_chance(pairs(10**6, hits, 4 * 10**6, false), 0.05)
        assert chance - 0.002 < found < chance + 0.01
    assert target_chance(pairs(20, 11, 20, 1, 0.1), 0.05) == 0.1
    # Of an interval the chance nearest to one half counts.
    assert target_chance(pairs(500, 500, 500, 500, 0.1), 0.05) > 0.5
    assert target_chance(pairs(4_000, 3_900, 4_000, 2_000, 0.1), 0.05) > 0.9
    assert target_chance(pairs(4_000, 2_000, 4_000, 40), 0.05) < 0.1
    assert target_chance(pairs(40, 20, 40, 20, 0.99), 0.05) == 0.5


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_a_channel_of_next_to_no_epsilon_is_sharpened(epsilon: float) -> None:
    # Of noise far wider than the range nearly all outputs lie beyond either end.
    ends = 0.5 + np.array([[1e-7, -1e-7], [-1e-7, 1e-7]])
    matrix = np.hstack([ends * (1 - 2e-7), [[1.1e-7, 0.9e-7, 0.0], [0.9e-7, 1.1e-7, 0.0]]])
    with np.errstate(all="raise", under="ignore"):
        sharper = sharpened(channel_of(matrix), epsilon)
    assert sharper.epsilon == pytest.approx(epsilon, abs=1e-6)
    assert (sharper.matrix[:, 4] == 0).all()


def test_the_labels_in_groups_of_rows_are_found_behind_a_turned_channel() -> None:
    shares = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    channel = TURNED.label_channel.matrix
    table = np.rint(100_000 * shares @ channel).astype(np.int64)
    assert label_mixtures(table, channel) == pytest.approx(shares, abs=0.01)
