"""The outsider's payoffs, by loops over labels and outputs."""

import math

import numpy as np
import pytest

from ldpaudit.errors import InsufficientDataError
from ldpaudit.estimators.intervals.bounded_mean import mean_lower
from ldpaudit.estimators.loss.bound_if_claim_holds import (
    ClaimedLossBound,
    _Averaged,
    claimed_mean_loss,
)
from ldpaudit.estimators.loss.payoff import share_slope, share_term
from ldpaudit.estimators.loss.posterior_intervals import PosteriorBox, centred_inverse, onto_simplex
from ldpaudit.mechanisms.response.randomized_response import RandomizedResponse
from ldpaudit.release import FloatArray

CHANNEL = RandomizedResponse.from_epsilon((0, 1, 2), 1.0).channel.matrix
PRIOR = np.array([0.6, 0.399, 0.001])
FLOOR = math.exp(-3)


def game() -> _Averaged:
    return _Averaged.of(CHANNEL, PRIOR, 2_000)


def payoff(y: int, posterior: FloatArray, mine: _Averaged) -> float:
    """E[h(y, x, Z)] over Z ~ T[y]: log odds plus g′ where y is the label, the odds' loss else."""
    eta = onto_simplex(mine.offset + posterior[None] @ mine.inverse)[0]
    eta = np.maximum(eta, FLOOR * PRIOR)
    eta /= eta.sum()
    total = 0.0
    for z in range(3):
        for c in np.flatnonzero(mine.kept):
            own = eta[c] * CHANNEL[c, z]
            odds = own / max(eta @ CHANNEL[:, z] - own, math.exp(-30) * own)
            if y == c:
                total += CHANNEL[y, z] * (math.log(odds) + 1 + share_slope(PRIOR[c : c + 1])[0])
            else:
                total -= CHANNEL[y, z] * odds
    return total


def test_labels_are_kept_whose_share_is_clear() -> None:
    inverse, _ = centred_inverse(CHANNEL)
    seen = PRIOR @ CHANNEL
    error = [math.sqrt((seen * (1 - seen)) @ inverse[:, y] ** 2 / 2_000) for y in range(3)]
    assert game().kept.tolist() == [p > 6 * e for p, e in zip(PRIOR, error, strict=True)]
    assert game().kept.tolist() == [True, True, False]


def test_the_weights_invert_the_channel() -> None:
    assert CHANNEL @ game().weights == pytest.approx(np.eye(3))


def test_values_are_payoffs_averaged_over_labels() -> None:
    mine, rng = game(), np.random.default_rng(0)
    released = rng.integers(0, 3, 12).astype(np.int32)
    posterior = rng.dirichlet([8.0, 6.0, 4.0], 12)
    expected = [
        sum(mine.weights[z, y] * payoff(y, row, mine) for y in range(3))
        for z, row in zip(released, posterior, strict=True)
    ]
    found = mine.values(posterior, released, FLOOR)
    assert found == pytest.approx(expected)
    low, high = mine.range(FLOOR)
    assert low <= found.min()
    assert found.max() <= high


def test_the_range_holds_for_every_posterior_and_is_the_formula() -> None:
    mine = game()
    corners = np.r_[CHANNEL, np.eye(3), np.full((1, 3), 1 / 3)]
    for z in range(3):
        values = mine.values(corners, np.full(len(corners), z, np.int32), FLOOR)
        assert mine.range(FLOOR)[0] <= values.min() <= values.max() <= mine.range(FLOOR)[1]
    gain, least = 1 + share_slope(PRIOR), FLOOR * PRIOR / (1 + FLOOR)
    odds = (1 + FLOOR) / (FLOOR * (1 - 0.6))
    worst = CHANNEL / CHANNEL.min(axis=0)
    ratio = [max(CHANNEL[y] @ worst[j] for j in range(3)) for y in range(3)]
    paid = np.minimum(1 / least, np.array(ratio) * (odds + 2))
    low = np.where(mine.kept, gain + np.log(least) - 30, 0.0) - paid
    high = np.where(mine.kept, gain + 30, 0.0)
    pairs = mine.weights[:, :, None] * np.stack([low, high], axis=1)
    table = np.sort(pairs, axis=2).sum(axis=1)
    assert mine.range(FLOOR) == pytest.approx((table[:, 0].min(), table[:, 1].max()))


def test_a_channel_with_an_impossible_output_is_paid_by_the_floor_alone() -> None:
    matrix = np.array([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    mine = _Averaged.of(matrix, np.array([0.4, 0.3, 0.3]), 2_000)
    assert np.isinf(mine._amplification()).all()
    assert np.isfinite(mine.range(FLOOR)).all()


@pytest.mark.parametrize("kept", [[True, True, False], [True, False, False], [False] * 3])
def test_the_bound_is_the_mean_and_what_the_shares_may_be(kept: list[bool]) -> None:
    rng = np.random.default_rng(1)
    values, counts = rng.uniform(50, 60, 500), np.array([25_000, 20_000, 16_000], np.int32)
    bound = ClaimedLossBound(values, 0.0, 60.0, counts, PRIOR, np.array(kept), CHANNEL)
    box = PosteriorBox.from_counts(counts[None], counts.sum(keepdims=True), 0.02 * 0.05)
    box = box.through(CHANNEL)
    total = mean_lower(values, 0.98 * 0.05, 0.0, 60.0)
    for y in np.flatnonzero(kept):
        slope = share_slope(PRIOR[y : y + 1])[0]
        total += min(share_term(end) - slope * end for end in (box.low[0, y], box.high[0, y]))
    assert total > 0
    assert bound.at(0.05) == pytest.approx(total if any(kept) else 0.0)


def test_a_hundred_rows_are_enough() -> None:
    rng = np.random.default_rng(2)
    posterior = np.tile(CHANNEL[0], (100, 1))
    released = rng.integers(0, 3, 100).astype(np.int32)
    prior = np.array([0.4, 0.3, 0.3])
    found = claimed_mean_loss(posterior, released, CHANNEL, prior, rng=rng)
    assert len(found.values) == found.released_counts.sum() == 90
    assert found.low < found.values.min()
    with pytest.raises(InsufficientDataError, match="got 99"):
        claimed_mean_loss(posterior[:99], released[:99], CHANNEL, prior, rng=rng)
