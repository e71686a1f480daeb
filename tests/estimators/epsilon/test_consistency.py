"""Exact tests of a claimed channel: p-values by hand, valid, and small where the claim is wrong."""

import time
from itertools import product

import numpy as np
import pytest
from estimators.worlds import ASYMMETRIC_THREE, counted, randomized_response
from scipy.stats import binom, binomtest, multinomial

from ldpaudit.estimators.epsilon.consistency import (
    SMALLEST_P_VALUE,
    binomial_p_value,
    channel_consistency,
    likelihood_ratio_p_value,
    marginal_consistency,
)
from ldpaudit.estimators.epsilon.pooled import noise_p_value

IMPOSSIBLE = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
NARROW = np.array([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])


@pytest.mark.parametrize("count", [0, 3, 25, 40, 50])
def test_the_entry_test_is_twice_the_smaller_binomial_tail(count: int) -> None:
    tails = [binomtest(count, 50, 0.4, alternative=side).pvalue for side in ("less", "greater")]
    found = float(binomial_p_value(np.array(count), np.array(50), np.array(0.4)))
    assert found == pytest.approx(min(1, 2 * min(tails)), rel=1e-5)


def test_the_entry_test_holds_for_rows_of_unequal_probabilities() -> None:
    """Exactly: the law of a sum of unequal coins, and the chance of each p-value or less."""
    rng = np.random.default_rng(0)
    for trial in range(40):
        n = int(rng.integers(2, 40))
        chances = rng.random(n) ** rng.integers(1, 12)
        chances = (1 - chances if trial % 2 else chances).round(6)
        law = np.ones(1)
        for chance in chances:
            law = np.convolve(law, [1 - chance, chance])
        found = binomial_p_value(np.arange(n + 1), np.array(n), np.array(chances.mean()))
        often = (law * (found <= found[:, None])).sum(axis=1)
        assert (often <= found * (1 + 1e-9))[found <= 0.1].all()


RR3 = randomized_response(3, 1.0)


@pytest.mark.parametrize(
    ("counts", "channel", "test", "g_test"),
    [
        # λ read as the probability of a flip: twice the noise.
        ([[1600, 400], [400, 1600]], [[0.9, 0.1], [0.1, 0.9]], (0, 1e-10), (0, 1e-10)),
        ([[1600, 400], [400, 1600]], [[0.8, 0.2], [0.2, 0.8]], (0.9, 1), (0.9, 1)),
        ([[50, 49, 1], [0, 50, 50]], IMPOSSIBLE, (0, 1e-5), (0, 0)),
        ([[50, 50, 0], [0, 50, 50]], IMPOSSIBLE, (1, 1), (0.9, 1)),
        ([[580, 210, 210], [0, 0, 0], [210, 210, 580]], RR3, (0.05, 1), (0.05, 1)),
        ([[5, 0], [0, 0]], np.eye(2), (1, 1), (1, 1)),
    ],
)
def test_a_channel_is_held_against_counts(
    counts: list[list[int]],
    channel: np.ndarray,
    test: tuple[float, float],
    g_test: tuple[float, float],
) -> None:
    matrix, table = np.array(channel), np.array(counts)
    found = channel_consistency(table, matrix, 0.05)
    assert test[0] <= found.p_value <= test[1]
    assert g_test[0] <= likelihood_ratio_p_value(table, matrix) <= g_test[1]
    assert (found.inconsistent > 0) == (found.p_value <= 0.05)


def test_the_test_of_all_rows_is_that_of_unchanged_labels_under_randomized_response() -> None:
    for k, epsilon, n in ((2, 1.0, 100), (50, 7.0, 4000), (3, 0.5, 100_000)):
        matrix = randomized_response(k, epsilon)
        keep = matrix[0, 0]
        for kept in (binom.ppf([1e-9, 0.01, 0.3, 0.7, 0.99, 1 - 1e-9, 1], n, keep)).astype(int):
            counts = np.zeros((k, k), dtype=np.int64)
            counts[0, :2] = kept, n - kept
            wanted = 2 * min(binom.sf(kept - 1, n, keep), binom.cdf(kept, n, keep))
            assert noise_p_value(counts, matrix) == pytest.approx(min(wanted, 1), rel=1e-4)


