import math

import numpy as np
import pytest
from scipy.stats import binom

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.epsilon.power import (
    SumOfBinomials,
    detection_power,
    sharpened,
    smallest_detectable,
)
from ldpaudit.estimators.epsilon.strongest import design_bounds, gather_evidence
from ldpaudit.mechanisms import RandomizedResponse
from ldpaudit.mechanisms.channel import Channel


def randomized_response(k: int, epsilon: float) -> Channel:
    return RandomizedResponse.from_epsilon(tuple(range(k)), epsilon).channel


ASYMMETRIC = Channel(np.array([[0.9, 0.1], [0.5, 0.5]]), (0, 1), (0, 1))
RARE = Channel(np.array([[0.5, 0.492, 0.008], [0.49, 0.45, 0.06]]), (0, 1), (0, 1, 2))
# Five labels have the third output at .3, five at .02.
GROUPED = Channel(
    np.repeat([[0.35, 0.35, 0.3], [0.49, 0.49, 0.02]], 5, axis=0), tuple(range(10)), (0, 1, 2)
)


@pytest.mark.parametrize(
    ("channel", "sizes", "primary"),
    [
        (randomized_response(2, 1.0), [500, 500], "accuracy"),
        (randomized_response(2, 0.5), [900, 100], "two-sided"),
        (randomized_response(2, 4.0), [9000, 1000], "accuracy"),
        (ASYMMETRIC, [5000, 5000], "two-sided"),
        (ASYMMETRIC, [2000, 60], "two-sided"),
        (RARE, [20_000, 20_000], "two-sided"),
        (GROUPED, [300] * 10, "two-sided"),
    ],
)
def test_simulated_power_at_the_stated_excess(
    channel: Channel, sizes: list[int], primary: str
) -> None:
    rows, alpha, runs = np.array(sizes), 0.05, 400
    design = design_bounds(rows, channel.matrix)
    assert design is not None
    assert design.primary == primary
    limit = channel.epsilon

    def power(epsilon: float) -> float:
        return detection_power(design, rows, sharpened(channel, epsilon).matrix, limit, alpha)

    found = smallest_detectable(power, limit, 0.9)
    worse, rng = sharpened(channel, found).matrix, np.random.default_rng(0)
    hits = total = 0
    for _ in range(runs):
        counts = np.array([rng.multinomial(n, row) for n, row in zip(rows, worse, strict=True)])
        evidence = gather_evidence(counts, design, rng)
        share = alpha * design.weights[primary]
        hits += evidence.bound(primary, share).epsilon > limit
        total += evidence.strongest(alpha).epsilon > limit
    # Binomial(400, 0.9) leaves this range with probability below 1e-6; the quadrature has 0.002.
    assert binom.isf(1 - 5e-7, runs, 0.898) <= hits <= binom.isf(5e-7, runs, 0.905)
    assert total >= hits


def test_power_is_the_level_at_the_limit() -> None:
    rows, channel = np.array([5000, 5000]), randomized_response(2, 1.0)
    design = design_bounds(rows, channel.matrix)
    assert design is not None
    at_limit = detection_power(design, rows, channel.matrix, 1.0, 0.05)
    assert 0.03 < at_limit <= 0.05 * design.weights[design.primary]


def test_too_few_rows_find_nothing() -> None:
    rows, channel = np.array([30, 30]), randomized_response(2, 8.0)
    design = design_bounds(rows, channel.matrix)
    assert design is not None

    def power(epsilon: float) -> float:
        return detection_power(design, rows, sharpened(channel, epsilon).matrix, 8.0, 0.05)

    assert smallest_detectable(power, 8.0, 0.9) == math.inf


def test_sums_of_binomials() -> None:
    law = SumOfBinomials(np.array([40, 60, 10]), np.array([0.2, 0.2, 0.7]))
    exact = np.convolve(binom.pmf(np.arange(101), 100, 0.2), binom.pmf(np.arange(11), 10, 0.7))
    least = np.arange(112)
    wanted = np.append(np.cumsum(exact[::-1])[::-1], 0.0)
    assert law.survival(least) == pytest.approx(wanted, abs=1e-9)
    values, weights = law.window(25)
    assert weights.sum() == pytest.approx(1.0)
    assert values @ weights == pytest.approx(27.0, abs=1.0)
    one = SumOfBinomials(np.array([50]), np.array([0.3]))
    assert one.survival(np.array([20])) == pytest.approx(binom.sf(19, 50, 0.3))
    empty = SumOfBinomials(np.array([0]), np.array([0.3]))
    assert empty.survival(np.array([0, 1])).tolist() == [1.0, 0.0]


def test_sharpening_randomized_response_gives_randomized_response() -> None:
    for k in (2, 5):
        for epsilon in (0.3, 2.0, 5.0):
            found = sharpened(randomized_response(k, 2.0), epsilon)
            wanted = randomized_response(k, epsilon).matrix
            assert found.matrix == pytest.approx(wanted, abs=1e-9)
    assert sharpened(ASYMMETRIC, 3.0).epsilon == pytest.approx(3.0)


def test_a_channel_that_tells_nothing_apart_becomes_randomized_response() -> None:
    silent = RandomizedResponse((0, 1, 2), 1.0).channel
    worse = sharpened(silent, 0.7)
    np.testing.assert_allclose(worse.matrix, randomized_response(3, 0.7).matrix)
    with pytest.raises(InsufficientDataError):
        sharpened(Channel(np.ones((2, 1)), (0, 1), ("x",)), 0.7)
