"""Promises of critics and their powers, by hand."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from ldpaudit.errors import InputError
from ldpaudit.estimators.discriminators import Discriminator
from ldpaudit.estimators.renyi import (
    CLIPS,
    SCALES,
    ClippedCritic,
    Scores,
    choose_critics,
    promises,
)


def rows(*values: float) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


def test_the_log_loss_weighs_both_sides_equally() -> None:
    found = Discriminator("logistic", lambda x: x[:, 0].astype(np.float64), 2.0, 0.5)
    p, q = rows(1.0, -1.0), rows(0.0, 3.0, -2.0)
    chances = [1 / (1 + math.exp(-(2 * x + 0.5))) for x in (1.0, -1.0, 0.0, 3.0, -2.0)]
    expected = -np.mean(np.log(chances[:2])) - np.mean(np.log(1 - np.array(chances[2:])))
    assert found.log_loss(p, q) == pytest.approx(expected)
    assert found.log_ratio(rows(30, -30)).tolist() == [20, -20]
    assert found.log_ratio(np.empty((0, 1), np.float32)).shape == (0,)


def test_powers_lie_within_their_ranges() -> None:
    critic = ClippedCritic(3.0, True, None, 0.5, 2.0, 0.25, 1.0)
    powers = critic.powers(Scores(np.array([1.0, 9.0, -90.0]), np.array([2.0, -2.0])))
    phi_p, phi_q = np.array([0.5, 2.0, -14.0]) + 0.25, np.array([1.0, -1.0]) + 0.25
    assert powers[0] == pytest.approx(np.exp(2 * phi_p))
    assert powers[1] == pytest.approx(np.exp(3 * phi_q))
    ends = (np.exp(2 * np.array([-13.75, 2.25])), np.exp(3 * np.array([-13.75, 2.25])))
    for found, expected in zip(critic.ranges(), ends, strict=True):
        assert found == pytest.approx(tuple(expected))


def test_guesses_must_be_finite() -> None:
    with pytest.raises(InputError, match="3 are not"):
        Scores(np.array([np.nan, 0.0, np.inf]), np.array([-np.inf]))


def sides() -> Scores:
    rng = np.random.default_rng(1)
    return Scores(rng.normal(0.3, 0.7, 30), rng.normal(-0.3, 0.7, 50))


@pytest.mark.parametrize(("scale", "clip"), [(1.0, 0.5), (0.8, 2.0)])
def test_promises_are_the_worse_of_two_estimates(scale: float, clip: float) -> None:
    """Of the samples, and of the mixture s·p + (1 − s)·q weighted back by the guess of p/q."""
    p, q = sides().p, sides().q
    found = promises(sides(), 1_000, 2_000, np.array([2.0, 4.0]), [(scale, clip)])[0]
    ratio, share = np.exp(np.r_[p, q]), 30 / 80
    mixture = 1 / (share * ratio + 1 - share)
    own = np.repeat([1.0, 0.0], [30, 50])
    cut = np.clip(scale * np.r_[p, q], -clip - 12, clip)
    for o, order in enumerate((2.0, 4.0)):
        plain, tangent, shifts = [], [], []
        far = 3.0 * np.exp(order * clip) / 2_000
        for of_p, of_q in ((own, 1 - own), (ratio * mixture, mixture)):
            a, b = np.exp((order - 1) * cut), np.exp(order * cut)
            mean = np.average(a, weights=of_p), np.average(b, weights=of_q)
            spread = (
                np.average((a - mean[0]) ** 2, weights=of_p),
                np.average((b - mean[1]) ** 2, weights=of_q),
            )
            shifts.append(math.log(mean[0] / mean[1]))
            low = mean[0] + 1.06 * norm.ppf(0.02) * math.sqrt(spread[0] / 1_000)
            high = mean[1] - 1.06 * norm.ppf(0.03) * math.sqrt(spread[1] / 2_000) + far
            plain.append(order / (order - 1) * math.log(low) - math.log(high))
            tangent.append((mean, spread))
        assert found[2, o] == pytest.approx(shifts[1])  # That of the pooled rows.
        assert found[0, o] == pytest.approx(min(plain))
        c = math.exp(found[2, o])
        bounds = []
        for mean, spread in tangent:
            one, other = order * c ** (order - 1), (order - 1) * c**order
            error = math.sqrt(one**2 * spread[0] / 1_000 + other**2 * spread[1] / 2_000)
            low = one * mean[0] - other * mean[1] - 1.85 * error - other * far
            bounds.append(math.log(low) / (order - 1) if low > 0 else 0.0)
        assert found[1, o] == pytest.approx(min(bounds))


def test_a_tangents_promise_above_its_limit_is_not_believed() -> None:
    far = Scores(np.full(50, 6.0), np.full(50, -6.0))
    assert promises(far, 10**6, 10**6, np.array([2.0]), [(1.0, 2.0)])[0, 1, 0] == -np.inf


def test_the_chosen_critic_promises_the_most() -> None:
    rng = np.random.default_rng(2)
    tuning = Scores(rng.normal(0.5, 1, 400), rng.normal(-0.5, 1, 400))
    chosen = [c for c in choose_critics(tuning, 4_000, 4_000, (2.0, 8.0)) if c.map is None]
    assert chosen
    for critic in chosen:
        settings = [(scale, clip) for scale in SCALES for clip in CLIPS]
        found = promises(tuning, 4_000, 4_000, np.array([critic.order]), settings)
        assert critic.foreseen == pytest.approx(found[:, :2].max())
        own = found[settings.index((critic.scale, critic.clip)), :, 0]
        assert own[int(critic.tangent)] == pytest.approx(critic.foreseen)
        assert critic.shift == pytest.approx(critic.tangent * own[2])