CHANNELS = {
    "asymmetric": ASYMMETRIC_THREE,
    "more outputs": np.random.default_rng(1).dirichlet(np.ones(4), 2),
    "impossible": IMPOSSIBLE,
    "distances": 0.4 ** abs(np.subtract.outer(np.arange(4), np.arange(5))),
    "nearly clear": randomized_response(2, 25.0),
}
CHANNELS["distances"] /= CHANNELS["distances"].sum(axis=1, keepdims=True)


@pytest.mark.parametrize("name", CHANNELS)
def test_the_test_of_all_rows_holds_its_level_exactly(name: str) -> None:
    """Over all tables of four people with one label and two with another."""
    channel = CHANNELS[name][:2]
    m = channel.shape[1]
    of_row = [
        [(t, multinomial.pmf(t, n, row)) for t in product(range(n + 1), repeat=m) if sum(t) == n]
        for n, row in zip((4, 2), channel, strict=True)
    ]
    laws = [
        (noise_p_value(np.array([a, b]), channel), p * q)
        for (a, p), (b, q) in product(*of_row)
        if p * q > 0
    ]
    found, chances = np.array(sorted(laws)).T
    often = np.cumsum(chances)
    assert (often <= np.maximum(found, SMALLEST_P_VALUE) * (1 + 1e-6))[found < 1].all()


@pytest.mark.parametrize(
    ("true", "claim", "rows"),
    [
        (randomized_response(50, 40.0), randomized_response(50, 7.0), 4000),
        (randomized_response(50, 1.5), randomized_response(50, 1.0), 4000),
        (randomized_response(50, 0.4), randomized_response(50, 1.0), 4000),
        (randomized_response(10, 0.75), randomized_response(10, 1.0), 4000),
        (CHANNELS["distances"] ** 1.2, CHANNELS["distances"], 1000),
        (CHANNELS["distances"] ** 0.82, CHANNELS["distances"], 1000),
    ],
)
def test_less_and_more_noise_that_all_rows_share_is_noticed(
    true: np.ndarray, claim: np.ndarray, rows: int
) -> None:
    """In 18 of 20 draws at the 5 % level; entry by entry in fewer."""
    true = true / true.sum(axis=1, keepdims=True)
    rng, k = np.random.default_rng(7), len(claim)
    tables = [counted(rng.multinomial(rows, np.full(k, 1 / k)), true, rng) for _ in range(20)]
    found = [channel_consistency(table, claim, 0.05) for table in tables]
    assert sum(one.p_value <= 0.05 for one in found) >= 18
    assert sum(one.inconsistent > 0 for one in found) < 18


def test_labels_that_no_row_changed_are_noticed_however_many_classes() -> None:
    """P(no change) under the claim is 1e-76; each entry by itself agrees."""
    found = channel_consistency(np.eye(50, dtype=int) * 80, randomized_response(50, 7.0), 0.05)
    assert found.inconsistent == 0
    assert found.p_value < 1e-70


def test_a_million_rows_of_many_classes_take_seconds() -> None:
    channel = 0.9 ** abs(np.subtract.outer(np.arange(300), np.arange(300)))
    channel /= channel.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(2)
    table = counted(np.full(300, 3000), channel, rng)
    started = time.process_time()
    assert noise_p_value(table, channel) > 1e-6
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("released", "channel", "low", "high"),
    [
        # Under the claim every output has at least a share of 1/(e^0.5 + 2) = 0.274.
        ([100, 450, 450], randomized_response(3, 0.5), SMALLEST_P_VALUE, SMALLEST_P_VALUE),
        ([280, 300, 420], randomized_response(3, 0.5), 0.99, 1.0),
        # Each share is possible by itself, but no mixture gives them together.
        ([600, 200, 200], NARROW, 0.0, 1e-8),
        (
            [280, 720],
            [[0.7, 0.3], [0.3, 0.7]],
            *(2 * binom.cdf(280, 1000, 0.3) * np.r_[0.98, 1.02]),
        ),
    ],
)
def test_the_released_shares_alone_can_refute_a_claim(
    released: list[int], channel: np.ndarray, low: float, high: float
) -> None:
    found = marginal_consistency(np.array(released), np.array(channel))
    assert found is not None
    assert low <= found <= high


def test_a_program_that_is_too_large_is_left_out() -> None:
    assert marginal_consistency(np.ones(500, dtype=np.int64), np.full((500, 500), 0.002)) is None
